//! Tools for folders.

use cairn_chassis::status::Problem;
use serde::Deserialize;
use utoipa::ToSchema;

use super::arguments::Arguments;
use super::outcome::{Outcome, go_on};
use super::{DEFAULT_ITEMS, Hints, Terms, Tool};
use crate::answers::Folder;
use crate::operations::folders::{self, CreateFolder, Selection};
use crate::operations::{Context, Paging};
use crate::schema::{Input as _, inlined, inputs};

inputs!(ListFolders);

pub(super) const FIND_FOLDER: &str =
    "call list_folders with {} to see the folders that there are, and their ids.";

/// Lists the folders in one, or all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListFolders {
    /// Only the folders directly in this one: its id, or `root`. Left out: every folder of the workspace.
    #[schema(examples("root"))]
    parent_id: Option<String>,
    /// How many at most.
    #[schema(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u32>,
    /// From the note of the page before.
    cursor: Option<String>,
}

/// Folders.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read: the list is written by Outcome::list")]
struct Folders {
    folders: Vec<Folder>,
    /// How many there are in all.
    total: u64,
    /// How to get those that are not here.
    note: Option<String>,
}

pub(super) static LIST_FOLDERS: Tool = Tool {
    name: "list_folders",
    title: "List folders",
    description: "List folders by name with id, path and times. Use it to learn how the workspace is ordered, and to get \
        the id of a folder for list_files, create_file or create_folder. Shows 100 at once; a note says how to get the \
        next. Example: {} lists every folder, {\"parentId\": \"root\"} only those at the top. For files use list_files.",
    hints: Hints::READ,
    terms: Terms::LIST,
    input: ListFolders::contract,
    output: Some(inlined::<Folders>),
    recovery: FIND_FOLDER,
    run: |context, arguments| Box::pin(list(context, arguments)),
};

pub(super) static CREATE_FOLDER: Tool = Tool {
    name: "create_folder",
    title: "Create a folder",
    description: "Make a folder, in the root or in another folder. Look with list_folders first: calling twice makes \
        two folders of the same name. Example: {\"name\": \"Decisions\", \"parentId\": \"…\"}. Returns the folder with \
        its id, which create_file takes as folderId. Needs the permission write.",
    hints: Hints::CREATE,
    terms: Terms::WRITE,
    input: CreateFolder::contract,
    output: Some(inlined::<Folder>),
    recovery: FIND_FOLDER,
    run: |context, arguments| Box::pin(create(context, arguments)),
};

async fn list(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let input: ListFolders = arguments.read()?;
    let paging = Paging { limit: Some(input.limit.unwrap_or(DEFAULT_ITEMS)), cursor: input.cursor };
    let page = folders::list(context, Selection::of_filter(input.parent_id.clone())?, paging).await?;
    let more = go_on("list_folders", &[("parentId", input.parent_id.as_deref())], page.next.as_ref());
    Ok(Outcome::list("folders", &page, more))
}

async fn create(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    Ok(Outcome::written(folders::create(context, arguments.read::<CreateFolder>()?).await?))
}
