//! Decides what a run does with one document: whether it has to be fetched, and how the stored document changes. Pure: nothing is written
//! here.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Op;
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{DocumentId, SourceRunId};
use cairn_providers::{Entry, ExternalId, Version};

use super::path;
use crate::model::{Fault, Metadata, RetainedText, Retention, StoredDocument};

/// Delays between retries of a document that could not be read; the last one repeats.
const RETRY_DELAYS: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(6 * 60 * 60),
    Duration::from_secs(24 * 60 * 60),
];

/// What a run does with a listed document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: this listing has counted it before, unchanged.
    Counted,
    /// It is unchanged.
    Unchanged,
    /// Only its path changed.
    Moved,
    /// Store its metadata, without a text.
    Describe,
    /// Fetch its body.
    Fetch,
}

/// Judges a listed document.
pub(crate) fn judge(
    known: Option<&StoredDocument>,
    entry: &Entry,
    mode: SourceMode,
    listing: SourceRunId,
) -> Verdict {
    let read = if mode == SourceMode::Indexed { Verdict::Fetch } else { Verdict::Describe };
    let Some(known) = known else { return read };
    let is_of_mode = match known.kept {
        Retention::Text => mode == SourceMode::Indexed,
        Retention::Metadata => mode != SourceMode::Indexed,
        // Unreadable documents have a retry schedule of their own.
        Retention::Nothing | Retention::Hidden => known.fault.is_some(),
    };
    // Without a version, a document counts as unchanged only if this listing has read it.
    let is_same = match entry.version.is_known() {
        true => known.version.as_ref() == Some(&entry.version),
        false => known.seen == Some(listing),
    };
    if !is_same || !is_of_mode {
        return read;
    }
    if is_moved(known, entry) {
        Verdict::Moved
    } else if known.seen == Some(listing) {
        Verdict::Counted
    } else {
        Verdict::Unchanged
    }
}

/// A change of title or URL changes the version, while a path may change alone.
fn is_moved(known: &StoredDocument, entry: &Entry) -> bool {
    let path = entry.path.as_deref().map(|path| path::below(Some(path), &entry.title));
    path.is_some_and(|path| path != known.metadata.path)
}

/// The version for a conditional fetch: that of the stored text.
pub(crate) fn version_of_text(known: &StoredDocument) -> Option<&Version> {
    let is_good = known.kept == Retention::Text && known.fault.is_none();
    known.version.as_ref().filter(|_| is_good)
}

/// What was found out about a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Its metadata, without a text.
    Described { version: Version, metadata: Metadata },
    /// Its text.
    Text { version: Version, metadata: Metadata, retained: RetainedText },
    /// Its text is unchanged; `metadata` is from the current listing.
    Same { version: Option<Version>, metadata: Option<Metadata> },
    /// It cannot be read; if lasting, not before its version changes.
    Unreadable { version: Option<Version>, metadata: Metadata, message: String, is_lasting: bool },
    /// The credentials no longer give access to it.
    Forbidden { metadata: Metadata },
    /// The provider no longer has it; with `after`, removed only if it is still gone after that time.
    Gone { after: Option<Duration> },
}

/// The counter of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Unchanged,
    Created,
    Updated,
    Removed,
    Failed,
}

/// The write of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The document after the step; absent: it is removed.
    pub(crate) document: Option<StoredDocument>,
    pub(crate) counted: Counted,
    /// The entry in the change feed.
    pub(crate) feed_op: Option<Op>,
    /// Whether it has to be indexed again.
    pub(crate) reindex: bool,
}

/// The context of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occasion {
    pub(crate) now: Timestamp,
    /// Absent outside a listing: for a retry or a probe.
    pub(crate) listing: Option<SourceRunId>,
    /// The id if the document is new.
    pub(crate) new_id: DocumentId,
}

/// The step of a document; `None` when nothing has to be written.
pub(crate) fn step(
    known: Option<&StoredDocument>,
    id: &ExternalId,
    found: Finding,
    occasion: Occasion,
) -> Option<Step> {
    match found {
        Finding::Described { version, metadata } => Some(kept(known, id, version, metadata, None, occasion)),
        Finding::Text { version, metadata, retained } => {
            Some(kept(known, id, version, metadata, Some(retained), occasion))
        }
        Finding::Same { version, metadata } => same(known?, version, metadata, occasion),
        Finding::Unreadable { version, metadata, message, is_lasting } => {
            let fault = fault(known, message, is_lasting, occasion.now);
            Some(unreadable(known, id, version, metadata, fault, is_lasting, occasion))
        }
        Finding::Forbidden { metadata } => Some(forbidden(known, id, metadata, occasion)),
        Finding::Gone { after } => gone(known?, after, occasion),
    }
}

fn seen_now(document: &mut StoredDocument, occasion: Occasion) {
    if occasion.listing.is_some() {
        document.seen = occasion.listing;
    }
    document.missing_since = None;
    document.misses = 0;
}

fn new(id: &ExternalId, metadata: Metadata, occasion: Occasion) -> StoredDocument {
    StoredDocument {
        id: occasion.new_id,
        external_id: id.clone(),
        version: None,
        metadata,
        kept: Retention::Nothing,
        retained: None,
        fault: None,
        seen: occasion.listing,
        missing_since: None,
        misses: 0,
        hidden_at: None,
    }
}

/// Stores the text of a document, or only its metadata.
fn kept(
    known: Option<&StoredDocument>,
    id: &ExternalId,
    version: Version,
    metadata: Metadata,
    retained: Option<RetainedText>,
    occasion: Occasion,
) -> Step {
    let mut document = known.cloned().unwrap_or_else(|| new(id, metadata.clone(), occasion));
    let was_visible = known.is_some_and(|known| known.kept.is_visible());
    let kept = if retained.is_some() { Retention::Text } else { Retention::Metadata };
    let is_same_text = document.retained == retained && document.kept == kept;
    let is_same = was_visible && is_same_text && document.metadata.is_same_but_for_time(&metadata);
    document.version = Some(version);
    document.metadata = metadata;
    document.kept = kept;
    document.retained = retained;
    document.fault = None;
    document.hidden_at = None;
    seen_now(&mut document, occasion);
    let counted = match (known, is_same) {
        (None, _) => Counted::Created,
        (Some(_), true) => Counted::Unchanged,
        // A document that was never readable is new to users.
        (Some(known), false) if known.kept == Retention::Nothing => Counted::Created,
        (Some(_), false) => Counted::Updated,
    };
    Step { document: Some(document), counted, feed_op: (!is_same).then_some(Op::Upsert), reindex: !is_same }
}

fn same(
    known: &StoredDocument,
    version: Option<Version>,
    metadata: Option<Metadata>,
    occasion: Occasion,
) -> Option<Step> {
    let mut document = known.clone();
    let comes_back = known.kept == Retention::Hidden && known.retained.is_some();
    if comes_back {
        document.kept = Retention::Text;
    }
    // A document without a text stays due for its retry.
    if document.kept.is_visible() {
        document.hidden_at = None;
        document.fault = None;
        document.version = version.or(document.version);
    }
    let is_described = metadata.is_some_and(|metadata| {
        let differs = !document.metadata.is_same_but_for_time(&metadata);
        document.metadata = metadata;
        differs
    });
    seen_now(&mut document, occasion);
    if document == *known {
        return None;
    }
    let is_news = comes_back || (is_described && document.kept.is_visible());
    let counted = if is_news { Counted::Updated } else { Counted::Unchanged };
    Some(Step { document: Some(document), counted, feed_op: is_news.then_some(Op::Upsert), reindex: is_news })
}

fn fault(known: Option<&StoredDocument>, message: String, is_lasting: bool, now: Timestamp) -> Fault {
    let before = known.and_then(|known| known.fault.as_ref()).map_or(0, |fault| fault.tries);
    let place = usize::try_from(before).unwrap_or(usize::MAX).min(RETRY_DELAYS.len() - 1);
    let pause = RETRY_DELAYS.get(place).copied().unwrap_or_default();
    let next_try = (!is_lasting).then(|| now.plus(pause));
    Fault { message, tries: before.saturating_add(1), next_try }
}

/// A temporary failure keeps the stored text. A lasting one removes it, because it belongs to an old version of the document.
fn unreadable(
    known: Option<&StoredDocument>,
    id: &ExternalId,
    version: Option<Version>,
    metadata: Metadata,
    fault: Fault,
    is_lasting: bool,
    occasion: Occasion,
) -> Step {
    let was_visible = known.is_some_and(|known| known.kept.is_visible());
    let mut document = known.cloned().unwrap_or_else(|| new(id, metadata.clone(), occasion));
    document.fault = Some(fault);
    document.version = version.or(document.version);
    seen_now(&mut document, occasion);
    if is_lasting {
        document.metadata = metadata;
        document.kept = Retention::Nothing;
        document.retained = None;
        document.hidden_at = None;
    }
    let goes = is_lasting && was_visible;
    Step {
        document: Some(document),
        counted: Counted::Failed,
        feed_op: goes.then_some(Op::Delete),
        reindex: goes,
    }
}

fn forbidden(
    known: Option<&StoredDocument>,
    id: &ExternalId,
    metadata: Metadata,
    occasion: Occasion,
) -> Step {
    let was_visible = known.is_some_and(|known| known.kept.is_visible());
    let message = "the credentials no longer give access to it".to_owned();
    let fault = fault(known, message, false, occasion.now);
    let mut document = known.cloned().unwrap_or_else(|| new(id, metadata, occasion));
    document.kept = Retention::Hidden;
    document.fault = Some(fault);
    document.hidden_at = document.hidden_at.or(Some(occasion.now));
    seen_now(&mut document, occasion);
    Step {
        document: Some(document),
        counted: Counted::Failed,
        feed_op: was_visible.then_some(Op::Delete),
        reindex: false,
    }
}

fn gone(known: &StoredDocument, after: Option<Duration>, occasion: Occasion) -> Option<Step> {
    let feed_op = known.kept.is_visible().then_some(Op::Delete);
    let Some(after) = after else {
        return Some(Step { document: None, counted: Counted::Removed, feed_op, reindex: false });
    };
    if known.missing_since.is_some_and(|since| since.plus(after) <= occasion.now) {
        return Some(Step { document: None, counted: Counted::Removed, feed_op, reindex: false });
    }
    // A later run has to confirm it. Marked as seen, so that it does not count as absent from the listing as well.
    let missing_since = known.missing_since.or(Some(occasion.now));
    let seen = occasion.listing.or(known.seen);
    let document = StoredDocument { missing_since, seen, ..known.clone() };
    Some(Step { document: Some(document), counted: Counted::Unchanged, feed_op: None, reindex: false })
}

/// The finding for a document of which only the path changed.
pub(crate) fn moved(entry: &Entry, known: Option<&StoredDocument>) -> Finding {
    let metadata = known.map(|known| Metadata {
        path: path::below(entry.path.as_deref(), &entry.title),
        ..known.metadata.clone()
    });
    Finding::Same { version: None, metadata }
}

/// The finding for a document that a page reports as a fault.
pub(crate) fn listed_fault(
    title: &str,
    version: Option<Version>,
    reason: &str,
    is_lasting: bool,
    known: Option<&StoredDocument>,
) -> Finding {
    let metadata = known.map_or_else(|| untold(title), |known| known.metadata.clone());
    Finding::Unreadable { version, metadata, message: reason.to_owned(), is_lasting }
}

fn untold(title: &str) -> Metadata {
    let title = seen(title);
    let path = path::below(None, &title);
    Metadata { title, path, mime_type: String::new(), url: None, updated_at: None }
}

/// The metadata of an entry; fields that it lacks keep their stored values.
pub(crate) fn metadata(entry: &Entry, known: Option<&StoredDocument>) -> Metadata {
    let before = known.map(|known| &known.metadata);
    let title = before.filter(|_| entry.is_nameless()).map_or(&entry.title, |old| &old.title);
    let title = seen(title);
    Metadata {
        path: path::below(entry.path.as_deref(), &title),
        title,
        mime_type: entry.mime.clone().or_else(|| before.map(|old| old.mime_type.clone())).unwrap_or_default(),
        url: entry.url.clone().or_else(|| before.and_then(|old| old.url.clone())),
        updated_at: entry.updated_at,
    }
}

/// A title without invisible characters; "untitled" if nothing is left.
pub(super) fn seen(title: &str) -> String {
    cairn_extract::visible_title(title).unwrap_or_else(|| "untitled".to_owned())
}

/// The listing entry that corresponds to a stored document.
pub(crate) fn entry_of(known: &StoredDocument) -> Entry {
    let version = known.version.clone().unwrap_or_else(Version::unknown);
    let mut entry = Entry::new(known.external_id.clone(), version, &known.metadata.title);
    entry.mime = Some(known.metadata.mime_type.clone()).filter(|mime| !mime.is_empty());
    // A path that is derived from the title says nothing about the file type.
    let made_of_title = path::below(None, &known.metadata.title);
    entry.path = Some(known.metadata.path.clone()).filter(|path| *path != made_of_title);
    entry.url.clone_from(&known.metadata.url);
    entry.updated_at = known.metadata.updated_at;
    entry
}

#[cfg(test)]
mod tests;
