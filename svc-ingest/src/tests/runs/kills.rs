//! Workers that are lost at any moment: the end is that of a run that nobody disturbed.

use cairn_providers::{Changes, Deletions, Listing};
use proptest::prelude::*;

use super::*;

/// What happens between two runs, and in them.
#[derive(Debug, Clone)]
enum Event {
    Put(u8, u8),
    Remove(u8),
    /// A run, whose workers are lost after so many polls, one after the other.
    Run(Vec<u16>),
    FullRun(Vec<u16>),
    Wait,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let kills = || prop::collection::vec(1_u16..400, 0..4);
    let event = prop_oneof![
        6 => (0_u8..24, 0_u8..4).prop_map(|(id, text)| Event::Put(id, text)),
        2 => (0_u8..24).prop_map(Event::Remove),
        3 => kills().prop_map(Event::Run),
        1 => kills().prop_map(Event::FullRun),
        1 => Just(Event::Wait),
    ];
    prop::collection::vec(event, 1..24)
}

/// Works with workers that are lost, then with one that is not.
async fn work_with(stand: &Stand, kills: &[u16]) {
    for polls in kills {
        let runner = stand.other_process();
        lost_after(usize::from(*polls), work(&runner)).await;
        stand.clock.advance(LEASE);
    }
    // Each one that was lost is counted where nothing got on; a source has more patience than these tests.
    for _ in 0..4 {
        stand.work().await;
        stand.clock.advance(LEASE);
    }
}

async fn play(stand: &Stand, events: &[Event]) {
    let id = stand.connect("shelf").await;
    let mut there = BTreeMap::new();
    for event in events {
        match event {
            Event::Put(number, text) => {
                let (name, text) = (format!("{number:02}"), format!("text {text}"));
                stand.shelf.put(&name, &text);
                there.insert(name, text);
            }
            Event::Remove(number) => {
                let name = format!("{number:02}");
                stand.shelf.remove(&name);
                there.remove(&name);
            }
            Event::Run(kills) | Event::FullRun(kills) => {
                let full = matches!(event, Event::FullRun(_));
                stand.clock.advance(Duration::from_millis(10));
                let _ = stand.sources.sync(&stand.caller, &id.to_string(), full).await;
                work_with(stand, kills).await;
                stand.assert_sound("on the way").await;
            }
            Event::Wait => stand.clock.advance(HOUR * 2),
        }
    }
    // The brake may hold a removal back once.
    for _ in 0..2 {
        stand.clock.advance(HOUR * 3);
        let _ = stand.sources.sync(&stand.caller, &id.to_string(), true).await;
        work_with(stand, &[]).await;
    }
    let run = stand.last(id).await;
    assert!(is_over(&run) && run.complete, "{run:?}");
    assert_eq!(stand.texts(id).await, there, "{}: {events:?}", stand.engine());
    stand.assert_sound("at the end").await;
}

fn check(changes: Changes, deletions: Deletions, events: &[Event]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        // One engine for many cases: the other has its turn below.
        let bench = benches().await.swap_remove(0);
        let stand = Stand::new(bench, Shelf::new(Listing::Exhaustive, changes, deletions));
        stand.shelf.set_page_size(5);
        play(&stand, events).await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_a_listing_ends_the_same(events in events()) {
        check(Changes::None, Deletions::FromListing, &events);
    }

    #[test]
    fn whatever_is_lost_changes_end_the_same(events in events()) {
        check(Changes::Exact, Deletions::FromChanges, &events);
    }

    #[test]
    fn whatever_is_lost_a_high_water_mark_ends_the_same(events in events()) {
        check(Changes::HighWater { overlap: HOUR }, Deletions::FromListing, &events);
    }
}

#[tokio::test]
async fn a_run_whose_workers_are_lost_everywhere_reads_little_twice() {
    for stand in listed().await {
        for number in 0..60 {
            stand.shelf.put(&format!("{number:02}"), &format!("text {number}"));
        }
        let id = stand.connect("shelf").await;
        let run = stand.last(id).await.id;
        let mut lost = 0;
        for polls in (50..).step_by(37) {
            let runner = stand.other_process();
            if lost_after(polls, work(&runner)).await {
                break;
            }
            lost += 1;
            stand.clock.advance(LEASE);
        }
        let last = stand.last(id).await;
        assert_eq!((last.id, last.state), (run, COMPLETED), "{}: after {lost} lost workers", stand.engine());
        assert_eq!((last.counters.created, last.counters.listed), (60, 60));
        let again = stand.shelf.requests().fetched - 60;
        assert!(again <= 17 * lost, "{again} bodies were read again by {lost} workers");
        stand.assert_sound("lost everywhere").await;
    }
}

/// Waits until the shelf has been listed more often than that.
async fn is_asked_again(shelf: &Shelf, listed: u32) {
    while shelf.requests().listed <= listed {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_place_that_kills_every_worker_is_given_up() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("deadly").await;
        stand.shelf.close();
        for _ in 0..8 {
            let runner = stand.other_process();
            let asked = stand.shelf.requests().listed;
            tokio::select! {
                () = work(&runner) => {}
                () = is_asked_again(&stand.shelf, asked) => {}
            }
            stand.clock.advance(LEASE);
        }
        stand.shelf.open();
        stand.work().await;
        assert_eq!(stand.last(id).await.state, SourceRunStatus::Failed, "{}", stand.engine());
    }
}

#[tokio::test]
async fn a_worker_that_was_taken_for_lost_writes_nothing_any_more() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("slow").await;
        stand.shelf.close();
        let runner = stand.other_process();
        let slow = tokio::spawn(async move { work(&runner).await });
        is_asked_again(&stand.shelf, 0).await;
        stand.clock.advance(LEASE);
        let run = stand.last(id).await;
        let taken = stand.other_process();
        let run = taken.claim(run).await.unwrap().expect("its time was over");
        stand.shelf.open();
        slow.await.unwrap();
        assert_eq!(stand.names(id).await, Vec::<String>::new(), "{}: it is another's run", stand.engine());
        taken.perform(run, &CancellationToken::new()).await;
        assert_eq!(stand.names(id).await, ["a"]);
        stand.assert_sound("two workers").await;
    }
}
