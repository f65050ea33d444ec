//! Metadata and links of an HTML page, from its tokens, without building a tree.

use std::convert::Infallible;

use bytes::Bytes;
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, Token, Tokenizer};
use http::{HeaderMap, header};
use url::Url;

use super::address;
use super::robots::Allowed;

/// Bytes of a page that are searched for links.
const MAX_BYTES: usize = 10 * 1024 * 1024;
const MAX_LINKS: usize = 5_000;

/// The metadata of a page.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) allowed: Allowed,
    /// The canonical URL, if it is on the same site.
    pub(super) canonical: Option<Url>,
    /// The targets of its links, except `nofollow` ones.
    pub(super) links: Vec<Url>,
}

impl Facts {
    /// Parses a response from that URL.
    pub(super) fn of(headers: &HeaderMap, body: &Bytes, url: &Url) -> Self {
        let allowed = Allowed::by(headers);
        let mut facts = Self { allowed, canonical: None, links: Vec::new() };
        if is_html(headers, body) {
            facts.read(body.get(..MAX_BYTES).unwrap_or(body), url);
        }
        facts
    }

    fn read(&mut self, html: &[u8], url: &Url) {
        let mut base = None;
        let mut links = Vec::new();
        let mut emitter = DefaultEmitter::<()>::default();
        emitter.naively_switch_states(true);
        for token in Tokenizer::new_with_emitter(html, emitter) {
            let Token::StartTag(tag) = token.unwrap_or_else(|never: Infallible| match never {}) else {
                continue;
            };
            let name: &[u8] = &tag.name;
            match name {
                b"a" | b"area" if links.len() < MAX_LINKS && !says(&tag, b"rel", "nofollow") => {
                    links.extend(value(&tag, b"href"));
                }
                b"base" if base.is_none() => {
                    base = value(&tag, b"href").and_then(|href| url.join(&href).ok())
                }
                b"link" if self.canonical.is_none() && says(&tag, b"rel", "canonical") => {
                    let named = value(&tag, b"href").and_then(|href| address::listed(url, &href));
                    self.canonical = named.filter(|named| address::is_same_site(url, named));
                }
                b"meta" => {
                    let of = |name: &[u8]| value(&tag, name).unwrap_or_default();
                    self.allowed.take_meta(of(b"name").trim(), &of(b"content"));
                }
                _ => {}
            }
        }
        let base = base.as_ref().unwrap_or(url);
        self.links = links.iter().filter_map(|href| base.join(href.trim()).ok()).collect();
    }
}

/// Whether a response is HTML, by its content type, or without one, by its first character.
fn is_html(headers: &HeaderMap, body: &[u8]) -> bool {
    let sent = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match super::site::essence(sent).as_str() {
        "text/html" | "application/xhtml+xml" => true,
        "" => body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<'),
        _ => false,
    }
}

fn value(tag: &StartTag<()>, wanted: &[u8]) -> Option<String> {
    tag.attributes.iter().find_map(|(name, value)| {
        let (name, value): (&[u8], &[u8]) = (name, value);
        (name == wanted).then(|| String::from_utf8_lossy(value).into_owned())
    })
}

/// Whether an attribute contains a word.
fn says(tag: &StartTag<()>, attribute: &[u8], word: &str) -> bool {
    let value = value(tag, attribute).unwrap_or_default();
    value.split_ascii_whitespace().any(|said| said.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(html: &str) -> Facts {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "text/html; charset=utf-8".parse().unwrap());
        let url = Url::parse("https://example.com/docs/a").unwrap();
        Facts::of(&headers, &Bytes::copy_from_slice(html.as_bytes()), &url)
    }

    fn links(html: &str) -> Vec<String> {
        facts(html).links.into_iter().map(String::from).collect()
    }

    #[test]
    fn links_are_absolute_and_those_of_scripts_are_none() {
        let found = links(
            "<!-- <a href=/no> --><a href=b>b</a><A HREF=' /c?x=1&amp;y '>c</a><a rel='x NoFollow' href=d>d</a>\
             <script>'<a href=/no>'</script><area href=e><a>f</a><a href='https://['>g</a>",
        );
        let wanted =
            ["https://example.com/docs/b", "https://example.com/c?x=1&y", "https://example.com/docs/e"];
        assert_eq!(found, wanted);
        assert_eq!(
            links("<base href='/other/'><base href='/no/'><a href=b>"),
            ["https://example.com/other/b"]
        );
    }

    #[test]
    fn a_page_says_what_may_be_done_with_it_and_its_own_address() {
        let page =
            facts("<meta name=Robots content='noindex'><link rel=canonical href='/docs/a?utm_source=x#b'>");
        assert_eq!(page.allowed, Allowed { index: false, follow: true });
        assert_eq!(page.canonical.unwrap().as_str(), "https://example.com/docs/a");
        assert!(facts("<link rel=canonical href='https://evil.example/'>").canonical.is_none());
        assert_eq!(facts("<meta name=googlebot content=noindex>").allowed, Allowed::ALL);
    }

    #[test]
    fn odd_pages_take_neither_long_nor_much() {
        assert_eq!(links(&"<a href=b>".repeat(20_000)).len(), MAX_LINKS);
        assert!(links(&"<b>".repeat(200_000)).is_empty());
        assert!(links(&format!("<a {}>", "x=y ".repeat(100_000))).is_empty());
        assert!(links("<a href").is_empty());
        let plain = Bytes::from_static(b"<a href=b>");
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "text/plain".parse().unwrap());
        let url = Url::parse("https://example.com/").unwrap();
        assert!(Facts::of(&headers, &plain, &url).links.is_empty());
    }
}
