//! Validates what people send about a source; reports all violations at once.

use std::time::Duration;

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::SourceMode;
use cairn_providers::{Provider, ProviderKind};
use serde_json::Value;

use crate::Error;
use crate::checks::Checks;
use crate::runs::Connect;

const MAX_NAME_CHARS: usize = 100;
const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// More frequent runs would exhaust providers' rate limits.
const MIN_EVERY: Duration = Duration::from_secs(5 * MINUTE);
const MAX_EVERY: Duration = Duration::from_secs(30 * DAY);
/// The default number of live calls per day (contract, "Provider budget").
const DAILY_BUDGET: u32 = 500;
const MAX_DAILY_BUDGET: u32 = 1_000_000;

/// A new source as received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    pub(crate) provider: String,
    pub(crate) mode: Option<SourceMode>,
    /// JSON.
    pub(crate) settings: Vec<u8>,
    /// JSON; empty for none.
    pub(crate) credentials: Secret,
    pub(crate) every: Option<String>,
    pub(crate) daily_budget: Option<u32>,
    pub(crate) paused: bool,
}

/// Bytes that are redacted in debug output.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) Vec<u8>);

cairn_chassis::debug_fields!(Secret);

/// A patch of a source: an absent field stays, an inner `None` resets it to its default.
#[derive(Debug, Clone, Default)]
pub(crate) struct Patch {
    pub(crate) name: Option<String>,
    /// Immutable; accepted only if equal to the current one.
    pub(crate) provider: Option<String>,
    pub(crate) mode: Option<Option<SourceMode>>,
    pub(crate) settings: Option<Vec<u8>>,
    pub(crate) credentials: Option<Secret>,
    pub(crate) every: Option<Option<String>>,
    pub(crate) daily_budget: Option<Option<u32>>,
    pub(crate) paused: Option<bool>,
    /// Messages about fields of the mask that cannot be updated.
    pub(crate) unknown_fields: Vec<String>,
}

/// A validated draft.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) kind: ProviderKind,
    pub(crate) mode: SourceMode,
    pub(crate) settings: Value,
    pub(crate) credentials: Option<Value>,
    pub(crate) every: Duration,
    pub(crate) daily_budget: u32,
    pub(crate) paused: bool,
    pub(crate) provider: Box<dyn Provider>,
}

/// Validates a draft. Test requests need no name.
pub(crate) fn check(draft: Draft, connect: &dyn Connect, needs_name: bool) -> Result<Checked, Error> {
    let mut checks = Checks::default();
    if needs_name || !draft.name.is_empty() {
        name(&mut checks, &draft.name);
    }
    let every = draft.every.as_deref().and_then(|text| every(&mut checks, text));
    let daily_budget = budget(&mut checks, draft.daily_budget);
    let settings = object(&mut checks, "settings", &draft.settings, true);
    let credentials = object(&mut checks, "credentials", &draft.credentials.0, false);
    let kind = kind(&mut checks, &draft.provider, connect);
    let mode = draft.mode.or_else(|| connect.modes(kind?).first().copied());
    let made = match (kind, &settings) {
        (Some(kind), Some(settings)) => {
            made(&mut checks, connect.connect(kind, settings, credentials.as_ref(), draft.mode))
        }
        _ => None,
    };
    checks.finish()?;
    let whole = (kind, mode, settings, made);
    let (Some(kind), Some(mode), Some(settings), Some(provider)) = whole else {
        return Err(Error::invalid("provider", "invalid_value", "cannot be connected"));
    };
    let every = every.unwrap_or_else(|| provider.traits().every);
    let (name, paused) = (draft.name, draft.paused);
    Ok(Checked { name, kind, mode, settings, credentials, every, daily_budget, paused, provider })
}

pub(crate) fn name(checks: &mut Checks, name: &str) {
    checks.line("name", name, MAX_NAME_CHARS);
}

/// The daily budget.
pub(crate) fn budget(checks: &mut Checks, given: Option<u32>) -> u32 {
    let budget = given.unwrap_or(DAILY_BUDGET);
    if budget > MAX_DAILY_BUDGET {
        checks.violation("dailyBudget", "out_of_range", wording::between(0, MAX_DAILY_BUDGET));
    }
    budget
}

/// Parses a JSON object; `None` if it is absent or not an object.
pub(crate) fn object(checks: &mut Checks, path: &str, text: &[u8], is_required: bool) -> Option<Value> {
    if text.is_empty() {
        if is_required {
            checks.violation(path, "required", "say what the provider needs to know: an object");
        }
        return None;
    }
    match serde_json::from_slice::<Value>(text) {
        Ok(value @ Value::Object(_)) => Some(value),
        Ok(Value::Null) if !is_required => None,
        // The parser's message would quote the input.
        Ok(_) | Err(_) => {
            checks.violation(path, "invalid_type", "must be a JSON object");
            None
        }
    }
}

fn kind(checks: &mut Checks, name: &str, connect: &dyn Connect) -> Option<ProviderKind> {
    let known = |kind: &ProviderKind| !connect.modes(*kind).is_empty();
    let kind = name.parse().ok().filter(known);
    if kind.is_none() {
        let names: Vec<&str> =
            ProviderKind::ALL.iter().filter(|kind| known(kind)).map(|kind| kind.as_str()).collect();
        checks.violation("provider", "invalid_value", wording::one_of(&names));
    }
    kind
}

/// The provider, or `None` after reporting what is wrong with its settings.
pub(crate) fn made(
    checks: &mut Checks,
    made: Result<Box<dyn Provider>, Vec<Violation>>,
) -> Option<Box<dyn Provider>> {
    match made {
        Ok(provider) => Some(provider),
        Err(violations) => {
            for violation in violations {
                checks.violation(&violation.path, &violation.code, violation.message);
            }
            None
        }
    }
}

/// The interval of runs.
pub(crate) fn every(checks: &mut Checks, text: &str) -> Option<Duration> {
    let Some(every) = parse_every(text) else {
        let advice = "must be a number of minutes, hours or days, such as 15m, 6h or 1d";
        checks.violation("every", "invalid_value", advice);
        return None;
    };
    if (MIN_EVERY..=MAX_EVERY).contains(&every) {
        return Some(every);
    }
    let bounds = wording::between(shown_every(MIN_EVERY), shown_every(MAX_EVERY));
    checks.violation("every", "out_of_range", bounds);
    None
}

fn parse_every(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        'm' => MINUTE,
        'h' => HOUR,
        'd' => DAY,
        _ => return None,
    };
    let number = text.strip_suffix(unit)?;
    let is_plain =
        !number.is_empty() && number.len() <= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_plain)?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

/// In the largest unit that divides it evenly.
pub(crate) fn shown_every(every: Duration) -> String {
    let seconds = every.as_secs();
    for (unit, length) in [('d', DAY), ('h', HOUR)] {
        if seconds >= length && seconds.is_multiple_of(length) {
            return format!("{}{unit}", seconds / length);
        }
    }
    format!("{}m", seconds / MINUTE)
}

/// Sources of a workspace.
pub(crate) const MAX_SOURCES: u64 = 100;

/// The error at that limit.
pub(crate) fn too_many() -> Error {
    let most = usize::try_from(MAX_SOURCES).unwrap_or(usize::MAX);
    let message = format!("a workspace has {}: disconnect one first", wording::at_most(most, Unit::Sources));
    Error::LimitExceeded(vec![Violation::new("sources", "limit_exceeded", message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_between_runs_is_read_and_shown() {
        for (text, seconds) in
            [("5m", 300), ("90m", 5_400), ("1h", 3_600), ("24h", 86_400), ("30d", 2_592_000)]
        {
            let every = parse_every(text).unwrap();
            assert_eq!(every.as_secs(), seconds);
            assert_eq!(parse_every(&shown_every(every)), Some(every));
        }
        for odd in ["", "m", "15", "1w", "-5m", "+5m", "1.5h", "5 m", "99999999999d", "１m"] {
            assert_eq!(parse_every(odd), None, "{odd}");
        }
        assert_eq!(shown_every(Duration::from_secs(86_400)), "1d");
        assert_eq!(shown_every(Duration::from_secs(5_400)), "90m");
        let mut checks = Checks::default();
        assert_eq!(every(&mut checks, "4m"), None);
        assert!(checks.finish().is_err());
    }
}
