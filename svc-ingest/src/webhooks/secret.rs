//! Secrets of webhooks, and what they sign (Standard Webhooks, <https://www.standardwebhooks.com>).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::entropy::Entropy;
use cairn_chassis::sealing::columns::SealedColumn;
use cairn_chassis::sealing::{AES_256_GCM, Keyring};
use cairn_proto::ids::WebhookId;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use crate::model::SealedCredentials;
use crate::{Error, store};

/// The column of sealed secrets.
pub(crate) const COLUMN: SealedColumn = SealedColumn {
    name: "webhooks.secrets",
    list: store::webhooks::LIST_SEALED,
    update: store::webhooks::RESEAL,
};

const PREFIX: &str = "whsec_";
/// The specification asks for 24 to 64.
const SECRET_BYTES: usize = 32;

/// A secret as people configure it at the receiver: `whsec_` and base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

cairn_chassis::debug_fields!(Secret);

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl Secret {
    pub(crate) fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = Zeroizing::new([0_u8; SECRET_BYTES]);
        entropy.fill(bytes.as_mut_slice());
        Self(format!("{PREFIX}{}", STANDARD.encode(bytes.as_slice())))
    }

    /// The secret itself, for the one answer that shows it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// One signature of a message: `v1,` and the base64 of an HMAC-SHA256.
    fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> Result<String, Error> {
        let unusable = || Error::Sealed("the secret of a webhook cannot be used".to_owned());
        let key = self.0.strip_prefix(PREFIX).and_then(|key| STANDARD.decode(key).ok()).map(Zeroizing::new);
        let key = key.ok_or_else(unusable)?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| unusable())?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

/// The secrets of a webhook: the current one, and the previous one during the rotation period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Secrets {
    current: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<Secret>,
}

impl Secrets {
    pub(crate) const fn of(current: Secret) -> Self {
        Self { current, previous: None }
    }

    /// Rotates the secret; the previous one stays valid for a while.
    pub(crate) fn rotated(self, next: Secret) -> Self {
        Self { current: next, previous: Some(self.current) }
    }

    /// The header `webhook-signature`: the signature of each valid secret, separated by spaces.
    pub(crate) fn signatures(
        &self,
        id: &str,
        now: Timestamp,
        body: &[u8],
        previous_until: Option<Timestamp>,
    ) -> Result<String, Error> {
        let seconds = now.as_seconds();
        let previous = self.previous.as_ref().filter(|_| previous_until.is_some_and(|until| now < until));
        let secrets = std::iter::once(&self.current).chain(previous);
        let signatures: Vec<String> =
            secrets.map(|secret| secret.sign(id, seconds, body)).collect::<Result<_, _>>()?;
        Ok(signatures.join(" "))
    }

    /// Seals them for the row of a webhook.
    pub(crate) fn seal(
        &self,
        ring: Option<&Keyring>,
        webhook: WebhookId,
        entropy: &dyn Entropy,
    ) -> Result<SealedCredentials, Error> {
        let ring = ring.ok_or(Error::NoSecretKey)?;
        let text = serde_json::to_vec(self).map_err(|_| Error::Sealed("a secret has no JSON".to_owned()))?;
        let text = Zeroizing::new(text);
        let envelope = ring
            .seal(&text, &COLUMN.place(&webhook.to_string()), entropy)
            .map_err(|error| Error::Sealed(error.to_string()))?;
        Ok(SealedCredentials { envelope, sealing: AES_256_GCM.to_owned() })
    }

    /// Opens them.
    pub(crate) fn open(
        ring: Option<&Keyring>,
        webhook: WebhookId,
        sealed: &SealedCredentials,
    ) -> Result<Self, Error> {
        let ring = ring.ok_or(Error::NoSecretKey)?;
        if sealed.sealing != AES_256_GCM {
            let message = "the sealing of a webhook's secrets is unknown to this version";
            return Err(Error::Sealed(message.to_owned()));
        }
        let opened = ring.open(&sealed.envelope, &COLUMN.place(&webhook.to_string()));
        let opened = opened.map_err(|error| Error::Sealed(error.to_string()))?;
        // The parser's message would quote the secret.
        serde_json::from_slice(&opened).map_err(|_| Error::Sealed("its secrets are no JSON".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cairn_chassis::entropy::SeededEntropy;
    use uuid::Uuid;

    use super::*;

    fn secret(text: &str) -> Secret {
        Secret(text.to_owned())
    }

    /// The example that implementations of Standard Webhooks are tested with.
    #[test]
    fn a_message_is_signed_as_the_specification_has_it() {
        let secrets = Secrets::of(secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
        let at = Timestamp::from_seconds(1_614_265_330);
        let signed = secrets.signatures("msg_p5jXN8AQM9LWM0D4loKWxJek", at, br#"{"test": 2432232314}"#, None);
        assert_eq!(signed.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn the_secret_before_signs_as_well_until_its_time_is_over() {
        let entropy = SeededEntropy::new(1);
        let (old, new) = (Secret::generate(&entropy), Secret::generate(&entropy));
        assert!(old.expose().starts_with("whsec_") && old != new);
        let at = Timestamp::from_seconds(1_800_000_000);
        let of = |secret: &Secret| secret.sign("id", at.as_seconds(), b"{}").unwrap();
        let rotated = Secrets::of(old.clone()).rotated(new.clone());
        let until = Some(at.plus(Duration::from_secs(1)));
        assert_eq!(rotated.signatures("id", at, b"{}", until).unwrap(), format!("{} {}", of(&new), of(&old)));
        assert_eq!(rotated.signatures("id", at, b"{}", Some(at)).unwrap(), of(&new));
        assert_eq!(rotated.signatures("id", at, b"{}", None).unwrap(), of(&new));
    }

    #[test]
    fn secrets_open_for_their_webhook_only_and_are_never_shown() {
        let entropy = SeededEntropy::new(2);
        let ring = Keyring::generate(&entropy);
        let (one, other) = (WebhookId(Uuid::from_u128(1)), WebhookId(Uuid::from_u128(2)));
        let secrets = Secrets::of(Secret::generate(&entropy)).rotated(Secret::generate(&entropy));
        let sealed = secrets.seal(Some(&ring), one, &entropy).unwrap();
        assert!(!String::from_utf8_lossy(&sealed.envelope).contains("whsec_"));
        assert!(!format!("{secrets:?} {sealed:?}").contains("whsec_"));
        assert_eq!(Secrets::open(Some(&ring), one, &sealed).unwrap(), secrets);
        assert!(matches!(Secrets::open(Some(&ring), other, &sealed), Err(Error::Sealed(_))));
        assert!(matches!(secrets.seal(None, one, &entropy), Err(Error::NoSecretKey)));
    }
}
