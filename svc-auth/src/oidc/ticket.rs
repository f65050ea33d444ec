//! The state of a sign-in, which the browser keeps while the user is at the provider.
//!
//! A ticket consists of a random secret, an expiry, and the destination path. `state`, `nonce` and the PKCE verifier
//! are derived from its whole text: a modified ticket has another state than the provider's response, so it needs to be
//! neither stored nor signed, and any replica can read it.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::entropy::Entropy;

use super::return_to;
use crate::secrets::{self, Digest};

/// Users may have to find their second factor.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
const SECRET_BYTES: usize = 32;

const STATE: &str = "cairn 2026-11 oidc state";
const NONCE: &str = "cairn 2026-11 oidc nonce";
const VERIFIER: &str = "cairn 2026-11 oidc pkce verifier";

/// `<secret>.<end in seconds>.<path>`
#[derive(Clone)]
pub(crate) struct Ticket {
    text: String,
    expires_at: Timestamp,
    return_to: String,
}

cairn_chassis::debug_fields!(Ticket { expires_at });

impl Ticket {
    /// A new ticket, for a validated path.
    pub(super) fn new(return_to: &str, now: Timestamp, entropy: &dyn Entropy) -> Self {
        let secret = secrets::random_hex::<SECRET_BYTES>(entropy);
        let end = now.plus(LIFETIME).as_seconds();
        let text = format!("{secret}.{end}.{}", URL_SAFE_NO_PAD.encode(return_to));
        Self { text, expires_at: Timestamp::from_seconds(end), return_to: return_to.to_owned() }
    }

    /// Parses a ticket; `None` if it is malformed or has expired.
    pub(super) fn read(text: &str, now: Timestamp) -> Option<Self> {
        let (secret, rest) = text.split_once('.')?;
        let (end, path) = rest.split_once('.')?;
        let is_secret =
            secret.len() == SECRET_BYTES * 2 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
        let expires_at = Timestamp::from_seconds(end.parse().ok()?);
        // Anybody who can plant a cookie can forge a ticket: one with a longer lifetime than ours is rejected.
        let is_alive = now < expires_at && expires_at <= now.plus(LIFETIME);
        let return_to = String::from_utf8(URL_SAFE_NO_PAD.decode(path).ok()?).ok()?;
        if !is_secret || !is_alive || return_to::fault(&return_to).is_some() {
            return None;
        }
        Some(Self { text: text.to_owned(), expires_at, return_to })
    }

    /// The cookie's value.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) const fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    pub(super) fn return_to(&self) -> &str {
        &self.return_to
    }

    /// The `state` parameter.
    pub(super) fn state(&self) -> String {
        self.derived(STATE)
    }

    /// The `nonce` claim of the ID token.
    pub(super) fn nonce(&self) -> String {
        self.derived(NONCE)
    }

    /// The PKCE verifier.
    pub(super) fn verifier(&self) -> String {
        self.derived(VERIFIER)
    }

    /// The record of a used ticket.
    pub(super) fn digest(&self) -> Digest {
        secrets::digest(&self.text)
    }

    fn derived(&self, context: &str) -> String {
        blake3::Hash::from_bytes(blake3::derive_key(context, self.text.as_bytes())).to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;

    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn ticket() -> Ticket {
        Ticket::new("/oauth/authorize?a=b", NOW, &SeededEntropy::new(7))
    }

    #[test]
    fn a_ticket_comes_back_with_all_that_was_derived_from_it() {
        let made = ticket();
        let read = Ticket::read(made.text(), NOW.plus(LIFETIME - Duration::from_secs(1))).unwrap();
        assert_eq!(read.return_to(), "/oauth/authorize?a=b");
        assert_eq!(
            (read.state(), read.nonce(), read.verifier()),
            (made.state(), made.nonce(), made.verifier())
        );
        let all = [read.state(), read.nonce(), read.verifier()];
        assert!(all.iter().all(|one| one.len() == 64 && !read.text().contains(one.as_str())));
        assert!(all[0] != all[1] && all[1] != all[2]);
        assert!(!format!("{made:?}").contains(&made.text()[..16]));
    }

    #[test]
    fn a_ticket_ends() {
        assert!(Ticket::read(ticket().text(), NOW.plus(LIFETIME)).is_none());
    }

    #[test]
    fn a_changed_ticket_is_another_one_or_none() {
        let made = ticket();
        let elsewhere = made.text().replace(&URL_SAFE_NO_PAD.encode("/oauth/authorize?a=b"), "Lw");
        let read = Ticket::read(&elsewhere, NOW).unwrap();
        assert_eq!(read.return_to(), "/");
        assert_ne!(read.state(), made.state());
        let secret = made.text().split('.').next().unwrap().to_owned();
        let (end, late) = (NOW.as_seconds() + 60, NOW.as_seconds() + 601);
        assert!(Ticket::read(&format!("{secret}.{end}.Lw"), NOW).is_some());
        let evil = URL_SAFE_NO_PAD.encode("//evil.example");
        for odd in [
            String::new(),
            "..".to_owned(),
            format!("{secret}.{late}.Lw"),
            format!("{secret}.{end}.{evil}"),
            format!("{secret}.{end}.%"),
            format!("{secret}.{end}"),
            format!("{secret}.x.Lw"),
            format!("{}.{end}.Lw", secret.to_uppercase().replace('A', "g")),
            format!("{}.{end}.Lw", &secret[1..]),
        ] {
            assert!(Ticket::read(&odd, NOW).is_none(), "{odd}");
        }
    }
}
