//! How users recognize their sessions: the browser and the approximate location.

use std::net::IpAddr;

/// Longer user agents are truncated.
const MAX_AGENT_CHARS: usize = 200;

/// The device that opens a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Device {
    /// The user agent; empty if unknown.
    agent: String,
    source: Option<IpAddr>,
}

impl Device {
    pub(crate) fn new(agent: &str, source: Option<IpAddr>) -> Self {
        let plain = agent.chars().filter(|character| !character.is_control());
        Self { agent: plain.take(MAX_AGENT_CHARS).collect(), source }
    }

    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// The source address, for rate limits.
    pub(crate) const fn source(&self) -> Option<IpAddr> {
        self.source
    }

    /// The approximate location: `loopback`, `private`, or the network of a public address; empty if unknown. The full
    /// address is not stored.
    pub(crate) fn place(&self) -> String {
        let Some(source) = self.source else { return String::new() };
        match source.to_canonical() {
            address if address.is_loopback() => "loopback".to_owned(),
            IpAddr::V4(address) if address.is_private() || address.is_link_local() => "private".to_owned(),
            IpAddr::V4(address) => {
                let [one, two, three, _] = address.octets();
                format!("{one}.{two}.{three}.0/24")
            }
            IpAddr::V6(address) if address.is_unique_local() || address.is_unicast_link_local() => {
                "private".to_owned()
            }
            IpAddr::V6(address) => {
                let [one, two, three, ..] = address.segments();
                format!("{one:x}:{two:x}:{three:x}::/48")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_no_address() {
        for (address, place) in [
            ("127.0.0.1", "loopback"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("10.1.2.3", "private"),
            ("fd00::1", "private"),
            ("203.0.113.9", "203.0.113.0/24"),
            ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ] {
            assert_eq!(Device::new("x", address.parse().ok()).place(), place, "{address}");
        }
        let long = Device::new(&format!("a\n\u{7}{}", "é".repeat(500)), None);
        assert_eq!((long.agent().chars().count(), long.place().as_str()), (MAX_AGENT_CHARS, ""));
        assert!(long.agent().starts_with("aé"));
    }
}
