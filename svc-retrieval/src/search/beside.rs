//! Texts that are not in the index, beside what is: what providers gave just now, and what files were that have changed since.

use cairn_browse::PastWorkspace;
use cairn_proto::feed::v1::Kind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::LiveDocument;

use super::fetched::Fetched;
use super::pool::Site;
use super::providers::{Asking, Consulted};
use super::request::SearchRequest;
use super::then::Then;
use super::{Answered, Ranked, Searcher, answer, rank};
use crate::error::Error;
use crate::generations::Generation;

impl Searcher {
    /// The best of what is retained and of what is ranked beside it, cited.
    pub(super) async fn answered(
        &self,
        asking: Asking<'_>,
        (request, past): (&SearchRequest, Option<&Then>),
        mut ranked: Ranked,
        consulted: Consulted,
    ) -> Result<Answered, Error> {
        let Asking { generation, workspace, call, .. } = asking;
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
        let read = std::mem::take(&mut ranked.ranking.seen.chunks);
        let (results, notes) = self.results(site, request, (&ranked.ranking, read)).await?;
        coverage.extend(notes);
        Ok(Answered { results, coverage, is_cached: ranked.is_cached, used })
    }

    /// Ranks texts that providers gave just now beside what is retained.
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

    /// Ranks texts that are not in the index beside what is.
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
            // Nothing was looked for in the index. Where this fails, words are an answer.
            None => rank::embed_queries(request, &generation.queries).await.unwrap_or_default(),
        };
        let beside = fetched.ranked(workspace, request, vectors, self.preferences.word_weight).await?;
        let kind = if fetched.are_live { "live" } else { "past" };
        let retained = std::mem::take(&mut ranked.ranking);
        ranked.ranking = retained.beside((kind, beside), &request.query.given, request.min_score);
        Ok(fetched)
    }
}
