//! The client for documents of connected sources, which memories refer to and svc-ingest owns.
//!
//! svc-ingest opens after this service, so it is connected later. Until then memories are served without these
//! documents.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_proto::document::v1::document_service_client::DocumentServiceClient;
use cairn_proto::document::v1::{
    ConfirmDocumentsRequest, ConfirmedDocument, Document, DocumentRef, ReadDocumentsRequest,
};
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::{DocumentId, WorkspaceId};

/// The deadline of calls.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// The batch size of reads: the maximum of the owner.
const READ_BATCH: usize = 100;
/// The batch size of confirmations: the maximum of the owner.
const CONFIRM_BATCH: usize = 1_000;

/// A document as its owner confirms it for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutsideDocument {
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) path: String,
    pub(crate) content_hash: String,
    pub(crate) updated_at: Option<Timestamp>,
    pub(crate) source_id: Option<String>,
    /// Its original URL.
    pub(crate) address: Option<String>,
    /// Whether only its name is retained.
    pub(crate) catalog_only: bool,
}

/// Retained texts of documents.
#[derive(Debug, Default)]
pub(crate) struct OutsideTexts {
    /// Texts with their hashes.
    pub(crate) texts: HashMap<DocumentId, (String, String)>,
    /// Documents that were not read because the byte limit was reached.
    pub(crate) unread: HashSet<DocumentId>,
}

/// The owner is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unavailable;

/// The connection to svc-ingest; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outside(Arc<OnceLock<Connection>>);

#[derive(Debug)]
struct Connection {
    channel: ServiceChannel,
    /// The identity of this service.
    identity: ServiceIdentitySource,
}

impl Outside {
    /// Sets the channel to svc-ingest; later calls have no effect.
    pub(crate) fn connect(&self, channel: ServiceChannel, identity: ServiceIdentitySource) {
        let _ = self.0.set(Connection { channel, identity });
    }

    /// Those of the documents that are live and in the scope of the identity of the call.
    pub(crate) async fn confirm(
        &self,
        call: &Call,
        ids: &[DocumentId],
    ) -> Result<HashMap<DocumentId, OutsideDocument>, Unavailable> {
        let connection = self.0.get().ok_or(Unavailable)?;
        let mut known = HashSet::with_capacity(ids.len());
        let ids: Vec<DocumentId> = ids.iter().copied().filter(|id| known.insert(*id)).collect();
        let mut live = HashMap::with_capacity(ids.len());
        for some in ids.chunks(CONFIRM_BATCH) {
            let request = call.request(ConfirmDocumentsRequest { refs: refs(some) });
            let answer = in_time(async { connection.client().confirm_documents(request).await }).await?;
            let confirmed = answer.into_inner().documents.into_iter().filter_map(confirmed);
            live.extend(confirmed.map(|one| (one.id, one)));
        }
        Ok(live)
    }

    /// The retained texts of documents, in this order, until a byte limit is exceeded by the last response of the
    /// owner.
    pub(crate) async fn read(
        &self,
        workspace: WorkspaceId,
        ids: &[DocumentId],
        max_bytes: u64,
    ) -> Result<OutsideTexts, Unavailable> {
        let connection = self.0.get().ok_or(Unavailable)?;
        let mut texts = HashMap::new();
        let mut bytes = 0_u64;
        for (place, some) in ids.chunks(READ_BATCH).enumerate() {
            let mut rest = refs(some);
            while !rest.is_empty() {
                if bytes > max_bytes {
                    let unread = place * READ_BATCH + some.len() - rest.len();
                    return Ok(OutsideTexts { texts, unread: ids.iter().skip(unread).copied().collect() });
                }
                let identity = connection.identity.identity().await.map_err(|error| unavailable(&error))?;
                let call = Call::within(CALL_TIMEOUT).with_identity(&identity);
                let asked = ReadDocumentsRequest { workspace_id: workspace.to_string(), refs: rest.clone() };
                let request = call.request(asked);
                let answer =
                    in_time(async { connection.client().read_documents(request).await }).await?.into_inner();
                let read = usize::try_from(answer.read).unwrap_or(usize::MAX).min(rest.len());
                if read == 0 {
                    return Err(unavailable(&"it looked at none of the documents asked for"));
                }
                for (id, text) in answer.documents.into_iter().filter_map(text_of) {
                    bytes += text.0.len() as u64;
                    texts.insert(id, text);
                }
                rest = rest.split_off(read);
            }
        }
        Ok(OutsideTexts { texts, unread: HashSet::new() })
    }
}

impl Connection {
    fn client(&self) -> DocumentServiceClient<ServiceChannel> {
        DocumentServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }
}

async fn in_time<T, E: std::fmt::Display>(
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, Unavailable> {
    match tokio::time::timeout(CALL_TIMEOUT, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(unavailable(&error)),
        Err(elapsed) => Err(unavailable(&elapsed)),
    }
}

fn unavailable(why: &impl std::fmt::Display) -> Unavailable {
    tracing::warn!(%why, "documents of sources are left out of memories");
    Unavailable
}

fn refs(ids: &[DocumentId]) -> Vec<DocumentRef> {
    let reference = |id: &DocumentId| DocumentRef { kind: Kind::SourceDocument.into(), id: id.to_string() };
    ids.iter().map(reference).collect()
}

fn confirmed(document: ConfirmedDocument) -> Option<OutsideDocument> {
    Some(OutsideDocument {
        id: document.r#ref?.id.parse().ok()?,
        title: document.title,
        path: document.path,
        content_hash: document.content_hash,
        updated_at: document.updated_at.as_ref().map(Timestamp::from_proto),
        source_id: document.source_id,
        address: document.url,
        catalog_only: document.catalog_only,
    })
}

fn text_of(document: Document) -> Option<(DocumentId, (String, String))> {
    Some((document.r#ref?.id.parse().ok()?, (document.content, document.content_hash)))
}
