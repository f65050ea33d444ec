//! `cairn.ingest.v1.TreeService`.

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::identity::Verifier;
use cairn_proto::ingest::v1::tree_service_server::{TreeService, TreeServiceServer};
use cairn_proto::ingest::v1::{
    self as proto, ListTreeRequest, ListTreeResponse, ReadTextsRequest, ReadTextsResponse,
    ReadTreeChangesRequest, ReadTreeChangesResponse, TreeDocument,
};
use tonic::{Request, Response, Status};

use super::{encode_format, encode_ref};
use crate::model::Document;
use crate::tree::Trees;

pub(crate) fn server(trees: Trees, verifier: Verifier) -> TreeServiceServer<Rpc> {
    TreeServiceServer::new(Rpc { trees, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    trees: Trees,
    verifier: Verifier,
}

#[tonic::async_trait]
impl TreeService for Rpc {
    async fn list_tree(
        &self,
        request: Request<ListTreeRequest>,
    ) -> Result<Response<ListTreeResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let page = self.trees.list(&asked.workspace_id, &asked.page_token).await?;
        Ok(Response::new(ListTreeResponse {
            documents: page.documents.into_iter().map(encode).collect(),
            next_page_token: page.next,
            position: page.position,
        }))
    }

    async fn read_tree_changes(
        &self,
        request: Request<ReadTreeChangesRequest>,
    ) -> Result<Response<ReadTreeChangesResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let changes = self.trees.changes(&asked.workspace_id, asked.after).await?;
        Ok(Response::new(ReadTreeChangesResponse {
            position: changes.position,
            head: changes.head,
            documents: changes.documents.into_iter().map(encode).collect(),
            gone: changes.gone.into_iter().map(|(kind, id)| encode_ref(kind, id)).collect(),
        }))
    }

    async fn read_texts(
        &self,
        request: Request<ReadTextsRequest>,
    ) -> Result<Response<ReadTextsResponse>, Status> {
        self.verifier.authenticate(request.metadata()).await?.require_service()?;
        let asked = request.into_inner();
        let read = self.trees.texts(&asked.workspace_id, &asked.content_hashes).await?;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let text =
            |(place, content): (usize, String)| proto::Text { place: count(place), content: content.into() };
        let texts = read.found.into_iter().map(text).collect();
        Ok(Response::new(ReadTextsResponse { texts, read: count(read.read) }))
    }
}

fn encode(document: Document) -> TreeDocument {
    let catalog_only = document.is_catalog_only();
    let source = document.source;
    TreeDocument {
        r#ref: Some(encode_ref(document.kind, document.id)),
        path: document.path,
        format: encode_format(document.format).into(),
        size_bytes: document.size_bytes,
        content_hash: document.content_hash,
        updated_at: Some(document.updated_at.to_proto()),
        title: document.title,
        url: document.url,
        catalog_only,
        source_id: source.as_ref().map(|source| source.id.to_string()),
        provider: source.map(|source| source.provider),
    }
}
