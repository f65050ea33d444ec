//! How much a plan may upload at once and keep (contract, "Limits that the spec leaves open").

use std::collections::BTreeMap;

const MB: u64 = 1024 * 1024;
const GB: u64 = 1024 * MB;

/// What a plan allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Of one asset.
    pub(crate) object_bytes: u64,
    /// Of all assets of a workspace, each content counted once; absent: no limit.
    pub(crate) stored_bytes: Option<u64>,
}

const LEAST: Allowance = Allowance { object_bytes: 10 * MB, stored_bytes: Some(200 * MB) };

/// What each plan allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssetLimits(BTreeMap<String, Allowance>);

/// The text sets no limits.
#[derive(Debug, thiserror::Error)]
#[error(
    "write plan=object or plan=object:storage in megabytes, separated by commas, such as free=10:200,team=250"
)]
pub struct InvalidLimits;

impl Default for AssetLimits {
    fn default() -> Self {
        let row = |object_bytes, stored_bytes| Allowance { object_bytes, stored_bytes };
        let plans = [
            ("free", LEAST),
            ("starter", row(25 * MB, Some(2 * GB))),
            ("studio", row(100 * MB, Some(50 * GB))),
            ("team", row(100 * MB, Some(50 * GB))),
            ("pro", row(250 * MB, Some(500 * GB))),
            ("business", row(250 * MB, Some(500 * GB))),
            ("selfhosted", row(GB, None)),
        ];
        Self(plans.into_iter().map(|(plan, allowance)| (plan.to_owned(), allowance)).collect())
    }
}

impl AssetLimits {
    /// The contract's limits, changed as a text says: `free=10:200,team=250`, in megabytes; a plan without a second
    /// number has no limit of storage.
    ///
    /// # Errors
    /// When the text is not that.
    pub fn changed_by(text: &str) -> Result<Self, InvalidLimits> {
        let mut limits = Self::default();
        for entry in text.split(',').filter(|entry| !entry.trim().is_empty()) {
            let (plan, sizes) = entry.split_once('=').ok_or(InvalidLimits)?;
            let (object, stored) = match sizes.split_once(':') {
                Some((object, stored)) => (megabytes(object)?, Some(megabytes(stored)?)),
                None => (megabytes(sizes)?, None),
            };
            let allowance = Allowance { object_bytes: object, stored_bytes: stored };
            limits.0.insert(plan.trim().to_owned(), allowance);
        }
        Ok(limits)
    }

    /// What the plan of an identity allows; an unknown one gets what the smallest gets.
    pub(crate) fn of(&self, plan: Option<&str>) -> Allowance {
        plan.and_then(|plan| self.0.get(plan)).copied().unwrap_or(LEAST)
    }
}

fn megabytes(text: &str) -> Result<u64, InvalidLimits> {
    let number: u64 = text.trim().parse().map_err(|_| InvalidLimits)?;
    number.checked_mul(MB).ok_or(InvalidLimits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_the_contracts_unless_they_are_changed() {
        let limits = AssetLimits::default();
        assert_eq!(limits.of(Some("starter")).object_bytes, 25 * MB);
        assert_eq!(limits.of(Some("selfhosted")), Allowance { object_bytes: GB, stored_bytes: None });
        assert_eq!(limits.of(Some("unheard of")), LEAST);
        assert_eq!(limits.of(None), LEAST);
        let changed = AssetLimits::changed_by("free=1:2, team=300").unwrap();
        assert_eq!(changed.of(Some("free")), Allowance { object_bytes: MB, stored_bytes: Some(2 * MB) });
        assert_eq!(changed.of(Some("team")), Allowance { object_bytes: 300 * MB, stored_bytes: None });
        assert_eq!(changed.of(Some("pro")), limits.of(Some("pro")));
        for odd in ["free", "free=", "free=x", "free=1:", "free=-1", "free=99999999999999999999"] {
            assert!(AssetLimits::changed_by(odd).is_err(), "{odd}");
        }
    }
}
