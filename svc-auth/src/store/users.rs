//! Table `users`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_chassis::{execute, fetch, statements};
use cairn_proto::ids::UserId;

use crate::users::{NewUser, User};

statements! {
    #[cfg(test)]
    pub(super) fn statements;

    const ANY: &str = "SELECT id FROM users LIMIT 1";

    const FIND: &str = "SELECT id, email, name, email_verified FROM users WHERE id = $1";

    const FIND_ACCOUNT: &str =
        "SELECT id, email, name, email_verified, password_hash FROM users WHERE email = $1";

    const FIND_BY_EMAIL: &str = "SELECT id, email, name, email_verified FROM users WHERE email = $1";

    const FIND_PASSWORD: &str = "SELECT password_hash FROM users WHERE id = $1";

    const SET_PASSWORD: &str = "UPDATE users SET password_hash = $2 WHERE id = $1";

    const SET_NAME: &str = "UPDATE users SET name = $2 WHERE id = $1";

    const SET_VERIFIED: &str = "UPDATE users SET email_verified = $2 WHERE id = $1";

    const INSERT: &str = "INSERT INTO users (id, email, name, password_hash, email_verified, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6)";
}

/// A user, as every statement of this service selects it.
#[derive(sqlx::FromRow)]
pub(super) struct Row {
    id: Text<UserId>,
    email: String,
    name: String,
    email_verified: bool,
}

#[derive(sqlx::FromRow)]
struct AccountRow {
    #[sqlx(flatten)]
    user: Row,
    password_hash: Option<String>,
}

impl From<Row> for User {
    fn from(row: Row) -> Self {
        let Row { id: Text(id), email, name, email_verified } = row;
        Self { id, email, name, email_verified }
    }
}

/// Serializes the use and the change of an account's credentials: a sign-in by a password must not outlive the
/// password.
pub(crate) async fn lock(tx: &mut Tx, id: UserId) -> Result<(), Error> {
    tx.lock_name(&format!("auth:account:{id}")).await
}

/// Whether any account exists.
pub(crate) async fn any(db: &Db) -> Result<bool, Error> {
    let found: Option<String> = fetch!(optional_scalar, db, ANY)?;
    Ok(found.is_some())
}

/// Like [`any`], within a transaction.
pub(crate) async fn any_in(tx: &mut Tx) -> Result<bool, Error> {
    let found: Option<String> = fetch!(optional_scalar, tx, ANY)?;
    Ok(found.is_some())
}

pub(crate) async fn find(tx: &mut Tx, id: UserId) -> Result<Option<User>, Error> {
    let row: Option<Row> = fetch!(optional, tx, FIND, Text(id))?;
    Ok(row.map(Into::into))
}

/// A user by normalized email.
pub(crate) async fn find_by_email(tx: &mut Tx, email: &str) -> Result<Option<User>, Error> {
    let row: Option<Row> = fetch!(optional, tx, FIND_BY_EMAIL, email)?;
    Ok(row.map(Into::into))
}

/// The password hash of a user; `None` without a password.
pub(crate) async fn find_password(db: &Db, id: UserId) -> Result<Option<String>, Error> {
    let row: Option<Option<String>> = fetch!(optional_scalar, db, FIND_PASSWORD, Text(id))?;
    Ok(row.flatten())
}

/// Like [`find_password`], within a transaction.
pub(crate) async fn find_password_in(tx: &mut Tx, id: UserId) -> Result<Option<String>, Error> {
    let row: Option<Option<String>> = fetch!(optional_scalar, tx, FIND_PASSWORD, Text(id))?;
    Ok(row.flatten())
}

/// Sets or removes a user's password.
pub(crate) async fn set_password(tx: &mut Tx, id: UserId, hash: Option<&str>) -> Result<(), Error> {
    execute!(tx, SET_PASSWORD, Text(id), hash).map(drop)
}

pub(crate) async fn set_name(tx: &mut Tx, id: UserId, name: &str) -> Result<(), Error> {
    execute!(tx, SET_NAME, Text(id), name).map(drop)
}

/// Records that the user has proved the email.
pub(crate) async fn set_verified(tx: &mut Tx, id: UserId) -> Result<(), Error> {
    execute!(tx, SET_VERIFIED, Text(id), true).map(drop)
}

/// A user by normalized email, with the password hash.
pub(crate) async fn find_account(db: &Db, email: &str) -> Result<Option<(User, Option<String>)>, Error> {
    let row: Option<AccountRow> = fetch!(optional, db, FIND_ACCOUNT, email)?;
    Ok(row.map(|row| (row.user.into(), row.password_hash)))
}

pub(crate) async fn insert(tx: &mut Tx, user: &NewUser<'_>, now: Timestamp) -> Result<(), Error> {
    execute!(tx, INSERT, Text(user.id), user.email, user.name, user.password_hash, user.email_verified, now)
        .map(drop)
}
