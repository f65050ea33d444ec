//! Tools for files: list, find by name, create, replace, move to trash.

use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::ids::FileId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arguments::Arguments;
use super::folders::FIND_FOLDER;
use super::outcome::{Outcome, go_on};
use super::{DEFAULT_ITEMS, Hints, Terms, Tool};
use crate::answers::File;
use crate::operations::files::{self, CreateFile, SearchFiles, Selection, UpdateFile};
use crate::operations::{Context, Paging, Written, null_or_value};
use crate::schema::{Input as _, inlined, inputs};

inputs!(ListFiles, UpdateFileContent, DeleteFile);

pub(super) const FIND_BY_NAME: &str = "call search_files with {\"query\": \"{name}\"} to get the file's id.";

/// Lists one folder or all files.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListFiles {
    /// Only the files directly in this folder: its id, or `root`. Left out: every file of the workspace.
    #[schema(examples("root"))]
    folder_id: Option<String>,
    /// How many at most.
    #[schema(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// From the note of the page before.
    cursor: Option<String>,
}

/// A file and its new text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UpdateFileContent {
    /// The file's id, from a result of another tool.
    #[schema(format = "uuid")]
    id: String,
    /// The whole new text: it replaces the old one, at most 5 MiB.
    content: String,
    /// What it is for: left out, it stays; null, none.
    #[serde(default, deserialize_with = "null_or_value")]
    #[schema(value_type = Option<String>, max_length = 1000)]
    description: Option<Option<String>>,
}

/// Names a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DeleteFile {
    /// The file's id, from a result of another tool.
    #[schema(format = "uuid")]
    id: String,
}

/// Files without their content.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read: the list is written by Outcome::list")]
struct Files {
    files: Vec<File>,
    /// How many there are in all.
    total: u64,
    /// How to get those that are not here.
    note: Option<String>,
}

/// What became of a deletion.
#[derive(Serialize, ToSchema)]
pub(super) struct Deleted {
    success: bool,
    id: String,
    message: &'static str,
}

impl Deleted {
    pub(super) fn new(id: String, message: &'static str) -> Self {
        Self { success: true, id, message }
    }
}

pub(super) static LIST_FILES: Tool = Tool {
    name: "list_files",
    title: "List files",
    description: "List files by name with id, path, type, size and times, without their content. Use it to see what a \
        folder holds. To find a file by part of its name use search_files; for what files say use search_context; for a \
        whole tree in one look browse_context with `tree /files`. Example: {\"folderId\": \"root\"} \
        lists the files that are in no folder.",
    hints: Hints::READ,
    terms: Terms::LIST,
    input: ListFiles::contract,
    output: Some(inlined::<Files>),
    recovery: FIND_FOLDER,
    run: |context, arguments| Box::pin(list(context, arguments)),
};

pub(super) static CREATE_FILE: Tool = Tool {
    name: "create_file",
    title: "Create a file",
    description: "Keep something new: makes a file with a name, a content and a type, in a folder or in the root. \
        Look with search_context first: two files on one subject make both harder to trust, and update_file corrects the \
        one there is. Example: {\"name\": \"decisions.md\", \
        \"content\": \"# Decisions\\n…\", \"fileType\": \"markdown\"}. Needs the permission write.",
    hints: Hints::CREATE,
    terms: Terms::WRITE_FILE,
    input: CreateFile::contract,
    output: Some(inlined::<File>),
    recovery: FIND_FOLDER,
    run: |context, arguments| Box::pin(create(context, arguments)),
};

pub(super) static UPDATE_FILE: Tool = Tool {
    name: "update_file",
    title: "Replace a file's content",
    description: "Replace the whole content of a file. Read it with get_file first, change what is needed, and send all of \
        it back: what you leave out is gone from the present version (older versions are kept). Its name, folder and tags \
        stay. Example: {\"id\": \"…\", \"content\": \"# Decisions\\n…\"}. Needs the permission write.",
    hints: Hints::OVERWRITE,
    terms: Terms::WRITE_FILE,
    input: UpdateFileContent::contract,
    output: Some(inlined::<File>),
    recovery: FIND_BY_NAME,
    run: |context, arguments| Box::pin(update(context, arguments)),
};

pub(super) static DELETE_FILE: Tool = Tool {
    name: "delete_file",
    title: "Move a file to trash",
    description: "Move a file to trash: it disappears from lists and searches, and a person can restore it in \
        the console. Make sure that the user wants it gone; to correct a file use update_file instead. Example: \
        {\"id\": \"…\"}. Needs the permission delete.",
    hints: Hints::OVERWRITE,
    terms: Terms::DELETE,
    input: DeleteFile::contract,
    output: Some(inlined::<Deleted>),
    recovery: FIND_BY_NAME,
    run: |context, arguments| Box::pin(delete(context, arguments)),
};

pub(super) static SEARCH_FILES: Tool = Tool {
    name: "search_files",
    title: "Find files by name",
    description: "Find files whose name contains a text, in any case: exact names first, then \
        names that begin with it. For what files say \
        use search_context (meaning and words) or browse_context with grep (exact text). Example: {\"query\": \
        \"onboarding\"}.",
    hints: Hints::READ,
    terms: Terms::LIST,
    input: SearchFiles::contract,
    output: Some(inlined::<Files>),
    recovery: FIND_FOLDER,
    run: |context, arguments| Box::pin(search(context, arguments)),
};

async fn list(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let input: ListFiles = arguments.read()?;
    let paging = Paging { limit: Some(input.limit.unwrap_or(DEFAULT_ITEMS)), cursor: input.cursor };
    let page = files::list(context, Selection::of_filter(input.folder_id.clone())?, paging).await?;
    let more = go_on("list_files", &[("folderId", input.folder_id.as_deref())], page.next.as_ref());
    Ok(Outcome::list("files", &page, more))
}

async fn create(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    Ok(Outcome::written(files::create(context, arguments.read::<CreateFile>()?).await?))
}

async fn update(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let input: UpdateFileContent = arguments.read()?;
    let change = UpdateFile::of_content(input.content, input.description);
    Ok(Outcome::written(files::update(context, file_id(&input.id)?, change, Vec::new()).await?))
}

async fn delete(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let input: DeleteFile = arguments.read()?;
    let done = files::delete(context, file_id(&input.id)?).await?;
    let message = "The file is in trash; a person can restore it on the console's Trash page.";
    Ok(Outcome::written(Written { value: Deleted::new(input.id, message), change: done.change }))
}

async fn search(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let page = files::search(context, arguments.read::<SearchFiles>()?).await?;
    let is_cut = (page.items.len() as u64) < page.total;
    let more = "call search_files again with a longer query, a folderId, or a limit of up to 1000.";
    Ok(Outcome::list("files", &page, is_cut.then(|| more.to_owned())))
}

pub(super) fn file_id(text: &str) -> Result<FileId, Problem> {
    text.parse().map_err(|_| Problem::validation(vec![Violation::new("id", "invalid_id", wording::ID)]))
}
