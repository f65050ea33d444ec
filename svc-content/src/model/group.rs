//! Records grouped by the values of a property, as both the SQL engine and the in-memory columns return them.

use cairn_proto::domain::limits::RECORD_GROUPS;
use cairn_proto::domain::{DateUnit, GroupOrder};
use cairn_proto::ids::{FolderId, PropertyId, RecordId};

use super::{MICROS_PER_DAY, PropertyType, Tally};

/// What records are grouped by, and what is aggregated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grouping {
    pub(crate) property: PropertyId,
    pub(crate) by: GroupBy,
    pub(crate) order: GroupOrder,
    /// Whether a record has at most one value of the property.
    pub(crate) is_single: bool,
    /// Properties of type number and date.
    pub(crate) summed: Vec<PropertyId>,
}

/// The part of a value that is the key of its group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GroupBy {
    /// The number, or the boolean.
    Number,
    /// The day, month or year of the date.
    Date(DateUnit),
    /// The option.
    Option,
    /// The key of the text.
    Text,
    /// The target.
    Reference,
    /// The target, for a caller whose scope hides targets that are not live in these folders or below them.
    Visible { kind: PropertyType, folders: Vec<FolderId> },
}

/// A number whose bits are ordered like the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ranked(u64);

impl Ranked {
    const SIGN: u64 = 1 << (u64::BITS - 1);

    pub(crate) fn of(number: f64) -> Self {
        // Adding zero turns -0 into 0.
        let bits = (number + 0.0).to_bits();
        // The bits of positive numbers are ordered like the numbers, those of negative ones in reverse.
        Self(if bits & Self::SIGN == 0 { bits | Self::SIGN } else { !bits })
    }

    pub(crate) fn number(self) -> f64 {
        f64::from_bits(if self.0 & Self::SIGN == 0 { !self.0 } else { self.0 & !Self::SIGN })
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}

/// The key of a group. Groups are sorted by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum GroupKey {
    /// A number; a boolean as 0 or 1; for a date, its number of units since the first.
    Number(Ranked),
    /// An option: its position and its id.
    Option(u16, String),
    /// The key of a text, or an id.
    Text(String),
}

/// A group with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted<K> {
    pub(crate) key: K,
    pub(crate) count: u64,
    /// The record of the group with the lowest id.
    pub(crate) example: RecordId,
}

/// Groups beyond the limit of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Others {
    pub(crate) groups: u64,
    /// Their records, each counted once for each of its groups.
    pub(crate) records: u64,
}

/// Sorts groups and keeps those within the limit of an answer.
pub(crate) fn keep_first<K: Ord>(groups: &mut Vec<Counted<K>>, order: GroupOrder) -> Others {
    let compare = |one: &Counted<K>, other: &Counted<K>| match order {
        GroupOrder::Asc => one.key.cmp(&other.key),
        GroupOrder::Desc => other.key.cmp(&one.key),
        GroupOrder::Count => other.count.cmp(&one.count).then_with(|| one.key.cmp(&other.key)),
    };
    let mut others = Others::default();
    if groups.len() > RECORD_GROUPS {
        groups.select_nth_unstable_by(RECORD_GROUPS, compare);
        for left_out in groups.drain(RECORD_GROUPS..) {
            others.groups += 1;
            others.records += left_out.count;
        }
    }
    groups.sort_unstable_by(compare);
    others
}

/// A group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Group {
    /// `None` for the records without a value.
    pub(crate) key: Option<GroupKey>,
    pub(crate) count: u64,
    pub(crate) example: Option<RecordId>,
    /// For each aggregated property.
    pub(crate) tallies: Vec<Tally>,
}

/// Grouped records: the first groups in their order, and the records without a value last.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grouped {
    pub(crate) groups: Vec<Group>,
    pub(crate) others: Others,
    /// The number of records, each counted once.
    pub(crate) total: u64,
    /// Of all records.
    pub(crate) tallies: Vec<Tally>,
}

/// The day of a date key, since 1970.
pub(crate) fn day_of(key: f64) -> i64 {
    (key as i64).div_euclid(MICROS_PER_DAY)
}

/// The number of units of a day since the first.
pub(crate) fn units_of(day: i64, unit: DateUnit) -> i64 {
    match unit {
        DateUnit::Day => day,
        DateUnit::Month => {
            let (year, month, _) = civil(day);
            year * 12 + month - 1
        }
        DateUnit::Year => civil(day).0,
    }
}

/// The text of a number of units.
pub(crate) fn text_of_units(units: i64, unit: DateUnit) -> String {
    match unit {
        DateUnit::Day => {
            let (year, month, day) = civil(units);
            format!("{year:04}-{month:02}-{day:02}")
        }
        DateUnit::Month => format!("{:04}-{:02}", units.div_euclid(12), units.rem_euclid(12) + 1),
        DateUnit::Year => format!("{units:04}"),
    }
}

/// The year, month and day of a number of days since 1970 in the Gregorian calendar. Years start in March here, so
/// that the leap day comes last (Howard Hinnant, "chrono-compatible low-level date algorithms").
const fn civil(day: i64) -> (i64, i64, i64) {
    const DAYS_BEFORE_1970: i64 = 719_468;
    const DAYS_PER_ERA: i64 = 146_097;
    const YEARS_PER_ERA: i64 = 400;
    let day = day.saturating_add(DAYS_BEFORE_1970);
    let (era, of_era) = (day.div_euclid(DAYS_PER_ERA), day.rem_euclid(DAYS_PER_ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let next = if month <= 2 { 1 } else { 0 };
    (era * YEARS_PER_ERA + year + next, month, of_year - (153 * from_march + 2) / 5 + 1)
}

impl Grouping {
    /// The unit, when grouping by dates.
    pub(crate) const fn unit(&self) -> Option<DateUnit> {
        match self.by {
            GroupBy::Date(unit) => Some(unit),
            GroupBy::Number
            | GroupBy::Option
            | GroupBy::Text
            | GroupBy::Reference
            | GroupBy::Visible { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::clock::Timestamp;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn counted(key: u32, count: u64) -> Counted<u32> {
        Counted { key, count, example: RecordId(Uuid::nil()) }
    }

    #[test]
    fn the_first_groups_are_kept() {
        let all: Vec<Counted<u32>> = (0..500).map(|key| counted(key * 7 % 500, u64::from(key % 3))).collect();
        for order in GroupOrder::ALL {
            let mut sorted = all.clone();
            sorted.sort_by_key(|one| match order {
                GroupOrder::Asc => (0, u64::from(one.key)),
                GroupOrder::Desc => (0, 1_000 - u64::from(one.key)),
                GroupOrder::Count => (3 - one.count, u64::from(one.key)),
            });
            let mut kept = all.clone();
            let others = keep_first(&mut kept, order);
            assert_eq!(kept, sorted[..RECORD_GROUPS]);
            let records = sorted[RECORD_GROUPS..].iter().map(|one| one.count).sum();
            assert_eq!(others, Others { groups: 300, records });
        }
        let mut few = vec![counted(2, 1), counted(1, 1)];
        assert_eq!(keep_first(&mut few, GroupOrder::Count), Others::default());
        assert_eq!(few, [counted(1, 1), counted(2, 1)]);
    }

    proptest! {
        #[test]
        fn numbers_keep_their_order(one in any::<f64>(), other in any::<f64>()) {
            prop_assume!(one.is_finite() && other.is_finite());
            prop_assert_eq!(Ranked::of(one).cmp(&Ranked::of(other)), one.partial_cmp(&other).unwrap());
            prop_assert_eq!(Ranked::of(one).number(), one);
        }

        #[test]
        fn days_are_those_of_the_calendar(day in -719_528..2_932_897_i64) {
            let written = Timestamp::from_micros(day * MICROS_PER_DAY).to_rfc3339();
            for (unit, length) in [(DateUnit::Day, 10), (DateUnit::Month, 7), (DateUnit::Year, 4)] {
                prop_assert_eq!(text_of_units(units_of(day, unit), unit), &written[..length]);
            }
            prop_assert_eq!(day_of((day * MICROS_PER_DAY) as f64), day);
            prop_assert_eq!(day_of((day * MICROS_PER_DAY) as f64 + MICROS_PER_DAY as f64 / 2.0), day);
        }
    }
}
