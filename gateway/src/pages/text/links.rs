//! Resolves the links of a text. Anything not known to be harmless is dropped.

use std::borrow::Cow;

use form_urlencoded::byte_serialize;
use percent_encoding::percent_decode_str;

/// The base of relative URLs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Relative<'a> {
    /// The page's own URL.
    Page,
    /// Nothing the reader could open.
    Nothing,
    /// A folder of a workspace, where links are resolved as paths.
    Folder { workspace: &'a str, path: &'a str },
}

/// The target of a link.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A URL of ours.
    Own(String),
    /// Another host, or a mail program.
    Elsewhere(String),
    Nowhere,
}

const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// Resolves a URL.
pub(super) fn target(address: &str, relative: Relative<'_>) -> Target {
    let address = address.trim_matches(' ');
    // Browsers strip or reinterpret some of these, which could turn one URL into another.
    if address.is_empty() || address.contains(|c: char| c.is_control() || c == '\\') {
        return Target::Nowhere;
    }
    let begins =
        |scheme: &&str| address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    if SCHEMES.iter().any(begins) {
        return Target::Elsewhere(address.to_owned());
    }
    if let Some(fragment) = address.strip_prefix('#') {
        return Target::Own(format!("#{}", anchor(&decoded(fragment))));
    }
    if address.starts_with('/') {
        return if address.starts_with("//") { Target::Nowhere } else { Target::Own(address.to_owned()) };
    }
    // A scheme, even if decoded by somebody first, ends before the first of these.
    let start = address.split(['/', '?']).next().unwrap_or_default().to_ascii_lowercase();
    let first = start.split('#').next().unwrap_or_default();
    if first.is_empty()
        || start.contains("&#")
        || [":", "%3a", "&colon"].iter().any(|colon| first.contains(colon))
    {
        return Target::Nowhere;
    }
    match relative {
        Relative::Page => Target::Own(address.to_owned()),
        Relative::Nothing => Target::Nowhere,
        Relative::Folder { workspace, path } => {
            let named = address.split(['?', '#']).next().unwrap_or_default();
            opened(workspace, "path", &joined(path, &decoded(named)))
        }
    }
}

/// Resolves a wiki link: `[[Release notes]]`.
pub(super) fn named(name: &str, relative: Relative<'_>) -> Target {
    let name = name.split('#').next().unwrap_or_default().trim();
    match relative {
        Relative::Folder { workspace, .. } if !name.is_empty() => opened(workspace, "name", name),
        Relative::Folder { .. } | Relative::Page | Relative::Nothing => Target::Nowhere,
    }
}

/// Whether the URL is an asset's: the only images that pages show.
pub(super) fn is_asset(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("/api/assets/") else { return false };
    rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/'))
}

/// The id of a heading, from its text. A common prefix keeps them distinct from the page's own ids.
pub(super) fn anchor(text: &str) -> String {
    let mut id = "s-".to_owned();
    for letter in text.chars().flat_map(char::to_lowercase) {
        if id.len() > MAX_ID_BYTES {
            break;
        }
        match letter {
            letter if letter.is_alphanumeric() || letter == '_' => id.push(letter),
            ' ' | '-' => id.push('-'),
            _ => {}
        }
    }
    id
}

/// Longer headings are cut, and made unique by a number.
const MAX_ID_BYTES: usize = 80;

fn opened(workspace: &str, by: &str, what: &str) -> Target {
    let what: String = byte_serialize(what.as_bytes()).collect();
    Target::Own(format!("/w/{workspace}/open?{by}={what}"))
}

/// Resolves a path relative to a folder.
fn joined(folder: &str, path: &str) -> String {
    let mut segments: Vec<&str> = folder.split('/').filter(|segment| !segment.is_empty()).collect();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

/// Percent-decodes a text; invalid UTF-8 is left unchanged.
fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8().unwrap_or(Cow::Borrowed(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: Relative<'_> = Relative::Folder { workspace: "w1", path: "/plans/old" };

    fn own(address: &str) -> Target {
        Target::Own(address.to_owned())
    }

    #[test]
    fn what_may_run_leads_nowhere() {
        for address in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " javascript:alert(1)",
            "java\tscript:alert(1)",
            "java\nscript:alert(1)",
            "\u{1}javascript:alert(1)",
            "javascript%3Aalert(1)",
            "javascript&colon;alert(1)",
            "&#106;avascript&#58;alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "vbscript:x",
            "blob:https://x/1",
            "file:///etc/passwd",
            "about:blank",
            "//evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "http:\\\\evil.example",
            "http:evil.example",
            "https:/evil.example",
            "view-source:http://x",
            "?next=1",
            "",
            " ",
        ] {
            for relative in [FOLDER, Relative::Page] {
                assert_eq!(target(address, relative), Target::Nowhere, "{address:?}");
            }
        }
    }

    #[test]
    fn links_lead_where_they_say() {
        for address in ["https://example.com/a?b=c#d", "HTTP://example.com", "mailto:a@example.com"] {
            assert_eq!(target(address, Relative::Page), Target::Elsewhere(address.to_owned()));
        }
        assert_eq!(target("/file/1?lines=2-3#L2", Relative::Page), own("/file/1?lines=2-3#L2"));
        assert_eq!(target("#Set%20up", Relative::Page), own("#s-set-up"));
        assert_eq!(target("tools.md", Relative::Page), own("tools.md"));
        assert_eq!(target("tools.md", Relative::Nothing), Target::Nowhere);
        for (address, path) in [
            ("new.md", "%2Fplans%2Fold%2Fnew.md"),
            ("./new%20one.md#x", "%2Fplans%2Fold%2Fnew+one.md"),
            ("../a/b.md?x", "%2Fplans%2Fa%2Fb.md"),
            ("../../../../etc/passwd", "%2Fetc%2Fpasswd"),
            ("%zz%", "%2Fplans%2Fold%2F%25zz%25"),
            ("%ff", "%2Fplans%2Fold%2F%25ff"),
        ] {
            assert_eq!(target(address, FOLDER), own(&format!("/w/w1/open?path={path}")), "{address}");
        }
        assert_eq!(named("Release notes#Today", FOLDER), own("/w/w1/open?name=Release+notes"));
        assert_eq!(named("#x", FOLDER), Target::Nowhere);
        assert_eq!(named("Release", Relative::Page), Target::Nowhere);
    }

    #[test]
    fn images_are_assets() {
        assert!(is_asset("/api/assets/0199c0de-0000-7000-8000-000000000001/content"));
        for other in ["/api/assets/../session", "/api/session", "https://x/api/assets/1", "/api/assets/1?x"] {
            assert!(!is_asset(other), "{other}");
        }
    }

    #[test]
    fn ids_are_of_letters_and_bounded() {
        assert_eq!(anchor("What's new? (2026)"), "s-whats-new-2026");
        assert_eq!(anchor("Über_uns"), "s-über_uns");
        assert!(anchor(&"ß".repeat(10_000)).len() < 100);
    }
}
