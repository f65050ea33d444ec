//! The tables of svc-auth: SQL and the forms of columns; no rule.

pub(crate) mod keys;
pub(crate) mod sessions;
pub(crate) mod tokens;
pub(crate) mod users;
pub(crate) mod workspaces;

use cairn_chassis::migration;
use cairn_chassis::sql::{self, Migration};

/// The PostgreSQL schema of this service.
pub(crate) const SERVICE: &str = "auth";
pub(crate) const MIGRATIONS: &[Migration] = &[migration!("0001_accounts")];

/// A column that holds one of a few words.
fn word<T: std::str::FromStr>(column: &'static str, text: &str) -> Result<T, sql::Error> {
    text.parse().map_err(|_| sql::Error::corrupt(format!("{column} holds the unknown word '{text}'")))
}

#[cfg(test)]
pub(crate) fn statements() -> Vec<sql::Statement> {
    [keys::STATEMENTS, sessions::STATEMENTS, tokens::STATEMENTS, users::STATEMENTS, workspaces::STATEMENTS]
        .concat()
        .into_iter()
        .map(Into::into)
        .collect()
}
