//! Credentials in memory.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use zeroize::Zeroizing;

use crate::Fault;

/// A password, token or key: redacted in debug output, and zeroized on drop.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

cairn_chassis::debug_fields!(Secret);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret itself, for signing or sending.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The header `Authorization: Bearer …`.
    ///
    /// # Errors
    /// [`Fault::Credentials`] when it cannot stand in a header.
    pub fn bearer(&self) -> Result<HeaderValue, Fault> {
        sensitive(&Zeroizing::new(format!("Bearer {}", self.expose())))
    }

    /// The header `Authorization: Basic …` of that user.
    ///
    /// # Errors
    /// [`Fault::Credentials`] when it cannot stand in a header.
    pub fn basic(&self, user: &str) -> Result<HeaderValue, Fault> {
        let pair = Zeroizing::new(format!("{user}:{}", self.expose()));
        let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
        sensitive(&Zeroizing::new(format!("Basic {}", encoded.as_str())))
    }

    /// The bare secret as a header.
    ///
    /// # Errors
    /// [`Fault::Credentials`] when it cannot stand in a header.
    pub fn plain(&self) -> Result<HeaderValue, Fault> {
        sensitive(self.expose())
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, Fault> {
    let mut value = HeaderValue::from_str(text).map_err(|_| Fault::Credentials)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_sent_and_never_shown() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "Secret { .. }");
        assert_eq!(secret.bearer().unwrap(), "Bearer hunter2");
        assert_eq!(secret.basic("me").unwrap(), "Basic bWU6aHVudGVyMg==");
        assert_eq!(secret.plain().unwrap(), "hunter2");
        for header in [secret.bearer(), secret.basic("me"), secret.plain()] {
            assert_eq!(format!("{:?}", header.unwrap()), "Sensitive");
        }
        assert_eq!(Secret::new("a\nb").bearer(), Err(Fault::Credentials));
    }
}
