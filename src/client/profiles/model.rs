//! The content of the profiles file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All profiles, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Profiles {
    /// The default profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<String>,
    #[serde(default)]
    pub(crate) profiles: BTreeMap<String, Profile>,
}

/// A workspace of a Cairn, with a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Profile {
    /// The address of the Cairn, without a trailing slash.
    pub(crate) url: String,
    pub(crate) workspace_id: String,
    pub(crate) workspace_name: String,
    pub(crate) credential: Credential,
}

/// A credential.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(crate) enum Credential {
    /// An API token.
    Token {
        /// The token.
        token: String,
    },
    /// An OAuth grant.
    Grant(Grant),
}

// Credentials stay out of debug output.
cairn_chassis::debug_fields!(Credential);

/// OAuth tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Grant {
    pub(crate) client_id: String,
    pub(crate) token_endpoint: String,
    pub(crate) revocation_endpoint: String,
    /// The resource of the tokens (RFC 8707).
    pub(crate) resource: String,
    pub(crate) access_token: String,
    /// Rotated on each use.
    pub(crate) refresh_token: String,
    /// When the access token expires, in seconds since 1970.
    pub(crate) expires_at: i64,
}

cairn_chassis::debug_fields!(Grant { client_id, expires_at });

impl Grant {
    /// Whether the access token is still valid, with a margin.
    pub(crate) const fn is_valid_at(&self, now: i64) -> bool {
        /// Seconds: the duration of a request plus clock skew.
        const MARGIN: i64 = 60;
        self.expires_at.saturating_sub(now) > MARGIN
    }
}

impl Profiles {
    /// The error if the named profile does not exist.
    pub(crate) fn no_such(&self, name: &str) -> String {
        let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
        match known.is_empty() {
            true => {
                format!("there is no profile {name}: make it with `cairn login --url URL --profile {name}`")
            }
            false => format!("there is no profile {name}, but {}", known.join(", ")),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn with_token(url: &str, token: &str) -> Profile {
        profile(url, Credential::Token { token: token.to_owned() })
    }

    pub(in super::super) fn granted(url: &str, expires_at: i64) -> Profile {
        let text = |text: &str| text.to_owned();
        let grant = Grant {
            client_id: text("client"),
            token_endpoint: format!("{url}/oauth/token"),
            revocation_endpoint: format!("{url}/oauth/revoke"),
            resource: format!("{url}/api"),
            access_token: text("cairn_oa_secret"),
            refresh_token: text("cairn_or_secret"),
            expires_at,
        };
        profile(url, Credential::Grant(grant))
    }

    fn profile(url: &str, credential: Credential) -> Profile {
        Profile { url: url.to_owned(), workspace_id: "w".into(), workspace_name: "Work".into(), credential }
    }

    #[test]
    fn a_file_reads_back_as_it_was_written() {
        let mut profiles = Profiles::default();
        profiles.profiles.insert("a".to_owned(), with_token("https://a.example", "t"));
        profiles.profiles.insert("b".to_owned(), granted("https://b.example", 12));
        let text = serde_json::to_string(&profiles).unwrap();
        assert_eq!(serde_json::from_str::<Profiles>(&text).unwrap(), profiles);
        assert_eq!(serde_json::from_str::<Profiles>("{}").unwrap(), Profiles::default());
    }

    #[test]
    fn a_token_is_renewed_a_minute_before_it_ends() {
        let Credential::Grant(grant) = granted("https://b.example", 1_000).credential else { panic!() };
        assert!(grant.is_valid_at(900) && !grant.is_valid_at(940) && !grant.is_valid_at(i64::MAX));
    }
}
