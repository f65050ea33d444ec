//! `cairn.ingest.v1.LiveService`.

use std::sync::Arc;

use cairn_chassis::channel::MAX_MESSAGE_BYTES;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, Verifier};
use cairn_proto::ingest::v1::live_service_server::{LiveService, LiveServiceServer};
use cairn_proto::ingest::v1::{
    AskProvidersRequest, AskProvidersResponse, LiveDocument, ProviderOperations, SourceOutcome,
    source_outcome,
};
use tonic::{Request, Response, Status};

use super::encode_format;
use crate::live::{Answers, Live, LiveHit, Outcome, SourceReport};
use crate::scope::Caller;

pub(crate) fn server(live: Live, verifier: Verifier) -> LiveServiceServer<Rpc> {
    LiveServiceServer::new(Rpc { live, verifier })
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES)
}

#[derive(Debug)]
pub(crate) struct Rpc {
    live: Live,
    verifier: Verifier,
}

#[tonic::async_trait]
impl LiveService for Rpc {
    async fn ask_providers(
        &self,
        request: Request<AskProvidersRequest>,
    ) -> Result<Response<AskProvidersResponse>, Status> {
        let caller: Caller = self.verifier.authorize(request.metadata(), Permission::Read).await?;
        let asked = request.into_inner();
        let answers = self.live.ask(&caller, asked.query, &asked.source_ids, &asked.document_ids).await?;
        Ok(Response::new(encode(answers)))
    }
}

fn encode(answers: Answers) -> AskProvidersResponse {
    AskProvidersResponse {
        documents: answers.documents.into_iter().map(document).collect(),
        outcomes: answers.sources.into_iter().map(outcome).collect(),
    }
}

fn document(found: LiveHit) -> LiveDocument {
    let text = Arc::unwrap_or_clone(found.text);
    LiveDocument {
        id: found.id.to_string(),
        source_id: found.source.to_string(),
        source_name: found.source_name,
        provider: found.provider.to_owned(),
        external_id: found.external_id.to_string(),
        title: text.metadata.title,
        path: found.path,
        url: text.metadata.url,
        format: encode_format(text.format).into(),
        content: text.content,
        content_hash: text.content_hash,
        updated_at: text.metadata.updated_at.map(Timestamp::to_proto),
    }
}

fn outcome(asked: SourceReport) -> SourceOutcome {
    let outcome = match asked.outcome {
        Outcome::Answered => source_outcome::Outcome::Answered,
        Outcome::Unavailable => source_outcome::Outcome::Unavailable,
        Outcome::BudgetExhausted => source_outcome::Outcome::BudgetExhausted,
    };
    SourceOutcome {
        source_id: asked.source.to_string(),
        outcome: outcome.into(),
        not_read: asked.not_read,
        provider_operations: Some(ProviderOperations { used: asked.used, remaining_today: asked.remaining }),
    }
}
