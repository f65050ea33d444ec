//! The states of many documents in the index, for lists.

use std::collections::{HashMap, HashSet};

use cairn_chassis::call::Call;
use cairn_chassis::identity::Identity;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_index::ChunkId;
use cairn_proto::document::v1::{ConfirmedDocument, DocumentRef};
use cairn_proto::domain::DocumentState;
use cairn_proto::domain::limits::BESIDE_A_LIST;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use super::Searcher;
use super::state::unanswered;
use crate::error::Error;
use crate::generations::Generation;
use crate::{kinds, partition};

/// Up to this many missing documents, their texts are read to tell empty ones from those that will be indexed. With more of them,
/// as after an import, all count as behind.
const MAX_READ: usize = 8;

/// A document that its owner confirmed.
type Confirmed = (Uuid, ConfirmedDocument);

impl Searcher {
    /// The state of each of these documents of one kind, in no order; those that do not exist or that the caller may not see
    /// are left out.
    ///
    /// # Errors
    /// The list is too long; UNAVAILABLE when their owner does not answer.
    pub(crate) async fn states_of(
        &self,
        identity: &Identity,
        call: &Call,
        kind: Kind,
        ids: &[String],
    ) -> Result<Vec<(Uuid, DocumentState)>, Error> {
        if ids.len() > BESIDE_A_LIST {
            let message = wording::at_most(BESIDE_A_LIST, Unit::Documents);
            return Err(Error::Invalid(vec![Violation::new("ids", "too_many", message)]));
        }
        let workspace = identity.workspace_id()?;
        let generation = self.generations.current();
        let known = confirmed(&generation, call, kind, ids).await?;
        let (catalog, kept): (Vec<Confirmed>, Vec<Confirmed>) =
            known.into_iter().partition(|(_, document)| document.catalog_only);
        let mut states = Vec::new();
        for (documents, catalog_only) in [(kept, false), (catalog, true)] {
            if documents.is_empty() {
                continue;
            }
            let found = held(&generation, workspace, &documents, catalog_only).await?;
            let missing: Vec<Uuid> =
                documents.iter().map(|(id, _)| *id).filter(|id| !found.contains_key(id)).collect();
            states.extend(found);
            states.extend(not_held(&generation, workspace, kind, missing).await?);
        }
        Ok(states)
    }
}

/// Those of the documents that exist and that the caller may see.
async fn confirmed(
    generation: &Generation,
    call: &Call,
    kind: Kind,
    ids: &[String],
) -> Result<Vec<Confirmed>, Error> {
    let Some(owner) = generation.indexer.owner(kinds::feed_of(kind)) else { return Ok(Vec::new()) };
    let asked: HashSet<Uuid> = ids.iter().filter_map(|id| Uuid::try_parse(id).ok()).collect();
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let refs = asked.iter().map(|id| DocumentRef { kind: kind.into(), id: id.hyphenated().to_string() });
    let answer = owner.confirm(call, refs.collect()).await?.ok_or_else(unanswered)?;
    let known = answer.into_iter().filter_map(|document| {
        let id = Uuid::try_parse(&document.r#ref.as_ref()?.id).ok()?;
        Some((id, document))
    });
    Ok(known.collect())
}

/// The states of those documents that are indexed: by the first chunk of each.
async fn held(
    generation: &Generation,
    workspace: WorkspaceId,
    documents: &[Confirmed],
    catalog_only: bool,
) -> Result<HashMap<Uuid, DocumentState>, Error> {
    let partition = partition::of(workspace, catalog_only);
    let hashes: HashMap<Uuid, &str> =
        documents.iter().map(|(id, document)| (*id, document.content_hash.as_str())).collect();
    let first = hashes.keys().map(|id| ChunkId { document: *id, ordinal: 0 }).collect();
    let chunks = generation.engine.chunks(partition, first).await?;
    let mut states: HashMap<Uuid, DocumentState> = chunks
        .into_iter()
        .map(|chunk| {
            let is_current = hashes.get(&chunk.id.document) == Some(&chunk.content_hash.as_str());
            let state = if is_current { DocumentState::Searchable } else { DocumentState::Behind };
            (chunk.id.document, state)
        })
        .collect();
    if generation.indexer.not_embedded(workspace) > 0 {
        let current = states.iter().filter(|(_, state)| **state == DocumentState::Searchable);
        let current: Vec<Uuid> = current.map(|(id, _)| *id).collect();
        let vectors = generation.engine.vectors(partition, current.clone()).await?;
        for id in current {
            if vectors.get(&id).is_none_or(Vec::is_empty) {
                states.insert(id, DocumentState::WordsOnly);
            }
        }
    }
    Ok(states)
}

/// The states of those that are not indexed.
async fn not_held(
    generation: &Generation,
    workspace: WorkspaceId,
    kind: Kind,
    ids: Vec<Uuid>,
) -> Result<Vec<(Uuid, DocumentState)>, Error> {
    let behind = |id: &Uuid| (*id, DocumentState::Behind);
    if ids.is_empty() || ids.len() > MAX_READ {
        return Ok(ids.iter().map(behind).collect());
    }
    let owner = generation
        .indexer
        .owner(kinds::feed_of(kind))
        .ok_or(Error::Answer("no owner is known for a document"))?;
    let refs = ids.iter().map(|id| DocumentRef { kind: kind.into(), id: id.hyphenated().to_string() });
    let mut states: HashMap<Uuid, DocumentState> = ids.iter().map(behind).collect();
    for document in owner.read_documents(workspace, refs.collect()).await? {
        let id = document.r#ref.as_ref().and_then(|reference| Uuid::try_parse(&reference.id).ok());
        let Some(id) = id else { continue };
        match generation.indexer.count_passages(id, document).await? {
            None => states.insert(id, DocumentState::Failed),
            Some(0) => states.insert(id, DocumentState::Empty),
            Some(_) => None,
        };
    }
    Ok(states.into_iter().collect())
}
