//! Which address of a service a call goes to: the one with the fewest calls of ours under way, among those that answer.

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

use super::connect::{Connector, Secured, Standing};
use super::names::{self, Known, Name, Pace};

const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a first call waits for the first look-up of a name.
const FIRST_LOOK_UP: Duration = Duration::from_secs(5);

/// What one of a service's URLs says.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) name: Name,
    /// What calls are addressed to, whichever address they go to.
    pub(super) origin: Uri,
    pub(super) tls: Option<Secured>,
}

/// One address of a service, and the connection to it.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) channel: Channel,
    standing: Arc<Standing>,
    under_way: AtomicUsize,
}

/// A call that is under way at a peer.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Peer>);

impl UnderWay {
    pub(super) fn at(peer: &Arc<Peer>) -> Self {
        peer.under_way.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(peer))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Peer {
    fn new(target: &Target, address: SocketAddr) -> Self {
        let standing = Arc::new(Standing::default());
        let connector =
            Arc::new(Connector { address, tls: target.tls.clone(), standing: Arc::clone(&standing) });
        let connect = tower::service_fn(move |_: Uri| {
            let connector = Arc::clone(&connector);
            async move { connector.connect().await }
        });
        // The address says nothing: our connector knows where to go, and speaks TLS itself.
        let channel = Endpoint::from_static("http://service.mesh")
            .origin(target.origin.clone())
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
            .keep_alive_while_idle(true)
            .connect_with_connector_lazy(connect);
        Self { channel, standing, under_way: AtomicUsize::new(0) }
    }
}

/// The addresses of a service, and how calls are spread over them.
#[derive(Debug)]
pub(super) struct Balance {
    targets: Vec<Target>,
    known: watch::Receiver<Option<Known>>,
    sooner: Arc<Notify>,
    peers: Mutex<Peers>,
    turn: AtomicUsize,
}

/// Those whose addresses were known when it was last looked.
#[derive(Debug, Default)]
struct Peers {
    of: Option<Known>,
    all: Arc<[Arc<Peer>]>,
    by_address: HashMap<(usize, SocketAddr), Arc<Peer>>,
}

impl Balance {
    /// Spreads calls over all addresses of these names. Names are followed in a task of its own, until this is dropped.
    pub(super) fn over(targets: Vec<Target>) -> Self {
        Self::asking(targets, names::ask_system, names::PACE)
    }

    fn asking<A, F>(targets: Vec<Target>, ask: A, pace: Pace) -> Self
    where
        A: Fn(Name) -> F + Send + Sync + 'static,
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let sooner = Arc::new(Notify::new());
        let names: Vec<_> = targets.iter().map(|target| target.name.clone()).collect();
        let literal: Option<Known> =
            names.iter().map(|name| name.literal().map(|address| BTreeSet::from([address]))).collect();
        // Addresses say all there is to know.
        let is_known = literal.is_some();
        let (told, known) = watch::channel(literal);
        if !is_known {
            tokio::spawn(names::follow(names, ask, pace, told, Arc::clone(&sooner)));
        }
        Self { targets, known, sooner, peers: Mutex::default(), turn: AtomicUsize::new(0) }
    }

    /// Something is wrong with an address: names are looked up again soon.
    pub(super) fn doubt(&self) {
        self.sooner.notify_one();
    }

    /// Where the next call goes: not where this one failed, if that can be helped. `None` when no address is known.
    pub(super) async fn peer(&self, failed: Option<&Arc<Peer>>) -> Option<Arc<Peer>> {
        if self.known.borrow().is_none() {
            let mut known = self.known.clone();
            let _ = tokio::time::timeout(FIRST_LOOK_UP, known.wait_for(Option::is_some)).await;
        }
        let peers = self.peers();
        if peers.is_empty() {
            self.doubt();
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        choose(&peers, turn, failed, Instant::now())
    }

    /// The peers as names are known now; one whose address went away ends with the calls that it has.
    fn peers(&self) -> Arc<[Arc<Peer>]> {
        let known = self.known.borrow().clone();
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = match (&peers.of, &known) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            peers.renew(known, &self.targets);
        }
        Arc::clone(&peers.all)
    }
}

impl Peers {
    fn renew(&mut self, known: Option<Known>, targets: &[Target]) {
        let mut before = std::mem::take(&mut self.by_address);
        let all = known.iter().flat_map(|known| known.iter().zip(targets).enumerate());
        for (place, (addresses, target)) in all {
            for address in addresses {
                let key = (place, *address);
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
        self.of = known;
    }
}

/// The peer for a call: one that answers rather than one that does not, another than where the call failed, and of
/// these the one with the fewest calls under way. Among equals they take turns.
fn choose(peers: &[Arc<Peer>], turn: usize, failed: Option<&Arc<Peer>>, now: Instant) -> Option<Arc<Peer>> {
    let first = turn.checked_rem(peers.len())?;
    let in_turn = peers.iter().cycle().skip(first).take(peers.len());
    let chosen = in_turn.min_by_key(|peer| {
        let has_failed = failed.is_some_and(|failed| Arc::ptr_eq(failed, peer));
        (peer.standing.is_left_alone(now), has_failed, peer.under_way.load(Ordering::Relaxed))
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
        let _busy = [UnderWay::at(&peers[0]), UnderWay::at(&peers[0]), UnderWay::at(&peers[1])];
        for turn in 0..6 {
            assert_eq!(place(&peers, choose(&peers, turn, None, now)), 2);
        }
        let _busier = [UnderWay::at(&peers[2]), UnderWay::at(&peers[2])];
        assert_eq!(place(&peers, choose(&peers, 0, None, now)), 1);
        assert!(choose(&[], 0, None, now).is_none());
    }

    #[tokio::test]
    async fn calls_go_where_somebody_answers() {
        let (peers, now) = (peers(2), Instant::now());
        peers[0].standing.failed(now);
        let _busy = UnderWay::at(&peers[1]);
        for turn in 0..4 {
            assert_eq!(place(&peers, choose(&peers, turn, None, now)), 1, "the other is left alone");
        }
        // A retry goes elsewhere, unless nobody answers there.
        assert_eq!(place(&peers, choose(&peers, 0, Some(&peers[1]), now)), 1);
        let later = now + Duration::from_secs(2);
        assert_eq!(place(&peers, choose(&peers, 0, Some(&peers[1]), later)), 0);
        peers[1].standing.failed(now);
        assert_eq!(place(&peers, choose(&peers, 0, Some(&peers[0]), now)), 1);
    }

    #[tokio::test]
    async fn addresses_come_and_go_and_the_others_keep_their_connections() {
        let targets = vec![target("127.0.0.1"), target("127.0.0.2")];
        let balance = Balance::over(targets.clone());
        let both = balance.peers();
        assert_eq!(both.len(), 2);
        assert!(balance.peer(None).await.is_some());

        let address = |last| SocketAddr::from(([127, 0, 0, last], 8712));
        let known = |sets: [&[SocketAddr]; 2]| -> Option<Known> {
            Some(sets.iter().map(|set| set.iter().copied().collect()).collect())
        };
        let mut peers = Peers::default();
        peers.renew(known([&[address(1)], &[address(2)]]), &targets);
        let kept = Arc::clone(&peers.by_address[&(0, address(1))]);
        peers.renew(known([&[address(1), address(3)], &[]]), &targets);
        assert_eq!(peers.all.len(), 2);
        assert!(Arc::ptr_eq(&kept, &peers.by_address[&(0, address(1))]));
        assert!(!peers.by_address.contains_key(&(1, address(2))));
    }

    /// Where some calls go, by the last number of the address.
    async fn called(balance: &Balance) -> BTreeSet<u8> {
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
        let pace = Pace { interval: Duration::from_millis(5), ..names::PACE };
        let answer = Arc::new(Mutex::new(vec![1_u8]));
        let asked = Arc::clone(&answer);
        let ask = move |_: Name| {
            let found = asked.lock().unwrap().clone();
            let address = |last| SocketAddr::from(([127, 0, 0, last], 8712));
            std::future::ready(Ok(found.into_iter().map(address).collect()))
        };
        let balance = Balance::asking(vec![target("content")], ask, pace);
        // Added, taken away, and replaced as a whole.
        for now in [vec![1], vec![1, 2], vec![2], vec![3, 4]] {
            answer.lock().unwrap().clone_from(&now);
            let expected = BTreeSet::from_iter(now);
            let follows = async {
                while called(&balance).await != expected {
                    tokio::time::sleep(pace.interval).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), follows).await.unwrap();
        }
    }
}
