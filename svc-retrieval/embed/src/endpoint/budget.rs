//! How many tokens an endpoint may be asked to read: a minute, and a day (UTC).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_chassis::clock::{Clock, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Error;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// English and code have about four bytes a token, other scripts fewer: counted before the endpoint says what it was.
const BYTES_PER_TOKEN: usize = 3;

/// The most tokens; none where there is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spending {
    /// A minute.
    pub tokens_a_minute: Option<u64>,
    /// A day (UTC).
    pub tokens_a_day: Option<u64>,
}

/// Counts tokens. Those of the current day are stored in a file, so that a restart does not reset the limit.
#[derive(Debug)]
pub(super) struct Budget {
    limits: Spending,
    clock: Arc<dyn Clock>,
    file: Option<PathBuf>,
    spent: Mutex<Spent>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Spent {
    minute: Window,
    day: Window,
}

/// Tokens of one minute or day, counted since 1970.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Window {
    number: u64,
    tokens: u64,
}

impl Window {
    fn at(self, number: u64) -> Self {
        if self.number == number { self } else { Self { number, tokens: 0 } }
    }

    fn changed(self, estimated: u64, used: u64) -> Self {
        Self { tokens: self.tokens.saturating_sub(estimated).saturating_add(used), ..self }
    }
}

/// Estimates the tokens of texts.
pub(super) fn estimate(texts: &[&str]) -> u64 {
    let tokens: usize = texts.iter().map(|text| text.len() / BYTES_PER_TOKEN + 1).sum();
    u64::try_from(tokens).unwrap_or(u64::MAX)
}

fn save(file: &Path, spent: Spent) -> std::io::Result<()> {
    let text = serde_json::to_vec(&spent)?;
    file.parent().map_or(Ok(()), fs_err::create_dir_all)?;
    fs_err::write(file, text)
}

impl Budget {
    pub(super) fn new(limits: Spending, clock: Arc<dyn Clock>, file: Option<PathBuf>) -> Self {
        let spent = file.as_deref().and_then(load).unwrap_or_default();
        Self { limits, clock, file, spent: Mutex::new(spent) }
    }

    /// Reserves that many tokens.
    ///
    /// # Errors
    /// [`Error::Spent`] when they exceed a limit; nothing is reserved then. A request above the limit of a whole window is allowed
    /// when nothing else was spent in it, since it would never fit.
    pub(super) fn take(&self, tokens: u64) -> Result<(), Error> {
        let now = self.clock.now();
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let (minute, day) = (spent.minute.at(number(now, MINUTE)), spent.day.at(number(now, DAY)));
        check(minute, tokens, self.limits.tokens_a_minute, "minute", left(now, MINUTE))?;
        check(day, tokens, self.limits.tokens_a_day, "day", left(now, DAY))?;
        *spent = Spent { minute: minute.changed(0, tokens), day: day.changed(0, tokens) };
        self.persist(*spent);
        Ok(())
    }

    /// Replaces a reservation by the actual use: 0 for a failed call.
    pub(super) fn correct(&self, taken: u64, used: u64) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        *spent = Spent { minute: spent.minute.changed(taken, used), day: spent.day.changed(taken, used) };
        self.persist(*spent);
    }

    fn persist(&self, spent: Spent) {
        let (Some(file), true) = (&self.file, self.limits.tokens_a_day.is_some()) else { return };
        if let Err(error) = save(file, spent) {
            tracing::warn!(%error, "what the embedder has spent cannot be kept; a restart would forget it");
        }
    }
}

fn load(file: &Path) -> Option<Spent> {
    serde_json::from_slice(&fs_err::read(file).ok()?).ok()
}

fn check(
    window: Window,
    tokens: u64,
    limit: Option<u64>,
    name: &'static str,
    retry_after: Duration,
) -> Result<(), Error> {
    let Some(limit) = limit else { return Ok(()) };
    if window.tokens == 0 && limit > 0 || window.tokens.saturating_add(tokens) <= limit {
        return Ok(());
    }
    Err(Error::Spent { window: name, retry_after })
}

fn number(now: Timestamp, window: Duration) -> u64 {
    u64::try_from(now.as_seconds()).unwrap_or(0) / window.as_secs()
}

fn left(now: Timestamp, window: Duration) -> Duration {
    let into = u64::try_from(now.as_seconds()).unwrap_or(0) % window.as_secs();
    Duration::from_secs(window.as_secs() - into)
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::ManualClock;

    use super::*;

    fn limits(minute: u64, day: u64) -> Spending {
        Spending { tokens_a_minute: Some(minute), tokens_a_day: Some(day) }
    }

    fn window(refused: Result<(), Error>) -> &'static str {
        match refused {
            Err(Error::Spent { window, .. }) => window,
            other => panic!("{other:?} is no refusal"),
        }
    }

    #[test]
    fn a_minute_and_a_day_are_counted_apart() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(10 * 86_400)));
        let budget = Budget::new(limits(100, 150), Arc::clone(&clock) as _, None);
        budget.take(90).unwrap();
        assert_eq!(window(budget.take(20)), "minute");
        // The endpoint said that it was less.
        budget.correct(90, 80);
        budget.take(20).unwrap();
        clock.advance(MINUTE);
        assert_eq!(window(budget.take(60)), "day");
        budget.take(50).unwrap();
        // What failed costs nothing.
        budget.correct(50, 0);
        budget.take(50).unwrap();
        clock.advance(DAY);
        budget.take(100).unwrap();
    }

    #[test]
    fn a_text_larger_than_a_window_goes_through_alone() {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(10 * 86_400)));
        let budget = Budget::new(limits(100, 1_000), Arc::clone(&clock) as _, None);
        budget.take(300).unwrap();
        assert_eq!(window(budget.take(1)), "minute");
        let nothing = Budget::new(limits(0, 0), clock, None);
        assert_eq!(window(nothing.take(1)), "minute");
    }

    #[test]
    fn a_restart_is_no_new_day() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("spent.json"));
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(Timestamp::from_seconds(10 * 86_400 + 86_399)));
        Budget::new(limits(500, 150), Arc::clone(&clock), file.clone()).take(100).unwrap();
        let budget = Budget::new(limits(500, 150), clock, file);
        let refused = budget.take(100).unwrap_err();
        assert!(matches!(refused, Error::Spent { retry_after, .. } if retry_after == Duration::from_secs(1)));
    }
}
