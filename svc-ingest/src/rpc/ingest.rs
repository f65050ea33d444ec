//! `cairn.ingest.v1.IngestService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::ingest::v1::ingest_file_request::Part as ProtoPart;
use cairn_proto::ingest::v1::ingest_service_server::{IngestService, IngestServiceServer};
use cairn_proto::ingest::v1::{
    self as proto, DeleteIngestedDocumentRequest, DeleteIngestedDocumentResponse, GetIngestedContentRequest,
    GetIngestedContentResponse, GetIngestedDocumentRequest, GetIngestedDocumentResponse, GetUsageRequest,
    GetUsageResponse, IngestDocumentRequest, IngestDocumentResponse, IngestDraft, IngestFileEnd,
    IngestFileRequest, IngestFileResponse, ListIngestedDocumentsRequest, ListIngestedDocumentsResponse,
};
use futures::StreamExt as _;
use tonic::{Code, Request, Response, Status, Streaming};

use crate::Error;
use crate::ingest::{Draft, FileDraft, Ingests, TextDraft, UploadEnd, UploadPart};
use crate::model::{ContentType, IngestStatus, Ingested, PAGES, PageRequest};
use crate::scope::Caller;
use crate::usage::Accounts;

pub(crate) fn server(ingests: Ingests, accounts: Accounts, verifier: Verifier) -> IngestServiceServer<Rpc> {
    IngestServiceServer::new(Rpc { ingests, accounts, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    ingests: Ingests,
    accounts: Accounts,
    verifier: Verifier,
}

#[tonic::async_trait]
impl IngestService for Rpc {
    async fn ingest_document(
        &self,
        request: Request<IngestDocumentRequest>,
    ) -> Result<Response<IngestDocumentResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Write).await?;
        let asked = request.into_inner();
        let content_type = ContentType::try_from(asked.content_type).unwrap_or_default();
        let draft = decode_draft(asked.draft.unwrap_or_default());
        let sent = TextDraft { draft, content: asked.content, content_type };
        let taken = self.ingests.text(&caller, sent).await?;
        Ok(Response::new(IngestDocumentResponse {
            document: Some(encode(taken.document)),
            deduplicated: taken.is_replay,
            position: taken.position,
        }))
    }

    async fn ingest_file(
        &self,
        request: Request<Streaming<IngestFileRequest>>,
    ) -> Result<Response<IngestFileResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Write).await?;
        let parts = request.into_inner().map(decode_part).boxed();
        let taken = self.ingests.file(&caller, parts).await?;
        Ok(Response::new(IngestFileResponse {
            document: Some(encode(taken.document)),
            deduplicated: taken.is_replay,
            position: taken.position,
        }))
    }

    async fn get_ingested_document(
        &self,
        request: Request<GetIngestedDocumentRequest>,
    ) -> Result<Response<GetIngestedDocumentResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let document = self.ingests.get(&caller, &request.get_ref().document_id).await?;
        Ok(Response::new(GetIngestedDocumentResponse { document: Some(encode(document)) }))
    }

    async fn list_ingested_documents(
        &self,
        request: Request<ListIngestedDocumentsRequest>,
    ) -> Result<Response<ListIngestedDocumentsResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let asked = request.get_ref();
        let page = PageRequest::new(PAGES, asked.page_size, &asked.page_token)?;
        let status = IngestStatus::from_number(asked.status);
        let page = self.ingests.list(&caller, status, &asked.title, page).await?;
        Ok(Response::new(ListIngestedDocumentsResponse {
            documents: page.items.into_iter().map(encode).collect(),
            next_page_token: page.next,
            total_size: page.total,
        }))
    }

    async fn get_ingested_content(
        &self,
        request: Request<GetIngestedContentRequest>,
    ) -> Result<Response<GetIngestedContentResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let content = self.ingests.content(&caller, &request.get_ref().document_id).await?;
        Ok(Response::new(GetIngestedContentResponse {
            content: content.text.into(),
            mime_type: content.format.media_type().to_owned(),
            content_hash: content.hash,
        }))
    }

    async fn delete_ingested_document(
        &self,
        request: Request<DeleteIngestedDocumentRequest>,
    ) -> Result<Response<DeleteIngestedDocumentResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Delete).await?;
        let position = self.ingests.delete(&caller, &request.get_ref().document_id).await?;
        Ok(Response::new(DeleteIngestedDocumentResponse { position }))
    }

    async fn get_usage(
        &self,
        request: Request<GetUsageRequest>,
    ) -> Result<Response<GetUsageResponse>, Status> {
        // Usage is about the workspace, not its contents: any identity of the workspace may read it.
        let caller = Caller::try_from(self.verifier.authenticate(request.metadata()).await?)?;
        let account = self.accounts.get(&caller).await?;
        Ok(Response::new(GetUsageResponse {
            documents: account.documents,
            documents_limit: account.documents_limit,
            storage_bytes: account.bytes,
        }))
    }
}

fn decode_part(message: Result<IngestFileRequest, Status>) -> Result<UploadPart, Error> {
    match message.map_err(|status| from_stream(&status))?.part {
        Some(ProtoPart::Draft(sent)) => Ok(UploadPart::Draft(Box::new(FileDraft {
            draft: decode_draft(sent.draft.unwrap_or_default()),
            file_name: sent.file_name,
            mime_type: sent.mime_type,
        }))),
        Some(ProtoPart::Bytes(bytes)) => Ok(UploadPart::Bytes(bytes)),
        Some(ProtoPart::End(IngestFileEnd { size_bytes })) => Ok(UploadPart::End(UploadEnd { size_bytes })),
        None => Err(Error::invalid("part", "required", "a message is a draft, bytes, or the end")),
    }
}

/// Maps tonic's errors for broken streams and oversized messages.
fn from_stream(status: &Status) -> Error {
    if status.code() == Code::OutOfRange {
        return Error::invalid("bytes", "too_long", "send more and smaller messages");
    }
    tracing::debug!(%status, "an upload was cut");
    Error::invalid("file", "incomplete", "the upload ended before it was whole: send it again")
}

fn decode_draft(draft: IngestDraft) -> Draft {
    Draft {
        idempotency_key: draft.idempotency_key,
        title: draft.title,
        url: draft.url,
        external_id: draft.external_id,
        metadata: draft.metadata,
        occurred_at: draft.occurred_at.as_ref().map(Timestamp::from_proto),
    }
}

fn encode(document: Ingested) -> proto::IngestedDocument {
    let text = document.text;
    proto::IngestedDocument {
        id: document.id.to_string(),
        status: document.status.into(),
        idempotency_key: document.idempotency_key,
        title: document.title,
        content_hash: text.as_ref().map(|text| text.hash.clone()),
        created_at: Some(document.created_at.to_proto()),
        updated_at: Some(document.updated_at.to_proto()),
        chunk_count: document.indexed.map(|indexed| indexed.chunks),
        indexed_at: document.indexed.map(|indexed| indexed.at.to_proto()),
        error: document.error,
        url: document.url,
        external_id: document.external_id,
        metadata: document.metadata,
        occurred_at: document.occurred_at.map(|at| at.to_proto()),
        path: text.as_ref().map(|text| text.path()).unwrap_or_default(),
        mime_type: text.as_ref().map(|text| text.format.media_type().to_owned()).unwrap_or_default(),
        size_bytes: text.map_or(0, |text| text.size_bytes),
    }
}
