//! Connection limits: in total, and for each client address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;

/// The warning about refused connections is logged at most once per interval.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);
/// The prefix that counts as one IPv6 client: a host usually has a whole /64.
const IPV6_PREFIX_BITS: u32 = 64;

/// The connection limits.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// In total.
    pub all: usize,
    /// From one address; for IPv6, from one /64 network.
    pub per_address: usize,
    /// Proxies, which are exempt from `per_address`: many clients connect from their addresses.
    pub proxies: Vec<IpNet>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { all: 8_192, per_address: 512, proxies: Vec::new() }
    }
}

/// The open connections; cheap to clone. Listeners with clones of the same value share its limits.
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
    warned_at: Option<Instant>,
}

impl Connections {
    /// No connections so far, with these limits.
    pub fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Inner { bounds, state: Mutex::default() }))
    }

    /// A permit for a connection from there, unless there are too many.
    pub(super) fn admit(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let peer = peer.to_canonical();
        let address =
            (!self.0.bounds.proxies.iter().any(|network| network.contains(&peer))).then(|| client_key(peer));
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
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
            self.warned_at = Some(Instant::now());
            tracing::warn!("connections are refused: {what}");
        }
    }
}

/// The address, or for IPv6 its /64 network.
fn client_key(peer: IpAddr) -> IpAddr {
    match peer {
        IpAddr::V4(_) => peer,
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (Ipv6Addr::BITS - IPV6_PREFIX_BITS))).into()
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
    /// Whether it is from a proxy, and may carry requests of many clients.
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
