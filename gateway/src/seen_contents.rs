//! Which document contents each agent has received over MCP, so that a later search can report which of them have
//! changed since.
//!
//! Best effort, like [`crate::own_writes`]: bounded and in this process only. Contents served by another gateway or
//! evicted since are unknown, and nothing is reported about them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use cairn_chassis::clock::{Clock, Timestamp};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::own_writes::Writer;

/// Agents kept; at most 20 KB each.
const MAX_AGENTS: usize = 1_024;
/// Documents kept per agent, the most recent ones: more than fit into an agent's context.
const MAX_DOCUMENTS: usize = 256;
/// The prefix of every content hash.
const HASH: &str = "blake3:";

/// The recent contents of each agent.
pub(crate) struct SeenContents {
    clock: Arc<dyn Clock>,
    agents: Cache<Writer, Arc<Mutex<VecDeque<Content>>>>,
}

cairn_chassis::debug_fields!(SeenContents);

/// A content that was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    document: Uuid,
    hash: blake3::Hash,
    at: Timestamp,
}

impl Content {
    /// `None` unless both are well formed.
    fn of(document: &str, content_hash: &str, at: Timestamp) -> Option<Self> {
        let hash = blake3::Hash::from_hex(content_hash.strip_prefix(HASH)?).ok()?;
        Some(Self { document: Uuid::try_parse(document).ok()?, hash, at })
    }
}

/// An earlier content of a document that has changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EarlierContent {
    pub(crate) content_hash: String,
    pub(crate) at: Timestamp,
}

impl SeenContents {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, agents: Cache::new(MAX_AGENTS) }
    }

    /// Records the documents (with content hashes) served to an agent. Returns for each the earlier content it
    /// received, if that differs.
    pub(crate) fn note(&self, agent: &Writer, documents: &[(&str, &str)]) -> Vec<Option<EarlierContent>> {
        let now = self.clock.now();
        let made =
            self.agents.get_or_insert_with(agent, || Ok::<_, std::convert::Infallible>(Arc::default()));
        let Ok(known) = made;
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let shown: Vec<Option<Content>> =
            documents.iter().map(|(document, hash)| Content::of(document, hash, now)).collect();
        // Compare all before recording any: a document may occur several times in one answer.
        let before = shown.iter().map(|shown| before(&known, shown.as_ref()?)).collect();
        for content in shown.into_iter().flatten() {
            forget(&mut known, content.document);
            known.push_front(content);
        }
        known.truncate(MAX_DOCUMENTS);
        before
    }

    /// Drops a document that the agent has written itself: it knows what it changed.
    pub(crate) fn forget(&self, agent: &Writer, document: &str) {
        let (Some(known), Ok(document)) = (self.agents.get(agent), Uuid::try_parse(document)) else { return };
        forget(&mut known.lock().unwrap_or_else(PoisonError::into_inner), document);
    }
}

fn before(known: &VecDeque<Content>, shown: &Content) -> Option<EarlierContent> {
    let before = known.iter().find(|known| known.document == shown.document)?;
    let has_changed = before.hash != shown.hash;
    has_changed
        .then(|| EarlierContent { content_hash: format!("{HASH}{}", before.hash.to_hex()), at: before.at })
}

fn forget(known: &mut VecDeque<Content>, document: Uuid) {
    known.retain(|content| content.document != document);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cairn_chassis::clock::ManualClock;

    use super::*;

    fn hash(content: &str) -> String {
        format!("blake3:{}", blake3::hash(content.as_bytes()).to_hex())
    }

    fn document(number: u128) -> String {
        Uuid::from_u128(number).to_string()
    }

    fn shown() -> (SeenContents, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_800_000_000)));
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        (SeenContents::new(shared), clock)
    }

    #[test]
    fn another_content_is_told_once_with_the_one_before() {
        let (shown, clock) = shown();
        let (one, other) = (Writer::named("one"), Writer::named("other"));
        let id = document(1);
        let note = |agent: &Writer, content: &str| shown.note(agent, &[(&id, &hash(content))]).remove(0);
        assert_eq!(note(&one, "a"), None, "it was never shown");
        let at = clock.now();
        clock.advance(Duration::from_secs(60));
        assert_eq!(note(&one, "b"), Some(EarlierContent { content_hash: hash("a"), at }));
        assert_eq!(note(&one, "b"), None);
        assert_eq!(note(&other, "a"), None, "to another agent it is new");
        shown.forget(&one, &id);
        assert_eq!(note(&one, "c"), None, "it wrote that itself");
    }

    #[test]
    fn a_document_in_several_places_is_told_in_each() {
        let (shown, _) = shown();
        let agent = Writer::named("one");
        let (id, old, new) = (document(1), hash("a"), hash("b"));
        shown.note(&agent, &[(&id, &old)]);
        let told = shown.note(&agent, &[(&id, &new), (&document(2), &new), (&id, &new)]);
        assert_eq!(told.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(shown.note(&agent, &[("no id", &new), (&id, "no hash")]), [None, None]);
    }

    #[test]
    fn room_is_bounded() {
        let (shown, _) = shown();
        let agent = Writer::named("one");
        for number in 0..1_000 {
            shown.note(&agent, &[(&document(number), &hash("a"))]);
        }
        let known = shown.agents.get(&agent).unwrap();
        assert_eq!(known.lock().unwrap().len(), MAX_DOCUMENTS);
        for number in 0..10_000 {
            shown.note(&Writer::named(&number.to_string()), &[]);
        }
        assert!(shown.agents.len() <= 2 * MAX_AGENTS, "{}", shown.agents.len());
    }
}
