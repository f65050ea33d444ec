//! Normalizes URLs of pages, and checks whether they belong to a source.

use url::Url;

use crate::ExternalId;

/// The normalized URL of a page: without fragment and tracking parameters. `None` if it is not a web URL.
pub(super) fn page(mut url: Url) -> Option<Url> {
    let is_plain = url.username().is_empty() && url.password().is_none() && url.has_host();
    if !is_plain || !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_fragment(None);
    let parameters: Vec<&str> = url.query().map(|query| query.split('&').collect()).unwrap_or_default();
    let kept: Vec<&str> = parameters.iter().copied().filter(|parameter| !is_tracking(parameter)).collect();
    if kept.len() < parameters.len() || url.query() == Some("") {
        let query = Some(kept.join("&")).filter(|query| !query.is_empty());
        url.set_query(query.as_deref());
    }
    Some(url)
}

/// Parses an id.
pub(super) fn of_id(id: &ExternalId) -> Option<Url> {
    page(Url::parse(id.as_str()).ok()?).filter(|url| url.as_str() == id.as_str())
}

/// Parses a URL in a list of the site at `source`.
pub(super) fn listed(source: &Url, text: &str) -> Option<Url> {
    page(source.join(text.trim()).ok()?).map(|url| as_secure_as(source, url))
}

fn is_tracking(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default().to_ascii_lowercase();
    name.starts_with("utm_") || matches!(name.as_str(), "gclid" | "fbclid")
}

/// Whether two URLs are of the same site, ignoring `www.` and the scheme.
pub(super) fn is_same_site(one: &Url, other: &Url) -> bool {
    let host = |url: &Url| url.host_str().map(|host| host.trim_start_matches("www.").to_owned());
    host(one).is_some_and(|name| host(other) == Some(name)) && one.port() == other.port()
}

/// Upgrades old http links of a site that uses TLS.
fn as_secure_as(source: &Url, mut url: Url) -> Url {
    if source.scheme() == "https" && url.scheme() == "http" && is_same_site(source, &url) {
        // This cannot fail between http and https.
        let _ = url.set_scheme("https");
    }
    url
}

/// The scope of a crawl: the origin and folder of its start page.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    start: Url,
    folder: String,
}

/// Longer paths, or paths that repeat a segment this often, are crawler traps.
const MAX_PARTS: usize = 30;
const MAX_REPEATS: usize = 3;
/// Extensions of files without text.
const NO_TEXT: [&str; 28] = [
    "avi", "bin", "bmp", "css", "dmg", "eot", "exe", "gif", "gz", "ico", "iso", "jpeg", "jpg", "js", "mov",
    "mp3", "mp4", "ogg", "png", "svg", "tar", "tgz", "ttf", "wav", "webm", "webp", "woff", "zip",
];

impl Scope {
    pub(super) fn of(start: Url) -> Self {
        let path = start.path();
        let folder = path.rfind('/').and_then(|end| path.get(..=end)).unwrap_or("/").to_owned();
        Self { start, folder }
    }

    pub(super) fn start(&self) -> &Url {
        &self.start
    }

    pub(super) fn has(&self, url: &Url) -> bool {
        url.origin() == self.start.origin() && url.path().starts_with(&self.folder)
    }

    /// The normalized target of a link, if it is in scope.
    pub(super) fn follow(&self, link: &Url) -> Option<Url> {
        let url = as_secure_as(&self.start, page(link.clone())?);
        let fits = url.as_str().len() <= ExternalId::MAX_BYTES;
        (fits && self.has(&url) && !is_endless(url.path()) && !is_no_text(url.path())).then_some(url)
    }
}

fn is_endless(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let repeats = |part: &str| parts.iter().filter(|other| **other == part).count();
    parts.len() > MAX_PARTS || parts.iter().any(|part| repeats(part) > MAX_REPEATS)
}

fn is_no_text(path: &str) -> bool {
    let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
    ending.is_some_and(|ending| NO_TEXT.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn one_page_has_one_address() {
        for (text, wanted) in [
            ("HTTPS://Example.COM:443/A/?b=1#c", "https://example.com/A/?b=1"),
            ("https://example.com/a?utm_source=x&b=1&UTM_medium=y&fbclid=z", "https://example.com/a?b=1"),
            ("https://example.com/a?gclid=z", "https://example.com/a"),
            ("https://example.com/a?", "https://example.com/a"),
            ("https://example.com", "https://example.com/"),
            ("https://example.com/a?b=%20&&c", "https://example.com/a?b=%20&&c"),
        ] {
            assert_eq!(page(url(text)).unwrap().as_str(), wanted);
        }
        for none in ["mailto:a@b.example", "ftp://a.example/", "https://me:secret@a.example/", "data:,a"] {
            assert_eq!(page(url(none)), None, "{none}");
        }
        for odd in ["nothing", "/etc/passwd", "https://example.com/#a", "https://EXAMPLE.com/", "https://["] {
            assert_eq!(of_id(&ExternalId::new(odd).unwrap()), None, "{odd}");
        }
    }

    #[test]
    fn old_links_of_a_site_are_followed_over_tls() {
        let source = url("https://www.example.com/sitemap.xml");
        assert_eq!(listed(&source, " http://example.com/a ").unwrap().as_str(), "https://example.com/a");
        assert_eq!(listed(&source, "/b").unwrap().as_str(), "https://www.example.com/b");
        assert_eq!(listed(&source, "http://other.example/c").unwrap().as_str(), "http://other.example/c");
        assert!(is_same_site(&source, &url("http://example.com/a")));
        for other in ["https://example.org/", "https://www.example.com:8443/", "https://a.example.com/"] {
            assert!(!is_same_site(&source, &url(other)), "{other}");
        }
    }

    #[test]
    fn a_crawl_stays_in_its_folder() {
        let scope = Scope::of(url("https://example.com/docs/start?x=1"));
        let follow = |text: &str| scope.follow(&url(text)).map(String::from);
        assert_eq!(
            follow("http://example.com/docs/a/b.html#c").unwrap(),
            "https://example.com/docs/a/b.html"
        );
        for outside in [
            "https://example.com/",
            "https://example.com/docsother",
            "https://other.example/docs/a",
            "https://example.com:8443/docs/a",
            "https://example.com/docs/../secret",
            "https://example.com/docs/logo.PNG",
            "https://example.com/docs/a/b/a/b/a/b/a/b",
        ] {
            assert_eq!(follow(outside), None, "{outside}");
        }
        assert_eq!(follow(&format!("https://example.com/docs/{}", "1/".repeat(40))), None);
        assert_eq!(follow(&format!("https://example.com/docs/{}", "x".repeat(3_000))), None);
        assert!(Scope::of(url("https://example.com/docs")).has(&url("https://example.com/other")));
    }
}
