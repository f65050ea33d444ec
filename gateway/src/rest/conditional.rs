//! Conditional requests (RFC 9110, section 13). The entity tag of a file or an asset is the hash of its content.

use http::{HeaderMap, HeaderName, HeaderValue, header};

const ANY: &str = "*";

/// The ETag of a content hash.
pub(crate) fn etag(content_hash: &str) -> Option<HeaderValue> {
    HeaderValue::try_from(["\"", content_hash, "\""].concat()).ok()
}

/// Whether the caller has this content already (`If-None-Match`, weak comparison).
pub(crate) fn is_current(headers: &HeaderMap, content_hash: &str) -> bool {
    tags(headers, header::IF_NONE_MATCH).any(|tag| {
        let strong = tag.strip_prefix("W/").unwrap_or(tag);
        tag == ANY || unquoted(strong) == content_hash
    })
}

/// The content hashes accepted by `If-Match` (strong comparison: a weak tag matches nothing). Empty means no
/// condition.
pub(super) fn required(headers: &HeaderMap) -> Vec<String> {
    let named: Vec<&str> = tags(headers, header::IF_MATCH).collect();
    if named.contains(&ANY) {
        return Vec::new();
    }
    named.into_iter().map(|tag| unquoted(tag).to_owned()).collect()
}

fn tags(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    // A non-text header is a tag that matches nothing, not an absent condition.
    let lines = headers.get_all(name).into_iter().map(|line| line.to_str().unwrap_or("W/"));
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|tag| !tag.is_empty())
}

fn unquoted(tag: &str) -> &str {
    tag.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(&name, line.parse().unwrap());
        }
        headers
    }

    #[test]
    fn none_match_compares_weakly() {
        for line in ["\"blake3:a\"", "W/\"blake3:a\"", "\"x\", \"blake3:a\"", "*"] {
            assert!(is_current(&with(header::IF_NONE_MATCH, &[line]), "blake3:a"), "{line}");
        }
        assert!(!is_current(&with(header::IF_NONE_MATCH, &["\"blake3:b\""]), "blake3:a"));
        assert!(!is_current(&HeaderMap::new(), "blake3:a"));
    }

    #[test]
    fn match_names_the_contents_that_will_do() {
        assert_eq!(required(&with(header::IF_MATCH, &["\"a\", \"b\"", "\"c\""])), ["a", "b", "c"]);
        assert_eq!(required(&with(header::IF_MATCH, &["W/\"a\""])), ["W/\"a\""]);
        assert!(required(&with(header::IF_MATCH, &["*"])).is_empty());
        assert!(required(&HeaderMap::new()).is_empty());
    }
}
