//! Versions of pages: the hash of the bytes, and a validator for conditional requests.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, header};

use crate::Version;

/// Digits of the hash. The validator follows it.
const HASH_DIGITS: usize = 32;
/// Longer validators are not stored: the hash detects changes, too, after a download.
const MAX_VALIDATOR_BYTES: usize = 90;

const BY_TAG: &str = "tag";
const BY_TIME: &str = "time";

/// The version of a response.
pub(super) fn of(answer: &Response<Bytes>) -> Version {
    let hash = hash(answer.body());
    let validator = |name: &HeaderName| {
        let value = answer.headers().get(name)?.to_str().ok()?;
        (!value.is_empty() && value.len() <= MAX_VALIDATOR_BYTES).then_some(value)
    };
    Version::new(match (validator(&header::ETAG), validator(&header::LAST_MODIFIED)) {
        (Some(tag), _) => format!("{hash} {BY_TAG} {tag}"),
        (None, Some(time)) => format!("{hash} {BY_TIME} {time}"),
        (None, None) => hash,
    })
}

/// The header of a conditional request.
pub(super) fn condition(known: &Version) -> Option<(HeaderName, HeaderValue)> {
    let mut parts = known.as_str().splitn(3, ' ').skip(1);
    let name = match parts.next()? {
        BY_TAG => header::IF_NONE_MATCH,
        BY_TIME => header::IF_MODIFIED_SINCE,
        _ => return None,
    };
    Some((name, HeaderValue::from_str(parts.next()?).ok()?))
}

/// Whether these are the bytes of that version.
pub(super) fn is_of(known: &Version, body: &[u8]) -> bool {
    known.as_str().split(' ').next() == Some(hash(body).as_str())
}

fn hash(body: &[u8]) -> String {
    blake3::hash(body).to_hex().chars().take(HASH_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(headers: &[(&str, &str)]) -> Version {
        let mut answer = Response::builder();
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        of(&answer.body(Bytes::from_static(b"text")).unwrap())
    }

    #[test]
    fn a_host_is_asked_with_what_it_gave() {
        let asked = |headers: &[(&str, &str)]| {
            condition(&version(headers)).map(|(name, value)| (name.to_string(), value))
        };
        let (tag, time) = ("W/\"a b\"", "Mon, 23 Nov 2026 12:00:00 GMT");
        assert_eq!(asked(&[("etag", tag)]).unwrap(), ("if-none-match".into(), tag.parse().unwrap()));
        assert_eq!(asked(&[("last-modified", time)]).unwrap().0, "if-modified-since");
        assert_eq!(asked(&[("etag", tag), ("last-modified", time)]).unwrap().0, "if-none-match");
        assert_eq!(asked(&[]), None);
        assert_eq!(asked(&[("etag", &"x".repeat(500))]), None);
        assert_eq!(condition(&Version::unknown()), None);
    }

    #[test]
    fn the_bytes_tell_whatever_the_host_says() {
        assert!(is_of(&version(&[("etag", "\"1\"")]), b"text"));
        assert!(!is_of(&version(&[]), b"other"));
        assert!(!is_of(&Version::unknown(), b"text"));
    }
}
