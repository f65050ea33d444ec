//! Directory sync (spec 4.7): previews, runs, rollbacks.

use cairn_chassis::call::Call;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::{ConflictPolicy, FileType};
use cairn_proto::ids::SyncRunId;
use cairn_proto::sync::v1 as proto;
use serde::Deserialize;
use utoipa::ToSchema;

use super::person::Person;
use super::{Context, Page, Paging, answered, present};
use crate::answers::SyncRun;
use crate::schema::inputs;
use crate::upstreams::Upstreams;

inputs!(PreviewSync);

/// A directory as it is now.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PreviewSync {
    manifest: Manifest,
    /// What becomes of documents that changed: `update` when left out.
    conflict_policy: Option<ConflictPolicy>,
    /// Whether files that earlier runs wrote and the manifest lacks go to trash.
    #[serde(default)]
    #[schema(value_type = bool, required = false)]
    prune: Option<bool>,
    /// Where the directory goes: the root when it is null or left out.
    #[schema(format = "uuid")]
    folder_id: Option<String>,
}

/// All documents of a directory.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Manifest {
    /// By which the next sync of the directory is known.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// At most 5 000, of 5 MB each and 24 MB in all of those that are sent with their content.
    documents: Vec<ManifestDocument>,
}

/// A document of a directory.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ManifestDocument {
    /// Relative to the directory, with `/` between names.
    #[schema(examples("guides/setup.md"))]
    path: String,
    /// Needed unless `contentHash` stands for it.
    content: Option<String>,
    /// Instead of the content: its hash, where the last run of this sync left that content under this path.
    #[schema(pattern = "^blake3:[0-9a-f]{64}$")]
    content_hash: Option<String>,
    /// By the extension when left out.
    file_type: Option<FileType>,
}

pub(crate) async fn preview(context: &Context, input: PreviewSync) -> Result<SyncRun, Problem> {
    let missing = |(place, one): (usize, &ManifestDocument)| {
        let path = format!("manifest.documents[{place}].content");
        let is_missing = one.content.is_none() && one.content_hash.is_none();
        is_missing.then(|| Violation::new(path, "required", "is required, or 'contentHash' instead"))
    };
    let missing: Vec<Violation> = input.manifest.documents.iter().enumerate().filter_map(missing).collect();
    if !missing.is_empty() {
        return Err(Problem::validation(missing));
    }
    let document = |one: ManifestDocument| proto::ManifestDocument {
        path: one.path,
        content: one.content.unwrap_or_default(),
        content_hash: one.content_hash,
        file_type: one.file_type.map_or(0, FileType::number),
    };
    let request = context.call.request(proto::PreviewSyncRequest {
        name: input.manifest.name,
        documents: input.manifest.documents.into_iter().map(document).collect(),
        conflict_policy: input.conflict_policy.map_or(0, ConflictPolicy::number),
        prune: input.prune.unwrap_or_default(),
        folder_id: input.folder_id,
    });
    let previewed = answered(context.upstreams.syncs().preview_sync(request).await).map_err(in_manifest)?;
    present(previewed.run)?.try_into()
}

/// Violations in the manifest's fields, which the service takes at the top level.
fn in_manifest(mut problem: Problem) -> Problem {
    for violation in &mut problem.violations {
        if violation.path == "name" || violation.path.starts_with("documents") {
            violation.path.insert_str(0, "manifest.");
        }
    }
    problem
}

/// A run, with the outcome of each document once it is done.
pub(crate) async fn get(upstreams: &Upstreams, call: &Call, id: SyncRunId) -> Result<SyncRun, Problem> {
    let request = call.request(proto::GetSyncRequest { run_id: id.to_string() });
    present(answered(upstreams.syncs().get_sync(request).await)?.run)?.try_into()
}

/// Queues a run.
pub(crate) async fn start(upstreams: &Upstreams, call: &Call, id: SyncRunId) -> Result<SyncRun, Problem> {
    let request = call.request(proto::StartSyncRequest { run_id: id.to_string() });
    let started = answered(upstreams.syncs().start_sync(request).await).map_err(in_manifest)?;
    present(started.run)?.try_into()
}

/// Deletes a run; the files it wrote remain.
pub(crate) async fn delete(upstreams: &Upstreams, call: &Call, id: SyncRunId) -> Result<(), Problem> {
    let request = call.request(proto::DeleteSyncRequest { run_id: id.to_string() });
    answered(upstreams.syncs().delete_sync(request).await).map(drop)
}

/// Cancels a run.
pub(crate) async fn cancel(person: &Person, id: SyncRunId) -> Result<SyncRun, Problem> {
    let request = person.call.request(proto::CancelSyncRequest { run_id: id.to_string() });
    present(answered(person.upstreams.syncs().cancel_sync(request).await)?.run)?.try_into()
}

/// Runs of the person's workspace, newest first; optionally of one sync only.
pub(crate) async fn list(
    person: &Person,
    name: Option<String>,
    page: Paging,
) -> Result<Page<SyncRun>, Problem> {
    let request = person.call.request(proto::ListSyncsRequest {
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
        name: name.unwrap_or_default(),
    });
    let listed = answered(person.upstreams.syncs().list_syncs(request).await)?;
    Page::try_read(listed.runs, listed.next_page_token, listed.total_size)
}

/// Queues the rollback of a run.
pub(crate) async fn roll_back(person: &Person, id: SyncRunId) -> Result<SyncRun, Problem> {
    let request = person.call.request(proto::RollBackSyncRequest { run_id: id.to_string() });
    present(answered(person.upstreams.syncs().roll_back_sync(request).await)?.run)?.try_into()
}
