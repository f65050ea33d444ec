//! Converts sources and their runs from and to protobuf.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::wording;
use cairn_proto::domain::SourceMode;
use cairn_proto::ingest::v1 as proto;

use crate::model::{DocumentStatus, IngestStatus, ListedDocument, Run, SourceDetails};
use crate::rpc::encode_format;
use crate::sources::{DocumentDetails, Draft, Fetched, Patch, Secret, StatusCounts, shown_every};

/// The fields that an update mask may name.
const FIELDS: [&str; 8] =
    ["name", "provider", "mode", "settings", "credentials", "every", "daily_budget", "paused"];

pub(super) fn draft(sent: proto::SourceDraft) -> Draft {
    Draft {
        mode: SourceMode::from_number(sent.mode),
        name: sent.name,
        provider: sent.provider,
        settings: sent.settings.to_vec(),
        credentials: Secret(sent.credentials.to_vec()),
        every: sent.every,
        daily_budget: sent.daily_budget,
        paused: sent.paused,
    }
}

/// The id of the source to update, and the patch.
pub(super) fn patch(request: proto::UpdateSourceRequest) -> (String, Patch) {
    let paths = request.update_mask.map(|mask| mask.paths).unwrap_or_default();
    let (known, unknown): (Vec<String>, Vec<String>) =
        paths.into_iter().partition(|path| FIELDS.contains(&path.as_str()));
    let draft = draft(request.source.unwrap_or_default());
    let named = |field: &str| known.iter().any(|known| known == field);
    let unknown =
        unknown.into_iter().map(|path| format!("'{path}' cannot be updated; {} can", wording::and(&FIELDS)));
    let patch = Patch {
        name: named("name").then_some(draft.name),
        provider: named("provider").then_some(draft.provider),
        mode: named("mode").then_some(draft.mode),
        settings: named("settings").then_some(draft.settings),
        credentials: named("credentials").then_some(draft.credentials),
        every: named("every").then_some(draft.every),
        daily_budget: named("daily_budget").then_some(draft.daily_budget),
        paused: named("paused").then_some(draft.paused),
        unknown_fields: unknown.collect(),
    };
    (request.source_id, patch)
}

pub(super) fn source(shown: &SourceDetails, now: Timestamp) -> proto::Source {
    let source = &shown.source;
    proto::Source {
        id: source.id.to_string(),
        name: source.name.clone(),
        provider: source.provider.as_str().to_owned(),
        mode: source.mode.number(),
        status: shown.status(now).as_str().to_owned(),
        document_count: source.documents,
        last_synced_at: source.last_synced_at.map(Timestamp::to_proto),
        error: source.error.clone(),
    }
}

pub(super) fn connected(shown: &SourceDetails, now: Timestamp) -> proto::ConnectedSource {
    let kept = &shown.source;
    proto::ConnectedSource {
        source: Some(source(shown, now)),
        settings: kept.settings.to_string().into(),
        account: kept.account.clone().filter(|account| !account.is_empty()),
        credential_hint: kept.credential_hint.clone(),
        every: shown_every(kept.every),
        next_sync_at: kept.next_run_at.map(Timestamp::to_proto),
        paused: kept.paused,
        budget: Some(proto::SourceBudget {
            limit: kept.daily_budget,
            used: shown.used_today,
            remaining: kept.daily_budget.saturating_sub(shown.used_today),
        }),
        run: shown.run.as_ref().map(run),
        waiting_until: shown.waiting_until(now).map(Timestamp::to_proto),
    }
}

pub(super) fn run(run: &Run) -> proto::SourceRun {
    let counters = run.counters;
    proto::SourceRun {
        id: run.id.to_string(),
        kind: run.kind.number(),
        status: run.state.number(),
        complete: run.complete,
        counters: Some(proto::SourceRunCounters {
            listed: counters.listed,
            fetched: counters.fetched,
            unchanged: counters.unchanged,
            created: counters.created,
            updated: counters.updated,
            removed: counters.removed,
            failed: counters.failed,
            operations: counters.operations,
        }),
        warnings: run.warnings.iter().map(|warning| note(&warning.code, &warning.message)).collect(),
        error: run.error.clone(),
        started_at: run.started_at.map(Timestamp::to_proto),
        finished_at: run.finished_at.map(Timestamp::to_proto),
        waiting_until: run.waiting_until.map(Timestamp::to_proto),
    }
}

pub(super) fn document(listed: ListedDocument) -> proto::SourceDocument {
    proto::SourceDocument {
        id: listed.id.to_string(),
        source_id: listed.source.to_string(),
        title: listed.title,
        external_id: listed.external_id,
        mime_type: listed.mime_type,
        index_status: listed.status.as_str().to_owned(),
        last_synced_at: Some(listed.synced_at.to_proto()),
        error: listed.error,
    }
}

pub(super) fn status_counts(counts: &StatusCounts) -> proto::CountDocumentsResponse {
    let mut ingested = proto::DocumentCounts::default();
    for (status, count) in &counts.ingested {
        match status {
            IngestStatus::Pending => ingested.pending += count,
            IngestStatus::Indexing => ingested.indexing += count,
            IngestStatus::Indexed => ingested.indexed += count,
            IngestStatus::Failed => ingested.failed += count,
        }
    }
    let mut of_sources = proto::DocumentCounts::default();
    for (status, count) in &counts.of_sources {
        match status {
            DocumentStatus::Pending => of_sources.pending += count,
            DocumentStatus::Indexing => of_sources.indexing += count,
            DocumentStatus::Indexed => of_sources.indexed += count,
            DocumentStatus::Catalog => of_sources.catalog += count,
            DocumentStatus::Failed => of_sources.failed += count,
        }
    }
    proto::CountDocumentsResponse { ingested: Some(ingested), of_sources: Some(of_sources) }
}

pub(super) fn document_details(details: DocumentDetails) -> proto::GetSourceDocumentResponse {
    let (source, view) = (details.source, details.view);
    let format = view.as_ref().map(|view| view.format).unwrap_or_default();
    let (path, updated_at, hash) = match view {
        Some(view) => (view.path, Some(view.updated_at.to_proto()), view.content_hash),
        None => (String::new(), None, None),
    };
    proto::GetSourceDocumentResponse {
        source_name: source.name,
        provider: source.provider.as_str().to_owned(),
        mode: source.mode.number(),
        url: details.document.url.clone(),
        document: Some(document(details.document)),
        path,
        updated_at,
        content_hash: hash.filter(|_| details.text.is_some()).unwrap_or_default(),
        content: details.text.map(Into::into),
        format: encode_format(format).into(),
    }
}

pub(super) fn fetched(fetched: Fetched) -> proto::FetchSourceDocumentResponse {
    let operations = proto::ProviderOperations { used: fetched.used, remaining_today: fetched.remaining };
    proto::FetchSourceDocumentResponse {
        citation: Some(proto::SourceCitation {
            label: fetched.title.clone(),
            url: fetched.url.unwrap_or_default(),
            document_id: fetched.id,
            external_id: fetched.external_id,
            path: fetched.path,
            content_hash: fetched.content_hash,
            is_live: fetched.is_live,
            updated_at: fetched.updated_at.map(Timestamp::to_proto),
        }),
        title: fetched.title,
        content: fetched.content,
        provider_operations: Some(operations),
    }
}

fn note(code: &str, message: &str) -> proto::SourceNote {
    proto::SourceNote { code: code.to_owned(), message: message.to_owned() }
}
