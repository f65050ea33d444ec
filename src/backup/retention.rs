//! The retention policy of backups. Their names are timestamps.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;

use crate::cli::RetentionOptions;

/// The prefix of a name such as `2026-11-28T14-05-00.123Z` that identifies the day, and the one for the hour.
const DAY_PREFIX: usize = "2026-11-28".len();
const HOUR_PREFIX: usize = "2026-11-28T14".len();

/// The rules. A backup stays if any of them keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Retention {
    /// The newest ones, up to this number.
    newest: usize,
    /// All whose age, relative to the newest, is at most this.
    within: Option<Duration>,
    /// The last one of each hour, for this many hours that have any.
    hourly: usize,
    /// The last one of each day, for this many days that have any.
    daily: usize,
}

impl Retention {
    /// The default for a series: all of one day, hourly for a week, daily for a month.
    pub(super) const OF_SERIES: Self =
        Self { newest: 1, within: Some(Duration::from_secs(24 * 60 * 60)), hourly: 7 * 24, daily: 30 };

    /// The policy in the options; `None` if they contain none.
    ///
    /// # Errors
    /// When a number does not fit into `usize`.
    pub(super) fn of(options: &RetentionOptions) -> anyhow::Result<Option<Self>> {
        let RetentionOptions { keep, keep_within, keep_hourly, keep_daily } = options;
        let count = |number: &Option<u32>| usize::try_from(number.unwrap_or_default());
        let retention = Self {
            newest: count(keep)?,
            within: *keep_within,
            hourly: count(keep_hourly)?,
            daily: count(keep_daily)?,
        };
        Ok((retention != Self::default()).then_some(retention))
    }

    /// The names that no rule keeps, given names in chronological order. A name that is not a timestamp is not ours,
    /// and stays.
    pub(super) fn expired(&self, names: &[String]) -> Vec<String> {
        let moments: Vec<(&String, Timestamp)> =
            names.iter().filter_map(|name| Some((name, moment(name)?))).collect();
        let Some((_, newest)) = moments.last() else { return Vec::new() };
        let (mut hours, mut days) =
            (PeriodFilter::new(self.hourly, HOUR_PREFIX), PeriodFilter::new(self.daily, DAY_PREFIX));
        let mut expired = Vec::new();
        for (place, (name, at)) in moments.iter().rev().enumerate() {
            let is_within = self.within.is_some_and(|within| newest.since(*at) <= within);
            // No short-circuit: each rule must count.
            let (is_of_hour, is_of_day) = (hours.keep(name), days.keep(name));
            let is_newest = place < self.newest.max(1);
            let is_kept = is_newest || is_within || is_of_hour || is_of_day;
            if !is_kept {
                expired.push((*name).clone());
            }
        }
        expired.reverse();
        expired
    }
}

/// Keeps the first of each period that it is offered, up to a maximum number.
struct PeriodFilter<'a> {
    left: usize,
    /// The length of the prefix that identifies the period.
    length: usize,
    last: Option<&'a str>,
}

impl<'a> PeriodFilter<'a> {
    const fn new(count: usize, length: usize) -> Self {
        Self { left: count, length, last: None }
    }

    fn keep(&mut self, name: &'a str) -> bool {
        let period = name.get(..self.length);
        if self.left == 0 || period == self.last {
            return false;
        }
        self.left -= 1;
        self.last = period;
        true
    }
}

/// Parses a name, whose time has no colons.
fn moment(name: &str) -> Option<Timestamp> {
    let (day, time) = name.split_once('T')?;
    Timestamp::parse_rfc3339(&format!("{day}T{}", time.replace('-', ":")))
}

#[cfg(test)]
impl Retention {
    /// The newest ones, up to this number.
    pub(super) fn newest(count: usize) -> Self {
        Self { newest: count, ..Self::default() }
    }

    /// The last one of each hour, for this many hours.
    pub(super) fn hourly(count: usize) -> Self {
        Self { hourly: count, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as the repository returns them.
    fn names(moments: &[&str]) -> Vec<String> {
        moments.iter().map(|moment| format!("2026-11-{moment}.000Z")).collect()
    }

    fn kept(retention: Retention, all: &[&str]) -> Vec<String> {
        let all = names(all);
        let expired = retention.expired(&all);
        assert!(expired.is_sorted(), "oldest first: {expired:?}");
        all.into_iter().filter(|name| !expired.contains(name)).collect()
    }

    const ALL: [&str; 7] = [
        "26T23-59-00",
        "27T08-00-00",
        "27T08-59-00",
        "28T13-10-00",
        "28T13-50-00",
        "28T14-04-00",
        "28T14-05-00",
    ];

    #[test]
    fn each_rule_keeps_what_it_says() {
        assert_eq!(kept(Retention::newest(2), &ALL), names(&ALL[5..]));
        let within = Retention { within: Some(Duration::from_secs(15 * 60)), ..Retention::default() };
        assert_eq!(kept(within, &ALL), names(&ALL[4..]), "as old as that is within");
        assert_eq!(kept(Retention::hourly(3), &ALL), names(&[ALL[2], ALL[4], ALL[6]]));
        let daily = Retention { daily: 9, ..Retention::default() };
        assert_eq!(kept(daily, &ALL), names(&[ALL[0], ALL[2], ALL[6]]));
    }

    #[test]
    fn what_one_rule_keeps_stays() {
        let all = Retention { newest: 2, within: None, hourly: 2, daily: 3 };
        assert_eq!(kept(all, &ALL), names(&[ALL[0], ALL[2], ALL[4], ALL[5], ALL[6]]));
    }

    #[test]
    fn the_same_again_removes_nothing_and_the_newest_stays() {
        let rules =
            Retention { within: Some(Duration::from_secs(60)), hourly: 2, daily: 2, ..Retention::default() };
        let once = kept(rules, &ALL);
        assert!(rules.expired(&once).is_empty());
        let nothing = Retention { within: Some(Duration::from_secs(1)), ..Retention::default() };
        assert_eq!(kept(nothing, &ALL), names(&ALL[6..]));
        assert!(rules.expired(&[]).is_empty());
    }

    #[test]
    fn what_is_no_moment_stays() {
        let all = ["a-note".to_owned(), names(&ALL)[0].clone(), names(&ALL)[6].clone(), "Z".to_owned()];
        assert_eq!(Retention::newest(1).expired(&all), [all[1].clone()]);
        assert_eq!(moment("2026-11-28T14-05-00.123Z"), Timestamp::parse_rfc3339("2026-11-28T14:05:00.123Z"));
    }
}
