//! Tools for folders.

use cairn_chassis::status::Problem;
use serde::Deserialize;
use utoipa::ToSchema;

use super::arguments::Arguments;
use super::outcome::Outcome;
use super::{Hints, Tool};
use crate::operations::folders::{self, CreateFolder, Selection};
use crate::operations::{Context, MOST_ITEMS, Paging};
use crate::records::Folder;
use crate::schema::{Input as _, inlined, inputs};

inputs!(ListFolders);

const FIND_FOLDER: &str = "call list_folders with {} to see the folders that there are, and their ids.";

/// Lists the folders in one, or all.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ListFolders {
    /// Only the folders directly in this one: its id, or `root`. Left out: every folder of the workspace.
    parent_id: Option<String>,
}

/// Folders.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is read: the list is written by Outcome::list")]
struct Folders {
    folders: Vec<Folder>,
    /// How many there are in all.
    total: u64,
}

pub(super) static LIST_FOLDERS: Tool = Tool {
    name: "list_folders",
    title: "List folders",
    description: "List folders with id, name, path and times. Use it to learn how the workspace is ordered, and to get \
        the id of a folder for list_files, create_file or create_folder. Example: {} lists every folder, \
        {\"parentId\": \"root\"} only those at the top.",
    hints: Hints::READ,
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
    input: CreateFolder::contract,
    output: Some(inlined::<Folder>),
    recovery: FIND_FOLDER,
    run: |context, arguments| Box::pin(create(context, arguments)),
};

async fn list(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    let input: ListFolders = arguments.read()?;
    let paging = Paging { limit: Some(MOST_ITEMS), cursor: None };
    let page = folders::list(context, Selection::of_filter(input.parent_id)?, paging).await?;
    Ok(Outcome::list("folders", &page, "Narrow with parentId."))
}

async fn create(context: &Context, arguments: Arguments) -> Result<Outcome, Problem> {
    Ok(Outcome::written(folders::create(context, arguments.read::<CreateFolder>()?).await?))
}
