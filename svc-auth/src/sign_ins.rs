//! Sign-ins: guessing is slow by whichever door and through however many processes, and nobody can lock an owner out.
//!
//! Failed sign-ins count for the source address and for the account, whether that exists or not. The account's window
//! does not hold for an address from which that account has signed in before: whoever spends the window with guesses
//! from elsewhere (OWASP calls it a lockout attack) keeps strangers out for a while, and not the person who works
//! there. The counts stand in the database, so that they hold for all replicas together.

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
/// For how long an account knows an address: longer than a session lives, after which its person signs in again.
const PLACE_KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// How many failures fit into a day, an hour and a minute. The longest first: a caller is told the longest wait.
type Quota = [(i64, i64); 3];

/// Failed sign-ins from one address, whatever the account.
const OF_ADDRESS: Quota = [(DAY, 300), (HOUR, 60), (MINUTE, 10)];
/// Failed sign-ins to one account, from all addresses that it does not know.
const OF_ACCOUNT: Quota = [(DAY, 200), (HOUR, 50), (MINUTE, 10)];

/// A sign-in that was let in: counted as failed until it is told how it ended.
struct Attempt {
    windows: Vec<Window>,
    /// The account and the address; absent when nobody knows yet whose account it is.
    place: Option<Digest>,
}

/// Counts sign-ins; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SignIns {
    db: Db,
    ambient: Ambient,
}

impl SignIns {
    pub(crate) const fn new(db: Db, ambient: Ambient) -> Self {
        Self { db, ambient }
    }

    /// Lets a sign-in be tried, and counts it when it was a guess that failed. `email` is absent when nobody knows yet
    /// whose account it is for, `source` when the caller does not tell.
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
            // It stays counted as failed, and what it opened is open.
            tracing::warn!(%error, "a sign-in that did not fail is counted as failed");
        }
        ended
    }

    /// Counts beforehand, so that guesses sent at once cannot pass together. What is refused is not counted.
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

    /// Nothing failed, or nobody looked at the secret. After a success the account knows the address.
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

    /// Forgets what counts no more.
    pub(crate) async fn purge(&self) -> Result<(), Error> {
        let now = self.ambient.clock.now();
        let unused = Timestamp::from_seconds(now.as_seconds() - PLACE_KEPT.as_secs().cast_signed());
        Ok(store::sign_ins::delete_old(&self.db, now, unused).await?)
    }
}

/// The windows that run now.
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

/// Whether a failure says that the secret was wrong.
fn is_guess(error: &Error) -> bool {
    let is_wrong_password = |broken: &Violation| broken.path == "currentPassword" && broken.code == "wrong";
    matches!(error, Error::SignInRefused)
        || matches!(error, Error::Oidc(refusal) if refusal.is_guess())
        || matches!(error, Error::Invalid(violations) if violations.iter().any(is_wrong_password))
}
