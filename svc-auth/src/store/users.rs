//! Table `users`.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text, Tx};
use cairn_proto::ids::UserId;

use crate::users::{NewUser, User};

const ANY: &str = "SELECT id FROM users LIMIT 1";
const FIND: &str = "SELECT id, email, name FROM users WHERE id = $1";
const FIND_ACCOUNT: &str = "SELECT id, email, name, password_hash FROM users WHERE email = $1";
const FIND_BY_EMAIL: &str = "SELECT id, email, name FROM users WHERE email = $1";
const FIND_PASSWORD: &str = "SELECT password_hash FROM users WHERE id = $1";
const SET_PASSWORD: &str = "UPDATE users SET password_hash = $2 WHERE id = $1";
const INSERT: &str =
    "INSERT INTO users (id, email, name, password_hash, created_at) VALUES ($1, $2, $3, $4, $5)";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[ANY, FIND, FIND_ACCOUNT, FIND_BY_EMAIL, FIND_PASSWORD, SET_PASSWORD, INSERT];

/// Whether anybody has an account.
pub(crate) async fn any(db: &Db) -> Result<bool, Error> {
    let found: Option<String> = on_db!(db, |c| sqlx::query_scalar(ANY).fetch_optional(c).await)?;
    Ok(found.is_some())
}

/// The same, within a transaction.
pub(crate) async fn any_in(tx: &mut Tx) -> Result<bool, Error> {
    let found: Option<String> = on_db!(tx, |c| sqlx::query_scalar(ANY).fetch_optional(c).await)?;
    Ok(found.is_some())
}

pub(crate) async fn find(tx: &mut Tx, id: UserId) -> Result<Option<User>, Error> {
    let row: Option<(Text<UserId>, String, String)> =
        on_db!(tx, |c| sqlx::query_as(FIND).bind(Text(id)).fetch_optional(c).await)?;
    Ok(row.map(|(Text(id), email, name)| User { id, email, name }))
}

/// A person by folded email.
pub(crate) async fn find_by_email(tx: &mut Tx, email: &str) -> Result<Option<User>, Error> {
    let row: Option<(Text<UserId>, String, String)> =
        on_db!(tx, |c| sqlx::query_as(FIND_BY_EMAIL).bind(email).fetch_optional(c).await)?;
    Ok(row.map(|(Text(id), email, name)| User { id, email, name }))
}

/// The hash of a person's password; none for a person who has no password.
pub(crate) async fn find_password(db: &Db, id: UserId) -> Result<Option<String>, Error> {
    let row: Option<Option<String>> =
        on_db!(db, |c| sqlx::query_scalar(FIND_PASSWORD).bind(Text(id)).fetch_optional(c).await)?;
    Ok(row.flatten())
}

pub(crate) async fn set_password(tx: &mut Tx, id: UserId, hash: &str) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(SET_PASSWORD).bind(Text(id)).bind(hash).execute(c).await.map(|_| ()))
}

/// A person by folded email, with the password's hash.
pub(crate) async fn find_account(db: &Db, email: &str) -> Result<Option<(User, Option<String>)>, Error> {
    let row: Option<(Text<UserId>, String, String, Option<String>)> =
        on_db!(db, |c| sqlx::query_as(FIND_ACCOUNT).bind(email).fetch_optional(c).await)?;
    Ok(row.map(|(Text(id), email, name, hash)| (User { id, email, name }, hash)))
}

pub(crate) async fn insert(tx: &mut Tx, user: &NewUser<'_>, now: Timestamp) -> Result<(), Error> {
    on_db!(tx, |c| sqlx::query(INSERT)
        .bind(Text(user.id))
        .bind(user.email)
        .bind(user.name)
        .bind(user.password_hash)
        .bind(now)
        .execute(c)
        .await
        .map(|_| ()))
}
