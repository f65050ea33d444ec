//! Sign-ins: guessing is slow, and nobody can lock an owner out.
//!
//! Failed sign-ins count for the source address and for the account, whether that exists or not. The account's window
//! does not hold for an address from which that account has signed in before: whoever spends the window with guesses
//! from elsewhere (OWASP calls it a lockout attack) keeps strangers out for a while, and not the person who works there.

use std::fmt;
use std::net::IpAddr;

use cairn_chassis::status::Problem;
use http::Extensions;
use quick_cache::sync::Cache;

use super::admission::{count_refusal, limited};
use super::layer::note;
use super::{Key, Limits, Quota};

/// Failed sign-ins from one address, whatever the account.
const OF_ADDRESS: Quota = Quota::new(Some(10), Some(60), Some(300));
/// Failed sign-ins to one account, from all addresses that it does not know.
const OF_ACCOUNT: Quota = Quota::new(Some(10), Some(50), Some(200));
/// An entry is a hash.
const REMEMBERED: usize = 65_536;

/// What is known of sign-ins.
pub(crate) struct SignIns {
    /// Accounts, each with an address from which it signed in.
    known: Cache<blake3::Hash, ()>,
}

impl Default for SignIns {
    fn default() -> Self {
        Self { known: Cache::new(REMEMBERED) }
    }
}

impl fmt::Debug for SignIns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SignIns").finish_non_exhaustive()
    }
}

/// A sign-in that was let in: counted as failed until it is told how it ended.
#[derive(Debug)]
pub(crate) struct Attempt {
    address: Key,
    /// Absent when the account knows the address.
    account: Option<Key>,
    pair: blake3::Hash,
}

impl SignIns {
    /// Counts a sign-in beforehand, so that guesses sent at once cannot pass together.
    pub(crate) async fn begin(
        &self,
        limits: &Limits,
        extensions: &Extensions,
        source: IpAddr,
        email: &str,
    ) -> Result<Attempt, Problem> {
        // No email stands in Redis or in memory.
        let account = blake3::hash(email.trim().to_lowercase().as_bytes());
        let pair = blake3::hash(format!("{account} {source}").as_bytes());
        let address = Key::new("sign-in-address", source);
        take(limits, extensions, &address, OF_ADDRESS, "sign_in_address").await?;
        if self.known.get(&pair).is_some() {
            return Ok(Attempt { address, account: None, pair });
        }
        let account = Key::new("sign-in-account", account.to_hex());
        take(limits, extensions, &account, OF_ACCOUNT, "sign_in_account").await?;
        Ok(Attempt { address, account: Some(account), pair })
    }

    /// Counts a sign-in by a provider beforehand: whose account it is for, nobody knows yet.
    pub(crate) async fn begin_elsewhere(
        &self,
        limits: &Limits,
        extensions: &Extensions,
        source: IpAddr,
    ) -> Result<Attempt, Problem> {
        let address = Key::new("sign-in-address", source);
        take(limits, extensions, &address, OF_ADDRESS, "sign_in_address").await?;
        Ok(Attempt { pair: blake3::hash(&[]), address, account: None })
    }

    /// The password was right: nothing failed, and the account knows the address now.
    pub(crate) async fn succeeded(&self, limits: &Limits, attempt: Attempt) {
        self.known.insert(attempt.pair, ());
        self.ended_otherwise(limits, attempt).await;
    }

    /// Nobody looked at the password.
    pub(crate) async fn ended_otherwise(&self, limits: &Limits, attempt: Attempt) {
        limits.limiter.give_back(&attempt.address, OF_ADDRESS, 1).await;
        if let Some(account) = attempt.account {
            limits.limiter.give_back(&account, OF_ACCOUNT, 1).await;
        }
    }
}

async fn take(
    limits: &Limits,
    extensions: &Extensions,
    key: &Key,
    quota: Quota,
    of: &'static str,
) -> Result<(), Problem> {
    let counted = limits.limiter.take(key, quota, 1).await;
    let tightest = counted.tightest();
    note(extensions, tightest);
    let Some(standing) = tightest.filter(|_| !counted.admitted) else { return Ok(()) };
    count_refusal(of, standing);
    // The same for the address and the account, so that it does not tell whose guesses filled the window.
    let message = format!("too many failed sign-ins; retry after {} s", standing.resets_in);
    Err(limited(message, Some(standing.wait())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
    use cairn_chassis::status::Reason;

    use super::*;

    const EMAIL: &str = "Owner@Example.com";

    struct Door {
        limits: Limits,
        sign_ins: SignIns,
        clock: Arc<ManualClock>,
    }

    impl Door {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
            let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
            Self { limits: Limits::fallback(shared), sign_ins: SignIns::default(), clock }
        }

        async fn knock(&self, email: &str, host: u8) -> Result<Attempt, Problem> {
            let source = IpAddr::from([203, 0, 113, host]);
            self.sign_ins.begin(&self.limits, &Extensions::new(), source, email).await
        }
    }

    #[tokio::test]
    async fn an_address_that_guesses_waits_whatever_the_account() {
        let door = Door::new();
        for number in 0..10 {
            door.knock(&format!("{number}@example.com"), 1).await.unwrap();
        }
        let refused = door.knock("other@example.com", 1).await.unwrap_err();
        assert_eq!(refused.reason, Reason::RateLimited);
        assert!(refused.retry_after.is_some_and(|wait| wait <= Duration::from_secs(60)));
        door.knock("other@example.com", 2).await.unwrap();
        door.clock.advance(Duration::from_secs(60));
        door.knock("other@example.com", 1).await.unwrap();
    }

    #[tokio::test]
    async fn many_addresses_cannot_guess_one_account_and_its_own_address_stays_open() {
        let door = Door::new();
        let own = door.knock(EMAIL, 1).await.unwrap();
        door.sign_ins.succeeded(&door.limits, own).await;
        for host in 100..110 {
            door.knock("owner@example.com ", host).await.unwrap();
        }
        assert!(door.knock(EMAIL, 200).await.is_err(), "strangers wait");
        door.knock(EMAIL, 1).await.unwrap();
        // Windows end: not even a stranger waits for ever.
        door.clock.advance(Duration::from_secs(24 * 60 * 60));
        door.knock(EMAIL, 200).await.unwrap();
    }

    #[tokio::test]
    async fn what_did_not_fail_does_not_count() {
        let door = Door::new();
        for _ in 0..50 {
            let attempt = door.knock(EMAIL, 1).await.unwrap();
            door.sign_ins.succeeded(&door.limits, attempt).await;
            let attempt = door.knock("new@example.com", 1).await.unwrap();
            door.sign_ins.ended_otherwise(&door.limits, attempt).await;
        }
    }
}
