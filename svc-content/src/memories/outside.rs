//! Members that are documents of connected sources: their names and retained texts. Both are fetched from their owner
//! each time, and not stored here.

use std::collections::HashMap;

use cairn_proto::ids::{DocumentId, MemberId};

use super::Memories;
use crate::model::{Member, MemberTarget, Memory};
use crate::outside::{OutsideDocument, OutsideTexts, Unavailable};
use crate::scope::Caller;

/// A document with its retained text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentEntry {
    pub(crate) document: OutsideDocument,
    pub(crate) content: String,
}

/// The documents of a memory, by member.
pub(crate) type DocumentsOf = HashMap<MemberId, DocumentEntry>;

/// Why a member has no content: the code and the message of a coverage note.
type LeftOut = (&'static str, &'static str);

/// The contents of the members that are documents.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) documents: DocumentsOf,
    pub(super) left_out: Vec<(Member, &'static str, &'static str)>,
}

/// The state of the documents that memories refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourceDocuments {
    /// The caller may not see them.
    Hidden,
    /// Their owner is unavailable.
    Unanswered,
    /// The live ones.
    Live(HashMap<DocumentId, OutsideDocument>),
}

/// The documents among targets.
pub(super) fn documents<'a>(targets: impl Iterator<Item = &'a MemberTarget>) -> Vec<DocumentId> {
    let document = |target: &MemberTarget| match target {
        MemberTarget::SourceDocument(id) => Some(*id),
        MemberTarget::File(_) | MemberTarget::Folder(_) | MemberTarget::Database(_) => None,
    };
    targets.filter_map(document).collect()
}

impl Memories {
    /// The state of these documents. Sources belong to the whole workspace: a scoped caller sees none of them, nor
    /// does an anonymous one.
    pub(super) async fn source_documents(&self, caller: &Caller, ids: &[DocumentId]) -> SourceDocuments {
        let Some(call) = caller.call.as_ref().filter(|_| caller.listed().is_none()) else {
            return SourceDocuments::Hidden;
        };
        match self.context.outside.confirm(call, ids).await {
            Ok(live) => SourceDocuments::Live(live),
            Err(Unavailable) => SourceDocuments::Unanswered,
        }
    }

    /// Sets the names of the documents that memories refer to.
    pub(super) async fn named<'a>(&self, caller: &Caller, memories: impl Iterator<Item = &'a mut Memory>) {
        let mut members: Vec<&mut Member> = memories
            .flat_map(|memory| &mut memory.members)
            .filter(|member| matches!(member.target, MemberTarget::SourceDocument(_)))
            .collect();
        if members.is_empty() {
            return;
        }
        let ids = documents(members.iter().map(|member| &member.target));
        let source_documents = self.source_documents(caller, &ids).await;
        for member in &mut members {
            name(member, &source_documents);
        }
    }

    /// Sets the names of members that are documents; returns their texts, up to a byte limit, and notes for what is
    /// left out.
    pub(super) async fn documents_of(&self, caller: &Caller, memory: &mut Memory, max_bytes: u64) -> Found {
        let ids = documents(memory.members.iter().map(|member| &member.target));
        let mut found = Found::default();
        if ids.is_empty() {
            return found;
        }
        let source_documents = self.source_documents(caller, &ids).await;
        let texts = match &source_documents {
            SourceDocuments::Live(live) => {
                let is_retained = |id: &DocumentId| live.get(id).is_some_and(|live| !live.catalog_only);
                let retained: Vec<DocumentId> = ids.iter().copied().filter(is_retained).collect();
                self.context.outside.read(caller.workspace, &retained, max_bytes).await
            }
            SourceDocuments::Hidden | SourceDocuments::Unanswered => Ok(OutsideTexts::default()),
        };
        let mut left = max_bytes;
        for member in &mut memory.members {
            let MemberTarget::SourceDocument(id) = member.target else { continue };
            name(member, &source_documents);
            match entry(id, &source_documents, &texts, &mut left, caller.call.is_some()) {
                Ok(entry) => _ = found.documents.insert(member.id, entry),
                Err((code, message)) => found.left_out.push((member.clone(), code, message)),
            }
        }
        found
    }
}

/// The content of a member that is a document, or why it has none.
fn entry(
    id: DocumentId,
    source_documents: &SourceDocuments,
    read: &Result<OutsideTexts, Unavailable>,
    left: &mut u64,
    has_identity: bool,
) -> Result<DocumentEntry, LeftOut> {
    let live = match source_documents {
        SourceDocuments::Live(live) => live,
        SourceDocuments::Hidden if has_identity => {
            return Err(("out_of_scope", "connected sources are outside the folders of this token"));
        }
        SourceDocuments::Hidden => {
            let message = "documents of connected sources are shown to callers with a token only";
            return Err(("source_excluded", message));
        }
        SourceDocuments::Unanswered => return Err(("source_excluded", UNANSWERED)),
    };
    let document = live.get(&id).ok_or((
        "target_deleted",
        "the document of this member is gone: it was removed, or its source disconnected",
    ))?;
    if document.catalog_only {
        let message = "only the name of this document is kept here: fetch_source_document asks its provider for the text";
        return Err(("catalog_only", message));
    }
    let read = read.as_ref().map_err(|Unavailable| ("source_excluded", UNANSWERED))?;
    let beyond = ("budget_exhausted", "this document is beyond the bytes that a resolved memory holds");
    if read.unread.contains(&id) {
        return Err(beyond);
    }
    let (content, content_hash) =
        read.texts.get(&id).ok_or(("index_behind", "nothing is retained of this document yet"))?;
    *left = left.checked_sub(content.len() as u64).ok_or(beyond)?;
    let document = OutsideDocument { content_hash: content_hash.clone(), ..document.clone() };
    Ok(DocumentEntry { document, content: content.clone() })
}

const UNANSWERED: &str = "the service that keeps documents of sources does not answer now";

/// Sets the title of a member from the state of its document.
fn name(member: &mut Member, source_documents: &SourceDocuments) {
    let document = match source_documents {
        SourceDocuments::Live(live) => live.get(&member.target.id()),
        SourceDocuments::Hidden | SourceDocuments::Unanswered => None,
    };
    member.is_live = document.is_some() || !matches!(source_documents, SourceDocuments::Live(_));
    member.is_covered = document.is_some();
    member.title = document.map(|document| document.title.clone());
}
