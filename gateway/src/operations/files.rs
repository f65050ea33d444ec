//! Files: create, read, list, update, trash, find by name.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::common::v1::ErrorReason;
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::FileType;
use cairn_proto::ids::FileId;
use serde::Deserialize;
use utoipa::ToSchema;

use super::past_moment::PastMoment;
use super::{Context, Page, Paging, Written, answered, folder_choice, null_or_value, present, update};
use crate::answers::File;
use crate::change;
use crate::schema::inputs;

inputs!(CreateFile, UpdateFile, SearchFiles);

/// A file to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CreateFile {
    /// The name with its ending, such as `notes.md`: 1 to 255 characters without `/`.
    #[schema(min_length = 1, max_length = 255, examples("notes.md"))]
    name: String,
    /// The whole text, at most 5 MiB.
    content: String,
    file_type: FileType,
    /// The id of the folder it goes into; the root when left out.
    #[schema(format = "uuid")]
    folder_id: Option<String>,
    /// Words to group files by.
    tags: Option<Vec<String>>,
    /// What it is for; lists show it.
    #[schema(max_length = 1000)]
    description: Option<String>,
}

/// Changes of a file: fields that are left out stay as they are.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UpdateFile {
    /// The new name: 1 to 255 characters without `/`.
    #[serde(default)]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 255)]
    name: Option<String>,
    /// The new text, whole, at most 5 MiB.
    #[serde(default)]
    #[schema(value_type = String, required = false)]
    content: Option<String>,
    /// The folder to move it to; null for the root.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, format = "uuid")]
    folder_id: Option<Option<String>>,
    /// All its tags from now on.
    #[serde(default)]
    #[schema(value_type = Vec<String>, required = false)]
    tags: Option<Vec<String>>,
    /// What it is for, in a few words; null for none.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Option<Option<String>>,
}

impl UpdateFile {
    pub(crate) fn of_content(content: String, description: Option<Option<String>>) -> Self {
        Self { content: Some(content), description, ..Self::default() }
    }
}

/// What to look for in names.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SearchFiles {
    /// Part of a file's name; upper and lower case are the same.
    #[schema(min_length = 1, max_length = 255, examples("onboard"))]
    query: String,
    /// Only in this folder and below it.
    #[schema(format = "uuid")]
    folder_id: Option<String>,
    /// Only files with this tag.
    tag: Option<String>,
    /// How many at most.
    #[schema(minimum = 1, maximum = 1000, default = 50)]
    limit: Option<u32>,
}

/// Filters of the list.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// `None` for the whole workspace.
    folder: Option<proto::FolderFilter>,
    /// A file must have all of them.
    tags: Vec<String>,
}

impl Selection {
    /// From `folderId`: everywhere, the root's own files, or a folder's own files.
    pub(crate) fn of_filter(folder_id: Option<String>) -> Result<Self, Problem> {
        let choice = folder_choice(folder_id, "folderId")?;
        let folder = choice.map(|folder_id| proto::FolderFilter { folder_id, recursive: false });
        Ok(Self { folder, tags: Vec::new() })
    }

    pub(crate) fn of_folder(folder_id: String, recursive: bool) -> Self {
        Self { folder: Some(proto::FolderFilter { folder_id: Some(folder_id), recursive }), tags: Vec::new() }
    }

    /// Restricts the selection to files with all of these tags.
    pub(crate) fn with_tags(self, tags: Vec<String>) -> Self {
        Self { tags, ..self }
    }
}

pub(crate) async fn create(context: &Context, input: CreateFile) -> Result<Written<File>, Problem> {
    let request = context.call.request(proto::CreateFileRequest {
        name: input.name,
        content: input.content,
        file_type: input.file_type.into(),
        folder_id: input.folder_id,
        tags: input.tags.unwrap_or_default(),
        description: input.description,
    });
    let created = answered(context.upstreams.files().create_file(request).await)?;
    written(created.file, created.change_position)
}

pub(crate) async fn get(context: &Context, id: FileId) -> Result<File, Problem> {
    let request = context.call.request(proto::GetFileRequest { file_id: id.to_string() });
    let found = answered(context.upstreams.files().get_file(request).await)?;
    present(found.file)
}

/// A file, or why it could not be read.
pub(crate) type Outcome = Result<File, Problem>;

/// Several files at once, each with its own outcome, at a past moment or as they are now. Contents larger than
/// `max_bytes` are omitted.
pub(crate) async fn get_many(
    context: &Context,
    ids: Vec<String>,
    max_bytes: u64,
    moment: Option<PastMoment>,
) -> Result<Vec<(String, Outcome)>, Problem> {
    let when = moment.and_then(PastMoment::of_files);
    let message = proto::BatchGetFilesRequest { file_ids: ids, max_content_bytes: max_bytes, when };
    let request = context.call.request(message);
    let answer = answered(context.upstreams.files().batch_get_files(request).await)?;
    let read = |one: proto::FileOutcome| match one.outcome {
        Some(proto::file_outcome::Outcome::File(file)) => Ok((one.file_id, Ok(file))),
        Some(proto::file_outcome::Outcome::Problem(problem)) => Ok((one.file_id, Err(problem_of(problem)))),
        None => Err(Problem::internal("a response lacks a file's outcome")),
    };
    answer.outcomes.into_iter().map(read).collect()
}

fn problem_of(problem: proto::FileProblem) -> Problem {
    let reason = problem.reason();
    if reason == ErrorReason::OutOfScope {
        return Problem::out_of_scope(problem.message);
    }
    if reason == ErrorReason::Gone {
        return Problem::new(Reason::Gone, problem.message);
    }
    Problem::not_found(problem.message)
}

pub(crate) async fn list(
    context: &Context,
    selection: Selection,
    paging: Paging,
) -> Result<Page<File>, Problem> {
    let request = context.call.request(proto::ListFilesRequest {
        folder: selection.folder,
        page_size: paging.limit.unwrap_or_default(),
        page_token: paging.cursor.unwrap_or_default(),
        tags: selection.tags,
    });
    let listed = answered(context.upstreams.files().list_files(request).await)?;
    Ok(Page::read(listed.files, listed.next_page_token, listed.total_size))
}

/// Updates a file, unless `if_match` is given and does not match its content hash.
pub(crate) async fn update(
    context: &Context,
    id: FileId,
    input: UpdateFile,
    if_match: Vec<String>,
) -> Result<Written<File>, Problem> {
    let request = context.call.request(proto::UpdateFileRequest {
        file_id: id.to_string(),
        if_content_hash: if_match,
        ..update!(input => UpdateFileRequest { name, content, folder_id, tags, description })
    });
    let updated = answered(context.upstreams.files().update_file(request).await)?;
    written(updated.file, updated.change_position)
}

/// Moves a file to trash.
pub(crate) async fn delete(context: &Context, id: FileId) -> Result<Written<()>, Problem> {
    let request = context.call.request(proto::DeleteFileRequest { file_id: id.to_string() });
    let deleted = answered(context.upstreams.files().delete_file(request).await)?;
    Ok(Written { value: (), change: change::of_content(deleted.change_position) })
}

/// Finds files by name: exact matches first, then prefixes, then the rest.
pub(crate) async fn search(context: &Context, input: SearchFiles) -> Result<Page<File>, Problem> {
    let request = context.call.request(proto::SearchFilesRequest {
        query: input.query,
        folder_id: input.folder_id,
        limit: input.limit.unwrap_or_default(),
        tags: input.tag.into_iter().collect(),
    });
    let found = answered(context.upstreams.files().search_files(request).await)?;
    Ok(Page::read(found.files, String::new(), found.total_size))
}

fn written(file: Option<proto::File>, position: u64) -> Result<Written<File>, Problem> {
    Ok(Written { value: present(file)?, change: change::of_content(position) })
}
