//! Search over all contents of a workspace.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::{Detail, DocumentKind, Mode, Strategy, SubqueryType};
use cairn_proto::retrieval::v1 as proto;
use serde::Deserialize;
use utoipa::ToSchema;

use super::past_moment::PastMoment;
use super::{Context, answered};
use crate::answers::SearchAnswer;
use crate::change;
use crate::schema::inputs;

inputs!(SearchContext);

const MAX_WAIT_MS: u64 = 10_000;

/// What to search for, and how.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SearchContext {
    /// A question or keywords, such as `"release process" -draft`.
    #[schema(min_length = 1, max_length = 10000, examples("how do we roll back a release"))]
    query: String,
    /// Not with `searches`.
    #[schema(default = "hybrid")]
    strategy: Option<Strategy>,
    /// Further angles on the query, fused with it; it counts double. `lex`: words for full-text
    /// search. `vec`: a question for vector search. `hyde`: a made-up answer of 30 to 80 words, for vector search.
    #[schema(min_items = 1, max_items = 8)]
    searches: Option<Vec<Subquery>>,
    /// `fast`: stored content only. `balanced`: also catalogs of connected sources. `fresh`: also live sources.
    #[schema(default = "balanced")]
    mode: Option<Mode>,
    /// Only these connected sources.
    #[schema(max_items = 100)]
    source_ids: Option<Vec<String>>,
    /// Only in this folder and below it.
    #[schema(format = "uuid")]
    folder_id: Option<String>,
    /// Only files with all of these tags.
    #[schema(max_items = 50)]
    tags: Option<Vec<String>>,
    /// Only these kinds.
    #[schema(max_items = 8)]
    kinds: Option<Vec<DocumentKind>>,
    /// Changed after this time.
    #[schema(format = DateTime)]
    updated_after: Option<String>,
    /// Changed before this time.
    #[schema(format = DateTime)]
    updated_before: Option<String>,
    /// Results at most.
    #[schema(minimum = 1, maximum = 50, default = 10)]
    limit: Option<u32>,
    /// Drops results that score below it.
    #[schema(minimum = 0, maximum = 1)]
    min_score: Option<f64>,
    /// `lines`: only lines that answer. `documents`: each document once.
    #[schema(default = "passages")]
    detail: Option<Detail>,
    /// Tokens of content at most, about.
    #[schema(minimum = 1)]
    token_budget: Option<u32>,
    /// Adds how each result was scored.
    #[schema(default = false)]
    explain: Option<bool>,
    /// As of a time or change token.
    as_of: Option<String>,
}

impl SearchContext {
    /// Whether the current state of the workspace is searched.
    pub(crate) const fn is_of_now(&self) -> bool {
        self.as_of.is_none()
    }
}

/// One angle on the query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subquery {
    r#type: SubqueryType,
    #[schema(min_length = 1, max_length = 10000)]
    text: String,
}

/// The write that a search must see, and how long it may wait for it.
#[derive(Debug, Default)]
pub(crate) struct Freshness {
    pub(crate) after: Vec<proto::FeedPosition>,
    pub(crate) wait: Option<Duration>,
}

impl Freshness {
    /// From the two headers; `paths` are their names in errors.
    pub(crate) fn read(
        change: Option<&str>,
        wait_ms: Option<&str>,
        paths: (&str, &str),
    ) -> Result<Self, Problem> {
        let after = change.map(|tokens| change::parse(tokens, paths.0)).transpose()?.unwrap_or_default();
        let wait = wait_ms.map(|text| read_wait(text, paths.1)).transpose()?;
        Ok(Self { after, wait })
    }
}

fn read_wait(text: &str, path: &str) -> Result<Duration, Problem> {
    match text.trim().parse() {
        Ok(millis) if millis <= MAX_WAIT_MS => Ok(Duration::from_millis(millis)),
        _ => {
            let message = format!("must be a whole number of milliseconds from 0 to {MAX_WAIT_MS}");
            Err(Problem::validation(vec![Violation::new(path, "invalid_wait", message)]))
        }
    }
}

pub(crate) async fn search(
    context: &Context,
    input: SearchContext,
    freshness: Freshness,
) -> Result<SearchAnswer, Problem> {
    let request = context.call.request(asked(context, input, freshness)?);
    let answer = answered(context.upstreams.search().search_context(request).await)?;
    Ok(SearchAnswer::read(answer, &context.links))
}

/// The request to svc-retrieval.
pub(super) fn asked(
    context: &Context,
    input: SearchContext,
    freshness: Freshness,
) -> Result<proto::SearchContextRequest, Problem> {
    let after = freshness.after.into_iter().chain(context.own_writes()).collect();
    let max_wait = freshness.wait.and_then(|wait| prost_types::Duration::try_from(wait).ok());
    Ok(proto::SearchContextRequest { after, max_wait, ..message(input)? })
}

/// The request to svc-retrieval, without waiting for a write.
pub(super) fn message(input: SearchContext) -> Result<proto::SearchContextRequest, Problem> {
    let searches = input
        .searches
        .unwrap_or_default()
        .into_iter()
        .map(|angle| proto::Subquery { r#type: angle.r#type.into(), text: angle.text });
    let updated_after = time(input.updated_after.as_deref(), "updatedAfter")?;
    let updated_before = time(input.updated_before.as_deref(), "updatedBefore")?;
    let moment = PastMoment::read(input.as_of.as_deref(), None)?;
    let kinds = input.kinds.unwrap_or_default().into_iter();
    Ok(proto::SearchContextRequest {
        folder_id: input.folder_id,
        tags: input.tags.unwrap_or_default(),
        kinds: kinds.map(DocumentKind::number).collect(),
        updated_after,
        updated_before,
        query: input.query,
        strategy: input.strategy.map(Strategy::number).unwrap_or_default(),
        searches: searches.collect(),
        mode: input.mode.map(Mode::number).unwrap_or_default(),
        source_ids: input.source_ids.unwrap_or_default(),
        limit: input.limit.unwrap_or_default(),
        min_score: input.min_score,
        token_budget: input.token_budget.unwrap_or_default(),
        detail: input.detail.map(Detail::number).unwrap_or_default(),
        explain: input.explain.unwrap_or_default(),
        after: Vec::new(),
        max_wait: None,
        when: moment.and_then(PastMoment::of_search),
    })
}

/// Parses a time of the input.
fn time(text: Option<&str>, path: &str) -> Result<Option<prost_types::Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let time = Timestamp::parse_rfc3339(text).ok_or_else(|| {
        let message = "must be a time such as 2026-01-31T12:00:00Z";
        Problem::validation(vec![Violation::new(path, "invalid_time", message)])
    })?;
    Ok(Some(time.to_proto()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_0_to_10_000_milliseconds() {
        let read = |text| Freshness::read(None, Some(text), ("c", "w")).map(|freshness| freshness.wait);
        assert_eq!(read("0"), Ok(Some(Duration::ZERO)));
        assert_eq!(read("10000"), Ok(Some(Duration::from_secs(10))));
        for odd in ["10001", "-1", "", "1s"] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
