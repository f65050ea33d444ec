//! User accounts.

use cairn_proto::domain::limits::EMAIL_BYTES;
use cairn_proto::ids::UserId;

/// A user account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// The account.
    pub(crate) id: UserId,
    /// Folded to lower case.
    pub(crate) email: String,
    /// For people to read.
    pub(crate) name: String,
    /// Whether the user has proved ownership of the email ([`crate::proof`]).
    pub(crate) email_verified: bool,
}

/// A user to insert.
pub(crate) struct NewUser<'a> {
    pub(crate) id: UserId,
    pub(crate) email: &'a str,
    pub(crate) name: &'a str,
    /// Absent if the user signs in by a provider only.
    pub(crate) password_hash: Option<&'a str>,
    pub(crate) email_verified: bool,
}

/// Normalizes an email address; `None` if it is invalid. The domain may be a bare host name: a self-hosted deployment
/// starts with `owner@localhost`.
pub(crate) fn fold_email(text: &str) -> Option<String> {
    let email = text.trim().to_lowercase();
    let (local, domain) = email.split_once('@')?;
    let odd = |character: char| character.is_whitespace() || character.is_control() || character == '@';
    if local.is_empty() || domain.is_empty() || local.contains(odd) || domain.contains(odd) {
        return None;
    }
    (email.len() <= EMAIL_BYTES).then_some(email)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_has_one_spelling() {
        assert_eq!(fold_email(" Owner@LocalHost ").as_deref(), Some("owner@localhost"));
        assert_eq!(fold_email("ÄRA@Example.com").as_deref(), Some("ära@example.com"));
        for odd in
            ["", "owner", "@", "a@", "@b", "a b@c", "a@b@c", "a\0@c", &format!("{}@b", "a".repeat(254))]
        {
            assert_eq!(fold_email(odd), None, "{odd}");
        }
    }
}
