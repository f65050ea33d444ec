//! Which backups stay: what one of the rules keeps. The names tell their moments.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;

use crate::cli::KeepingOptions;

/// Of a name such as `2026-11-28T14-05-00.123Z`, what tells the day, and what tells the hour.
const OF_DAY: usize = "2026-11-28".len();
const OF_HOUR: usize = "2026-11-28T14".len();

/// The rules. Each keeps some, and what one of them keeps stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Keeping {
    /// So many of the newest.
    newest: usize,
    /// All that are at most so much older than the newest.
    within: Option<Duration>,
    /// The last one of each of so many hours that have any.
    hourly: usize,
    /// The last one of each of so many days that have any.
    daily: usize,
}

impl Keeping {
    /// Of backups that go on being made, when nothing else is said: a day of all, a week of hours, a month of days.
    pub(super) const OF_SERIES: Self =
        Self { newest: 1, within: Some(Duration::from_secs(24 * 60 * 60)), hourly: 7 * 24, daily: 30 };

    /// What the options say; `None` when they say nothing.
    ///
    /// # Errors
    /// When a number is more than this machine counts.
    pub(super) fn of(options: &KeepingOptions) -> anyhow::Result<Option<Self>> {
        let KeepingOptions { keep, keep_within, keep_hourly, keep_daily } = options;
        let count = |number: &Option<u32>| usize::try_from(number.unwrap_or_default());
        let keeping = Self {
            newest: count(keep)?,
            within: *keep_within,
            hourly: count(keep_hourly)?,
            daily: count(keep_daily)?,
        };
        Ok((keeping != Self::default()).then_some(keeping))
    }

    /// Which of these names no rule keeps, of names in the order of time. What is no moment is none of ours, and stays.
    pub(super) fn gone(&self, names: &[String]) -> Vec<String> {
        let moments: Vec<(&String, Timestamp)> =
            names.iter().filter_map(|name| Some((name, moment(name)?))).collect();
        let Some((_, newest)) = moments.last() else { return Vec::new() };
        let (mut hours, mut days) = (Newest::new(self.hourly, OF_HOUR), Newest::new(self.daily, OF_DAY));
        let mut gone = Vec::new();
        for (place, (name, at)) in moments.iter().rev().enumerate() {
            let is_within = self.within.is_some_and(|within| newest.since(*at) <= within);
            // Both are asked, so that both count.
            let (is_of_hour, is_of_day) = (hours.keep(name), days.keep(name));
            let is_newest = place < self.newest.max(1);
            let is_kept = is_newest || is_within || is_of_hour || is_of_day;
            if !is_kept {
                gone.push((*name).clone());
            }
        }
        gone.reverse();
        gone
    }
}

/// Takes the first of each stretch of time that it is asked of, until it has so many.
struct Newest<'a> {
    left: usize,
    /// How much of a name tells the stretch.
    length: usize,
    last: Option<&'a str>,
}

impl<'a> Newest<'a> {
    const fn new(count: usize, length: usize) -> Self {
        Self { left: count, length, last: None }
    }

    fn keep(&mut self, name: &'a str) -> bool {
        let stretch = name.get(..self.length);
        if self.left == 0 || stretch == self.last {
            return false;
        }
        self.left -= 1;
        self.last = stretch;
        true
    }
}

/// The moment that a name tells, whose time has no colons.
fn moment(name: &str) -> Option<Timestamp> {
    let (day, time) = name.split_once('T')?;
    Timestamp::parse_rfc3339(&format!("{day}T{}", time.replace('-', ":")))
}

#[cfg(test)]
impl Keeping {
    /// So many of the newest.
    pub(super) fn newest(count: usize) -> Self {
        Self { newest: count, ..Self::default() }
    }

    /// The last one of each of so many hours.
    pub(super) fn hourly(count: usize) -> Self {
        Self { hourly: count, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names as the repository gives them.
    fn names(moments: &[&str]) -> Vec<String> {
        moments.iter().map(|moment| format!("2026-11-{moment}.000Z")).collect()
    }

    fn kept(keeping: Keeping, all: &[&str]) -> Vec<String> {
        let all = names(all);
        let gone = keeping.gone(&all);
        assert!(gone.is_sorted(), "oldest first: {gone:?}");
        all.into_iter().filter(|name| !gone.contains(name)).collect()
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
        assert_eq!(kept(Keeping::newest(2), &ALL), names(&ALL[5..]));
        let within = Keeping { within: Some(Duration::from_secs(15 * 60)), ..Keeping::default() };
        assert_eq!(kept(within, &ALL), names(&ALL[4..]), "as old as that is within");
        assert_eq!(kept(Keeping::hourly(3), &ALL), names(&[ALL[2], ALL[4], ALL[6]]));
        let daily = Keeping { daily: 9, ..Keeping::default() };
        assert_eq!(kept(daily, &ALL), names(&[ALL[0], ALL[2], ALL[6]]));
    }

    #[test]
    fn what_one_rule_keeps_stays() {
        let all = Keeping { newest: 2, within: None, hourly: 2, daily: 3 };
        assert_eq!(kept(all, &ALL), names(&[ALL[0], ALL[2], ALL[4], ALL[5], ALL[6]]));
    }

    #[test]
    fn the_same_again_removes_nothing_and_the_newest_stays() {
        let rules =
            Keeping { within: Some(Duration::from_secs(60)), hourly: 2, daily: 2, ..Keeping::default() };
        let once = kept(rules, &ALL);
        assert!(rules.gone(&once).is_empty());
        let nothing = Keeping { within: Some(Duration::from_secs(1)), ..Keeping::default() };
        assert_eq!(kept(nothing, &ALL), names(&ALL[6..]));
        assert!(rules.gone(&[]).is_empty());
    }

    #[test]
    fn what_is_no_moment_stays() {
        let all = ["a-note".to_owned(), names(&ALL)[0].clone(), names(&ALL)[6].clone(), "Z".to_owned()];
        assert_eq!(Keeping::newest(1).gone(&all), [all[1].clone()]);
        assert_eq!(moment("2026-11-28T14-05-00.123Z"), Timestamp::parse_rfc3339("2026-11-28T14:05:00.123Z"));
    }
}
