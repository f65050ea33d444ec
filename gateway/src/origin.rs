//! Which web origins may call us: our own, and those in the configuration (spec 5.10; contract, "Console API").

use http::{HeaderMap, Uri, header};

use crate::ConfigError;

const FETCH_SITE: &str = "sec-fetch-site";

/// The origin policy, built once from the configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    /// The configured base URL without trailing slash; empty if none is configured.
    base: String,
    own: Option<Origin>,
    listed: Vec<Origin>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// Parses a base URL; its path is ignored, while user info, a query or a fragment make it invalid.
    fn of_address(text: &str) -> Option<Self> {
        let uri: Uri = text.trim().parse().ok()?;
        let is_plain = uri.query().is_none() && !text.contains(['@', '#']);
        Self::of(&uri).filter(|_| is_plain)
    }

    /// Parses an `Origin` header: scheme, host and port, and nothing else (RFC 6454, section 6.2).
    fn parse(text: &str) -> Option<Self> {
        let (_, authority) = text.split_once("://")?;
        let is_bare = !authority.contains(['/', '\\', '?', '#', '@']) && !authority.ends_with(':');
        Self::of(&text.parse().ok()?).filter(|_| is_bare)
    }

    fn of(uri: &Uri) -> Option<Self> {
        let scheme = uri.scheme_str()?.to_ascii_lowercase();
        let host = uri.host()?.to_ascii_lowercase();
        let standard_port = match scheme.as_str() {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        Some(Self { port: uri.port_u16().unwrap_or(standard_port), scheme, host })
    }

    fn is_loopback(&self) -> bool {
        matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "[::1]")
    }

    /// A machine's loopback has several names, and all of them are this deployment.
    fn is_same(&self, other: &Self) -> bool {
        let same_loopback = self.is_loopback()
            && other.is_loopback()
            && self.port == other.port
            && self.scheme == other.scheme;
        self == other || same_loopback
    }
}

impl Origins {
    /// Fails on an invalid address: ignoring it would refuse people for no visible reason.
    pub(crate) fn new(base_url: Option<&str>, allowed: &[String]) -> Result<Self, ConfigError> {
        let own =
            base_url.map(|url| Origin::of_address(url).ok_or_else(|| ConfigError::BaseUrl(url.to_owned())));
        let read = |url: &str| Origin::parse(url.strip_suffix('/').unwrap_or(url));
        let listed =
            allowed.iter().map(|url| read(url.trim()).ok_or_else(|| ConfigError::AllowedOrigin(url.clone())));
        let base = base_url.unwrap_or_default().trim_end_matches('/').to_owned();
        Ok(Self { base, own: own.transpose()?, listed: listed.collect::<Result<_, _>>()? })
    }

    /// Whether `/mcp` accepts the request: no Origin, our own, or a listed one.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(header::ORIGIN).iter();
        match (sent.next(), sent.next()) {
            (None, _) => true,
            (Some(_), Some(_)) => false,
            (Some(only), None) => {
                let origin = only.to_str().ok().and_then(Origin::parse);
                origin.is_some_and(|origin| self.is_own(&origin, headers) || self.listed.contains(&origin))
            }
        }
    }

    /// Whether a state-changing request may use a session cookie: never from another site's page.
    pub(crate) fn allow_session_write(&self, headers: &HeaderMap) -> bool {
        let foreign_site = headers
            .get_all(FETCH_SITE)
            .iter()
            .any(|site| matches!(site.as_bytes(), b"cross-site" | b"same-site"));
        if foreign_site {
            return false;
        }
        headers.get_all(header::ORIGIN).iter().all(|sent| {
            let origin = sent.to_str().ok().and_then(Origin::parse);
            origin.is_some_and(|origin| self.is_own(&origin, headers))
        })
    }

    /// A deployment on loopback, or without a configured address, may be reached through a tunnel under another
    /// port: there the `Host` is ours as long as it is loopback. Any other `Host` proves nothing, because a page can
    /// rebind its name to 127.0.0.1 (DNS rebinding).
    fn is_own(&self, origin: &Origin, headers: &HeaderMap) -> bool {
        if self.own.as_ref().is_some_and(|own| own.is_same(origin)) {
            return true;
        }
        let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
        let addressed = host.and_then(|host| Origin::parse(&format!("{}://{host}", self.scheme())));
        self.is_loopback()
            && addressed.is_some_and(|addressed| addressed.is_loopback() && addressed.is_same(origin))
    }

    /// The address the caller used, if it is certainly ours: on loopback, by any of its names.
    fn loopback_address(&self, headers: &HeaderMap) -> Option<String> {
        let scheme = self.scheme();
        let host = headers.get(header::HOST)?.to_str().ok().filter(|_| self.is_loopback())?;
        let address = format!("{scheme}://{}", host.to_ascii_lowercase());
        // Anything else in `Host` would end up in our URLs.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'[' | b']');
        let is_ours = host.bytes().all(is_plain) && Origin::parse(&address)?.is_loopback();
        is_ours.then_some(address)
    }

    /// The base URL under which the caller reached us: the issuer, and the prefix of every URL in the metadata.
    /// Without trailing slash; `None` when neither the configuration nor a loopback `Host` tells.
    ///
    /// On loopback it is the `Host` and not the configured one: clients compare the resource with what their user
    /// typed, and a machine has several names for its loopback.
    pub(crate) fn base_url(&self, headers: &HeaderMap) -> Option<String> {
        self.loopback_address(headers).or_else(|| Some(self.base.clone()).filter(|base| !base.is_empty()))
    }

    fn scheme(&self) -> &str {
        self.own.as_ref().map_or("http", |own| own.scheme.as_str())
    }

    /// Whether the deployment is reached over TLS.
    pub(crate) fn is_https(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.scheme == "https")
    }

    /// Whether cookies may travel without TLS: on loopback only.
    pub(crate) fn is_loopback(&self) -> bool {
        self.own.as_ref().is_none_or(Origin::is_loopback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn only_our_own_and_listed_origins_pass() {
        let origins =
            Origins::new(Some("https://cairn.example/"), &["https://tools.example:8443".to_owned()]).unwrap();
        assert!(origins.allow(&headers(&[])));
        assert!(origins.allow(&headers(&[("origin", "https://cairn.example")])));
        assert!(origins.allow(&headers(&[("origin", "https://cairn.example:443")])));
        assert!(origins.is_https());
        assert!(origins.allow(&headers(&[("origin", "https://tools.example:8443")])));
        for odd in [
            "http://cairn.example",
            "https://tools.example",
            "https://cairn.example.evil",
            "https://cairn.example:8443",
            "https://cairn.example:",
            "https://cairn.example/",
            "https://cairn.example/path",
            "https://cairn.example?query",
            "https://cairn.example#part",
            "https://cairn.example\\x",
            "https://somebody@cairn.example",
            "https://tools.example:8443@cairn.example",
            "https://cairn.example:443@evil.example",
            "https://cairn.example https://cairn.example",
            "//cairn.example",
            "cairn.example",
            "null",
            "",
            "é",
        ] {
            assert!(!origins.allow(&headers(&[("origin", odd)])), "{odd}");
        }
        let twice = headers(&[("origin", "https://cairn.example"), ("origin", "https://cairn.example")]);
        assert!(!origins.allow(&twice));
    }

    #[test]
    fn without_an_address_only_loopback_is_ours() {
        let origins = Origins::new(None, &[]).unwrap();
        assert!(origins.allow(&headers(&[("host", "127.0.0.1:8700"), ("origin", "http://127.0.0.1:8700")])));
        assert!(!origins.is_https());
        assert!(!origins.allow(&headers(&[("host", "evil.example"), ("origin", "http://evil.example")])));
        assert!(!origins.allow(&headers(&[("host", "127.0.0.1:8700"), ("origin", "http://127.0.0.1:9")])));
        assert!(
            !origins.allow(&headers(&[("host", "127.0.0.1:8700"), ("origin", "https://127.0.0.1:8700")]))
        );
    }

    #[test]
    fn an_address_that_cannot_be_read_is_an_error() {
        for odd in ["cairn.example", "https://me:secret@cairn.example", "https://cairn.example/?a", "ftp://a"]
        {
            assert!(Origins::new(Some(odd), &[]).is_err(), "{odd}");
        }
        for odd in ["tools", "https://tools.example/path", "https://me@tools.example", "*"] {
            assert!(Origins::new(None, &[odd.to_owned()]).is_err(), "{odd}");
        }
        assert!(Origins::new(Some("https://cairn.example/"), &["https://tools.example/".to_owned()]).is_ok());
    }

    #[test]
    fn loopback_has_several_names() {
        let origins = Origins::new(Some("http://127.0.0.1:8700"), &[]).unwrap();
        assert!(origins.allow(&headers(&[("origin", "http://localhost:8700")])));
        assert!(!origins.allow(&headers(&[("origin", "http://localhost:8701")])));
        assert!(origins.is_loopback());
        let tunnelled = [("host", "localhost:9000"), ("origin", "http://localhost:9000")];
        assert!(origins.allow(&headers(&tunnelled)));
        assert!(!Origins::new(Some("https://cairn.example"), &[]).unwrap().allow(&headers(&tunnelled)));
    }

    #[test]
    fn the_address_follows_the_host_on_loopback_only() {
        let by = |own: Option<&str>, host: &'static str| {
            Origins::new(own, &[]).unwrap().loopback_address(&headers(&[("host", host)]))
        };
        let address = |text: &str| Some(text.to_owned());
        assert_eq!(by(None, "127.0.0.1:8700"), address("http://127.0.0.1:8700"));
        assert_eq!(by(Some("http://127.0.0.1:8700"), "LocalHost:9000"), address("http://localhost:9000"));
        assert_eq!(by(None, "[::1]:1"), address("http://[::1]:1"));
        for odd in ["cairn.example", "localhost.evil.example", "a@localhost", "localhost/x", "local host", ""]
        {
            assert_eq!(by(None, odd), None, "{odd}");
        }
        assert_eq!(by(Some("https://cairn.example"), "localhost:8700"), None);
    }

    #[test]
    fn a_session_write_from_another_site_is_refused() {
        let origins =
            Origins::new(Some("https://cairn.example"), &["https://tools.example".to_owned()]).unwrap();
        assert!(origins.allow_session_write(&headers(&[])));
        assert!(origins.allow_session_write(&headers(&[("sec-fetch-site", "same-origin")])));
        assert!(origins.allow_session_write(&headers(&[
            ("sec-fetch-site", "none"),
            ("origin", "https://cairn.example")
        ])));
        for (name, value) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://tools.example"),
            ("origin", "null"),
        ] {
            assert!(!origins.allow_session_write(&headers(&[(name, value)])), "{name}: {value}");
        }
    }
}
