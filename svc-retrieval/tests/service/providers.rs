//! Providers behind the owner of outside documents that the tests play: what they find, and how long they take.

use std::collections::BTreeMap;
use std::time::Duration;

use cairn_proto::document::v1::Format;
use cairn_proto::ingest::v1::live_service_server::LiveService;
use cairn_proto::ingest::v1::source_outcome::Outcome;
use cairn_proto::ingest::v1::{
    AskProvidersRequest, AskProvidersResponse, LiveDocument, ProviderOperations, SourceOutcome,
};
use tonic::{Request, Response, Status};

use crate::owner::Owner;

/// What the providers do when they are asked.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    /// Every question, as it was asked.
    pub(crate) asked: Vec<AskProvidersRequest>,
    /// Bodies of entries of catalogs, by the ids of the documents.
    pub(crate) bodies: BTreeMap<String, LiveDocument>,
    /// What live sources find, by the ids of the sources.
    pub(crate) hits: BTreeMap<String, Vec<LiveDocument>>,
    /// Sources that do not answer, or have no budget left.
    pub(crate) failing: BTreeMap<String, Outcome>,
    /// How long an answer takes.
    pub(crate) delay: Duration,
}

#[tonic::async_trait]
impl LiveService for Owner {
    async fn ask_providers(
        &self,
        request: Request<AskProvidersRequest>,
    ) -> Result<Response<AskProvidersResponse>, Status> {
        let asked = request.into_inner();
        let (delay, answer) = {
            let mut state = self.answering()?;
            let answer = state.providers.answer(&asked);
            state.providers.asked.push(asked);
            (state.providers.delay, answer)
        };
        tokio::time::sleep(delay).await;
        Ok(Response::new(answer))
    }
}

impl Providers {
    fn answer(&self, asked: &AskProvidersRequest) -> AskProvidersResponse {
        let bodies = asked.document_ids.iter().filter_map(|id| self.bodies.get(id));
        let hits = asked.source_ids.iter().filter_map(|id| self.hits.get(id)).flatten();
        let mut documents: Vec<LiveDocument> = bodies.chain(hits).cloned().collect();
        documents.retain(|document| !self.failing.contains_key(&document.source_id));
        let bodies = asked.document_ids.iter().filter_map(|id| self.bodies.get(id));
        let mut sources: Vec<String> = bodies.map(|body| body.source_id.clone()).collect();
        sources.extend(asked.source_ids.iter().cloned());
        sources.dedup();
        let outcomes = sources.into_iter().map(|source_id| SourceOutcome {
            outcome: self.failing.get(&source_id).copied().unwrap_or(Outcome::Answered).into(),
            not_read: 0,
            provider_operations: Some(ProviderOperations { used: 1, remaining_today: 499 }),
            source_id,
        });
        AskProvidersResponse { outcomes: outcomes.collect(), documents }
    }
}

/// A document as its provider has it now.
pub(crate) fn live(id: &str, source_id: &str, title: &str, content: &str) -> LiveDocument {
    LiveDocument {
        id: id.to_owned(),
        source_id: source_id.to_owned(),
        source_name: "Wiki".to_owned(),
        provider: "notion".to_owned(),
        external_id: format!("ext {title}"),
        title: title.to_owned(),
        path: format!("/sources/Wiki/{title}"),
        url: Some(format!("https://notion.example/{title}")),
        format: Format::Markdown.into(),
        content: content.to_owned(),
        content_hash: format!("live hash of {title}"),
        updated_at: None,
    }
}
