//! Public IP addresses (IANA special-purpose address registries).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the address is globally reachable.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let special = match ip.octets() {
        // This host, private, loopback, former class E and broadcast, multicast.
        [0 | 10 | 127 | 224..=255, ..]
        // Shared by carriers.
        | [100, 64..=127, ..]
        // Link-local, with the metadata services of clouds.
        | [169, 254, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        // Protocol assignments, documentation, 6to4 relays.
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        // Benchmarks, documentation.
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => true,
        _ => false,
    };
    !special
}

/// Only global unicast (2000::/3) is allowed: loopback, link-local, unique local, multicast and all forms that embed an IPv4
/// address are outside of it, or are excluded here.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        // Protocol assignments with Teredo, documentation, 6to4, documentation.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_is_what_the_registries_leave() {
        for public in ["1.1.1.1", "8.8.8.8", "100.63.255.255", "172.32.0.1", "192.0.1.1", "2606:4700::1111"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for special in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }
}
