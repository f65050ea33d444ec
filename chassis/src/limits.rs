//! How much a plan may keep, and upload at once (contract, "Limits that the spec leaves open").

use std::collections::BTreeMap;

use crate::status::Violation;

const MB: u64 = 1024 * 1024;
const GB: u64 = 1024 * MB;

/// What a plan allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Of one asset or ingested file.
    pub object_bytes: u64,
    /// Of all that is stored of a workspace, equal contents counted once; absent: no limit.
    pub stored_bytes: Option<u64>,
    /// How many files, trash included, and how many documents from outside; absent: no limit.
    pub files: Option<u64>,
}

/// How much a write adds to something, and how much there is with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    /// Negative when it takes away.
    pub by: i64,
    /// What there is after the write.
    pub to: u64,
}

impl Grown {
    /// What is said at `path` when there is no room for that: what takes away, or adds nothing, is never refused, however
    /// full the workspace is. `of` follows the number: `""` or `" bytes"`.
    pub fn refusal(self, path: &str, most: Option<u64>, of: &str) -> Option<Violation> {
        let most = most.filter(|most| self.by > 0 && self.to > *most)?;
        let (used, more) = (self.to.saturating_sub(self.by.unsigned_abs()), self.by);
        let message = format!("{used} of {most}{of} are used, and this would add {more}");
        Some(Violation::new(path, "limit_exceeded", message))
    }
}

/// Violations in one line, for the text of an error.
pub fn said(violations: &[Violation]) -> String {
    let one = |violation: &Violation| format!("{}: {}", violation.path, violation.message);
    violations.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Documents of one sync: of the smallest plan, and of the others.
const LEAST_DOCUMENTS_OF_SYNC: u64 = 1_000;
const DOCUMENTS_OF_SYNC: u64 = 5_000;

const LEAST: Allowance =
    Allowance { object_bytes: 10 * MB, stored_bytes: Some(200 * MB), files: Some(2_000) };

/// What each plan allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLimits(BTreeMap<String, Allowance>);

/// The text sets no limits.
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
            ("free", LEAST),
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
    /// The contract's limits, changed as a text says: `free=10:200:2000,team=250`, sizes in megabytes; a plan without a
    /// second number has no limit of storage, and one without a third has none of files.
    ///
    /// # Errors
    /// When the text is not that.
    pub fn changed_by(text: &str) -> Result<Self, InvalidLimits> {
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

    /// How many documents one sync may have; a plan that is not known gets what the smallest gets.
    pub fn documents_of_sync(&self, plan: Option<&str>) -> u64 {
        match plan {
            Some(plan) if plan != "free" && self.0.contains_key(plan) => DOCUMENTS_OF_SYNC,
            _ => LEAST_DOCUMENTS_OF_SYNC,
        }
    }

    /// What the plan of an identity allows; an unknown one gets what the smallest gets.
    pub fn of(&self, plan: Option<&str>) -> Allowance {
        plan.and_then(|plan| self.0.get(plan)).copied().unwrap_or(LEAST)
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
        assert_eq!(limits.of(Some("unheard of")), LEAST);
        assert_eq!(limits.of(None), LEAST);
        let documents = [Some("free"), None, Some("unheard of"), Some("starter"), Some("selfhosted")];
        let documents = documents.map(|plan| limits.documents_of_sync(plan));
        assert_eq!(documents, [1_000, 1_000, 1_000, 5_000, 5_000]);
        let changed = PlanLimits::changed_by("free=1:2:3, team=300, studio=1:2").unwrap();
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
            assert!(PlanLimits::changed_by(odd).is_err(), "{odd}");
        }
    }
}
