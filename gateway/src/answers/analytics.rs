//! Retrieval analytics of a workspace (spec 4.11).

use cairn_proto::domain::DocumentKind;
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Links, optional_time, time};

const MICROS_PER_MILLISECOND: f64 = 1e3;

/// The last days of a workspace.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RetrievalAnalytics {
    pub(crate) workspace_id: String,
    pub(crate) days: usize,
    /// The first UTC day, as `2026-11-21`.
    pub(crate) from: String,
    /// The last, which is today.
    pub(crate) to: String,
    pub(crate) generated_at: String,
    #[serde(flatten)]
    pub(crate) total: Figures,
    pub(crate) first_successful_retrieval: Option<FirstRetrieval>,
    pub(crate) mcp_activation: McpActivation,
    pub(crate) top_documents: Vec<TopDocument>,
    pub(crate) daily: Vec<Day>,
    pub(crate) billing_dimensions: BillingDimensions,
}

/// How many retrievals, with what success, and how fast. A rate of nothing is null.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    pub(crate) query_volume: u64,
    pub(crate) failed_count: u64,
    pub(crate) no_result_count: u64,
    /// Of those that were answered.
    pub(crate) no_result_rate: Option<f64>,
    pub(crate) cache_hit_count: u64,
    /// Of those that were answered.
    pub(crate) cache_rate: Option<f64>,
    pub(crate) latency: Option<Latency>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Day {
    pub(crate) date: String,
    #[serde(flatten)]
    pub(crate) figures: Figures,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FirstRetrieval {
    pub(crate) at: String,
    pub(crate) operation: String,
    pub(crate) channel: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct McpActivation {
    /// Whether an agent has got evidence over MCP.
    pub(crate) activated: bool,
    pub(crate) first_connection_at: Option<String>,
    pub(crate) first_retrieval_at: Option<String>,
    pub(crate) first_successful_retrieval_at: Option<String>,
}

/// A document that lives no more has no title, path and url.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TopDocument {
    pub(crate) kind: DocumentKind,
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) url: Option<String>,
    /// Retrievals that returned a piece of it.
    pub(crate) retrieval_count: u64,
    /// Those where its piece was the best.
    pub(crate) best_count: u64,
}

/// What may be billed, in all and by each dimension.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BillingDimensions {
    pub(crate) total: Amounts,
    pub(crate) operations: Vec<Share>,
    pub(crate) channels: Vec<Share>,
    pub(crate) strategies: Vec<Share>,
    pub(crate) plans: Vec<Share>,
    pub(crate) principals: Vec<PrincipalShare>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Amounts {
    pub(crate) retrieval_count: u64,
    pub(crate) failed_count: u64,
    pub(crate) no_result_count: u64,
    pub(crate) result_count: u64,
    pub(crate) content_bytes: u64,
    pub(crate) provider_operations: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Share {
    pub(crate) value: String,
    #[serde(flatten)]
    pub(crate) amounts: Amounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<Latency>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrincipalShare {
    pub(crate) kind: String,
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) amounts: Amounts,
}

impl RetrievalAnalytics {
    pub(crate) fn read(
        workspace: WorkspaceId,
        answer: proto::GetRetrievalAnalyticsResponse,
        links: &Links,
    ) -> Self {
        let date = |day: Option<&proto::RetrievalDay>| day.map(|day| day.date.clone()).unwrap_or_default();
        let counts = answer.total.unwrap_or_default();
        let shares = |shares: Vec<proto::RetrievalShare>| shares.into_iter().map(Into::into).collect();
        Self {
            workspace_id: workspace.to_string(),
            days: answer.days.len(),
            from: date(answer.days.first()),
            to: date(answer.days.last()),
            generated_at: time(answer.generated_at.as_ref()),
            total: Figures::read(counts, answer.latency),
            first_successful_retrieval: answer.first_successful_retrieval.map(Into::into),
            mcp_activation: answer.mcp_activation.unwrap_or_default().into(),
            top_documents: answer
                .top_documents
                .into_iter()
                .map(|document| TopDocument::read(document, links))
                .collect(),
            daily: answer.days.into_iter().map(Into::into).collect(),
            billing_dimensions: BillingDimensions {
                total: counts.into(),
                operations: shares(answer.by_operation),
                channels: shares(answer.by_channel),
                strategies: shares(answer.by_strategy),
                plans: shares(answer.by_plan),
                principals: answer.by_principal.into_iter().map(Into::into).collect(),
            },
        }
    }
}

impl Figures {
    fn read(counts: proto::Retrievals, latency: Option<proto::Latency>) -> Self {
        let answered = counts.total.saturating_sub(counts.failed);
        Self {
            query_volume: counts.total,
            failed_count: counts.failed,
            no_result_count: counts.empty,
            no_result_rate: rate(counts.empty, answered),
            cache_hit_count: counts.cached,
            cache_rate: rate(counts.cached, answered),
            latency: latency.map(Into::into),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
fn rate(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl From<proto::Latency> for Latency {
    #[expect(clippy::cast_precision_loss, reason = "microseconds of days fit in 53 bits")]
    fn from(latency: proto::Latency) -> Self {
        Self {
            p50_ms: latency.p50_micros as f64 / MICROS_PER_MILLISECOND,
            p95_ms: latency.p95_micros as f64 / MICROS_PER_MILLISECOND,
        }
    }
}

impl From<proto::RetrievalDay> for Day {
    fn from(day: proto::RetrievalDay) -> Self {
        Self { figures: Figures::read(day.retrievals.unwrap_or_default(), day.latency), date: day.date }
    }
}

impl From<proto::FirstRetrieval> for FirstRetrieval {
    fn from(first: proto::FirstRetrieval) -> Self {
        Self { at: time(first.at.as_ref()), operation: first.operation, channel: first.channel }
    }
}

impl From<proto::McpActivation> for McpActivation {
    fn from(activation: proto::McpActivation) -> Self {
        Self {
            activated: activation.first_successful_retrieval_at.is_some(),
            first_connection_at: optional_time(activation.first_connection_at.as_ref()),
            first_retrieval_at: optional_time(activation.first_retrieval_at.as_ref()),
            first_successful_retrieval_at: optional_time(activation.first_successful_retrieval_at.as_ref()),
        }
    }
}

impl TopDocument {
    fn read(document: proto::TopDocument, links: &Links) -> Self {
        Self {
            kind: DocumentKind::from_number(document.kind).unwrap_or_default(),
            id: document.id,
            title: document.title,
            path: document.path,
            url: document.url.map(|path| links.to(&path)),
            retrieval_count: document.retrievals,
            best_count: document.best,
        }
    }
}

impl From<proto::Retrievals> for Amounts {
    fn from(counts: proto::Retrievals) -> Self {
        Self {
            retrieval_count: counts.total,
            failed_count: counts.failed,
            no_result_count: counts.empty,
            result_count: counts.results,
            content_bytes: counts.content_bytes,
            provider_operations: counts.provider_operations,
        }
    }
}

impl From<proto::RetrievalShare> for Share {
    fn from(share: proto::RetrievalShare) -> Self {
        Self {
            value: share.value,
            amounts: share.retrievals.unwrap_or_default().into(),
            latency: share.latency.map(Into::into),
        }
    }
}

impl From<proto::PrincipalShare> for PrincipalShare {
    fn from(share: proto::PrincipalShare) -> Self {
        Self { kind: share.kind, id: share.id, amounts: share.retrievals.unwrap_or_default().into() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(counts: proto::Retrievals) -> Value {
        let answer = proto::GetRetrievalAnalyticsResponse { total: Some(counts), ..Default::default() };
        let workspace = "0199c0de-0000-7000-8000-0000000000a1".parse().unwrap();
        serde_json::to_value(RetrievalAnalytics::read(workspace, answer, &Links::new(None))).unwrap()
    }

    #[test]
    fn rates_are_of_what_was_answered_and_null_of_nothing() {
        let some =
            read(proto::Retrievals { total: 10, failed: 2, empty: 2, cached: 4, ..Default::default() });
        assert_eq!((&some["noResultRate"], &some["cacheRate"]), (&json!(0.25), &json!(0.5)));
        for counts in
            [proto::Retrievals::default(), proto::Retrievals { total: 3, failed: 3, ..Default::default() }]
        {
            let none = read(counts);
            assert_eq!((&none["noResultRate"], &none["cacheRate"]), (&Value::Null, &Value::Null));
            assert_eq!(none["latency"], Value::Null);
        }
    }
}
