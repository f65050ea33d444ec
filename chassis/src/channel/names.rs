//! Resolves the host names of a service periodically.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// The timing of name resolution.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timing {
    /// Between two look-ups.
    pub(super) interval: Duration,
    /// The same after a failed call.
    pub(super) min_interval: Duration,
    /// The timeout of a look-up.
    pub(super) timeout: Duration,
}

pub(super) const TIMING: Timing = Timing {
    interval: Duration::from_secs(5),
    min_interval: Duration::from_millis(500),
    timeout: Duration::from_secs(5),
};

/// One name of a service, and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Name {
    /// The address, if the name is an IP address.
    pub(super) fn literal(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.host.parse::<IpAddr>().ok()?, self.port))
    }
}

/// The addresses of each name. After a failed look-up a name keeps its last addresses: an outage of DNS must not disconnect
/// healthy services.
pub(super) type Addresses = Arc<[BTreeSet<SocketAddr>]>;

/// Resolves a name with the resolver of the OS.
pub(super) async fn resolve(name: Name) -> io::Result<Vec<SocketAddr>> {
    if let Some(address) = name.literal() {
        return Ok(vec![address]);
    }
    Ok(tokio::net::lookup_host((name.host, name.port)).await?.collect())
}

/// Resolves names until the receiver of their addresses is dropped; `refresh` requests a look-up before its time.
pub(super) async fn watch_names<R, F>(
    names: Vec<Name>,
    resolve: R,
    timing: Timing,
    sender: watch::Sender<Option<Addresses>>,
    refresh: Arc<Notify>,
) where
    R: Fn(Name) -> F,
    F: Future<Output = io::Result<Vec<SocketAddr>>>,
{
    let mut resolved = vec![BTreeSet::new(); names.len()];
    loop {
        let started_at = Instant::now();
        let results = join_all(names.iter().map(|name| timeout(timing.timeout, resolve(name.clone())))).await;
        for ((name, addresses), result) in names.iter().zip(&mut resolved).zip(results) {
            match result {
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
        sender.send_if_modified(|before| {
            let has_changed = before.as_deref() != Some(resolved.as_slice());
            if has_changed {
                *before = Some(Arc::from(resolved.as_slice()));
            }
            has_changed
        });
        tokio::select! {
            () = sender.closed() => return,
            () = sleep_until(started_at + timing.interval) => {}
            () = async {
                refresh.notified().await;
                sleep_until(started_at + timing.min_interval).await;
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

    const SHORT: Timing = Timing {
        interval: Duration::from_millis(50),
        min_interval: Duration::from_millis(5),
        timeout: Duration::from_secs(5),
    };
    /// No look-up is due within a test.
    const SLOW: Timing = Timing { interval: Duration::from_secs(600), ..SHORT };

    /// Watches one name whose addresses are set by the test.
    struct Bench {
        answer: Arc<Mutex<io::Result<Vec<SocketAddr>>>>,
        known: watch::Receiver<Option<Addresses>>,
        refresh: Arc<Notify>,
    }

    impl Bench {
        fn start(timing: Timing, first: Vec<SocketAddr>) -> Self {
            let answer = Arc::new(Mutex::new(Ok::<_, io::Error>(first)));
            let (sender, known) = watch::channel(None);
            let refresh = Arc::new(Notify::new());
            let asked = Arc::clone(&answer);
            let resolve = move |_| {
                let answer = match &*asked.lock().unwrap() {
                    Ok(found) => Ok(found.clone()),
                    Err(error) => Err(io::Error::from(error.kind())),
                };
                std::future::ready(answer)
            };
            tokio::spawn(watch_names(vec![name("content")], resolve, timing, sender, Arc::clone(&refresh)));
            Self { answer, known, refresh }
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
        assert!(TIMING.interval + TIMING.timeout <= Duration::from_secs(10), "{TIMING:?}");
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
            bench.refresh.notify_one();
        }
        bench.known.changed().await.unwrap();
        assert_eq!(bench.known(), [address(2)]);
    }

    #[tokio::test]
    async fn an_address_is_its_own_name() {
        assert_eq!(resolve(name("127.0.0.1")).await.unwrap(), [SocketAddr::from(([127, 0, 0, 1], 80))]);
        assert_eq!(name("::1").literal().unwrap().to_string(), "[::1]:80");
        assert!(name("content").literal().is_none());
    }
}
