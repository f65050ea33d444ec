//! The destination after a sign-in: a path of this deployment and nothing else.

use cairn_chassis::wording::{self, Unit};
use url::Url;

/// It travels in a cookie, and browsers limit cookies to 4,096 bytes.
const MAX_BYTES: usize = 2_800;
/// A dummy base, to check that resolving the path does not change the host.
const HERE: &str = "http://cairn.invalid";

/// Why the path is invalid; `None` if it is valid.
pub(super) fn fault(path: &str) -> Option<String> {
    if path.len() > MAX_BYTES {
        return Some(wording::at_most(MAX_BYTES, Unit::Bytes));
    }
    // Browsers resolve `//host` and `/\host` to other hosts, and drop tabs and line breaks first.
    let is_odd = |character: char| character == '\\' || character.is_control() || character.is_whitespace();
    let is_path = path.starts_with('/') && !path.starts_with("//") && !path.contains(is_odd);
    let stays = || {
        let base = Url::parse(HERE).ok()?;
        let joined = base.join(path).ok()?;
        Some(joined.origin() == base.origin())
    };
    if is_path && stays() == Some(true) {
        return None;
    }
    Some("must be a path of this server, such as /oauth/authorize?client_id=…".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_our_own_is_returned_to() {
        for path in
            ["/", "/a/b?c=d&e=https%3A%2F%2Ff#g", "/oauth/authorize?redirect_uri=https://x.example/cb"]
        {
            assert_eq!(fault(path), None, "{path}");
        }
        for odd in [
            "",
            "a",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "https://evil.example/",
            "javascript:alert(1)",
            " /a",
            "/a\r\nset-cookie: b",
            "\\\\evil.example",
            "///evil.example",
        ] {
            assert!(fault(odd).is_some(), "{odd:?}");
        }
        assert_eq!(fault(&format!("/{}", "a".repeat(MAX_BYTES - 1))), None);
        assert!(fault(&format!("/{}", "a".repeat(MAX_BYTES))).is_some());
    }
}
