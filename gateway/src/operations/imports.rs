//! Archive imports, for people (spec 4.10). A run's id does not tell its workspace, so the person's workspaces are
//! searched.

pub(crate) mod form;

use std::pin::pin;

use axum::body::Bytes;
use cairn_chassis::status::{Problem, Reason, Violation};
use cairn_proto::domain::{ConflictPolicy, ImportProvider, ReportPart};
use cairn_proto::ids::{SyncRunId, WorkspaceId};
use cairn_proto::sync::v1 as proto;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use http::HeaderMap;
use serde::Deserialize;
use tonic::Status;
use utoipa::{IntoParams, ToSchema};

use super::assets::{CONCURRENT_WORKSPACES, workspaces_of};
use super::person::Person;
use super::{Page, answered, present};
use crate::answers::{ImportReport, ImportRun};
use crate::auth::{Authenticator, TokenCache};
use crate::error;
use crate::schema::inputs;

inputs!(ImportForm, AskedReport);

/// An archive to import, as the parts of a form.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ImportForm {
    /// The ZIP file of the vault or the export. Put it behind the other parts: then what is too large is refused before it is
    /// sent. Before them it may have at most 64 MiB.
    #[schema(format = Binary)]
    pub(crate) archive: String,
    /// Where it is imported.
    #[schema(format = "uuid")]
    pub(crate) workspace_id: String,
    /// The tool that it is from.
    pub(crate) provider: ImportProvider,
    /// What becomes of objects that changed since the last import: `update` when left out.
    pub(crate) conflict_policy: Option<ConflictPolicy>,
    /// Where the import's own folder goes: the root when left out.
    #[schema(format = "uuid")]
    pub(crate) folder_id: Option<String>,
}

/// Acts as the person in any of their workspaces.
pub(crate) struct WorkspaceAccess<'a> {
    pub(crate) person: &'a Person,
    pub(crate) tokens: &'a TokenCache,
    /// The session secret.
    pub(crate) session: &'a str,
}

impl<'a> WorkspaceAccess<'a> {
    /// From the headers of the person's request.
    pub(crate) fn of(person: &'a Person, authenticator: &'a Authenticator, headers: &'a HeaderMap) -> Self {
        let session = authenticator.session_secret(headers).unwrap_or_default();
        Self { person, tokens: authenticator.tokens(), session }
    }
}

impl WorkspaceAccess<'_> {
    /// The person's signed identity in a workspace.
    async fn identity(&self, workspace: WorkspaceId) -> Result<String, Problem> {
        let identity = self.tokens.session_in(self.session, workspace, &self.person.call).await?;
        Ok(identity.signed)
    }

    /// The request message for an archive.
    pub(crate) async fn draft(&self, form: ImportForm) -> Result<proto::ImportDraft, Problem> {
        let workspace = form.workspace_id.parse::<WorkspaceId>().map_err(|_| no_workspace())?;
        let identity = match self.identity(workspace).await {
            Err(problem) if problem.reason == Reason::NotFound => return Err(no_workspace()),
            identity => identity?,
        };
        Ok(proto::ImportDraft {
            provider: form.provider.number(),
            file_name: form.archive,
            conflict_policy: form.conflict_policy.map_or(0, ConflictPolicy::number),
            folder_id: form.folder_id.filter(|id| !id.is_empty()),
            identity: Some(identity),
        })
    }

    /// The person with their role in the run's workspace, and the run.
    pub(crate) async fn find(&self, id: SyncRunId) -> Result<(Person, ImportRun), Problem> {
        let asked =
            workspaces_of(self.person).await?.into_iter().map(|workspace| self.find_in(workspace, id));
        let mut asked = pin!(stream::iter(asked).buffered(CONCURRENT_WORKSPACES));
        while let Some(found) = asked.try_next().await? {
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(Problem::not_found(format!("no import run {id}")))
    }

    /// `None` whether the person is no member or the run does not exist.
    async fn find_in(
        &self,
        workspace: WorkspaceId,
        id: SyncRunId,
    ) -> Result<Option<(Person, ImportRun)>, Problem> {
        let is_unknown = |problem: &Problem| problem.reason == Reason::NotFound;
        let identity = match self.identity(workspace).await {
            Err(problem) if is_unknown(&problem) => return Ok(None),
            identity => identity?,
        };
        let call = self.person.call.clone().with_identity(&identity);
        let person = Person { call, ..self.person.clone() };
        match get(&person, id).await {
            Err(problem) if is_unknown(&problem) => Ok(None),
            answer => answer.map(|run| Some((person, run))),
        }
    }
}

/// Which entries of a report are asked for.
#[derive(Debug, Default, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct AskedReport {
    /// The list: `items` when left out.
    #[param(inline)]
    pub(crate) part: Option<ReportPart>,
    /// Of items: those with this action alone.
    pub(crate) action: Option<String>,
    /// How many at once: 1 to 1000, 50 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    pub(crate) limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    pub(crate) cursor: Option<String>,
}

/// A run of the person's workspace.
pub(crate) async fn get(person: &Person, id: SyncRunId) -> Result<ImportRun, Problem> {
    let request = person.call.request(proto::GetImportRequest { run_id: id.to_string() });
    present(answered(person.upstreams.imports().get_import(request).await)?.run)?.try_into()
}

/// The report of a run, as a stream.
pub(crate) async fn report(
    person: &Person,
    id: SyncRunId,
) -> Result<impl Stream<Item = Result<Bytes, Status>> + Send + 'static, Problem> {
    let request = person.call.request(proto::ReadImportReportRequest { run_id: id.to_string() });
    let coming = answered(person.upstreams.imports().read_import_report(request).await)?;
    Ok(coming.map_ok(|piece| piece.bytes))
}

/// A page of one of the report's lists.
pub(crate) async fn entries(
    person: &Person,
    id: SyncRunId,
    asked: AskedReport,
) -> Result<ImportReport, Problem> {
    let request = person.call.request(proto::ListReportEntriesRequest {
        run_id: id.to_string(),
        part: asked.part.map_or(0, ReportPart::number),
        action: asked.action.unwrap_or_default(),
        page_size: asked.limit.unwrap_or_default(),
        page_token: asked.cursor.unwrap_or_default(),
    });
    answered(person.upstreams.imports().list_report_entries(request).await)?.try_into()
}

/// Queues a run.
pub(crate) async fn start(person: &Person, id: SyncRunId) -> Result<ImportRun, Problem> {
    let request = person.call.request(proto::StartImportRequest { run_id: id.to_string() });
    present(answered(person.upstreams.imports().start_import(request).await)?.run)?.try_into()
}

/// Cancels a run.
pub(crate) async fn cancel(person: &Person, id: SyncRunId) -> Result<ImportRun, Problem> {
    let request = person.call.request(proto::CancelImportRequest { run_id: id.to_string() });
    present(answered(person.upstreams.imports().cancel_import(request).await)?.run)?.try_into()
}

/// Queues the rollback of a run.
pub(crate) async fn roll_back(person: &Person, id: SyncRunId) -> Result<ImportRun, Problem> {
    let request = person.call.request(proto::RollBackImportRequest { run_id: id.to_string() });
    present(answered(person.upstreams.imports().roll_back_import(request).await)?.run)?.try_into()
}

/// Does not reveal whether the workspace exists.
fn no_workspace() -> Problem {
    let message = "is no workspace that you are a member of";
    Problem::validation(vec![Violation::new("workspaceId", "invalid", message)])
}

/// Forwards an archive while it is being uploaded.
pub(crate) async fn preview(
    person: &Person,
    parts: impl Stream<Item = proto::PreviewImportRequest> + Send + 'static,
) -> Result<ImportRun, Problem> {
    let request = person.call.request(parts);
    let answer = person.upstreams.imports().preview_import(request).await;
    let previewed = answer.map_err(|status| error::from_upstream(&status))?.into_inner();
    present(previewed.run)?.try_into()
}

/// Runs of the person's workspace, newest first.
pub(crate) async fn list(person: &Person, page: super::Paging) -> Result<Page<ImportRun>, Problem> {
    let request = person.call.request(proto::ListImportsRequest {
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
    });
    let listed = answered(person.upstreams.imports().list_imports(request).await)?;
    Page::try_read(listed.runs, listed.next_page_token, listed.total_size)
}
