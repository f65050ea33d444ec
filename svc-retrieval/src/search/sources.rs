//! Loads the connected sources for the plan of a search, only where the plan depends on them.

use cairn_chassis::call::Call;
use cairn_chassis::identity::{Identity, Scope};
use cairn_proto::domain::{Feed, SourceMode};
use cairn_proto::ingest::v1::source_service_client::SourceServiceClient;
use cairn_proto::ingest::v1::{self as proto, ListSourcesRequest};
use uuid::Uuid;

use super::Searcher;
use super::plan::{Keeping, Plan, Source};
use super::request::{Mode, SearchRequest};
use crate::error::Error;
use crate::generations::Generation;

impl Searcher {
    /// The plan of the search.
    pub(super) async fn plan(
        &self,
        generation: &Generation,
        identity: &Identity,
        call: &Call,
        request: &SearchRequest,
    ) -> Plan {
        let is_scoped = identity.scope != Scope::All;
        // By default only the index is searched; providers are queried for named sources, or in fresh mode.
        let depends = !request.source_ids.is_empty() || request.mode == Mode::Fresh;
        if is_scoped || !depends {
            return Plan::new(request.mode, &request.source_ids, &[], is_scoped);
        }
        match self.connected(generation, call).await {
            Some(sources) => Plan::new(request.mode, &request.source_ids, &sources, is_scoped),
            None => Plan::without_sources(&request.source_ids),
        }
    }

    /// The sources that are connected to the caller's workspace; `None` when their owner does not answer.
    async fn connected(&self, generation: &Generation, call: &Call) -> Option<Vec<Source>> {
        let owner = generation.indexer.owner(Feed::Ingest)?;
        let mut sources = SourceServiceClient::new(self.ingest.clone());
        let asked = call.request(ListSourcesRequest {});
        let listed =
            owner.answered(async move { Ok(sources.list_sources(asked).await?.into_inner().sources) });
        let listed = listed.await.unwrap_or_else(|error: Error| {
            tracing::warn!(%error, "the connected sources are not known");
            None
        })?;
        Some(listed.iter().filter_map(Source::read).collect())
    }
}

impl Source {
    /// None for what this version does not know.
    pub(super) fn read(source: &proto::Source) -> Option<Self> {
        let keeping = match SourceMode::from_number(source.mode)? {
            SourceMode::Indexed => Keeping::Indexed,
            SourceMode::Catalog => Keeping::Catalog,
            SourceMode::Live => Keeping::Live,
        };
        Some(Self { id: Uuid::try_parse(&source.id).ok()?, keeping })
    }
}
