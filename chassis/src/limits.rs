//! The storage and upload limits of plans (contract, "Limits that the spec leaves open").

use std::collections::BTreeMap;

use crate::status::Violation;

const MB: u64 = 1024 * 1024;
const GB: u64 = 1024 * MB;

/// The limits of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// The size of one asset or ingested file.
    pub object_bytes: u64,
    /// The storage of a workspace, with equal contents counted once; absent: no limit.
    pub stored_bytes: Option<u64>,
    /// The number of files, trash included, and the number of ingested documents; absent: no limit.
    pub files: Option<u64>,
}

/// The growth of a counter by a write, and its value afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterGrowth {
    /// Negative when the write frees something.
    pub by: i64,
    /// The value after the write.
    pub to: u64,
}

impl CounterGrowth {
    /// The violation at `path` when the limit is exceeded. A write that adds nothing is never refused, even in a workspace over
    /// its limit. `of` is the unit after the number: `""` or `" bytes"`.
    pub fn refusal(self, path: &str, most: Option<u64>, of: &str) -> Option<Violation> {
        let most = most.filter(|most| self.by > 0 && self.to > *most)?;
        let (used, more) = (self.to.saturating_sub(self.by.unsigned_abs()), self.by);
        let message = format!("{used} of {most}{of} are used, and this would add {more}");
        Some(Violation::new(path, "limit_exceeded", message))
    }
}

/// Violations in one line, for the text of an error.
pub fn summary(violations: &[Violation]) -> String {
    let one = |violation: &Violation| format!("{}: {}", violation.path, violation.message);
    violations.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Documents of one sync: of the smallest plan, and of the others.
const SMALLEST_PLAN_SYNC_DOCUMENTS: u64 = 1_000;
const SYNC_DOCUMENTS: u64 = 5_000;

const SMALLEST_PLAN: Allowance =
    Allowance { object_bytes: 10 * MB, stored_bytes: Some(200 * MB), files: Some(2_000) };

/// The limits of each plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimits(BTreeMap<String, Allowance>);

/// The text is not a valid list of limits.
#[derive(Debug, thiserror::Error)]
#[error(
    "write plan=object, plan=object:storage or plan=object:storage:files, sizes in megabytes, separated by commas, such \
     as free=10:200:2000,team=250"
)]
pub struct InvalidLimits;

impl Default for PlanLimits {
    fn default() -> Self {
        let row = |object_bytes, stored_bytes, files| Allowance { object_bytes, stored_bytes, files };
        let plans = [
            ("free", SMALLEST_PLAN),
            ("starter", row(25 * MB, Some(2 * GB), Some(20_000))),
            ("studio", row(100 * MB, Some(50 * GB), Some(200_000))),
            ("team", row(100 * MB, Some(50 * GB), Some(200_000))),
            ("pro", row(250 * MB, Some(500 * GB), Some(2_000_000))),
            ("business", row(250 * MB, Some(500 * GB), Some(2_000_000))),
            ("selfhosted", row(GB, None, None)),
        ];
        Self(plans.into_iter().map(|(plan, allowance)| (plan.to_owned(), allowance)).collect())
    }
}

impl PlanLimits {
    /// The contract's limits with overrides from a text: `free=10:200:2000,team=250`, sizes in megabytes. A plan without a second
    /// number has no storage limit, and one without a third has no file limit.
    ///
    /// # Errors
    /// When the text is invalid.
    pub fn with_overrides(text: &str) -> Result<Self, InvalidLimits> {
        let mut limits = Self::default();
        for entry in text.split(',').filter(|entry| !entry.trim().is_empty()) {
            let (plan, numbers) = entry.split_once('=').ok_or(InvalidLimits)?;
            let mut numbers = numbers.split(':');
            let allowance = Allowance {
                object_bytes: megabytes(numbers.next().ok_or(InvalidLimits)?)?,
                stored_bytes: numbers.next().map(megabytes).transpose()?,
                files: numbers.next().map(number).transpose()?,
            };
            if numbers.next().is_some() {
                return Err(InvalidLimits);
            }
            limits.0.insert(plan.trim().to_owned(), allowance);
        }
        Ok(limits)
    }

    /// The maximum number of documents of a sync; an unknown plan has the limit of the smallest.
    pub fn max_documents_per_sync(&self, plan: Option<&str>) -> u64 {
        match plan {
            Some(plan) if plan != "free" && self.0.contains_key(plan) => SYNC_DOCUMENTS,
            _ => SMALLEST_PLAN_SYNC_DOCUMENTS,
        }
    }

    /// The limits of a plan; an unknown one has those of the smallest.
    pub fn of(&self, plan: Option<&str>) -> Allowance {
        plan.and_then(|plan| self.0.get(plan)).copied().unwrap_or(SMALLEST_PLAN)
    }
}

fn megabytes(text: &str) -> Result<u64, InvalidLimits> {
    number(text)?.checked_mul(MB).ok_or(InvalidLimits)
}

fn number(text: &str) -> Result<u64, InvalidLimits> {
    text.trim().parse().map_err(|_| InvalidLimits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_the_contracts_unless_they_are_changed() {
        let limits = PlanLimits::default();
        assert_eq!(limits.of(Some("starter")).object_bytes, 25 * MB);
        assert_eq!(limits.of(Some("starter")).files, Some(20_000));
        let unlimited = Allowance { object_bytes: GB, stored_bytes: None, files: None };
        assert_eq!(limits.of(Some("selfhosted")), unlimited);
        assert_eq!(limits.of(Some("unheard of")), SMALLEST_PLAN);
        assert_eq!(limits.of(None), SMALLEST_PLAN);
        let documents = [Some("free"), None, Some("unheard of"), Some("starter"), Some("selfhosted")];
        let documents = documents.map(|plan| limits.max_documents_per_sync(plan));
        assert_eq!(documents, [1_000, 1_000, 1_000, 5_000, 5_000]);
        let changed = PlanLimits::with_overrides("free=1:2:3, team=300, studio=1:2").unwrap();
        let row = |object, stored: Option<u64>, files| Allowance {
            object_bytes: object * MB,
            stored_bytes: stored.map(|stored| stored * MB),
            files,
        };
        assert_eq!(changed.of(Some("free")), row(1, Some(2), Some(3)));
        assert_eq!(changed.of(Some("team")), row(300, None, None));
        assert_eq!(changed.of(Some("studio")), row(1, Some(2), None));
        assert_eq!(changed.of(Some("pro")), limits.of(Some("pro")));
        for odd in [
            "free",
            "free=",
            "free=x",
            "free=1:",
            "free=-1",
            "free=1:2:x",
            "free=1:2:3:4",
            "free=99999999999999999999",
        ] {
            assert!(PlanLimits::with_overrides(odd).is_err(), "{odd}");
        }
    }
}
