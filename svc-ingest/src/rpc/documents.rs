//! `cairn.document.v1.DocumentService`.

use bytes::Bytes;
use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::document::v1::document_service_server::{DocumentService, DocumentServiceServer};
use cairn_proto::document::v1::{
    self as proto, ConfirmDocumentsRequest, ConfirmDocumentsResponse, ConfirmedDocument,
    ReadDocumentsRequest, ReadDocumentsResponse, SelectDocumentsRequest, SelectDocumentsResponse,
};
use tonic::{Request, Response, Status};

use super::{decode_ref, encode_format, encode_ref};
use crate::documents::{Documents, Narrowing};
use crate::model::{Document, DocumentRef};
use crate::scope::Caller;

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
        let refs: Vec<DocumentRef> = asked.refs.into_iter().map(decode_ref).collect();
        let read = self.documents.read(&asked.workspace_id, &refs).await?;
        let documents = read.documents.into_iter().map(encode).collect();
        let read = u32::try_from(read.read).unwrap_or(u32::MAX);
        Ok(Response::new(ReadDocumentsResponse { documents, read }))
    }

    async fn confirm_documents(
        &self,
        request: Request<ConfirmDocumentsRequest>,
    ) -> Result<Response<ConfirmDocumentsResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let refs: Vec<DocumentRef> = request.into_inner().refs.into_iter().map(decode_ref).collect();
        let confirmed = self.documents.confirm(&caller, &refs).await?;
        let documents = confirmed.into_iter().map(encode_confirmed).collect();
        Ok(Response::new(ConfirmDocumentsResponse { documents }))
    }

    async fn select_documents(
        &self,
        request: Request<SelectDocumentsRequest>,
    ) -> Result<Response<SelectDocumentsResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let selected = self.documents.select(&caller, &decode_narrowing(request.into_inner())).await?;
        let document_ids = selected.iter().map(|id| Bytes::copy_from_slice(id.0.as_bytes())).collect();
        Ok(Response::new(SelectDocumentsResponse { document_ids }))
    }
}

fn decode_narrowing(request: SelectDocumentsRequest) -> Narrowing {
    Narrowing {
        names_place: request.folder_id.is_some() || !request.tags.is_empty(),
        kinds: request.kinds.iter().map(|kind| Kind::try_from(*kind).unwrap_or_default()).collect(),
        source_ids: request.source_ids,
        updated_after: request.updated_after.as_ref().map(Timestamp::from_proto),
        updated_before: request.updated_before.as_ref().map(Timestamp::from_proto),
    }
}

fn encode((document, content): (Document, String)) -> proto::Document {
    let catalog_only = document.is_catalog_only();
    proto::Document {
        r#ref: Some(encode_ref(document.kind, document.id)),
        title: document.title,
        path: document.path,
        format: encode_format(document.format).into(),
        content,
        content_hash: document.content_hash,
        updated_at: Some(document.updated_at.to_proto()),
        catalog_only,
        source_id: document.source.map(|source| source.id.to_string()),
        url: document.url,
        ..proto::Document::default()
    }
}

fn encode_confirmed(document: Document) -> ConfirmedDocument {
    let catalog_only = document.is_catalog_only();
    let source = document.source;
    ConfirmedDocument {
        r#ref: Some(encode_ref(document.kind, document.id)),
        title: document.title,
        path: document.path,
        content_hash: document.content_hash,
        updated_at: Some(document.updated_at.to_proto()),
        url: document.url,
        external_id: document.external_id,
        mime_type: document.mime_type,
        catalog_only,
        source_id: source.as_ref().map(|source| source.id.to_string()),
        source_name: source.as_ref().map(|source| source.name.clone()),
        provider: source.map(|source| source.provider),
        ..ConfirmedDocument::default()
    }
}
