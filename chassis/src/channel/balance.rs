//! Client-side load balancing: each call goes to the reachable address with the fewest of our calls in flight.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};

use super::connect::{ConnectHealth, Connector, TlsTarget};
use super::names::{self, Addresses, Name, Timing};

const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the first call waits for the first look-up of a name.
const FIRST_LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// One parsed URL of a service.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) name: Name,
    /// The scheme and authority of the calls, whichever address they go to.
    pub(super) origin: Uri,
    pub(super) tls: Option<TlsTarget>,
}

/// One address of a service, and the connection to it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) channel: Channel,
    health: Arc<ConnectHealth>,
    in_flight: AtomicUsize,
}

/// Counts a call that is in flight at a peer.
#[derive(Debug)]
pub(super) struct InFlightGuard(Arc<Peer>);

impl InFlightGuard {
    pub(super) fn at(peer: &Arc<Peer>) -> Self {
        peer.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(peer))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Peer {
    fn new(target: &Target, address: SocketAddr) -> Self {
        let health = Arc::new(ConnectHealth::default());
        let connector = Arc::new(Connector { address, tls: target.tls.clone(), health: Arc::clone(&health) });
        let connect = tower::service_fn(move |_: Uri| {
            let connector = Arc::clone(&connector);
            async move { connector.connect().await }
        });
        // A placeholder: our connector has the address, and does TLS itself.
        let channel = Endpoint::from_static("http://service.mesh")
            .origin(target.origin.clone())
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .connect_with_connector_lazy(connect);
        Self { channel, health, in_flight: AtomicUsize::new(0) }
    }
}

/// Balances calls over the addresses of a service.
#[derive(Debug)]
pub(super) struct Balancer {
    targets: Vec<Target>,
    addresses: watch::Receiver<Option<Addresses>>,
    refresh: Arc<Notify>,
    peers: Mutex<Peers>,
    /// The round-robin counter.
    turn: AtomicUsize,
}

/// The peers of the addresses that were last seen.
#[derive(Debug, Default)]
struct Peers {
    addresses: Option<Addresses>,
    all: Arc<[Arc<Peer>]>,
    by_address: HashMap<(usize, SocketAddr), Arc<Peer>>,
}

impl Balancer {
    /// Balances over all addresses of these names, which a spawned task resolves until this is dropped.
    pub(super) fn new(targets: Vec<Target>) -> Self {
        Self::with_resolver(targets, names::resolve, names::TIMING)
    }

    fn with_resolver<R, F>(targets: Vec<Target>, resolve: R, timing: Timing) -> Self
    where
        R: Fn(Name) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let refresh = Arc::new(Notify::new());
        let names: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
        let literal: Option<Addresses> =
            names.iter().map(|name| name.literal().map(|address| BTreeSet::from([address]))).collect();
        // IP addresses need no resolver.
        let is_literal = literal.is_some();
        let (sender, addresses) = watch::channel(literal);
        if !is_literal {
            tokio::spawn(names::watch_names(names, resolve, timing, sender, Arc::clone(&refresh)));
        }
        Self { targets, addresses, refresh, peers: Mutex::default(), turn: AtomicUsize::new(0) }
    }

    /// Has names resolved again soon, after a failed call.
    pub(super) fn resolve_soon(&self) {
        self.refresh.notify_one();
    }

    /// The peer for the next attempt, if possible another one than that which failed. `None` when no address is known.
    pub(super) async fn peer(&self, failed: Option<&Arc<Peer>>) -> Option<Arc<Peer>> {
        if self.addresses.borrow().is_none() {
            let mut addresses = self.addresses.clone();
            let _ = tokio::time::timeout(FIRST_LOOKUP_TIMEOUT, addresses.wait_for(Option::is_some)).await;
        }
        let peers = self.peers();
        if peers.is_empty() {
            self.resolve_soon();
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        choose(&peers, turn, failed, Instant::now())
    }

    /// The peers of the current addresses. A peer whose address is gone is dropped when its calls have ended.
    fn peers(&self) -> Arc<[Arc<Peer>]> {
        let addresses = self.addresses.borrow().clone();
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = match (&peers.addresses, &addresses) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            peers.update(addresses, &self.targets);
        }
        Arc::clone(&peers.all)
    }
}

impl Peers {
    fn update(&mut self, resolved: Option<Addresses>, targets: &[Target]) {
        let mut before = std::mem::take(&mut self.by_address);
        let all = resolved.iter().flat_map(|sets| sets.iter().zip(targets).enumerate());
        for (index, (addresses, target)) in all {
            for address in addresses {
                let key = (index, *address);
                let peer = before.remove(&key).unwrap_or_else(|| Arc::new(Peer::new(target, *address)));
                self.by_address.insert(key, peer);
            }
        }
        tracing::debug!(
            addresses = self.by_address.len(),
            gone = before.len(),
            "a service has other addresses"
        );
        self.all = self.by_address.values().cloned().collect();
        self.addresses = resolved;
    }
}

/// Chooses a peer: preferably a reachable one, then one on which the call has not failed yet, then the one with the fewest
/// calls in flight. Ties are broken round robin.
fn choose(peers: &[Arc<Peer>], turn: usize, failed: Option<&Arc<Peer>>, now: Instant) -> Option<Arc<Peer>> {
    let first = turn.checked_rem(peers.len())?;
    let in_turn = peers.iter().cycle().skip(first).take(peers.len());
    let chosen = in_turn.min_by_key(|peer| {
        let has_failed = failed.is_some_and(|failed| Arc::ptr_eq(failed, peer));
        (peer.health.is_backing_off(now), has_failed, peer.in_flight.load(Ordering::Relaxed))
    });
    chosen.map(Arc::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str) -> Target {
        let name = Name { host: host.to_owned(), port: 8712 };
        Target { name, origin: Uri::from_static("http://content:8712"), tls: None }
    }

    fn peers(count: u8) -> Vec<Arc<Peer>> {
        let address = |last| SocketAddr::from(([127, 0, 0, last], 1));
        (1..=count).map(|last| Arc::new(Peer::new(&target("content"), address(last)))).collect()
    }

    fn place(peers: &[Arc<Peer>], chosen: Option<Arc<Peer>>) -> usize {
        let chosen = chosen.unwrap();
        peers.iter().position(|peer| Arc::ptr_eq(peer, &chosen)).unwrap()
    }

    #[tokio::test]
    async fn equals_take_turns_and_the_busy_get_less() {
        let (peers, now) = (peers(3), Instant::now());
        let turns: Vec<_> = (0..6).map(|turn| place(&peers, choose(&peers, turn, None, now))).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
        let _busy =
            [InFlightGuard::at(&peers[0]), InFlightGuard::at(&peers[0]), InFlightGuard::at(&peers[1])];
        for turn in 0..6 {
            assert_eq!(place(&peers, choose(&peers, turn, None, now)), 2);
        }
        let _busier = [InFlightGuard::at(&peers[2]), InFlightGuard::at(&peers[2])];
        assert_eq!(place(&peers, choose(&peers, 0, None, now)), 1);
        assert!(choose(&[], 0, None, now).is_none());
    }

    #[tokio::test]
    async fn calls_go_where_somebody_answers() {
        let (peers, now) = (peers(2), Instant::now());
        peers[0].health.failed(now);
        let _busy = InFlightGuard::at(&peers[1]);
        for turn in 0..4 {
            assert_eq!(place(&peers, choose(&peers, turn, None, now)), 1, "the other is left alone");
        }
        // A retry goes to another peer, unless none of those is reachable.
        assert_eq!(place(&peers, choose(&peers, 0, Some(&peers[1]), now)), 1);
        let later = now + Duration::from_secs(2);
        assert_eq!(place(&peers, choose(&peers, 0, Some(&peers[1]), later)), 0);
        peers[1].health.failed(now);
        assert_eq!(place(&peers, choose(&peers, 0, Some(&peers[0]), now)), 1);
    }

    #[tokio::test]
    async fn addresses_come_and_go_and_the_others_keep_their_connections() {
        let targets = vec![target("127.0.0.1"), target("127.0.0.2")];
        let balance = Balancer::new(targets.clone());
        let both = balance.peers();
        assert_eq!(both.len(), 2);
        assert!(balance.peer(None).await.is_some());

        let address = |last| SocketAddr::from(([127, 0, 0, last], 8712));
        let known = |sets: [&[SocketAddr]; 2]| -> Option<Addresses> {
            Some(sets.iter().map(|set| set.iter().copied().collect()).collect())
        };
        let mut peers = Peers::default();
        peers.update(known([&[address(1)], &[address(2)]]), &targets);
        let kept = Arc::clone(&peers.by_address[&(0, address(1))]);
        peers.update(known([&[address(1), address(3)], &[]]), &targets);
        assert_eq!(peers.all.len(), 2);
        assert!(Arc::ptr_eq(&kept, &peers.by_address[&(0, address(1))]));
        assert!(!peers.by_address.contains_key(&(1, address(2))));
    }

    /// Where some calls go, by the last number of the address.
    async fn called(balance: &Balancer) -> BTreeSet<u8> {
        let mut called = BTreeSet::new();
        for _ in 0..8 {
            let peer = balance.peer(None).await.unwrap();
            let peers = balance.peers.lock().unwrap();
            let address =
                peers.by_address.iter().find(|(_, one)| Arc::ptr_eq(one, &peer)).map(|(key, _)| key.1);
            let SocketAddr::V4(address) = address.unwrap() else { panic!("these are none of version 6") };
            called.insert(address.ip().octets()[3]);
        }
        called
    }

    #[tokio::test]
    async fn an_address_that_a_name_gets_is_called_and_one_that_it_loses_is_not() {
        let timing = Timing { interval: Duration::from_millis(5), ..names::TIMING };
        let answer = Arc::new(Mutex::new(vec![1_u8]));
        let asked = Arc::clone(&answer);
        let resolve = move |_: Name| {
            let found = asked.lock().unwrap().clone();
            let address = |last| SocketAddr::from(([127, 0, 0, last], 8712));
            std::future::ready(Ok(found.into_iter().map(address).collect()))
        };
        let balance = Balancer::with_resolver(vec![target("content")], resolve, timing);
        // Added, taken away, and replaced as a whole.
        for now in [vec![1], vec![1, 2], vec![2], vec![3, 4]] {
            answer.lock().unwrap().clone_from(&now);
            let expected = BTreeSet::from_iter(now);
            let follows = async {
                while called(&balance).await != expected {
                    tokio::time::sleep(timing.interval).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), follows).await.unwrap();
        }
    }
}
