//! Decides what follows when a listing lacks documents.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SourceRunKind;
use cairn_providers::{Deletions, Listing, Partial, Traits};

use crate::model::{Absent, Missing};

/// A removal is a mass removal above both: documents, and percent of all.
const BRAKE_DOCUMENTS: u64 = 20;
const BRAKE_PERCENT: u64 = 50;
/// A mass removal takes effect in the first complete run after this delay.
pub(crate) const BRAKE_PAUSE: Duration = Duration::from_secs(60 * 60);
/// Consecutive complete listings that must lack a document, where listings may be incomplete.
pub(crate) const BEST_EFFORT_MISSES: u32 = 3;

/// Whether absence from a listing proves a deletion.
pub(crate) fn concludes(kind: SourceRunKind, traits: &Traits) -> bool {
    kind.lists() && traits.deletions != Deletions::ByProbe
}

/// Whether documents that a listing lacks are probed one by one.
pub(crate) fn probes(kind: SourceRunKind, traits: &Traits) -> bool {
    kind.lists() && traits.deletions == Deletions::ByProbe
}

/// How many consecutive complete listings must lack a document.
pub(crate) const fn misses_needed(traits: &Traits) -> u32 {
    match traits.listing {
        Listing::Exhaustive => 1,
        Listing::BestEffort => BEST_EFFORT_MISSES,
    }
}

/// The prefixes of an incomplete listing about which nothing is concluded; `None` when that is all of it.
pub(crate) fn spared(partial: &[Partial]) -> Option<Vec<String>> {
    partial.iter().map(|part| part.scope.clone().filter(|scope| !scope.is_empty())).collect()
}

/// What to do with the documents that a listing lacks: a mass removal is delayed.
pub(crate) const fn judge(missing: Missing) -> Absent {
    let fresh = missing.absent.saturating_sub(missing.held_back);
    if fresh == 0 {
        return Absent::Remove;
    }
    let is_most = fresh > BRAKE_DOCUMENTS && fresh * 100 > missing.documents * BRAKE_PERCENT;
    if is_most || fresh >= missing.documents { Absent::Mark } else { Absent::Remove }
}

/// A document that was marked before this time is removed in spite of the delay.
pub(crate) fn held_back_since(now: Timestamp) -> Timestamp {
    let pause = i64::try_from(BRAKE_PAUSE.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(pause))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn missing(documents: u64, absent: u64, held_back: u64) -> Missing {
        Missing { documents, absent, held_back }
    }

    #[test]
    fn the_brake_holds_a_mass_removal_back_once() {
        assert_eq!(judge(missing(100, 50, 0)), Absent::Remove, "half is not more than half");
        assert_eq!(judge(missing(100, 51, 0)), Absent::Mark);
        assert_eq!(judge(missing(100, 51, 51)), Absent::Remove);
        assert_eq!(judge(missing(30, 20, 0)), Absent::Remove, "twenty are not more than twenty");
        assert_eq!(judge(missing(30, 21, 0)), Absent::Mark);
        assert_eq!(judge(missing(3, 3, 0)), Absent::Mark, "all of them");
        assert_eq!(judge(missing(1, 1, 0)), Absent::Mark);
        assert_eq!(judge(missing(3, 2, 0)), Absent::Remove);
        assert_eq!(judge(missing(0, 0, 0)), Absent::Remove);
    }

    proptest! {
        #[test]
        fn nothing_beyond_the_bounds_goes_at_once(documents in 0_u64..500, part in 0_u64..=100, held in 0_u64..500) {
            let absent = documents * part / 100;
            let held_back = held.min(absent);
            let fresh = absent - held_back;
            let removes = judge(missing(documents, absent, held_back)) == Absent::Remove;
            prop_assert!(!removes || fresh == 0 || (fresh < documents && (fresh <= 20 || fresh * 2 <= documents)));
        }
    }

    #[test]
    fn a_listing_that_left_anything_out_proves_nothing_about_it() {
        assert_eq!(spared(&[]), Some(Vec::new()));
        let below = Partial::below("a/", "it is not readable");
        assert_eq!(spared(std::slice::from_ref(&below)), Some(vec!["a/".to_owned()]));
        assert_eq!(spared(&[below, Partial::everywhere("it ends early")]), None);
        assert_eq!(spared(&[Partial::below("", "x")]), None, "every id begins with nothing");
    }
}
