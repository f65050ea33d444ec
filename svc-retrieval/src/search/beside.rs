//! Merges texts that are not in the index into a ranking: live answers of providers, and past versions of files.

use cairn_browse::PastWorkspace;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::LiveDocument;

use super::fetched::Fetched;
use super::past::PastSearch;
use super::pool::Site;
use super::providers::{ProviderAnswers, SearchContext};
use super::request::SearchRequest;
use super::{FinalResults, Ranked, Searcher, answer, rank};
use crate::error::Error;
use crate::generations::Generation;

impl Searcher {
    /// The best results of the index and of the texts that are ranked with it, cited.
    pub(super) async fn answered(
        &self,
        context: SearchContext<'_>,
        (request, past): (&SearchRequest, Option<&PastSearch>),
        mut ranked: Ranked,
        consulted: ProviderAnswers,
    ) -> Result<FinalResults, Error> {
        let SearchContext { generation, workspace, call, .. } = context;
        let used = consulted.used();
        let mut coverage = std::mem::take(&mut ranked.notes);
        coverage.extend(consulted.notes);
        let fetched = match past {
            Some(past) => {
                let may_be_files = request.narrowing.may_name(Kind::File);
                let (was, left_out) = match may_be_files {
                    true => Fetched::of_past(generation, workspace, call, past).await?,
                    false => (Fetched::default(), 0),
                };
                coverage.extend(answer::past_not_searched(left_out));
                self.beside(generation, workspace, request, &mut ranked, was).await?
            }
            None => match self.live(generation, workspace, request, &mut ranked, consulted.documents).await {
                Ok(texts) => texts,
                Err(error) => {
                    tracing::warn!(%workspace, %error, "texts from providers are left out");
                    coverage.push(answer::not_ranked());
                    Fetched::default()
                }
            },
        };
        let past = past.map(|then| &then.workspace);
        let now = past.and_then(PastWorkspace::at).unwrap_or_else(|| self.clock.now());
        let site = Site { generation, workspace, call, fetched: &fetched, now, past };
        let read = std::mem::take(&mut ranked.ranking.inspection.chunks);
        let (results, notes) = self.results(site, request, (&ranked.ranking, read)).await?;
        coverage.extend(notes);
        Ok(FinalResults { results, coverage, is_cached: ranked.is_cached, used })
    }

    /// Merges live answers of providers into the ranking.
    async fn live(
        &self,
        generation: &Generation,
        workspace: WorkspaceId,
        request: &SearchRequest,
        ranked: &mut Ranked,
        documents: Vec<LiveDocument>,
    ) -> Result<Fetched, Error> {
        if documents.is_empty() {
            return Ok(Fetched::default());
        }
        let fetched = Fetched::cut(generation, workspace, request, documents).await?;
        self.beside(generation, workspace, request, ranked, fetched).await
    }

    /// Merges texts that are not in the index into the ranking.
    async fn beside(
        &self,
        generation: &Generation,
        workspace: WorkspaceId,
        request: &SearchRequest,
        ranked: &mut Ranked,
        fetched: Fetched,
    ) -> Result<Fetched, Error> {
        if fetched.is_empty() {
            return Ok(fetched);
        }
        let vectors = match ranked.vectors.take() {
            Some(vectors) => vectors,
            // The index was not searched. If embedding fails, the texts are ranked by words.
            None => rank::embed_queries(request, &generation.queries).await.unwrap_or_default(),
        };
        let beside = fetched.ranked(workspace, request, vectors, self.preferences.word_weight).await?;
        let kind = if fetched.are_live { "live" } else { "past" };
        let retained = std::mem::take(&mut ranked.ranking);
        ranked.ranking = retained.beside((kind, beside), &request.query.given, request.min_score);
        Ok(fetched)
    }
}
