//! Credentials of sources: sealed on receipt, opened only for a provider, and never returned.

use cairn_chassis::entropy::Entropy;
use cairn_chassis::sealing::columns::SealedColumn;
use cairn_chassis::sealing::{AES_256_GCM, Keyring};
use cairn_proto::ids::SourceId;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::model::SealedCredentials;
use crate::{Error, store};

/// The column of sealed credentials.
pub(crate) const COLUMN: SealedColumn = SealedColumn {
    name: "sources.credentials",
    list: store::sources::LIST_SEALED,
    update: store::sources::RESEAL,
};

/// Fields that are identifiers and not secrets.
const NAMES: [&str; 5] = ["username", "email", "subject", "accessKeyId", "client_email"];
const HINT_CHARS: usize = 4;
/// The hint of a shorter secret would reveal too much of it.
const MIN_HINTED_CHARS: usize = 12;

/// Seals the credentials of a source.
pub(crate) fn seal(
    ring: Option<&Keyring>,
    source: SourceId,
    credentials: &Value,
    entropy: &dyn Entropy,
) -> Result<SealedCredentials, Error> {
    let ring = ring.ok_or(Error::NoSecretKey)?;
    let text = Zeroizing::new(credentials.to_string());
    let envelope = ring
        .seal(text.as_bytes(), &COLUMN.place(&source.to_string()), entropy)
        .map_err(|error| Error::Sealed(error.to_string()))?;
    Ok(SealedCredentials { envelope, sealing: AES_256_GCM.to_owned() })
}

/// Opens them.
pub(crate) fn open(
    ring: Option<&Keyring>,
    source: SourceId,
    sealed: &SealedCredentials,
) -> Result<Value, Error> {
    let ring = ring.ok_or(Error::NoSecretKey)?;
    if sealed.sealing != AES_256_GCM {
        return Err(Error::Sealed("the sealing of its credentials is unknown to this version".to_owned()));
    }
    let opened = ring.open(&sealed.envelope, &COLUMN.place(&source.to_string()));
    let opened = opened.map_err(|error| Error::Sealed(error.to_string()))?;
    // The parser's message would quote the secret.
    serde_json::from_slice(&opened).map_err(|_| Error::Sealed("its credentials are no JSON".to_owned()))
}

/// The hint: the end of the secret, to tell secrets apart.
pub(crate) fn hint(credentials: &Value) -> Option<String> {
    let fields = credentials.as_object()?;
    let secrets = fields.iter().filter(|(name, _)| !NAMES.contains(&name.as_str()));
    let mut texts = secrets.filter_map(|(_, value)| match value {
        Value::String(text) => Some(text.trim()),
        Value::Object(key) => key.get("private_key_id").and_then(Value::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    });
    let secret = texts.find(|text| text.chars().count() >= MIN_HINTED_CHARS && !text.starts_with('{'))?;
    let start = secret.char_indices().rev().nth(HINT_CHARS - 1).map_or(0, |(at, _)| at);
    secret.get(start..).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn credentials_open_for_their_source_only() {
        let entropy = SeededEntropy::new(1);
        let ring = Keyring::generate(&entropy);
        let (one, other) = (SourceId(Uuid::from_u128(1)), SourceId(Uuid::from_u128(2)));
        let credentials = json!({"token": "ghp_secretsecretsecret"});
        let sealed = seal(Some(&ring), one, &credentials, &entropy).unwrap();
        assert!(!String::from_utf8_lossy(&sealed.envelope).contains("secret"));
        assert!(!format!("{sealed:?}").contains("secretsecret"));
        assert_eq!(open(Some(&ring), one, &sealed).unwrap(), credentials);
        assert!(matches!(open(Some(&ring), other, &sealed), Err(Error::Sealed(_))));
        assert!(matches!(seal(None, one, &credentials, &entropy), Err(Error::NoSecretKey)));
    }

    #[test]
    fn a_hint_is_the_end_of_the_secret_and_tells_no_short_one() {
        assert_eq!(hint(&json!({"token": "ghp_0123456789abcd"})).as_deref(), Some("abcd"));
        assert_eq!(
            hint(&json!({"email": "ada@example.com", "token": "tokentokentoken1"})).as_deref(),
            Some("ken1")
        );
        for none in [json!({"token": "short"}), json!({"username": "somebody-long"}), json!({}), json!("x")] {
            assert_eq!(hint(&none), None, "{none}");
        }
        let key =
            json!({"serviceAccount": {"private_key": "-----BEGIN", "private_key_id": "0123456789abcdef"}});
        assert_eq!(hint(&key).as_deref(), Some("cdef"));
    }
}
