use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// Holds bodies and counts what it is asked.
#[derive(Debug, Default)]
struct FakeFetcher {
    bodies: HashMap<Key, Bytes>,
    calls: Mutex<Vec<usize>>,
    /// Answers at most so many bodies of a call.
    most: Option<usize>,
    hangs: AtomicBool,
    fails: AtomicBool,
}

impl FakeFetcher {
    fn of(bodies: &[Bytes]) -> (Self, Vec<BodyRef>) {
        let held: Vec<BodyRef> = bodies.iter().map(held).collect();
        let bodies = held.iter().zip(bodies).map(|(held, body)| (held.key, body.clone())).collect();
        (Self { bodies, ..Self::default() }, held)
    }

    /// How many bodies each call asked for, the largest first: calls go on at the same time.
    fn calls(&self) -> Vec<usize> {
        let mut calls = self.calls.lock().unwrap().clone();
        calls.sort_unstable_by(|one, other| other.cmp(one));
        calls
    }
}

impl BodyFetcher for FakeFetcher {
    fn fetch<'a>(
        &'a self,
        _: &'a Call,
        wanted: &'a [BodyRef],
    ) -> BoxFuture<'a, Result<Vec<(Key, Bytes)>, Error>> {
        Box::pin(async move {
            self.calls.lock().unwrap().push(wanted.len());
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if self.fails.load(Ordering::SeqCst) {
                return Err(Error::Answer("a test lets it fail"));
            }
            let found =
                wanted.iter().filter_map(|held| Some((held.key, self.bodies.get(&held.key)?.clone())));
            Ok(found.take(self.most.unwrap_or(usize::MAX)).collect())
        })
    }
}

fn held(body: &Bytes) -> BodyRef {
    BodyRef {
        key: Key::of(body),
        size: u64::try_from(body.len()).unwrap(),
        kind: Kind::File,
        id: Uuid::nil(),
    }
}

fn texts(count: usize, length: usize) -> Vec<Bytes> {
    let text = |number: usize| {
        let mut text = number.to_string().into_bytes();
        text.resize(length, b' ');
        Bytes::from(text)
    };
    (0..count).map(text).collect()
}

/// Runs on a thread that may block, as scripts do.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

fn reader(bodies: &Bodies, shelf: &Arc<FakeFetcher>) -> (Reader, CancellationToken) {
    let cancelled = CancellationToken::new();
    let holder: Arc<dyn BodyFetcher> = Arc::clone(shelf) as Arc<dyn BodyFetcher>;
    let reader =
        Reader::new(bodies.clone(), holder, Call::within(LIMIT), cancelled.clone(), Handle::current());
    (reader, cancelled)
}

fn roomy() -> Bodies {
    Bodies::new(Memory::default())
}

#[tokio::test]
async fn what_is_announced_comes_in_few_calls_and_then_from_memory() {
    let all = texts(1_000, 100);
    let (shelf, held) = FakeFetcher::of(&all);
    let (shelf, bodies) = (Arc::new(shelf), roomy());
    for round in 0..2 {
        let (reader, _cancelled) = reader(&bodies, &shelf);
        let (held, all) = (held.clone(), all.clone());
        blocking(move || {
            reader.announce(held.iter().copied());
            for (held, text) in held.iter().zip(&all) {
                assert_eq!(reader.read(held).unwrap(), text);
            }
        })
        .await;
        assert_eq!(shelf.calls(), [256, 256, 256, 232], "round {round}");
    }
}

#[tokio::test]
async fn from_memory_only_what_is_kept_and_small_is_read() {
    let all = [Bytes::from_static(b"small"), Bytes::from(vec![b'x'; FAST_PATH_BYTES + 1])];
    let (shelf, held) = FakeFetcher::of(&all);
    let (shelf, bodies) = (Arc::new(shelf), roomy());
    let (reader, _cancelled) = reader(&bodies, &shelf);
    let [small, large] = <[BodyRef; 2]>::try_from(held).unwrap();
    for (is_kept, may_be_read) in [(false, [false, false]), (true, [true, false])] {
        for (held, may_be_read) in [small, large].iter().zip(may_be_read) {
            reader.read_from_memory_only(true);
            assert_eq!(reader.read(held).is_ok(), may_be_read, "kept: {is_kept}, {} bytes", held.size);
            assert_eq!(reader.missed(), !may_be_read);
        }
        bodies.insert(small.key, &all[0]);
        bodies.insert(large.key, &all[1]);
    }
    assert!(shelf.calls().is_empty(), "nothing is fetched");
    reader.read_from_memory_only(false);
    assert!(!reader.missed());
    let text = blocking(move || reader.read(&large).unwrap()).await;
    assert_eq!(text, all[1], "afterwards everything is read");
}

#[tokio::test]
async fn a_batch_is_bounded_in_bytes() {
    let all = texts(6, usize::try_from(BATCH_BYTES / 2).unwrap());
    let (shelf, held) = FakeFetcher::of(&all);
    let shelf = Arc::new(shelf);
    let (reader, _cancelled) = reader(&roomy(), &shelf);
    blocking(move || {
        reader.announce(held.iter().copied());
        for (held, text) in held.iter().zip(&all) {
            assert_eq!(reader.read(held).unwrap(), text);
        }
    })
    .await;
    assert_eq!(shelf.calls(), [2, 2, 2]);
}

#[tokio::test]
async fn a_body_larger_than_a_batch_comes_alone() {
    let mut all = texts(4, 10);
    all.insert(2, Bytes::from(vec![b'x'; usize::try_from(BATCH_BYTES + 1).unwrap()]));
    let (shelf, held) = FakeFetcher::of(&all);
    let shelf = Arc::new(shelf);
    let (reader, _cancelled) = reader(&roomy(), &shelf);
    blocking(move || {
        reader.announce(held.iter().copied());
        for (held, text) in held.iter().zip(&all) {
            assert_eq!(reader.read(held).unwrap(), text);
        }
    })
    .await;
    assert!(shelf.calls().iter().sum::<usize>() == 5, "{:?}", shelf.calls());
}

#[tokio::test]
async fn the_bound_holds_and_nothing_is_lost_by_it() {
    let all = texts(400, 1_000);
    let (shelf, held) = FakeFetcher::of(&all);
    let (shelf, bodies) =
        (Arc::new(shelf), Bodies::new(Memory { bodies: 64 << 10, filters: 8 << 10, trees: 0 }));
    let (reader, _cancelled) = reader(&bodies, &shelf);
    let kept = bodies.clone();
    blocking(move || {
        reader.announce(held.iter().copied());
        for (held, text) in held.iter().zip(&all) {
            assert_eq!(reader.read(held).unwrap(), text);
            assert!(kept.bytes() <= 64 << 10, "{}", kept.bytes());
        }
    })
    .await;
    assert_eq!(shelf.calls(), [256, 144], "each is fetched once, though few are kept");
}

#[tokio::test]
async fn what_an_answer_leaves_out_is_asked_for_alone_and_may_be_gone() {
    let all = texts(3, 10);
    let (mut shelf, held) = FakeFetcher::of(&all);
    shelf.most = Some(1);
    let gone = BodyRef { key: Key::of(b"gone"), size: 4, kind: Kind::File, id: Uuid::nil() };
    let shelf = Arc::new(shelf);
    let (reader, _cancelled) = reader(&roomy(), &shelf);
    blocking(move || {
        reader.announce(held.iter().copied().chain([gone]));
        for (held, text) in held.iter().zip(&all) {
            assert_eq!(reader.read(held).unwrap(), text);
        }
        assert_eq!(reader.read(&gone), Err(Unreadable::Gone));
    })
    .await;
}

#[tokio::test]
async fn a_script_that_nobody_waits_for_stops_waiting() {
    let (shelf, held) = FakeFetcher::of(&texts(1, 10));
    shelf.hangs.store(true, Ordering::SeqCst);
    let shelf = Arc::new(shelf);
    let (reader, cancelled) = reader(&roomy(), &shelf);
    let asked = tokio::spawn(blocking(move || reader.read(&held[0])));
    while shelf.calls().is_empty() {
        tokio::task::yield_now().await;
    }
    cancelled.cancel();
    assert_eq!(asked.await.unwrap(), Err(Unreadable::Unavailable));
}

#[tokio::test]
async fn a_holder_that_fails_is_asked_again_by_the_next() {
    let all = texts(1, 10);
    let (shelf, held) = FakeFetcher::of(&all);
    shelf.fails.store(true, Ordering::SeqCst);
    let (shelf, bodies) = (Arc::new(shelf), roomy());
    for (fails, expected) in [(true, Err(Unreadable::Unavailable)), (false, Ok(all[0].clone()))] {
        shelf.fails.store(fails, Ordering::SeqCst);
        let (reader, _cancelled) = reader(&bodies, &shelf);
        let held = held[0];
        assert_eq!(blocking(move || reader.read(&held)).await, expected);
    }
}

#[tokio::test]
async fn a_text_is_looked_for_only_where_it_may_be() {
    let all = texts(500, 200);
    let (shelf, held) = FakeFetcher::of(&all);
    let (reader, _cancelled) = reader(&roomy(), &Arc::new(shelf));
    blocking(move || {
        for held in &held {
            reader.read(held).unwrap();
        }
        let text_filter = reader.text_filter(&[b"497  ".to_vec()]);
        let passing: Vec<usize> =
            (0..held.len()).filter(|place| text_filter.may_contain(&held[*place].key)).collect();
        assert_eq!(passing, [497]);
    })
    .await;
}
