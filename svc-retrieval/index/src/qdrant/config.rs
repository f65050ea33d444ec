//! The configuration of Qdrant.

use std::path::PathBuf;

use http::Uri;

use crate::Error;

/// The maximum length of the prefix of collection names: Qdrant uses the full name in file names.
const MAX_PREFIX_BYTES: usize = 64;

/// The address of Qdrant, its credentials, and the prefix of collection names.
#[derive(Clone, PartialEq, Eq)]
pub struct Config {
    /// The gRPC address, such as `http://qdrant:6334`; `https://` for TLS.
    pub url: String,
    /// The PEM file of trusted certificate authorities; `None` for those of the system.
    pub ca: Option<PathBuf>,
    /// The API key, if Qdrant requires one.
    pub api_key: Option<String>,
    /// The prefix of collection names, so that several deployments can share one Qdrant.
    pub prefix: String,
}

// Without the key, and without the address, which may contain one.
cairn_chassis::debug_fields!(Config { prefix });

impl Config {
    /// Validates the configuration; does not connect.
    ///
    /// # Errors
    /// [`Error::Config`] says which part is invalid and what is expected. It contains no part of a key.
    pub fn check(&self) -> Result<(), Error> {
        let address = self.url.parse::<Uri>().ok().filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.authority().is_some_and(|authority| !authority.as_str().contains('@'))
        });
        if address.is_none() {
            return Err(unusable(
                "the address is not one of gRPC, such as http://qdrant:6334; a key is given apart from it",
            ));
        }
        if self.ca.is_some() && !self.is_encrypted() {
            return Err(unusable("certificate authorities are for an address with https://"));
        }
        if self
            .api_key
            .as_ref()
            .is_some_and(|key| key.is_empty() || !key.bytes().all(|b| b.is_ascii_graphic()))
        {
            return Err(unusable("the API key is empty or has characters that no header may have"));
        }
        let may_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if self.prefix.is_empty()
            || self.prefix.len() > MAX_PREFIX_BYTES
            || !self.prefix.bytes().all(may_name)
        {
            return Err(unusable("the prefix of collections is not 1 to 64 letters, digits, - or _"));
        }
        Ok(())
    }

    /// Whether TLS is used.
    pub(super) fn is_encrypted(&self) -> bool {
        self.url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    }
}

pub(super) fn unusable(why: &str) -> Error {
    Error::Config(format!("Qdrant cannot be used as configured: {why}"))
}

#[cfg(test)]
mod tests {
    use super::{Config, Error};

    fn config(url: &str, api_key: Option<&str>, prefix: &str) -> Config {
        let (url, api_key, prefix) = (url.to_owned(), api_key.map(str::to_owned), prefix.to_owned());
        Config { url, ca: None, api_key, prefix }
    }

    #[test]
    fn takes_addresses_of_grpc_and_keys_that_fit_a_header() {
        assert!(config("http://localhost:6334", None, "cairn").check().is_ok());
        assert!(config("https://qdrant.example:6334", Some("k.E-y_"), "team-1").check().is_ok());
    }

    #[test]
    fn refuses_what_would_fail_later() {
        for url in ["", "localhost:6334", "redis://host", "http://key@host:6334", "http:// host"] {
            assert!(matches!(config(url, None, "cairn").check(), Err(Error::Config(_))), "{url:?}");
        }
        for key in ["", "line\nbreak", "umlaut-ä", "two words"] {
            let error = config("http://host:6334", Some(key), "cairn").check().unwrap_err();
            assert!(key.is_empty() || !error.to_string().contains(key), "{error}");
        }
        for (url, is_taken) in [("https://host:6334", true), ("http://host:6334", false)] {
            let config = Config { ca: Some("ca.pem".into()), ..config(url, None, "cairn") };
            assert_eq!(config.check().is_ok(), is_taken, "{url}");
        }
        for prefix in ["", "a/b", "a b", &"x".repeat(65)] {
            assert!(config("http://host:6334", None, prefix).check().is_err(), "{prefix:?}");
        }
    }

    #[test]
    fn shows_neither_key_nor_address() {
        let shown = format!("{:?}", config("http://secret-host:6334", Some("secret-key"), "cairn"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
