//! Rate-limit windows, quotas, and the state of a window.

use std::time::Duration;

/// A fixed window. It begins at a full minute, hour or day, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    Minute,
    Hour,
    Day,
}

impl Window {
    /// All windows, shortest first.
    pub(super) const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// The contract's spelling.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }

    pub(super) const fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 60 * 60,
            Self::Day => 24 * 60 * 60,
        }
    }

    /// The number of the window that contains the second, counted from the Unix epoch.
    pub(super) const fn number_at(self, second: i64) -> i64 {
        second.div_euclid(self.seconds())
    }

    /// Whole seconds until the end of the window that contains the second, at least one.
    fn ends_in(self, second: i64) -> u32 {
        u32::try_from(self.seconds() - second.rem_euclid(self.seconds())).unwrap_or(u32::MAX)
    }
}

/// The limit of each window, in the order of [`Window::ALL`]; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Quota(pub(super) [Option<u32>; 3]);

impl Quota {
    pub(super) const fn new(minute: Option<u32>, hour: Option<u32>, day: Option<u32>) -> Self {
        Self([minute, hour, day])
    }

    /// The limited windows, with their limits.
    pub(super) fn counted(self) -> impl Iterator<Item = (Window, u32)> {
        Window::ALL.into_iter().zip(self.0).filter_map(|(window, limit)| limit.map(|limit| (window, limit)))
    }

    /// Whether every window has room for the units; zero units always fit.
    pub(super) fn has_room(self, used: [u32; 3], units: u32) -> bool {
        let fits = |(limit, used): (Option<u32>, u32)| {
            limit.is_none_or(|limit| used.checked_add(units).is_some_and(|sum| sum <= limit))
        };
        units == 0 || self.0.into_iter().zip(used).all(fits)
    }

    /// The use after a change of each limited window.
    pub(super) fn changed(self, used: [u32; 3], change: impl Fn(u32) -> u32) -> [u32; 3] {
        let ([minute, hour, day], [in_minute, in_hour, in_day]) = (self.0, used);
        let one = |limit: Option<u32>, used| limit.map_or(0, |_| change(used));
        [one(minute, in_minute), one(hour, in_hour), one(day, in_day)]
    }

    /// The window with the smallest limit.
    pub(crate) fn smallest(self) -> Option<(Window, u32)> {
        self.counted().min_by_key(|(_, limit)| *limit)
    }
}

/// The result of taking units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(super) quota: Quota,
    /// The units requested.
    pub(super) units: u32,
    /// Whether they were taken.
    pub(crate) admitted: bool,
    /// The use of each window afterwards; meaningless where it is unlimited.
    pub(super) used: [u32; 3],
    /// The engine's time, in seconds since the Unix epoch.
    pub(super) second: i64,
}

/// The state of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowState {
    pub(crate) window: Window,
    pub(crate) limit: u32,
    pub(crate) remaining: u32,
    /// Whole seconds until the window ends.
    pub(crate) resets_in: u32,
}

impl WindowState {
    pub(crate) fn wait(self) -> Duration {
        Duration::from_secs(u64::from(self.resets_in))
    }
}

impl Counted {
    /// Nothing is limited, so nothing was counted.
    pub(super) const fn free(quota: Quota, units: u32) -> Self {
        Self { quota, units, admitted: true, used: [0; 3], second: 0 }
    }

    /// The tightest window. After a refusal: of the exhausted ones, the one that ends last, so that a retry after
    /// its end has room in all. Otherwise the one with the smallest share of its limit left, preferring the
    /// shortest. `None` when nothing is limited.
    pub(crate) fn tightest(&self) -> Option<WindowState> {
        let rows = Window::ALL.into_iter().zip(self.quota.0.into_iter().zip(self.used));
        let states = rows.filter_map(|(window, (limit, used))| {
            let limit = limit?;
            let remaining = limit.saturating_sub(used);
            Some(WindowState { window, limit, remaining, resets_in: window.ends_in(self.second) })
        });
        if self.admitted {
            return states.reduce(|tightest, next| {
                let share =
                    |one: &WindowState, of: &WindowState| u64::from(one.remaining) * u64::from(of.limit);
                if share(&next, &tightest) < share(&tightest, &next) { next } else { tightest }
            });
        }
        states.filter(|state| state.remaining < self.units).max_by_key(|state| state.resets_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(quota: Quota, units: u32, admitted: bool, used: [u32; 3]) -> Counted {
        // 30 s into a minute, 10 min into an hour, 1 h into a day.
        Counted { quota, units, admitted, used, second: 86_400 * 20_000 + 3_600 + 600 + 30 }
    }

    #[test]
    fn the_tightest_window_has_the_smallest_share_left() {
        let quota = Quota::new(Some(600), Some(6_000), Some(30_000));
        let minute = counted(quota, 1, true, [1, 1, 1]).tightest().unwrap();
        assert_eq!(
            (minute.window, minute.limit, minute.remaining, minute.resets_in),
            (Window::Minute, 600, 599, 30)
        );
        let hour = counted(quota, 1, true, [1, 5_999, 6_000]).tightest().unwrap();
        assert_eq!((hour.window, hour.remaining, hour.resets_in), (Window::Hour, 1, 50 * 60 - 30));
        let fresh = counted(quota, 0, true, [0, 0, 0]).tightest().unwrap();
        assert_eq!(fresh.window, Window::Minute, "of equals the shortest");
        assert_eq!(counted(Quota::default(), 1, true, [0; 3]).tightest(), None);
    }

    #[test]
    fn a_refusal_waits_for_every_window_without_room() {
        let quota = Quota::new(Some(10), Some(20), Some(100));
        let both = counted(quota, 3, false, [8, 18, 50]).tightest().unwrap();
        assert_eq!((both.window, both.remaining), (Window::Hour, 2));
        let minute = counted(quota, 3, false, [8, 17, 50]).tightest().unwrap();
        assert_eq!((minute.window, minute.wait()), (Window::Minute, Duration::from_secs(30)));
    }

    #[test]
    fn a_window_always_ends_later() {
        assert_eq!(Window::Minute.ends_in(60), 60);
        assert_eq!(Window::Minute.ends_in(59), 1);
        assert_eq!(Window::Day.ends_in(-1), 1);
    }
}
