//! How many connections there may be: in all, and from one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

/// A warning about refused connections is said at most so often.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);
/// Whoever has IPv6 addresses has this many bits of them at least.
const OWN_BITS: u32 = 64;

/// How many connections there may be.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// In all.
    pub all: usize,
    /// From one address; of IPv6, from one network of 64 bits.
    pub per_address: usize,
    /// Proxies, through which many come from one address.
    pub proxies: Vec<IpNet>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { all: 8_192, per_address: 512, proxies: Vec::new() }
    }
}

/// The connections that there are; cheap to clone. Addresses that are served with one of these share its bounds.
#[derive(Debug, Clone, Default)]
pub struct Connections(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    bounds: Bounds,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
    warned: Option<Instant>,
}

impl Connections {
    /// None yet, within these bounds.
    pub fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Inner { bounds, state: Mutex::default() }))
    }

    /// A permit for a connection from there, unless there are too many.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let peer = peer.to_canonical();
        let address =
            (!self.0.bounds.proxies.iter().any(|network| network.contains(&peer))).then(|| whose(peer));
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.all >= self.0.bounds.all {
            state.warn("there are as many connections as there may be; see CAIRN_MAX_CONNECTIONS");
            metrics::counter!("cairn_connections_refused_total", "bound" => "all").increment(1);
            return None;
        }
        if let Some(address) = address {
            let count = state.by_address.entry(address).or_default();
            if *count >= self.0.bounds.per_address {
                state.warn(
                    "an address has as many connections as it may; see CAIRN_MAX_CONNECTIONS_PER_ADDRESS",
                );
                metrics::counter!("cairn_connections_refused_total", "bound" => "address").increment(1);
                return None;
            }
            *count += 1;
        }
        state.all += 1;
        Some(ConnectionPermit { connections: self.clone(), address })
    }
}

impl State {
    fn warn(&mut self, what: &str) {
        if self.warned.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
            self.warned = Some(Instant::now());
            tracing::warn!("connections are refused: {what}");
        }
    }
}

/// The address, or the network of whoever has it.
fn whose(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (Ipv6Addr::BITS - OWN_BITS))).into()
        }
    }
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    connections: Connections,
    address: Option<IpAddr>,
}

impl ConnectionPermit {
    /// Whether a proxy has it, for many callers.
    pub(super) const fn is_proxied(&self) -> bool {
        self.address.is_none()
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut state = self.connections.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.all -= 1;
        let Some(address) = self.address else { return };
        if let Some(count) = state.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                state.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections(all: usize, per_address: usize) -> Connections {
        let proxies = vec!["10.0.0.0/8".parse().unwrap()];
        Connections::new(Bounds { all, per_address, proxies })
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_share_and_a_proxy_stands_for_many() {
        let connections = connections(100, 2);
        let one = connections.admit(ip("192.0.2.1")).unwrap();
        let _two = connections.admit(ip("::ffff:192.0.2.1")).unwrap();
        assert!(connections.admit(ip("192.0.2.1")).is_none());
        let _other = connections.admit(ip("192.0.2.2")).unwrap();
        let proxied: Vec<_> = (0..9).map(|_| connections.admit(ip("10.1.2.3")).unwrap()).collect();
        assert_eq!(proxied.len(), 9);
        drop(one);
        assert!(connections.admit(ip("192.0.2.1")).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let connections = connections(100, 1);
        let _one = connections.admit(ip("2001:db8:1:2::1")).unwrap();
        assert!(connections.admit(ip("2001:db8:1:2:ffff::9")).is_none());
        assert!(connections.admit(ip("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn there_are_only_so_many_and_none_is_forgotten() {
        let connections = connections(3, 9);
        let taken: Vec<_> = (0..3).map(|_| connections.admit(ip("10.0.0.1")).unwrap()).collect();
        assert!(connections.admit(ip("192.0.2.1")).is_none());
        drop(taken);
        let state = connections.0.state.lock().unwrap();
        assert_eq!((state.all, state.by_address.len()), (0, 0));
    }
}
