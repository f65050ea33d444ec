//! Decides what an import does with each object of its archive (import.md, "Import runs"), from the plan of the archive, the baseline of
//! earlier imports, and the current state of the workspace. Pure: nothing is written here.

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::SyncRunId;
use uuid::{Builder, Uuid};

use crate::model::{Baseline, ConflictPolicy, Counters, Entry, Kind, Run};
use crate::plan::States;
use crate::reading::Item;

const MICROS_PER_MILLI: i64 = 1_000;
/// Bits of an id after its time: the place in the plan comes before the random part, so that ids sort in the plan's order.
const PLACE_SHIFT: u32 = 54;
const LOW_BITS: u32 = 62;

/// What the run does with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Create,
    /// Creates a second version beside the existing one.
    Beside,
    Update,
    Skip,
    /// Leaves it alone, with a code and a message.
    Conflict(&'static str, &'static str),
    /// An earlier worker of this run has done it.
    Done,
}

/// The verdict on an object, and the object's id in the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    /// Its existing id, or the new one.
    pub(crate) id: Uuid,
    /// Its entry in the baseline.
    pub(crate) entry: Option<Entry>,
    /// Whether it exists after the run, unless somebody removes it meanwhile.
    pub(crate) is_live: bool,
}

/// The decisions on the import's own folder and on each item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decisions {
    pub(crate) root: Decision,
    pub(crate) items: Vec<Decision>,
}

const EDITED: (&str, &str) =
    ("edited_in_service", "it was changed in the workspace since: it stays as it is");
const IN_TRASH: (&str, &str) = ("deleted_in_service", "it was deleted in the workspace since: it stays so");
const NO_DATABASE: (&str, &str) =
    ("database_deleted", "its database was deleted in the workspace since: restore that first");

/// The id that a run assigns to an object. It is a function of the run and the object, so a resumed run assigns the same ids: texts can link
/// to objects that do not exist yet, and objects that an earlier worker created are recognized.
pub(crate) fn id_of(run: SyncRunId, begun: Timestamp, place: usize, kind: Kind, identity: &str) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    hasher.update(run.0.as_bytes());
    hasher.update(&kind.number().to_le_bytes());
    hasher.update(identity.as_bytes());
    let mut random = [0; 16];
    hasher.finalize_xof().fill(&mut random);
    let place = u128::try_from(place).unwrap_or(u128::MAX) << PLACE_SHIFT;
    let payload = place | (u128::from_le_bytes(random) & ((1 << PLACE_SHIFT) - 1));
    let high = u16::try_from((payload >> LOW_BITS) & 0x0FFF).unwrap_or(0).to_be_bytes();
    let low = u64::try_from(payload & ((1 << LOW_BITS) - 1)).unwrap_or(0).to_be_bytes();
    let mut bytes = [0; 10];
    let (first, rest) = bytes.split_at_mut(high.len());
    first.copy_from_slice(&high);
    rest.copy_from_slice(&low);
    let millis = u64::try_from(begun.as_micros() / MICROS_PER_MILLI).unwrap_or(0);
    Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
}

/// Decides for all items, from the baseline of the run's import and the states of its entries.
pub(crate) fn decide(run: &Run, items: &[Item], baseline: &Baseline, states: &States) -> Decisions {
    let rules = Rules { run, baseline, states };
    let root = rules.root();
    let is_new = root.verdict == Verdict::Create;
    let mut decided: Vec<Decision> = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let mut one = rules.item(place, item, is_new);
        if let crate::reading::ItemDetails::Record { database, .. } = item.made {
            // A record follows its database in the plan.
            let is_lost = decided.get(database).is_some_and(|database| !database.is_live);
            if is_lost && !matches!(one.verdict, Verdict::Skip | Verdict::Done) {
                one.verdict = Verdict::Conflict(NO_DATABASE.0, NO_DATABASE.1);
                one.is_live = false;
            }
        }
        decided.push(one);
    }
    Decisions { root, items: decided }
}

struct Rules<'a> {
    run: &'a Run,
    baseline: &'a Baseline,
    states: &'a States,
}

impl Rules<'_> {
    fn root(&self) -> Decision {
        let new = id_of(self.run.id, self.run.created_at, 0, Kind::Folder, "");
        self.folder(self.baseline.get(Kind::Folder, ""), new)
    }

    fn is_gone(&self, id: &Uuid) -> bool {
        self.states.get(id).is_none_or(|state| state.in_trash)
    }

    /// A missing folder is created again, for its contents.
    fn folder(&self, entry: Option<&Entry>, new: Uuid) -> Decision {
        match entry {
            Some(entry) if entry.run == self.run.id => self.decision(Verdict::Done, entry.id, Some(entry)),
            Some(entry) if !self.is_gone(&entry.id) => self.decision(Verdict::Skip, entry.id, Some(entry)),
            entry => self.decision(Verdict::Create, new, entry),
        }
    }

    fn decision(&self, verdict: Verdict, id: Uuid, entry: Option<&Entry>) -> Decision {
        let is_live = match verdict {
            Verdict::Create | Verdict::Beside | Verdict::Update => true,
            Verdict::Skip | Verdict::Conflict(..) | Verdict::Done => !self.is_gone(&id),
        };
        Decision { verdict, id, entry: entry.cloned(), is_live }
    }

    fn item(&self, place: usize, item: &Item, is_new: bool) -> Decision {
        let new = id_of(self.run.id, self.run.created_at, place + 1, item.kind, &item.identity);
        let entry = self.baseline.get(item.kind, &item.identity);
        if item.kind == Kind::Folder {
            return self.folder(entry, new);
        }
        let Some(entry) = entry else { return self.decision(Verdict::Create, new, None) };
        if entry.run == self.run.id {
            return self.decision(Verdict::Done, entry.id, Some(entry));
        }
        let is_gone = self.is_gone(&entry.id);
        // The whole import was deleted, so importing it again restores it.
        if is_gone && is_new {
            return self.decision(Verdict::Create, new, Some(entry));
        }
        if entry.hash == item.hash || self.run.policy == ConflictPolicy::Skip {
            return self.decision(Verdict::Skip, entry.id, Some(entry));
        }
        let is_edited = self.states.get(&entry.id).is_some_and(|state| state.version != entry.version);
        let is_beside = self.run.policy == ConflictPolicy::Duplicate;
        match item.kind {
            _ if is_gone => self.decision(Verdict::Conflict(IN_TRASH.0, IN_TRASH.1), entry.id, Some(entry)),
            // Assets are immutable: a new one replaces the old one.
            Kind::Asset => self.decision(Verdict::Update, new, Some(entry)),
            // Properties are only added, never removed.
            Kind::Database if is_beside || !is_edited => {
                self.decision(Verdict::Update, entry.id, Some(entry))
            }
            _ if is_beside => self.decision(Verdict::Beside, new, Some(entry)),
            _ if is_edited => self.decision(Verdict::Conflict(EDITED.0, EDITED.1), entry.id, Some(entry)),
            Kind::File | Kind::Folder | Kind::Database | Kind::Record => {
                self.decision(Verdict::Update, entry.id, Some(entry))
            }
        }
    }
}

impl Decisions {
    /// Counters for a preview; folders are not counted.
    pub(crate) fn would(&self, items: &[Item]) -> Counters {
        let mut would = Counters::default();
        for (item, decision) in items.iter().zip(&self.items) {
            if item.kind == Kind::Folder {
                continue;
            }
            match decision.verdict {
                Verdict::Create | Verdict::Beside => would.created += 1,
                Verdict::Update => would.updated += 1,
                Verdict::Skip | Verdict::Done => would.skipped += 1,
                Verdict::Conflict(..) => would.conflicts += 1,
            }
        }
        would
    }

    /// How many files would be created, and how many bytes of files and attachments written.
    pub(crate) fn usage(&self, items: &[Item]) -> (u64, u64) {
        let mut usage = (0, 0);
        for (item, decision) in items.iter().zip(&self.items) {
            let is_new = matches!(decision.verdict, Verdict::Create | Verdict::Beside);
            if is_new && item.kind == Kind::File {
                usage.0 += 1;
            }
            if is_new || decision.verdict == Verdict::Update {
                usage.1 += item.bytes;
            }
        }
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_same_each_time_and_sort_as_the_plan_does() {
        let (run, begun) = (SyncRunId(Uuid::from_u128(7)), Timestamp::from_micros(1_790_000_000_000_000));
        let id = |place, identity: &str| id_of(run, begun, place, Kind::File, identity);
        let ids: Vec<Uuid> = (0..5_000).map(|place| id(place, &format!("{}", place % 7))).collect();
        assert!(ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(ids[3], id(3, "3"));
        assert_ne!(ids[3], id(3, "4"));
        assert_ne!(ids[3], id_of(run, begun, 3, Kind::Asset, "3"));
        assert_ne!(ids[3], id_of(SyncRunId(Uuid::from_u128(8)), begun, 3, Kind::File, "3"));
        assert_eq!(ids[0].get_version_num(), 7);
        let later = begun.plus(std::time::Duration::from_millis(1));
        assert!(ids[4_999] < id_of(run, later, 0, Kind::File, "0"));
    }
}
