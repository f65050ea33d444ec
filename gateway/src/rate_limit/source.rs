//! The source address of a request: the peer, or what a trusted proxy reports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::ConnectInfo;
use http::request::Parts;
use http::{HeaderMap, header};
use ipnet::IpNet;

use crate::ConfigError;

const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// The prefix that providers assign to one customer, whose addresses count together.
const CUSTOMER_PREFIX: u32 = 64;

/// The proxies whose headers are trusted.
#[derive(Debug, Clone, Default)]
pub(super) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Networks such as `10.0.0.0/8`, or single addresses.
    pub(super) fn new(networks: &[String]) -> Result<Self, ConfigError> {
        let network = |text: &String| {
            let text = text.trim();
            let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            network.map_err(|_| ConfigError::TrustedProxy(text.to_owned()))
        };
        networks.iter().map(network).collect::<Result<_, _>>().map(Self)
    }

    fn trust(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The address that a request counts for; IPv6 addresses of one /64 are one source.
    pub(super) fn source(&self, parts: &Parts) -> IpAddr {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer =
            peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(peer)| peer.ip().to_canonical());
        network_of(self.origin(peer, &parts.headers))
    }

    fn origin(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trust(peer) {
            return peer;
        }
        let by_x = self.nearest_untrusted(peer, &x_forwarded_for(headers));
        let by_standard = self.nearest_untrusted(peer, &forwarded(headers));
        match (by_x, by_standard) {
            (Some(address), None) | (None, Some(address)) => address,
            // A proxy writes one of the two and passes the other on as the client sent it, and we cannot know which.
            (Some(one), Some(other)) if one == other => one,
            (Some(_), Some(_)) | (None, None) => peer,
        }
    }

    /// The right-most address that is not one of our proxies: anything to the left of it can be forged. `None`
    /// without any entry.
    fn nearest_untrusted(&self, peer: IpAddr, entries: &[Option<IpAddr>]) -> Option<IpAddr> {
        let mut nearest = None;
        for entry in entries.iter().rev() {
            // An entry that is not an address was not written by a proxy of ours, or hides one.
            let Some(address) = entry else { return nearest.or(Some(peer)) };
            nearest = Some(*address);
            if !self.trust(*address) {
                return nearest;
            }
        }
        nearest
    }
}

fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(whole) => {
            let kept = u128::MAX << (u128::BITS - CUSTOMER_PREFIX);
            IpAddr::V6(Ipv6Addr::from_bits(whole.to_bits() & kept))
        }
    }
}

/// `203.0.113.7, 2001:db8::7`, in one header or several.
fn x_forwarded_for(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let lines = headers.get_all(X_FORWARDED_FOR).iter();
    lines.flat_map(|line| line.to_str().unwrap_or("?").split(',').map(address)).collect()
}

/// `for=203.0.113.7;proto=https, for="[2001:db8::7]:4711"` (RFC 7239).
fn forwarded(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let lines = headers.get_all(header::FORWARDED).iter();
    lines.flat_map(|line| line.to_str().unwrap_or("?").split(',').map(forwarded_for)).collect()
}

fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(value.trim().trim_matches('"'))
}

/// An address, with or without brackets and port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let parsed = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|at| at.ip()));
    parsed.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(trusted: &[&str], peer: &str, sent: &[(&'static str, &str)]) -> String {
        let trusted: Vec<String> = trusted.iter().map(|network| (*network).to_owned()).collect();
        let mut request = http::Request::get("/").body(()).unwrap();
        for (name, value) in sent {
            request.headers_mut().append(*name, value.parse().unwrap());
        }
        let (mut parts, ()) = request.into_parts();
        parts.extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 4711)));
        TrustedProxies::new(&trusted).unwrap().source(&parts).to_string()
    }

    #[test]
    fn only_a_trusted_peer_is_believed() {
        let sent = [("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=203.0.113.7")];
        assert_eq!(source(&[], "198.51.100.1", &sent), "198.51.100.1");
        assert_eq!(source(&["10.0.0.0/8"], "198.51.100.1", &sent), "198.51.100.1");
        assert_eq!(source(&["10.0.0.0/8"], "10.1.2.3", &sent), "203.0.113.7");
        assert_eq!(source(&["10.0.0.0/8"], "10.1.2.3", &[]), "10.1.2.3");
        assert_eq!(source(&["10.1.2.3"], "::ffff:10.1.2.3", &sent), "203.0.113.7");
    }

    #[test]
    fn the_right_most_untrusted_address_counts() {
        let trusted = ["10.0.0.0/8", "fd00::/8"];
        for (header, value, expected) in [
            ("x-forwarded-for", "1.1.1.1, 203.0.113.7, 10.0.0.9", "203.0.113.7"),
            ("x-forwarded-for", "203.0.113.7:81", "203.0.113.7"),
            ("x-forwarded-for", "1.1.1.1, nonsense, 10.0.0.9", "10.0.0.9"),
            ("x-forwarded-for", "1.1.1.1, nonsense", "10.1.2.3"),
            ("x-forwarded-for", "10.0.0.8, 10.0.0.9", "10.0.0.8"),
            ("x-forwarded-for", "", "10.1.2.3"),
            ("forwarded", "for=1.1.1.1, For=\"203.0.113.7:81\";proto=https, for=10.0.0.9", "203.0.113.7"),
            ("forwarded", "by=10.0.0.9;for=_hidden", "10.1.2.3"),
            ("forwarded", "for=\"[2001:db8:1:2:3::7]:4711\"", "2001:db8:1:2::"),
        ] {
            assert_eq!(source(&trusted, "10.1.2.3", &[(header, value)]), expected, "{header}: {value}");
        }
        let lines = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.7")];
        assert_eq!(source(&trusted, "10.1.2.3", &lines), "203.0.113.7");
    }

    #[test]
    fn headers_that_disagree_are_not_believed() {
        let disagree = [("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=1.1.1.1")];
        assert_eq!(source(&["10.0.0.0/8"], "10.1.2.3", &disagree), "10.1.2.3");
    }

    #[test]
    fn a_customer_of_ipv6_is_one_source() {
        assert_eq!(source(&[], "2001:db8:1:2:3:4:5:6", &[]), "2001:db8:1:2::");
        assert_eq!(source(&[], "::ffff:203.0.113.7", &[]), "203.0.113.7");
    }

    #[test]
    fn a_network_that_cannot_be_read_is_an_error() {
        for odd in ["", "10.0.0.0/33", "proxy.example", "10.0.0"] {
            assert!(TrustedProxies::new(&[odd.to_owned()]).is_err(), "{odd}");
        }
        assert!(TrustedProxies::new(&["::1".to_owned(), " 10.0.0.0/8 ".to_owned()]).is_ok());
    }
}
