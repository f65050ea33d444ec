//! `cairn.document.v1.DocumentService`.

use bytes::Bytes;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::document::v1::document_service_server::{DocumentService, DocumentServiceServer};
use cairn_proto::document::v1::{
    self as proto, ConfirmDocumentsRequest, ConfirmDocumentsResponse, ConfirmedDocument, DocumentRef, Format,
    ReadDocumentsRequest, ReadDocumentsResponse, SelectDocumentsRequest, SelectDocumentsResponse,
};
use tonic::{Request, Response, Status};

use super::authorize;
use crate::documents::{self, DocumentFilter, Documents};
use crate::model::{Document, FileType};

pub(crate) fn server(documents: Documents, verifier: Verifier) -> DocumentServiceServer<Rpc> {
    DocumentServiceServer::new(Rpc { documents, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    documents: Documents,
    verifier: Verifier,
}

#[tonic::async_trait]
impl DocumentService for Rpc {
    async fn read_documents(
        &self,
        request: Request<ReadDocumentsRequest>,
    ) -> Result<Response<ReadDocumentsResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let refs: Vec<documents::DocumentRef> = asked.refs.into_iter().map(decode).collect();
        let read = self.documents.read(&asked.workspace_id, &refs).await?;
        let documents = read.documents.into_iter().map(encode).collect();
        Ok(Response::new(ReadDocumentsResponse {
            documents,
            read: u32::try_from(read.read).unwrap_or(u32::MAX),
        }))
    }

    async fn confirm_documents(
        &self,
        request: Request<ConfirmDocumentsRequest>,
    ) -> Result<Response<ConfirmDocumentsResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let refs: Vec<documents::DocumentRef> = request.into_inner().refs.into_iter().map(decode).collect();
        let confirmed = self.documents.confirm(&caller, &refs).await?;
        let documents = confirmed.into_iter().map(encode_confirmed).collect();
        Ok(Response::new(ConfirmDocumentsResponse { documents }))
    }

    async fn select_documents(
        &self,
        request: Request<SelectDocumentsRequest>,
    ) -> Result<Response<SelectDocumentsResponse>, Status> {
        let caller = authorize(&self.verifier, request.metadata(), Permission::Read).await?;
        let selected = self.documents.select(&caller, decode_narrowing(request.into_inner())).await?;
        let document_ids = selected.iter().map(|id| Bytes::copy_from_slice(id.0.as_bytes())).collect();
        Ok(Response::new(SelectDocumentsResponse { document_ids }))
    }
}

fn decode_narrowing(request: SelectDocumentsRequest) -> DocumentFilter {
    DocumentFilter {
        kinds: request.kinds.iter().map(|kind| Kind::try_from(*kind).unwrap_or_default()).collect(),
        folder_id: request.folder_id,
        tags: request.tags,
        updated_after: request.updated_after.as_ref().map(Timestamp::from_proto),
        updated_before: request.updated_before.as_ref().map(Timestamp::from_proto),
    }
}

fn decode(reference: DocumentRef) -> documents::DocumentRef {
    documents::DocumentRef { kind: Kind::try_from(reference.kind).ok(), id: reference.id }
}

fn encode_ref(document: &Document) -> Option<DocumentRef> {
    Some(DocumentRef { kind: document.kind.into(), id: document.id.to_string() })
}

const fn encode_format(file_type: FileType) -> Format {
    match file_type {
        FileType::Markdown => Format::Markdown,
        FileType::Json => Format::Json,
        FileType::Yaml => Format::Yaml,
        FileType::Text => Format::Text,
    }
}

fn encode((document, content): (Document, String)) -> proto::Document {
    proto::Document {
        r#ref: encode_ref(&document),
        folder_id: document.folders.last().map(ToString::to_string),
        title: document.title,
        path: document.path,
        tags: document.tags,
        format: encode_format(document.format).into(),
        content,
        content_hash: document.content_hash,
        updated_at: Some(document.updated_at.to_proto()),
        database_id: document.database_id.map(|id| id.to_string()),
        ..proto::Document::default()
    }
}

fn encode_confirmed(document: Document) -> ConfirmedDocument {
    ConfirmedDocument {
        r#ref: encode_ref(&document),
        folder_id: document.folders.last().map(ToString::to_string),
        title: document.title,
        path: document.path,
        tags: document.tags,
        database_id: document.database_id.map(|id| id.to_string()),
        content_hash: document.content_hash,
        updated_at: Some(document.updated_at.to_proto()),
        ..ConfirmedDocument::default()
    }
}
