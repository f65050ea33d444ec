//! Sign-ins per source address, counted before svc-auth is asked, so that a flood ends here. svc-auth counts them
//! too, by address and by account, for all gateways together.

use std::net::IpAddr;

use cairn_chassis::status::Problem;
use http::Extensions;

use super::admission::{count_refusal, limited};
use super::headers::report;
use super::{Key, Limits, Quota};

/// Failed sign-ins per address, whatever the account.
const PER_ADDRESS: Quota = Quota::new(Some(10), Some(60), Some(300));

/// A sign-in in progress: counted as failed until its outcome is known.
#[derive(Debug)]
pub(crate) struct Attempt(Key);

impl Limits {
    /// Counts a sign-in in advance, so that concurrent guesses cannot all pass.
    pub(crate) async fn begin_sign_in(
        &self,
        extensions: &Extensions,
        source: IpAddr,
    ) -> Result<Attempt, Problem> {
        let address = Key::new("sign-in-address", source);
        let counted = self.limiter.take(&address, PER_ADDRESS, 1).await;
        let tightest = counted.tightest();
        report(extensions, tightest);
        let Some(state) = tightest.filter(|_| !counted.admitted) else { return Ok(Attempt(address)) };
        count_refusal("sign_in_address", state);
        let message = format!("too many failed sign-ins; retry after {} s", state.resets_in);
        Err(limited(message, Some(state.wait())))
    }

    /// Refunds an attempt that succeeded, or whose secret was never checked.
    pub(crate) async fn refund_sign_in(&self, Attempt(address): Attempt) {
        self.limiter.refund(&address, PER_ADDRESS, 1).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use cairn_chassis::clock::{Clock, ManualClock, Timestamp};
    use cairn_chassis::status::Reason;

    use super::*;
    use crate::rate_limit::Settings;

    struct Door {
        limits: Limits,
        clock: Arc<ManualClock>,
    }

    impl Door {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
            let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
            Self { limits: Limits::new(Settings::default(), shared), clock }
        }

        async fn knock(&self, host: u8) -> Result<Attempt, Problem> {
            self.limits.begin_sign_in(&Extensions::new(), IpAddr::from([203, 0, 113, host])).await
        }
    }

    #[tokio::test]
    async fn an_address_that_guesses_waits() {
        let door = Door::new();
        for _ in 0..10 {
            door.knock(1).await.unwrap();
        }
        let refused = door.knock(1).await.unwrap_err();
        assert_eq!(refused.reason, Reason::RateLimited);
        assert!(refused.retry_after.is_some_and(|wait| wait <= Duration::from_secs(60)));
        door.knock(2).await.unwrap();
        door.clock.advance(Duration::from_secs(60));
        door.knock(1).await.unwrap();
    }

    #[tokio::test]
    async fn what_did_not_fail_does_not_count() {
        let door = Door::new();
        for _ in 0..50 {
            let attempt = door.knock(1).await.unwrap();
            door.limits.refund_sign_in(attempt).await;
        }
    }
}
