//! The plans and their quotas (contract, "Limits that the spec leaves open").

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::Quota;
use crate::ConfigError;

/// The contract's table.
const TABLE: [(&str, Quota); 7] = [
    ("free", Quota::new(Some(600), Some(6_000), Some(30_000))),
    ("starter", Quota::new(Some(1_200), Some(20_000), Some(150_000))),
    ("studio", Quota::new(Some(2_400), None, None)),
    ("team", Quota::new(Some(2_400), None, None)),
    ("pro", Quota::new(Some(6_000), None, None)),
    ("business", Quota::new(Some(6_000), None, None)),
    ("selfhosted", Quota::new(Some(1_000_000), None, None)),
];
const UNKNOWN: &str = "unknown";

/// The plans of this deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plans([(&'static str, Quota); 7]);

impl Default for Plans {
    fn default() -> Self {
        Self(TABLE)
    }
}

/// An override of a plan: an absent window is unchanged, null makes it unlimited.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    #[serde(default, deserialize_with = "given")]
    minute: Option<Option<u32>>,
    #[serde(default, deserialize_with = "given")]
    hour: Option<Option<u32>>,
    #[serde(default, deserialize_with = "given")]
    day: Option<Option<u32>>,
}

/// Distinguishes null from absent.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<u32>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Plans {
    /// The contract's table with overrides such as `{"free": {"minute": 60, "day": null}}`.
    pub(super) fn read(changes: &str) -> Result<Self, ConfigError> {
        let wrong = |why: String| ConfigError::Plans(why);
        let read: BTreeMap<String, Change> =
            serde_json::from_str(changes).map_err(|error| wrong(error.to_string()))?;
        let mut plans = Self::default();
        for (name, change) in read {
            let Some((_, quota)) = plans.0.iter_mut().find(|(known, _)| *known == name) else {
                let known: Vec<_> = TABLE.iter().map(|(name, _)| *name).collect();
                return Err(wrong(format!("there is no plan '{name}'; the plans are {}", known.join(", "))));
            };
            for (limit, changed) in quota.0.iter_mut().zip([change.minute, change.hour, change.day]) {
                if changed == Some(Some(0)) {
                    return Err(wrong(format!(
                        "a window of '{name}' lets nothing pass; the least is 1, null is no limit"
                    )));
                }
                *limit = changed.unwrap_or(*limit);
            }
        }
        Ok(plans)
    }

    /// Plan names for people and metrics.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        TABLE.into_iter().map(|(name, _)| name).chain([UNKNOWN])
    }

    /// The name of a plan for people and metrics, and its quota. An unknown plan (of a newer svc-auth) gets the
    /// quota of the smallest.
    pub(super) fn of(&self, name: Option<&str>) -> (&'static str, Quota) {
        let [smallest, ..] = self.0;
        let found = self.0.into_iter().find(|(known, _)| Some(*known) == name);
        found.unwrap_or((UNKNOWN, smallest.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_specs() {
        let plans = Plans::default();
        for (name, minute) in [("free", 600), ("starter", 1_200), ("studio", 2_400), ("team", 2_400)] {
            assert_eq!(plans.of(Some(name)).1.0[0], Some(minute), "{name}");
        }
        assert_eq!(plans.of(Some("free")).1, Quota::new(Some(600), Some(6_000), Some(30_000)));
        assert_eq!(plans.of(Some("pro")), ("pro", Quota::new(Some(6_000), None, None)));
        assert_eq!(plans.of(Some("business")).1, plans.of(Some("pro")).1);
        assert_eq!(plans.of(Some("gold")), ("unknown", plans.of(Some("free")).1));
        assert_eq!(plans.of(None).0, "unknown");
    }

    #[test]
    fn the_configuration_changes_what_it_names() {
        let plans =
            Plans::read(r#"{"free": {"minute": 7, "day": null}, "team": {"hour": 9}, "pro": {}}"#).unwrap();
        assert_eq!(plans.of(Some("free")).1, Quota::new(Some(7), Some(6_000), None));
        assert_eq!(plans.of(Some("team")).1, Quota::new(Some(2_400), Some(9), None));
        assert_eq!(plans.of(Some("pro")).1, Plans::default().of(Some("pro")).1);
    }

    #[test]
    fn a_mistake_says_what_would_be_right() {
        for (text, part) in [
            ("", "EOF"),
            ("[]", "expected a map"),
            (r#"{"fre": {}}"#, "the plans are free, starter"),
            (r#"{"free": {"minute": 0}}"#, "the least is 1"),
            (r#"{"free": {"second": 5}}"#, "unknown field `second`"),
            (r#"{"free": {"minute": -5}}"#, "invalid value"),
            (r#"{"free": {"minute": "many"}}"#, "invalid type"),
        ] {
            let error = Plans::read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
