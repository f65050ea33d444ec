//! AnalyticsService.

use std::collections::HashMap;

use cairn_chassis::call::Call;
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1 as proto;
use cairn_proto::retrieval::v1::analytics_service_server::AnalyticsService;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::Service;
use crate::analytics::{self, Counts, Latency, Report, Sum};
use crate::error::Error;
use crate::search::DocumentDetails;
use crate::store::documents::Found;
use crate::store::firsts::Reached;

#[tonic::async_trait]
impl AnalyticsService for Service {
    async fn get_retrieval_analytics(
        &self,
        request: Request<proto::GetRetrievalAnalyticsRequest>,
    ) -> Result<Response<proto::GetRetrievalAnalyticsResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require_manager("reading the analytics of retrieval")?;
        let call = Call::from_metadata(request.metadata());
        let days = analytics::days(request.get_ref().days)?;
        let report = self.analytics().report(identity.workspace_id()?, days).await.map_err(Error::from)?;
        let documents = report.top_documents.iter().map(|found| (kind(found), found.id));
        let live = self.searcher().document_details(&call, documents).await?;
        Ok(Response::new(encode(report, live)))
    }

    async fn get_freshness(
        &self,
        request: Request<proto::GetFreshnessRequest>,
    ) -> Result<Response<proto::GetFreshnessResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        identity.require_manager("reading the analytics of retrieval")?;
        let call = Call::from_metadata(request.metadata());
        let days = analytics::days(request.get_ref().days)?;
        let cited = self.analytics().cited(identity.workspace_id()?, days).await.map_err(Error::from)?;
        let (cited, at) = cited;
        let mut live = self
            .searcher()
            .document_details(&call, cited.iter().map(|found| (kind(found), found.id)))
            .await?;
        let documents = cited.iter().filter_map(|found| Some(encode_cited(found, live.remove(&found.id)?)));
        Ok(Response::new(proto::GetFreshnessResponse {
            documents: documents.collect(),
            generated_at: Some(at.to_proto()),
        }))
    }

    async fn record_connection(
        &self,
        request: Request<proto::RecordConnectionRequest>,
    ) -> Result<Response<proto::RecordConnectionResponse>, Status> {
        let identity = self.verifier().authenticate(request.metadata()).await?;
        let channel = Call::from_metadata(request.metadata()).channel();
        self.analytics().note_connection(identity.workspace_id()?, channel);
        Ok(Response::new(proto::RecordConnectionResponse {}))
    }
}

fn kind(found: &Found) -> Kind {
    Kind::from_str_name(&found.kind).unwrap_or_default()
}

fn encode(report: Report, mut live: HashMap<Uuid, DocumentDetails>) -> proto::GetRetrievalAnalyticsResponse {
    let top = |found: Found| encode_document(&found, live.remove(&found.id));
    let days = report.days.into_iter().map(|day| proto::RetrievalDay {
        date: day.day.date(),
        retrievals: Some(encode_counts(day.sum.counts)),
        latency: day.sum.latency.map(encode_latency),
    });
    let by_principal = report.by_principal.into_iter().map(|((kind, id), counts)| proto::PrincipalShare {
        kind,
        id,
        retrievals: Some(encode_counts(counts)),
    });
    proto::GetRetrievalAnalyticsResponse {
        days: days.collect(),
        total: Some(encode_counts(report.total.counts)),
        latency: report.total.latency.map(encode_latency),
        top_documents: report.top_documents.into_iter().map(top).collect(),
        first_successful_retrieval: report.first_success.map(encode_first),
        mcp_activation: Some(proto::McpActivation {
            first_connection_at: report.mcp.connection.map(|at| at.to_proto()),
            first_retrieval_at: report.mcp.retrieval.map(|at| at.to_proto()),
            first_successful_retrieval_at: report.mcp.success.map(|at| at.to_proto()),
        }),
        by_operation: report.by_operation.into_iter().map(encode_share).collect(),
        by_channel: encode_shares(report.by_channel),
        by_strategy: encode_shares(report.by_strategy),
        by_plan: encode_shares(report.by_plan),
        by_principal: by_principal.collect(),
        generated_at: Some(report.at.to_proto()),
    }
}

const fn encode_counts(counts: Counts) -> proto::Retrievals {
    let Counts { total, failed, empty, cached, results, content_bytes, provider_operations } = counts;
    proto::Retrievals { total, failed, empty, cached, results, content_bytes, provider_operations }
}

const fn encode_latency(latency: Latency) -> proto::Latency {
    proto::Latency { p50_micros: latency.p50_micros, p95_micros: latency.p95_micros }
}

fn encode_document(found: &Found, live: Option<DocumentDetails>) -> proto::TopDocument {
    let (title, path, url) = match live {
        Some(live) => (Some(live.title), Some(live.path), Some(live.url)),
        None => (None, None, None),
    };
    proto::TopDocument {
        kind: kind(found).into(),
        id: found.id.hyphenated().to_string(),
        retrievals: found.counts.retrievals,
        best: found.counts.best,
        title,
        path,
        url,
    }
}

fn encode_cited(found: &Found, live: DocumentDetails) -> proto::CitedDocument {
    proto::CitedDocument {
        kind: kind(found).into(),
        id: found.id.hyphenated().to_string(),
        retrievals: found.counts.retrievals,
        title: live.title,
        path: live.path,
        url: live.url,
        updated_at: live.updated_at,
    }
}

fn encode_first(first: Reached) -> proto::FirstRetrieval {
    proto::FirstRetrieval {
        at: Some(first.at.to_proto()),
        operation: first.operation,
        channel: first.channel,
    }
}

fn encode_share((value, sum): (String, Sum)) -> proto::RetrievalShare {
    proto::RetrievalShare {
        value,
        retrievals: Some(encode_counts(sum.counts)),
        latency: sum.latency.map(encode_latency),
    }
}

fn encode_shares(shares: impl IntoIterator<Item = (String, Counts)>) -> Vec<proto::RetrievalShare> {
    let sum = |(value, counts)| encode_share((value, Sum { counts, latency: None }));
    shares.into_iter().map(sum).collect()
}
