//! A search in exactly one connected source (spec 4.4).

use cairn_chassis::call::Call;
use cairn_chassis::identity::{Identity, Scope};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::domain::Feed;
use cairn_proto::domain::limits::SOURCE_RESULTS;
use cairn_proto::ingest::v1::source_service_client::SourceServiceClient;
use cairn_proto::ingest::v1::{ConnectedSource, GetSourceRequest, ProviderOperations};
use cairn_proto::retrieval::v1::{QuerySourceRequest, QuerySourceResponse, SearchContextRequest};
use uuid::Uuid;

use super::Searcher;
use super::plan::{Plan, Source};
use super::providers::SearchContext;
use super::request::SearchRequest;
use crate::error::Error;
use crate::generations::Generation;

/// The default limit.
const DEFAULT_LIMIT: u32 = 5;

/// A checked query of one source.
#[derive(Debug)]
pub(crate) struct SourceQuery {
    source: Uuid,
    /// The question as a search.
    pub(crate) search: SearchRequest,
}

impl TryFrom<QuerySourceRequest> for SourceQuery {
    type Error = Error;

    /// Checks a request; all violations at once.
    fn try_from(request: QuerySourceRequest) -> Result<Self, Error> {
        let mut violations = Vec::new();
        let source = Uuid::try_parse(&request.source_id).map_err(|_| {
            let message = "must be the id of a connected source: a UUID";
            violations.push(Violation::new("sourceId", "invalid_id", message));
        });
        let limit = if request.limit == 0 { DEFAULT_LIMIT } else { request.limit };
        if usize::try_from(limit).is_ok_and(|limit| limit > SOURCE_RESULTS) {
            let message = wording::between(1, SOURCE_RESULTS);
            violations.push(Violation::new("limit", "out_of_range", message));
        }
        let asked = SearchContextRequest { query: request.query, ..SearchContextRequest::default() };
        match (SearchRequest::try_from(asked), source) {
            (Ok(search), Ok(source)) if violations.is_empty() => {
                let limit = usize::try_from(limit).unwrap_or(SOURCE_RESULTS);
                Ok(Self { source, search: SearchRequest { limit, ..search } })
            }
            (Err(Error::Invalid(more)), _) => {
                violations.extend(more);
                Err(Error::Invalid(violations))
            }
            (Err(error), _) => Err(error),
            (Ok(_), _) => Err(Error::Invalid(violations)),
        }
    }
}

/// Refuses folder-scoped callers: documents of a source are in no folder.
///
/// # Errors
/// OUT_OF_SCOPE.
pub(crate) fn require_whole_workspace(identity: &Identity) -> Result<(), Problem> {
    if identity.scope == Scope::All {
        return Ok(());
    }
    Err(Problem::out_of_scope(
        "connected sources are for workspace-wide tokens, and this token is bound to folders: use one without a folder scope",
    ))
}

impl Searcher {
    /// Queries one source: the index for an indexed one, the bodies of the best matches for a catalog, the provider for a live one.
    ///
    /// # Errors
    /// NOT_FOUND for a source that is not connected to the caller's workspace; UNAVAILABLE when its owner does not answer.
    pub(crate) async fn query_source(
        &self,
        identity: &Identity,
        call: &Call,
        query: SourceQuery,
    ) -> Result<QuerySourceResponse, Error> {
        let SourceQuery { source, search } = query;
        let workspace = identity.workspace_id()?;
        let began = self.clock.now();
        let generation = self.generations.current();
        let connected = self.connected_source(&generation, call, source).await?;
        let known = connected.source.as_ref().and_then(Source::read);
        let plan = Plan::of_one(known.ok_or(Error::Answer("a source is of no mode that is known"))?);
        let context = SearchContext { generation: &generation, workspace, call, began };
        let ranked = self.retained(&generation, identity, call, (&search, None), &plan).await?;
        let matches = self.matches(context, &search, &plan).await?.best();
        let consulted = self.asked(context, &search, &plan.live, matches).await;
        let spent = consulted.operations.get(&source.to_string()).copied();
        let answered = self.answered(context, (&search, None), ranked, consulted).await?;
        let remaining = connected.budget.map_or(0, |budget| budget.remaining);
        Ok(QuerySourceResponse {
            results: answered.results,
            coverage: answered.coverage,
            provider_operations: spent.or(Some(ProviderOperations { used: 0, remaining_today: remaining })),
        })
    }

    async fn connected_source(
        &self,
        generation: &Generation,
        call: &Call,
        source: Uuid,
    ) -> Result<ConnectedSource, Error> {
        let owner = generation.indexer.owner(Feed::Ingest).ok_or(Error::Answer("sources have no owner"))?;
        let mut sources = SourceServiceClient::new(self.ingest.clone());
        let asked = call.request(GetSourceRequest { source_id: source.to_string() });
        let found =
            owner.require(async move { Ok(sources.get_source(asked).await?.into_inner().source) }).await?;
        found.ok_or(Error::Answer("a source that is there is none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(source_id: &str, query: &str, limit: u32) -> Result<SourceQuery, Error> {
        let (source_id, query) = (source_id.to_owned(), query.to_owned());
        SourceQuery::try_from(QuerySourceRequest { source_id, query, limit })
    }

    #[test]
    fn all_violations_come_at_once() {
        let Err(Error::Invalid(violations)) = asked("wiki", " ", 21) else { panic!("it was accepted") };
        let paths: Vec<&str> = violations.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["sourceId", "limit", "query"]);
    }

    #[test]
    fn five_results_are_usual_and_twenty_the_most() {
        let id = Uuid::from_u128(1).to_string();
        let limits = [0, 1, 20].map(|limit| asked(&id, "q", limit).unwrap().search.limit);
        assert_eq!(limits, [5, 1, 20]);
        assert!(matches!(asked(&id, "q", u32::MAX), Err(Error::Invalid(_))));
    }
}
