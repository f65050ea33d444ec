//! What a run makes of one document: what is to be fetched, and what becomes of what is known. It touches nothing: what
//! comes out is written elsewhere.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Op;
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{DocumentId, SourceRunId};
use cairn_providers::{Entry, ExternalId, Version};

use super::path;
use crate::model::{Fault, Kept, Known, Metadata, RetainedText};

/// When a document that could not be read is tried again, from the first failure on; the last goes on.
const TRIES: [Duration; 5] = [
    Duration::from_secs(60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(6 * 60 * 60),
    Duration::from_secs(24 * 60 * 60),
];

/// What a listed document asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This listing had it before, as it is: it is counted.
    Counted,
    /// It is as it was.
    Unchanged,
    /// It is as it was, in another place.
    Moved,
    /// Its metadata is all that is kept of it.
    Describe,
    /// It is to be read.
    Fetch,
}

/// What to do about a listed document.
pub(crate) fn judge(known: Option<&Known>, entry: &Entry, mode: SourceMode, listing: SourceRunId) -> Verdict {
    let read = if mode == SourceMode::Indexed { Verdict::Fetch } else { Verdict::Describe };
    let Some(known) = known else { return read };
    let is_of_mode = match known.kept {
        Kept::Text => mode == SourceMode::Indexed,
        Kept::Metadata => mode != SourceMode::Indexed,
        // What cannot be read, or not any more, is tried again in its own time.
        Kept::Nothing | Kept::Hidden => known.fault.is_some(),
    };
    // Where a listing knows no versions, only this run knows that it has read a document already.
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

/// Titles and addresses are a version's; a path may change by itself.
fn is_moved(known: &Known, entry: &Entry) -> bool {
    let path = entry.path.as_deref().map(|path| path::below(Some(path), &entry.title));
    path.is_some_and(|path| path != known.metadata.path)
}

/// The version that a provider may be asked to compare with: that of the text that is kept.
pub(crate) fn version_of_text(known: &Known) -> Option<&Version> {
    let is_good = known.kept == Kept::Text && known.fault.is_none();
    known.version.as_ref().filter(|_| is_good)
}

/// What was found out about a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Metadata, which is all that is kept of it.
    Described { version: Version, metadata: Metadata },
    /// Its text.
    Text { version: Version, metadata: Metadata, retained: RetainedText },
    /// It is as it was; `metadata` is what a listing says now.
    Same { version: Option<Version>, metadata: Option<Metadata> },
    /// It cannot be read: until its version changes, when that is lasting.
    Unreadable { version: Option<Version>, metadata: Metadata, message: String, is_lasting: bool },
    /// Access to it ended.
    Forbidden { metadata: Metadata },
    /// The provider does not have it, which counts when it says so again after that time.
    Gone { after: Option<Duration> },
}

/// How a run counts what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    Unchanged,
    Created,
    Updated,
    Removed,
    Failed,
}

/// What is to be written about one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// As it is from now on; absent: it is removed.
    pub(crate) document: Option<Known>,
    pub(crate) counted: Counted,
    /// What the feed is told.
    pub(crate) told: Option<Op>,
    /// Whether what retrieval said of it no longer holds.
    pub(crate) reindex: bool,
}

/// When and for whom a step is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occasion {
    pub(crate) now: Timestamp,
    /// Absent when no listing had it: a second try, or an answer to a probe.
    pub(crate) listing: Option<SourceRunId>,
    /// For a document that is new.
    pub(crate) new_id: DocumentId,
}

/// What becomes of a document; `None` when nothing is to be written.
pub(crate) fn step(known: Option<&Known>, id: &ExternalId, found: Found, occasion: Occasion) -> Option<Step> {
    match found {
        Found::Described { version, metadata } => Some(kept(known, id, version, metadata, None, occasion)),
        Found::Text { version, metadata, retained } => {
            Some(kept(known, id, version, metadata, Some(retained), occasion))
        }
        Found::Same { version, metadata } => same(known?, version, metadata, occasion),
        Found::Unreadable { version, metadata, message, is_lasting } => {
            let fault = fault(known, message, is_lasting, occasion.now);
            Some(unreadable(known, id, version, metadata, fault, is_lasting, occasion))
        }
        Found::Forbidden { metadata } => Some(forbidden(known, id, metadata, occasion)),
        Found::Gone { after } => gone(known?, after, occasion),
    }
}

fn seen_now(document: &mut Known, occasion: Occasion) {
    if occasion.listing.is_some() {
        document.seen = occasion.listing;
    }
    document.missing_since = None;
    document.misses = 0;
}

fn new(id: &ExternalId, metadata: Metadata, occasion: Occasion) -> Known {
    Known {
        id: occasion.new_id,
        external_id: id.clone(),
        version: None,
        metadata,
        kept: Kept::Nothing,
        retained: None,
        fault: None,
        seen: occasion.listing,
        missing_since: None,
        misses: 0,
        hidden_at: None,
    }
}

/// A document whose text, or whose metadata alone, is kept from now on.
fn kept(
    known: Option<&Known>,
    id: &ExternalId,
    version: Version,
    metadata: Metadata,
    retained: Option<RetainedText>,
    occasion: Occasion,
) -> Step {
    let mut document = known.cloned().unwrap_or_else(|| new(id, metadata.clone(), occasion));
    let was_visible = known.is_some_and(|known| known.kept.is_visible());
    let kept = if retained.is_some() { Kept::Text } else { Kept::Metadata };
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
        // What could never be read before is new to everybody.
        (Some(known), false) if known.kept == Kept::Nothing => Counted::Created,
        (Some(_), false) => Counted::Updated,
    };
    Step { document: Some(document), counted, told: (!is_same).then_some(Op::Upsert), reindex: !is_same }
}

fn same(
    known: &Known,
    version: Option<Version>,
    metadata: Option<Metadata>,
    occasion: Occasion,
) -> Option<Step> {
    let mut document = known.clone();
    let comes_back = known.kept == Kept::Hidden && known.retained.is_some();
    if comes_back {
        document.kept = Kept::Text;
    }
    // Of what has no text it says nothing: that is read when its time comes.
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
    Some(Step { document: Some(document), counted, told: is_news.then_some(Op::Upsert), reindex: is_news })
}

fn fault(known: Option<&Known>, message: String, is_lasting: bool, now: Timestamp) -> Fault {
    let before = known.and_then(|known| known.fault.as_ref()).map_or(0, |fault| fault.tries);
    let place = usize::try_from(before).unwrap_or(usize::MAX).min(TRIES.len() - 1);
    let pause = TRIES.get(place).copied().unwrap_or_default();
    let next_try = (!is_lasting).then(|| now.plus(pause));
    Fault { message, tries: before.saturating_add(1), next_try }
}

/// What failed for now keeps the text that is there; what cannot be read as it is now loses it, since that text is of a
/// document that is no more.
fn unreadable(
    known: Option<&Known>,
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
        document.kept = Kept::Nothing;
        document.retained = None;
        document.hidden_at = None;
    }
    let goes = is_lasting && was_visible;
    Step {
        document: Some(document),
        counted: Counted::Failed,
        told: goes.then_some(Op::Delete),
        reindex: goes,
    }
}

fn forbidden(known: Option<&Known>, id: &ExternalId, metadata: Metadata, occasion: Occasion) -> Step {
    let was_visible = known.is_some_and(|known| known.kept.is_visible());
    let message = "the credentials no longer give access to it".to_owned();
    let fault = fault(known, message, false, occasion.now);
    let mut document = known.cloned().unwrap_or_else(|| new(id, metadata, occasion));
    document.kept = Kept::Hidden;
    document.fault = Some(fault);
    document.hidden_at = document.hidden_at.or(Some(occasion.now));
    seen_now(&mut document, occasion);
    Step {
        document: Some(document),
        counted: Counted::Failed,
        told: was_visible.then_some(Op::Delete),
        reindex: false,
    }
}

fn gone(known: &Known, after: Option<Duration>, occasion: Occasion) -> Option<Step> {
    let told = known.kept.is_visible().then_some(Op::Delete);
    let Some(after) = after else {
        return Some(Step { document: None, counted: Counted::Removed, told, reindex: false });
    };
    if known.missing_since.is_some_and(|since| since.plus(after) <= occasion.now) {
        return Some(Step { document: None, counted: Counted::Removed, told, reindex: false });
    }
    // It waits for the run that finds the same later. The listing has it, so nothing is concluded from absence either.
    let missing_since = known.missing_since.or(Some(occasion.now));
    let seen = occasion.listing.or(known.seen);
    let document = Known { missing_since, seen, ..known.clone() };
    Some(Step { document: Some(document), counted: Counted::Unchanged, told: None, reindex: false })
}

/// What a listing says of a document that only moved.
pub(crate) fn moved(entry: &Entry, known: Option<&Known>) -> Found {
    let metadata = known.map(|known| Metadata {
        path: path::below(entry.path.as_deref(), &entry.title),
        ..known.metadata.clone()
    });
    Found::Same { version: None, metadata }
}

/// A document that a page has among its faults.
pub(crate) fn listed_fault(
    title: &str,
    version: Option<Version>,
    reason: &str,
    is_lasting: bool,
    known: Option<&Known>,
) -> Found {
    let metadata = known.map_or_else(|| untold(title), |known| known.metadata.clone());
    Found::Unreadable { version, metadata, message: reason.to_owned(), is_lasting }
}

fn untold(title: &str) -> Metadata {
    let title = seen(title);
    let path = path::below(None, &title);
    Metadata { title, path, mime_type: String::new(), url: None, updated_at: None }
}

/// What is stored of what an entry says; what it does not tell stays as it is known.
pub(crate) fn metadata(entry: &Entry, known: Option<&Known>) -> Metadata {
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

/// A title without characters that people cannot see, unless that is all that it has.
pub(super) fn seen(title: &str) -> String {
    cairn_extract::visible_title(title).unwrap_or_else(|| "untitled".to_owned())
}

/// A document as a listing would tell it, of what is known.
pub(crate) fn entry_of(known: &Known) -> Entry {
    let version = known.version.clone().unwrap_or_else(Version::unknown);
    let mut entry = Entry::new(known.external_id.clone(), version, &known.metadata.title);
    entry.mime = Some(known.metadata.mime_type.clone()).filter(|mime| !mime.is_empty());
    // A path that is made of the title says nothing about the kind of the file.
    let made_of_title = path::below(None, &known.metadata.title);
    entry.path = Some(known.metadata.path.clone()).filter(|path| *path != made_of_title);
    entry.url.clone_from(&known.metadata.url);
    entry.updated_at = known.metadata.updated_at;
    entry
}

#[cfg(test)]
mod tests;
