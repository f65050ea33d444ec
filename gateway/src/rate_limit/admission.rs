//! Applies the rate limits: whose window a request counts in, how large that is, and the refusal when it is
//! exhausted.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::identity::Identity;
use cairn_chassis::status::{Problem, Reason};
use http::request::Parts;
use metrics::Counter;
use quick_cache::sync::Cache;

use super::headers::report;
use super::limiter::Limiter;
use super::plans::Plans;
use super::source::TrustedProxies;
use super::{Counted, Key, Quota, Settings, Window, WindowState};
use crate::error::Error;

/// Invalid tokens per source address (contract).
const INVALID_TOKENS: Quota = Quota::new(Some(30), None, None);
/// Anonymous exports of public memories per source address.
const PUBLIC_READS: Quota = Quota::new(Some(60), None, None);
/// Requests per source address whose body is read before the caller is authenticated. A program with many users
/// refreshes all their tokens from one address.
const OPEN_BODIES: Quota = Quota::new(Some(600), None, None);
/// Registrations of OAuth clients, which are anonymous, per source address. Hosted agents share few addresses.
const REGISTRATIONS: Quota = Quota::new(Some(120), Some(1_000), Some(5_000));
/// Blocked addresses kept at most.
const BLOCKED_ADDRESSES: usize = 65_536;

/// Units requested by tokens.
const UNITS: &str = "cairn_rate_limit_units_total";
/// Refusals, by kind of limit.
const REFUSALS: &str = "cairn_rate_limit_refusals_total";

/// The limits of this deployment.
pub(crate) struct Limits {
    pub(super) limiter: Limiter,
    plans: Plans,
    proxies: TrustedProxies,
    clock: Arc<dyn Clock>,
    /// Until when an address is blocked, so that the engine need not be asked.
    blocked: Cache<IpAddr, Timestamp>,
    /// Counters of admitted units by plan: cached handles, because every request counts.
    admitted: Vec<(&'static str, OnceLock<Counter>)>,
}

cairn_chassis::debug_fields!(Limits { limiter });

/// Why a request of a token is refused.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal {
    /// A window is exhausted.
    Exhausted { plan: &'static str, units: u32, state: WindowState },
    /// More units than some window ever allows.
    TooLarge { plan: &'static str, units: u32, window: Window, limit: u32 },
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { plan, units, state: WindowState { window, limit, remaining, resets_in } } => {
                write!(
                    formatter,
                    "rate limit: the plan '{plan}' allows a token {limit} requests in a {}, {remaining} are left and \
                 this needs {units}; retry after {resets_in} s",
                    window.as_str()
                )
            }
            Self::TooLarge { plan, units, window, limit } => write!(
                formatter,
                "this batch counts as {units} requests and the plan '{plan}' allows a token {limit} in a {}: it can \
                 never pass; send smaller batches",
                window.as_str()
            ),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let wait = match refusal {
            Refusal::Exhausted { state, .. } => Some(state.wait()),
            Refusal::TooLarge { .. } => None,
        };
        limited(refusal.to_string(), wait)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Problem::from(refusal).into()
    }
}

pub(super) fn limited(message: String, retry_after: Option<Duration>) -> Problem {
    Problem { retry_after, ..Problem::new(Reason::RateLimited, message) }
}

pub(super) fn count_refusal(of: &'static str, state: WindowState) {
    metrics::counter!(REFUSALS, "of" => of, "window" => state.window.as_str()).increment(1);
}

impl Limits {
    pub(crate) fn new(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self {
            limiter: Limiter::new(settings.shared, Arc::clone(&clock)),
            plans: settings.plans,
            proxies: settings.proxies,
            clock,
            blocked: Cache::new(BLOCKED_ADDRESSES),
            admitted: Plans::names().map(|plan| (plan, OnceLock::new())).collect(),
        }
    }

    /// The source address that a request counts for.
    pub(crate) fn source(&self, parts: &Parts) -> IpAddr {
        self.proxies.source(parts)
    }

    /// Takes the units from all windows of the caller's token or grant, or from none.
    pub(crate) async fn admit(&self, parts: &Parts, caller: &Identity, units: u32) -> Result<(), Refusal> {
        let (plan, quota) = self.plans.of(caller.plan.as_deref());
        let key = Key::of(caller.principal.kind.as_str(), &caller.principal.id);
        if let Some((window, limit)) = quota.smallest().filter(|(_, limit)| *limit < units) {
            report(&parts.extensions, self.limiter.take(&key, quota, 0).await.tightest());
            return Err(Refusal::TooLarge { plan, units, window, limit });
        }
        let counted = self.limiter.take(&key, quota, units).await;
        let tightest = counted.tightest();
        report(&parts.extensions, tightest);
        self.count_units(plan, units, counted.admitted);
        match tightest.filter(|_| !counted.admitted) {
            None => Ok(()),
            Some(state) => {
                count_refusal("token", state);
                Err(Refusal::Exhausted { plan, units, state })
            }
        }
    }

    fn count_units(&self, plan: &'static str, units: u32, is_admitted: bool) {
        let found = |outcome: &'static str| metrics::counter!(UNITS, "plan" => plan, "outcome" => outcome);
        match self.admitted.iter().find(|(known, _)| is_admitted && *known == plan) {
            Some((_, kept)) => kept.get_or_init(|| found("admitted")).increment(u64::from(units)),
            None => found(if is_admitted { "admitted" } else { "refused" }).increment(u64::from(units)),
        }
    }

    /// Counts an invalid token; returns its refusal, or that of a blocked address.
    pub(crate) async fn invalid_token(&self, parts: &Parts, why: Problem) -> Problem {
        let source = self.source(parts);
        let counted = self.limiter.take(&invalid_tokens_of(source), INVALID_TOKENS, 1).await;
        let Some(state) = counted.tightest() else { return why };
        report(&parts.extensions, Some(state));
        if state.remaining == 0 {
            self.blocked.insert(source, self.clock.now().plus(state.wait()));
        }
        if counted.admitted { why } else { too_many_invalid_tokens(state) }
    }

    /// Refuses a blocked address before svc-auth is asked.
    pub(crate) fn check_address(&self, parts: &Parts) -> Result<(), Problem> {
        let Some(until) = self.blocked.get(&self.source(parts)) else { return Ok(()) };
        let left = until.since(self.clock.now());
        let Some((window, limit)) = INVALID_TOKENS.smallest().filter(|_| !left.is_zero()) else {
            return Ok(());
        };
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        let resets_in = u32::try_from(seconds).unwrap_or(u32::MAX);
        let state = WindowState { window, limit, remaining: 0, resets_in };
        report(&parts.extensions, Some(state));
        Err(too_many_invalid_tokens(state))
    }

    /// Counts an anonymous read.
    pub(crate) async fn public_read(&self, parts: &Parts) -> Result<(), Problem> {
        let counted = self.limiter.take(&Key::new("public", self.source(parts)), PUBLIC_READS, 1).await;
        let tightest = counted.tightest();
        report(&parts.extensions, tightest);
        let Some(state) = tightest.filter(|_| !counted.admitted) else { return Ok(()) };
        count_refusal("public", state);
        let message = format!(
            "without a token an address may ask for {} exports in a minute; retry after {} s, or send a token",
            state.limit, state.resets_in
        );
        Err(limited(message, Some(state.wait())))
    }

    /// Counts a request whose body is read before authentication: a sign-in, an invitation, an OAuth form.
    pub(crate) async fn open_body(&self, parts: &Parts) -> Result<(), Problem> {
        let counted = self.limiter.take(&Key::new("open-body", self.source(parts)), OPEN_BODIES, 1).await;
        let tightest = counted.tightest().filter(|_| !counted.admitted);
        let Some(state) = tightest else { return Ok(()) };
        report(&parts.extensions, tightest);
        count_refusal("open_body", state);
        let message = format!(
            "too many requests without an identity from this address: {} are allowed in a minute; retry after {} s",
            state.limit, state.resets_in
        );
        Err(limited(message, Some(state.wait())))
    }

    /// Counts a registration of an OAuth client.
    pub(crate) async fn registration(&self, parts: &Parts) -> Result<(), Problem> {
        let counted =
            self.limiter.take(&Key::new("registration", self.source(parts)), REGISTRATIONS, 1).await;
        let Some(state) = counted.tightest().filter(|_| !counted.admitted) else { return Ok(()) };
        count_refusal("registration", state);
        let message = format!(
            "an address may register {} clients in a {}; retry after {} s, or use one that is registered",
            state.limit,
            state.window.as_str(),
            state.resets_in
        );
        Err(limited(message, Some(state.wait())))
    }

    /// The window of invalid tokens of an address, without counting.
    pub(crate) async fn address_window(&self, source: IpAddr) -> Counted {
        self.limiter.take(&invalid_tokens_of(source), INVALID_TOKENS, 0).await
    }
}

fn invalid_tokens_of(source: IpAddr) -> Key {
    Key::new("address", source)
}

fn too_many_invalid_tokens(state: WindowState) -> Problem {
    count_refusal("address", state);
    let message = format!(
        "too many invalid tokens from this address: {} are allowed in a minute; correct the token, and retry after {} s",
        state.limit, state.resets_in
    );
    limited(message, Some(state.wait()))
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::ManualClock;
    use cairn_chassis::identity::{Permission, Scope};
    use cairn_chassis::testing::identity::Issuer;

    use super::*;
    use crate::Config;

    fn limits(plans: &str) -> (Limits, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let config = Config { plans: Some(plans.to_owned()), ..Config::default() };
        (Limits::new(Settings::read(&config).unwrap(), shared), clock)
    }

    fn parts() -> Parts {
        http::Request::get("/").body(()).unwrap().into_parts().0
    }

    fn caller(id: &str, plan: &str) -> Identity {
        let workspace = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        let mut caller = Issuer::new().unwrap().token(workspace, &Permission::ALL, Scope::All);
        caller.principal.id = id.to_owned();
        caller.plan = Some(plan.to_owned());
        caller
    }

    #[tokio::test]
    async fn a_token_has_the_windows_of_its_plan() {
        let (limits, clock) = limits(r#"{"free": {"minute": 2, "hour": 3, "day": null}}"#);
        let (parts, free) = (parts(), caller("a", "free"));
        limits.admit(&parts, &free, 2).await.unwrap();
        let refusal = limits.admit(&parts, &free, 1).await.unwrap_err();
        assert!(
            matches!(refusal, Refusal::Exhausted { plan: "free", state, .. } if state.window == Window::Minute)
        );
        let error = Error::from(refusal);
        assert_eq!((error.status.as_u16(), error.code), (429, "RATE_LIMITED"));
        assert_eq!(error.retry_after, Some(Duration::from_secs(60)));
        limits.admit(&parts, &caller("b", "free"), 2).await.unwrap();
        limits.admit(&parts, &caller("c", "pro"), 50).await.unwrap();
        clock.advance(Duration::from_secs(60));
        limits.admit(&parts, &free, 1).await.unwrap();
        let refusal = limits.admit(&parts, &free, 1).await.unwrap_err();
        assert!(matches!(refusal, Refusal::Exhausted { state, .. } if state.window == Window::Hour));
    }

    #[tokio::test]
    async fn what_never_fits_is_told_so_and_takes_nothing() {
        let (limits, _) = limits(r#"{"free": {"minute": 5}}"#);
        let refusal = limits.admit(&parts(), &caller("a", "free"), 6).await.unwrap_err();
        assert!(matches!(refusal, Refusal::TooLarge { limit: 5, .. }), "{refusal}");
        limits.admit(&parts(), &caller("a", "free"), 5).await.unwrap();
    }

    #[tokio::test]
    async fn thirty_invalid_tokens_a_minute_and_then_nobody_is_asked() {
        let (limits, clock) = limits("{}");
        let parts = parts();
        for number in 1..=30 {
            assert!(limits.check_address(&parts).is_ok(), "number {number}");
            let said = limits.invalid_token(&parts, Problem::unauthorized("no")).await;
            assert_eq!(said.reason, Reason::Unauthorized, "number {number}");
        }
        let refused = limits.check_address(&parts).unwrap_err();
        assert_eq!(
            (refused.reason, refused.retry_after),
            (Reason::RateLimited, Some(Duration::from_secs(60)))
        );
        let said = limits.invalid_token(&parts, Problem::unauthorized("no")).await;
        assert_eq!(said.reason, Reason::RateLimited);
        clock.advance(Duration::from_secs(60));
        assert!(limits.check_address(&parts).is_ok());
    }
}
