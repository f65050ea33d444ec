//! The rate limiter of sign-ins: it slows down guessing over all endpoints and processes, without allowing lockout
//! attacks.
//!
//! Failed sign-ins count for the source address and for the account, whether it exists or not. An address from which the
//! account has signed in before is exempt from the account's window: an attacker who exhausts the window from elsewhere
//! (OWASP calls it a lockout attack) only locks out unknown addresses for a while. The counts are in the database, so
//! they apply over all replicas.

use std::net::IpAddr;
use std::time::Duration;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::sql::Db;
use cairn_chassis::status::Violation;

use crate::error::Error;
use crate::model::sign_ins::Window;
use crate::secrets::{self, Digest};
use crate::{store, users};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// How long an account remembers an address: longer than a session lives, after which the user signs in again.
const PLACE_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The allowed failures per day, hour and minute. The longest window first, so that the caller gets the longest wait.
type Quota = [(i64, i64); 3];

/// Failed sign-ins from one address, over all accounts.
const OF_ADDRESS: Quota = [(DAY, 300), (HOUR, 60), (MINUTE, 10)];
/// Failed sign-ins to one account, over all unknown addresses.
const OF_ACCOUNT: Quota = [(DAY, 200), (HOUR, 50), (MINUTE, 10)];

/// An admitted attempt, counted as failed until its result is known.
struct Attempt {
    windows: Vec<Window>,
    /// The pair of account and address; absent if the account is not known yet.
    place: Option<Digest>,
}

/// The rate limiter of sign-ins; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SignIns {
    db: Db,
    ambient: Ambient,
}

impl SignIns {
    pub(crate) const fn new(db: Db, ambient: Ambient) -> Self {
        Self { db, ambient }
    }

    /// Runs a sign-in within the rate limits, and counts it if the credentials were wrong. `email` is absent if the
    /// account is not known yet, `source` if the caller does not report it.
    pub(crate) async fn counted<T>(
        &self,
        source: Option<IpAddr>,
        email: Option<&str>,
        sign_in: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let attempt = self.begin(source, email).await?;
        let ended = sign_in.await;
        let is_guess = ended.as_ref().is_err_and(is_guess);
        if !is_guess && let Err(error) = self.give_back(&attempt, ended.is_ok()).await {
            // The attempt stays counted as failed, but the session is open.
            tracing::warn!(%error, "a sign-in that did not fail is counted as failed");
        }
        ended
    }

    /// Counts in advance, so that concurrent guesses cannot all pass. A rejected attempt is not counted.
    async fn begin(&self, source: Option<IpAddr>, email: Option<&str>) -> Result<Attempt, Error> {
        let now = self.ambient.clock.now();
        let source = source.map_or_else(|| "unknown".to_owned(), |address| address.to_string());
        let mut windows = windows("sign_in_address", &source, OF_ADDRESS, now);
        let mut place = None;
        if let Some(email) = email {
            let account = users::fold_email(email).unwrap_or_else(|| email.trim().to_lowercase());
            let digest = secrets::digest(&format!("sign_in_place {account} {source}"));
            if !store::sign_ins::is_known(&self.db, &digest).await? {
                windows.extend(self::windows("sign_in_account", &account, OF_ACCOUNT, now));
            }
            place = Some(digest);
        }
        let mut tx = self.db.begin_write().await?;
        for window in &windows {
            if store::sign_ins::take(&mut tx, window).await? > window.most {
                tx.rollback().await?;
                metrics::counter!(
                    "cairn_rate_limit_refusals_total", "of" => window.of, "window" => name(window.seconds)
                )
                .increment(1);
                return Err(Error::TooManySignIns(window.ends_at.since(now)));
            }
        }
        tx.commit().await?;
        Ok(Attempt { windows, place })
    }

    /// Undoes the count of an attempt that did not fail on its credentials. After a success, the account remembers the
    /// address.
    async fn give_back(&self, attempt: &Attempt, succeeded: bool) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        for window in &attempt.windows {
            store::sign_ins::give_back(&mut tx, window).await?;
        }
        if let Some(place) = attempt.place.as_ref().filter(|_| succeeded) {
            store::sign_ins::put_place(&mut tx, place, self.ambient.clock.now()).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Deletes expired windows and addresses.
    pub(crate) async fn purge(&self) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        let unused = Timestamp::from_seconds(now.as_seconds() - PLACE_KEPT.as_secs().cast_signed());
        Ok(store::sign_ins::delete_old(&self.db, now, unused).await?)
    }
}

/// The current windows.
fn windows(of: &'static str, whose: &str, quota: Quota, now: Timestamp) -> Vec<Window> {
    let subject = secrets::digest(&format!("{of} {whose}"));
    let window = |(seconds, most): (i64, i64)| {
        let ends_at = Timestamp::from_seconds((now.as_seconds().div_euclid(seconds) + 1) * seconds);
        Window { subject, seconds, ends_at, most, of }
    };
    quota.into_iter().map(window).collect()
}

const fn name(seconds: i64) -> &'static str {
    match seconds {
        MINUTE => "minute",
        HOUR => "hour",
        _ => "day",
    }
}

/// Whether the error means wrong credentials.
fn is_guess(error: &Error) -> bool {
    let is_wrong_password = |broken: &Violation| broken.path == "currentPassword" && broken.code == "wrong";
    matches!(error, Error::SignInRefused)
        || matches!(error, Error::Oidc(refusal) if refusal.is_guess())
        || matches!(error, Error::Invalid(violations) if violations.iter().any(is_wrong_password))
}
