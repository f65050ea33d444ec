//! Reads the rate limits in responses.

use std::time::{Duration, UNIX_EPOCH};

use cairn_chassis::clock::Timestamp;
use http::{HeaderMap, StatusCode, header};

/// Bounds of the wait that a response can impose.
pub(crate) const MIN_WAIT: Duration = Duration::from_secs(1);
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60 * 60);
/// The wait when a response has no time: GitHub's recommendation.
const UNSAID: Duration = Duration::from_secs(60);

const OVERLOADED: u16 = 529;

/// The headers of one limit: remaining requests, and the time of the reset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) remaining: &'static str,
    pub(crate) reset: &'static str,
}

/// The headers of most vendors.
const USUAL: Limit = Limit { remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset" };

/// Until when a response asks to wait; `None` when it does not.
///
/// 429 and 529 always do; 403 and 503 if a header says so. The wait is that of `Retry-After`, else until the reset of an exhausted limit,
/// else a minute; clamped to between a second and an hour.
pub(crate) fn asked_until(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let always = status == StatusCode::TOO_MANY_REQUESTS || status.as_u16() == OVERLOADED;
    let sometimes = status == StatusCode::FORBIDDEN || status == StatusCode::SERVICE_UNAVAILABLE;
    if !always && !sometimes {
        return None;
    }
    let wait = asked_wait(headers, &[USUAL], now).or(always.then_some(UNSAID))?;
    Some(now.plus(wait.clamp(MIN_WAIT, MAX_WAIT)))
}

/// The wait for a response that signals rate limiting in its own way: `Retry-After`, else until the last reset of the exhausted limits.
pub(crate) fn asked_wait(headers: &HeaderMap, limits: &[Limit], now: Timestamp) -> Option<Duration> {
    let resets = || limits.iter().filter_map(|limit| reset(headers, *limit, now)).max();
    retry_after(headers, now).or_else(resets)
}

/// The wait of `Retry-After` (RFC 9110): seconds, or a date.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds.max(0.0)).ok();
    }
    let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_micros(i64::try_from(at.as_micros()).ok()?).since(now))
}

/// The reset of an exhausted limit. Vendors send seconds or milliseconds since the epoch, seconds from now, or a date.
fn reset(headers: &HeaderMap, limit: Limit, now: Timestamp) -> Option<Duration> {
    const MAX_DELTA_SECONDS: i64 = 100_000_000;
    const SMALLEST_MILLIS: i64 = 100_000_000_000;
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if text(limit.remaining)? != "0" {
        return None;
    }
    let text = text(limit.reset)?;
    let Ok(number) = text.parse::<i64>() else {
        return Timestamp::parse_rfc3339(text).map(|at| at.since(now));
    };
    match number {
        ..0 => None,
        0..MAX_DELTA_SECONDS => Some(Duration::from_secs(number.unsigned_abs())),
        MAX_DELTA_SECONDS..SMALLEST_MILLIS => Some(Timestamp::from_seconds(number).since(now)),
        _ => Some(Timestamp::from_seconds(number / 1_000).since(now)),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// 2026-11-23T12:00:00Z.
    const NOW: Timestamp = Timestamp::from_seconds(1_795_435_200);

    fn wait(status: u16, headers: &[(&'static str, &str)]) -> Option<u64> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        let until = asked_until(StatusCode::from_u16(status).unwrap(), &headers.collect(), NOW)?;
        Some(until.since(NOW).as_secs())
    }

    #[test]
    fn a_wait_is_seconds_or_a_date_and_bounded() {
        assert_eq!(wait(429, &[("retry-after", "7")]), Some(7));
        assert_eq!(wait(429, &[("retry-after", " 7.4 ")]), Some(7));
        assert_eq!(wait(503, &[("retry-after", "Mon, 23 Nov 2026 12:02:00 GMT")]), Some(120));
        assert_eq!(wait(529, &[("retry-after", "0")]), Some(1));
        assert_eq!(wait(429, &[("retry-after", "-5")]), Some(1));
        assert_eq!(
            wait(429, &[("retry-after", "999999999999999999999999")]),
            Some(60),
            "no number of seconds"
        );
        assert_eq!(wait(429, &[("retry-after", "86400")]), Some(3_600));
        assert_eq!(wait(429, &[("retry-after", "Mon, 23 Nov 2026 11:00:00 GMT")]), Some(1), "it has passed");
        assert_eq!(wait(429, &[("retry-after", "soon")]), Some(60));
        assert_eq!(wait(429, &[("retry-after", "nan")]), Some(1));
    }

    #[test]
    fn who_says_only_that_it_is_too_much_gets_a_minute() {
        assert_eq!(wait(429, &[]), Some(60));
        assert_eq!(wait(529, &[]), Some(60));
        assert_eq!(wait(503, &[]), None, "a failure, no limit");
        assert_eq!(wait(403, &[]), None, "no access, no limit");
        assert_eq!(wait(200, &[("retry-after", "7")]), None);
    }

    #[test]
    fn a_limit_that_is_used_up_says_when_it_begins_anew() {
        let used_up = |reset| wait(403, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)]);
        assert_eq!(used_up("1795435230"), Some(30));
        assert_eq!(used_up("1795435230000"), Some(30));
        assert_eq!(used_up("30"), Some(30));
        assert_eq!(used_up("2026-11-23T12:00:30Z"), Some(30));
        assert_eq!(used_up("1795435100"), Some(1), "it has passed");
        assert_eq!(used_up("-1"), None);
        assert_eq!(used_up("later"), None);
        let left = [("x-ratelimit-remaining", "5"), ("x-ratelimit-reset", "30")];
        assert_eq!(wait(403, &left), None, "something is left: it is no limit");
        assert_eq!(wait(429, &left), Some(60));
    }

    #[test]
    fn of_several_limits_the_last_that_begins_anew_counts() {
        let requests = Limit { remaining: "x-requests-left", reset: "x-requests-reset" };
        let points = Limit { remaining: "x-points-left", reset: "x-points-reset" };
        let wait = |headers: &[(&'static str, &'static str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            asked_wait(&headers.collect(), &[requests, points], NOW).map(|wait| wait.as_secs())
        };
        let requests = [("x-requests-left", "0"), ("x-requests-reset", "1795435230000")];
        let points = [("x-points-left", "0"), ("x-points-reset", "1795435290000")];
        assert_eq!(wait(&requests), Some(30));
        assert_eq!(wait(&[requests, points].concat()), Some(90));
        assert_eq!(wait(&[&requests[..], &[("x-points-left", "3"), points[1]]].concat()), Some(30));
        assert_eq!(wait(&[&requests[..], &[("retry-after", "7")]].concat()), Some(7));
        assert_eq!(wait(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "30")]), None);
    }
}
