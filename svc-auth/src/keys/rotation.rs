//! The rotation of signing keys: a key is published first, signs once every verifier knows it, and stays published
//! until the last identity that it signed has expired. So no identity is rejected because of a rotation.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::KEY_MAX_AGE;

use super::LIFETIME;
use crate::model::keys::{Listed, State};

/// How long a retired key stays published. A replica that was cut off from the storage may sign with it for a while
/// after the others have stopped, so it is twice the lifetime of an identity.
const RETIRED_LIFETIME: Duration = LIFETIME.saturating_mul(2);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// When signing keys are rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The age at which the active key is rotated.
    pub max_age: Duration,
    /// How long a key is published before it signs. Verifiers refetch keys that are older than a minute.
    pub lead: Duration,
}

impl Default for Rotation {
    fn default() -> Self {
        Self { max_age: DAY.saturating_mul(90), lead: KEY_MAX_AGE.saturating_mul(2) }
    }
}

/// A step of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Generate and publish the next key.
    Publish,
    /// Make the next key the active one.
    Activate { next: String, active: String },
    /// Delete the keys that were retired by then.
    DeleteRetired { before: Timestamp },
}

/// The due step, if any.
pub(super) fn due(keys: &[Listed], rotation: Rotation, now: Timestamp) -> Option<Step> {
    let active = keys.iter().find(|key| key.state == State::Active)?;
    let next = keys.iter().find(|key| key.state == State::Next);
    match next {
        Some(next) if now.since(next.since) >= rotation.lead => {
            return Some(Step::Activate { next: next.id.clone(), active: active.id.clone() });
        }
        Some(_) => {}
        None => {
            let is_asked_for = active.rotate_after.is_some_and(|after| after <= now);
            if is_asked_for || now.since(active.since) >= rotation.max_age {
                return Some(Step::Publish);
            }
        }
    }
    let is_over = |key: &&Listed| key.state == State::Retired && now.since(key.since) >= RETIRED_LIFETIME;
    keys.iter().filter(is_over).map(|key| key.since).max().map(|before| Step::DeleteRetired { before })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROTATION: Rotation =
        Rotation { max_age: Duration::from_secs(1_000), lead: Duration::from_secs(100) };

    fn key(id: &str, state: State, since: i64) -> Listed {
        Listed { id: id.to_owned(), state, since: Timestamp::from_seconds(since), rotate_after: None }
    }

    fn due_at(keys: &[Listed], seconds: i64) -> Option<Step> {
        due(keys, ROTATION, Timestamp::from_seconds(seconds))
    }

    #[test]
    fn a_key_is_replaced_by_age_or_when_asked() {
        let mut keys = vec![key("a", State::Active, 0)];
        assert_eq!(due_at(&keys, 999), None);
        assert_eq!(due_at(&keys, 1_000), Some(Step::Publish));
        keys[0].rotate_after = Some(Timestamp::from_seconds(50));
        assert_eq!(due_at(&keys, 49), None);
        assert_eq!(due_at(&keys, 50), Some(Step::Publish));
    }

    #[test]
    fn a_published_key_waits_its_time() {
        let keys = [key("a", State::Active, 0), key("b", State::Next, 1_000)];
        assert_eq!(due_at(&keys, 1_099), None);
        let step = Step::Activate { next: "b".to_owned(), active: "a".to_owned() };
        assert_eq!(due_at(&keys, 1_100), Some(step));
    }

    #[test]
    fn a_retired_key_outlives_what_it_signed() {
        let keys = [key("b", State::Active, 1_000), key("a", State::Retired, 1_000)];
        assert_eq!(due_at(&keys, 1_599), None);
        let step = Step::DeleteRetired { before: Timestamp::from_seconds(1_000) };
        assert_eq!(due_at(&keys, 1_600), Some(step));
    }

    #[test]
    fn a_clock_that_goes_back_does_no_harm() {
        let keys = [key("a", State::Active, 5_000), key("b", State::Next, 5_000)];
        assert_eq!(due_at(&keys, 0), None);
    }
}
