//! The addresses behind the names of a service, asked for again and again.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// When names are looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// How often.
    pub(super) interval: Duration,
    /// How soon again when an address does not answer.
    pub(super) soonest: Duration,
    /// How long a look-up may take.
    pub(super) patience: Duration,
}

pub(super) const PACE: Pace = Pace {
    interval: Duration::from_secs(5),
    soonest: Duration::from_millis(500),
    patience: Duration::from_secs(5),
};

/// One name of a service, and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Name {
    /// The address, where the name is one.
    pub(super) fn literal(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.host.parse::<IpAddr>().ok()?, self.port))
    }
}

/// For each name its addresses. A name that nobody knows any more keeps what it had: DNS that is silent is no reason to
/// leave services that answer.
pub(super) type Known = Arc<[BTreeSet<SocketAddr>]>;

/// Asks the system, as everything else on this machine does.
pub(super) async fn ask_system(name: Name) -> io::Result<Vec<SocketAddr>> {
    if let Some(address) = name.literal() {
        return Ok(vec![address]);
    }
    Ok(tokio::net::lookup_host((name.host, name.port)).await?.collect())
}

/// Looks names up for as long as somebody wants to know; `sooner` asks for it before its time.
pub(super) async fn follow<A, F>(
    names: Vec<Name>,
    ask: A,
    pace: Pace,
    told: watch::Sender<Option<Known>>,
    sooner: Arc<Notify>,
) where
    A: Fn(Name) -> F,
    F: Future<Output = io::Result<Vec<SocketAddr>>>,
{
    let mut known = vec![BTreeSet::new(); names.len()];
    loop {
        let asked_at = Instant::now();
        let answers = join_all(names.iter().map(|name| timeout(pace.patience, ask(name.clone())))).await;
        for ((name, addresses), answer) in names.iter().zip(&mut known).zip(answers) {
            match answer {
                Ok(Ok(found)) if !found.is_empty() => *addresses = found.into_iter().collect(),
                Ok(Ok(_)) => tracing::debug!(host = %name.host, "a name of a service has no address now"),
                Ok(Err(error)) => {
                    tracing::debug!(host = %name.host, %error, "a name of a service cannot be looked up now");
                }
                Err(_elapsed) => {
                    tracing::debug!(host = %name.host, "looking up a name of a service takes too long");
                }
            }
        }
        told.send_if_modified(|before| {
            let is_other = before.as_deref() != Some(known.as_slice());
            if is_other {
                *before = Some(Arc::from(known.as_slice()));
            }
            is_other
        });
        tokio::select! {
            () = told.closed() => return,
            () = sleep_until(asked_at + pace.interval) => {}
            () = async {
                sooner.notified().await;
                sleep_until(asked_at + pace.soonest).await;
            } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 80))
    }

    fn name(host: &str) -> Name {
        Name { host: host.to_owned(), port: 80 }
    }

    const SHORT: Pace = Pace {
        interval: Duration::from_millis(50),
        soonest: Duration::from_millis(5),
        patience: Duration::from_secs(5),
    };
    /// Nothing is looked up in its time.
    const SLOW: Pace = Pace { interval: Duration::from_secs(600), ..SHORT };

    /// Follows one name whose answers are set by the test.
    struct Bench {
        answer: Arc<Mutex<io::Result<Vec<SocketAddr>>>>,
        known: watch::Receiver<Option<Known>>,
        sooner: Arc<Notify>,
    }

    impl Bench {
        fn start(pace: Pace, first: Vec<SocketAddr>) -> Self {
            let answer = Arc::new(Mutex::new(Ok::<_, io::Error>(first)));
            let (told, known) = watch::channel(None);
            let sooner = Arc::new(Notify::new());
            let asked = Arc::clone(&answer);
            let ask = move |_| {
                let answer = match &*asked.lock().unwrap() {
                    Ok(found) => Ok(found.clone()),
                    Err(error) => Err(io::Error::from(error.kind())),
                };
                std::future::ready(answer)
            };
            tokio::spawn(follow(vec![name("content")], ask, pace, told, Arc::clone(&sooner)));
            Self { answer, known, sooner }
        }

        fn answer(&self, answer: io::Result<Vec<SocketAddr>>) {
            *self.answer.lock().unwrap() = answer;
        }

        fn known(&self) -> Vec<SocketAddr> {
            self.known.borrow().iter().flat_map(|known| known[0].clone()).collect()
        }
    }

    #[test]
    fn a_process_that_is_added_is_known_within_ten_seconds() {
        // It came just after a look-up, and the next one takes as long as it may.
        assert!(PACE.interval + PACE.patience <= Duration::from_secs(10), "{PACE:?}");
    }

    #[tokio::test]
    async fn an_address_that_comes_is_known_at_the_next_look_up() {
        let mut bench = Bench::start(SHORT, vec![address(1)]);
        bench.known.changed().await.unwrap();
        assert_eq!(bench.known(), [address(1)]);
        bench.answer(Ok(vec![address(2), address(1), address(2)]));
        bench.known.changed().await.unwrap();
        assert_eq!(bench.known(), [address(1), address(2)]);
    }

    #[tokio::test]
    async fn what_was_known_stays_while_nobody_answers() {
        let mut bench = Bench::start(SHORT, vec![address(1)]);
        bench.known.changed().await.unwrap();
        for silent in [Ok(Vec::new()), Err(io::Error::from(io::ErrorKind::NotFound))] {
            bench.answer(silent);
            tokio::time::sleep(SHORT.interval * 3).await;
            assert_eq!(bench.known(), [address(1)]);
        }
        bench.answer(Ok(vec![address(3)]));
        bench.known.changed().await.unwrap();
        assert_eq!(bench.known(), [address(3)]);
    }

    #[tokio::test]
    async fn a_failure_asks_before_the_time() {
        let mut bench = Bench::start(SLOW, vec![address(1)]);
        bench.known.changed().await.unwrap();
        bench.answer(Ok(vec![address(2)]));
        for _ in 0..10 {
            bench.sooner.notify_one();
        }
        bench.known.changed().await.unwrap();
        assert_eq!(bench.known(), [address(2)]);
    }

    #[tokio::test]
    async fn an_address_is_its_own_name() {
        assert_eq!(ask_system(name("127.0.0.1")).await.unwrap(), [SocketAddr::from(([127, 0, 0, 1], 80))]);
        assert_eq!(name("::1").literal().unwrap().to_string(), "[::1]:80");
        assert!(name("content").literal().is_none());
    }
}
