//! Passwords: argon2id, with bounded concurrency, and constant work whether or not an account exists.

use std::fmt;
use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{self, PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};
use cairn_chassis::entropy::Entropy;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use tokio::sync::Semaphore;

use crate::error::Error;

/// Each hash takes 19 MiB and a core for tens of milliseconds: a flood of sign-ins must not exhaust the machine.
const CONCURRENCY: usize = 2;
const SALT_LENGTH: usize = 16;
const MIN_LENGTH: usize = 8;
const MAX_LENGTH: usize = 1_024;

/// A dummy hash, verified for accounts that do not exist. Its parameters are those of [`Argon2::default`] (a test
/// compares them); no password matches it.
const DUMMY_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5IHdpdGggc2FsdA$MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY";

/// Hashes and checks passwords; cheap to clone.
#[derive(Clone)]
pub(crate) struct Passwords(Arc<Semaphore>);

cairn_chassis::debug_fields!(Passwords);

impl Passwords {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(CONCURRENCY)))
    }

    /// Hashes a password; returns a PHC string.
    pub(crate) async fn hash(&self, password: &str, entropy: &dyn Entropy) -> Result<String, Error> {
        let mut salt = [0_u8; SALT_LENGTH];
        entropy.fill(&mut salt);
        let password = password.to_owned();
        self.work(move || {
            let hash: PasswordHash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt)?;
            Ok(hash.to_string())
        })
        .await
    }

    /// Whether the password matches the hash. Without a hash the result is false, after the same work.
    pub(crate) async fn verify(&self, password: &str, hash: Option<String>) -> Result<bool, Error> {
        let password = password.to_owned();
        self.work(move || {
            let known = hash.is_some();
            let parsed = PasswordHash::new(hash.as_deref().unwrap_or(DUMMY_HASH))?;
            match Argon2::default().verify_password(password.as_bytes(), &parsed) {
                Ok(()) => Ok(known),
                Err(password_hash::Error::PasswordInvalid) => Ok(false),
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn work<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> password_hash::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let failed = |error: &dyn fmt::Display| Error::PasswordHash(error.to_string());
        let permit = Arc::clone(&self.0).acquire_owned().await.map_err(|error| failed(&error))?;
        let done = tokio::task::spawn_blocking(move || {
            // Held by the blocking task: it keeps running if the caller is cancelled.
            let _permit = permit;
            job()
        });
        done.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}

/// Validates a new password; adds violations to the list.
pub(crate) fn check(path: &str, password: &str, violations: &mut Vec<Violation>) {
    let length = password.chars().count();
    if length < MIN_LENGTH {
        violations.push(Violation::new(path, "too_short", wording::at_least(MIN_LENGTH, Unit::Characters)));
    }
    if length > MAX_LENGTH {
        violations.push(Violation::new(path, "too_long", wording::at_most(MAX_LENGTH, Unit::Characters)));
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::entropy::SeededEntropy;

    use super::*;

    #[tokio::test]
    async fn a_password_opens_its_own_hash_only() {
        let passwords = Passwords::new();
        let hash = passwords.hash("correct horse", &SeededEntropy::new(1)).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$"), "{hash}");
        assert!(passwords.verify("correct horse", Some(hash.clone())).await.unwrap());
        assert!(!passwords.verify("wrong horse", Some(hash)).await.unwrap());
        assert!(!passwords.verify("correct horse", None).await.unwrap());
        assert!(passwords.verify("x", Some("not a hash".into())).await.is_err());
    }

    #[tokio::test]
    async fn an_unknown_account_costs_the_same_work() {
        let hash = Passwords::new().hash("x", &SeededEntropy::new(1)).await.unwrap();
        let (real, nobody) = (PasswordHash::new(&hash).unwrap(), PasswordHash::new(DUMMY_HASH).unwrap());
        assert_eq!(real.algorithm, nobody.algorithm);
        assert_eq!(real.version, nobody.version);
        assert_eq!(real.params, nobody.params);
        assert_eq!(real.salt.unwrap().len(), nobody.salt.unwrap().len());
        assert_eq!(real.hash.unwrap().len(), nobody.hash.unwrap().len());
    }
}
