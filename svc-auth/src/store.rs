//! The tables of svc-auth: SQL and column encodings; no rules.

pub(crate) mod feedback;
pub(crate) mod invitations;
pub(crate) mod keys;
pub(crate) mod lifecycle;
pub(crate) mod members;
pub(crate) mod oauth_clients;
pub(crate) mod oauth_codes;
pub(crate) mod oauth_grants;
pub(crate) mod oauth_tokens;
pub(crate) mod oidc;
pub(crate) mod profiles;
pub(crate) mod sessions;
pub(crate) mod sign_ins;
pub(crate) mod tokens;
pub(crate) mod users;
pub(crate) mod workspaces;

use cairn_chassis::migration;
use cairn_chassis::sql::{self, Migration};

/// The PostgreSQL schema of this service.
pub(crate) const SERVICE: &str = "auth";
pub(crate) const MIGRATIONS: &[Migration] = &[
    migration!("0001_accounts"),
    migration!("0002_oauth"),
    migration!("0003_members"),
    migration!("0004_key_rotation"),
    migration!("0005_oidc"),
    migration!("0006_verified_emails"),
    migration!("0007_sign_ins"),
    migration!("0008_feedback"),
    migration!("0009_publishers"),
    migration!("0010_lifecycle"),
    migration!("0011_sessions"),
    migration!("0012_question_log"),
    migration!("0013_last_client"),
];

/// A column with a fixed set of values.
fn word<T: std::str::FromStr>(column: &'static str, text: &str) -> Result<T, sql::Error> {
    text.parse().map_err(|_| sql::Error::corrupt(format!("{column} holds the unknown word '{text}'")))
}

/// The column with the retention of the question log.
fn days(column: Option<i64>) -> Result<Option<u32>, sql::Error> {
    let read = |days: i64| {
        u32::try_from(days).map_err(|_| sql::Error::corrupt(format!("{days} days of questions are kept")))
    };
    column.map(read).transpose()
}

#[cfg(test)]
pub(crate) fn statements() -> Vec<sql::Statement> {
    [
        feedback::statements(),
        invitations::statements(),
        keys::statements(),
        lifecycle::statements(),
        members::statements(),
        oauth_clients::statements(),
        oauth_codes::statements(),
        oauth_grants::statements(),
        oauth_tokens::statements(),
        oidc::statements(),
        profiles::statements(),
        sessions::statements(),
        sign_ins::statements(),
        tokens::statements(),
        users::statements(),
        workspaces::statements(),
    ]
    .concat()
}
