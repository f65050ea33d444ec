//! `robots.txt` (RFC 9309), and robots directives in headers and pages.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use robotxt::Robots;
use url::Url;

use crate::{Call, Fault};

/// The product token of this crawler.
const NAME: &str = "cairn";
/// Bytes of the response; the parser reads the 500 KiB that the standard requires.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// The maximum crawl delay that is honored.
const MAX_CRAWL_DELAY: Duration = Duration::from_secs(30);

const UNREADABLE: Fault = Fault::broken(
    "the robots.txt of the site cannot be read now, and without it nothing of the site is read",
);

/// The message for pages that `robots.txt` disallows.
pub(super) const DISALLOWED: &str = "the robots.txt of its site does not allow it to be read";
pub(super) const NO_INDEX: &str = "the page asks not to be indexed";

/// The parsed rules of a site.
#[derive(Debug)]
pub(super) struct Rules(Robots);

impl Rules {
    /// Fetches the rules of a site. No file allows everything; a server error allows nothing.
    ///
    /// # Errors
    /// Temporary faults of the request; [`Fault::Broken`] if the site returns a server error.
    pub(super) async fn ask(call: &Call, page: &Url) -> Result<Self, Fault> {
        let url = robotxt::robots_url(page).map_err(|_| Fault::Address)?;
        let request = Request::get(url.as_str()).body(Bytes::new()).map_err(|_| Fault::Address)?;
        let answer = match call.exchange(request, MAX_BYTES).await {
            Ok(answer) => answer,
            // Failing redirects count as no file.
            Err(Fault::Broken(_) | Fault::Address) => return Ok(Self(Robots::allow_all())),
            Err(Fault::TooLarge(_)) => return Err(UNREADABLE),
            Err(fault) => return Err(fault),
        };
        match answer.status().as_u16() {
            200..=299 => Ok(Self(Robots::parse(answer.body(), NAME))),
            300..=499 => Ok(Self(Robots::allow_all())),
            _ => Err(UNREADABLE),
        }
    }

    pub(super) fn allow(&self, url: &Url) -> bool {
        self.0.is_url_allowed(url)
    }

    /// The crawl delay of the site.
    pub(super) fn delay(&self) -> Duration {
        self.0.crawl_delay().unwrap_or_default().min(MAX_CRAWL_DELAY)
    }
}

/// The robots directives of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Whether its text may be indexed.
    pub(super) index: bool,
    /// Whether its links may be followed.
    pub(super) follow: bool,
}

impl Allowed {
    pub(super) const ALL: Self = Self { index: true, follow: true };

    /// Parses the header `X-Robots-Tag`.
    pub(super) fn by(headers: &HeaderMap) -> Self {
        let mut allowed = Self::ALL;
        for value in headers.get_all("x-robots-tag").iter().filter_map(|value| value.to_str().ok()) {
            // A directive may be for one crawler: `name: noindex`.
            match value.split_once(':') {
                Some((name, words)) if is_for(name) == Some(true) => allowed.take(words),
                Some((name, _)) if is_for(name) == Some(false) => {}
                _ => allowed.take(value),
            }
        }
        allowed
    }

    /// Applies the directives of a `meta` element.
    pub(super) fn take_meta(&mut self, name: &str, words: &str) {
        if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(NAME) {
            self.take(words);
        }
    }

    fn take(&mut self, words: &str) {
        for word in words.split([',', ' ']).map(str::trim) {
            let is = |known: &str| word.eq_ignore_ascii_case(known);
            self.index &= !is("noindex") && !is("none");
            self.follow &= !is("nofollow") && !is("none");
        }
    }
}

/// Whether the text before a colon names a crawler, and if so, whether it is this one. Some directives contain colons themselves.
fn is_for(name: &str) -> Option<bool> {
    const WORDS: [&str; 4] = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
    let name = name.trim();
    let is_word = name.contains([',', ' ']) || WORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    (!is_word).then(|| name.eq_ignore_ascii_case(NAME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_be_for_one_crawler() {
        let by = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("x-robots-tag", value.parse().unwrap());
            }
            let Allowed { index, follow } = Allowed::by(&headers);
            (index, follow)
        };
        assert_eq!(by(&[]), (true, true));
        assert_eq!(by(&["noindex, nofollow"]), (false, false));
        assert_eq!(by(&["googlebot: noindex", "cairn: nofollow"]), (true, false));
        assert_eq!(by(&["max-snippet: 20, NoIndex"]), (false, true));
        assert_eq!(by(&["unavailable_after: 25 Jun 2030 15:00:00 GMT"]), (true, true));
        assert_eq!(by(&["noindex, max-snippet:0"]), (false, true));
        assert_eq!(by(&["none"]), (false, false));
    }

    #[test]
    fn the_longest_rule_counts_and_delays_are_bounded() {
        let text =
            "User-agent: *\nDisallow: /\n\nUser-agent: Cairn\nCrawl-delay: 900\nDisallow: /a\nAllow: /a/b\n";
        let rules = Rules(Robots::parse(text.as_bytes(), NAME));
        let allow = |path: &str| rules.allow(&Url::parse(&format!("https://example.com{path}")).unwrap());
        assert!(allow("/") && allow("/a/b/c") && !allow("/a/c") && !allow("/a?b"));
        assert_eq!(rules.delay(), MAX_CRAWL_DELAY);
    }
}
