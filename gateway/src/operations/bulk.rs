//! Bulk operations on items: move, tag, trash and restore.

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1 as proto;
use cairn_proto::content::v1::change_items_request::{Change, Selection};
use cairn_proto::domain::TrashKind;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Context, Written, answered, folder_choice};
use crate::answers::ChangedItems;
use crate::change;
use crate::schema::inputs;

inputs!(MoveItems, TagItems, TrashItems, RestoreItems);

/// One of the items.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChosenItem {
    pub(crate) kind: TrashKind,
    #[schema(format = "uuid")]
    pub(crate) id: String,
}

/// All files of a list, as long as they are at most 1000.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MatchingFiles {
    /// Those of this folder; `root` for the root. Left out: all folders.
    pub(crate) folder_id: Option<String>,
    /// Whether files of folders below it match too.
    #[schema(default = false)]
    pub(crate) recursive: Option<bool>,
    /// Those that bear all of these tags.
    pub(crate) tags: Option<Vec<String>>,
    /// Those with this in their names, in the folder and below it; upper and lower case are the same.
    #[schema(max_length = 255)]
    pub(crate) query: Option<String>,
    /// How many you saw to match: when it are others by now, nothing is done.
    pub(crate) expected_count: Option<u64>,
}

/// Items, and the folder that they go into.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MoveItems {
    /// Files and folders by id, instead of `files`.
    #[schema(min_items = 1, max_items = 1000)]
    items: Option<Vec<ChosenItem>>,
    /// Every file that matches, instead of `items`.
    files: Option<MatchingFiles>,
    /// The folder; null for the root.
    #[schema(format = "uuid", required = true)]
    folder_id: Option<String>,
    /// True to be told what would be done, and nothing else.
    #[schema(default = false)]
    dry_run: Option<bool>,
}

/// Files, and the tags that they get or lose.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TagItems {
    /// Files by id, instead of `files`.
    #[schema(min_items = 1, max_items = 1000)]
    items: Option<Vec<ChosenItem>>,
    /// Every file that matches, instead of `items`.
    files: Option<MatchingFiles>,
    /// Tags that each file bears from now on, beside its others.
    add: Option<Vec<String>>,
    /// Tags that none of them bears from now on.
    remove: Option<Vec<String>>,
    /// True to be told what would be done, and nothing else.
    #[schema(default = false)]
    dry_run: Option<bool>,
}

/// What goes to trash.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TrashItems {
    /// Files and folders by id, instead of `files`.
    #[schema(min_items = 1, max_items = 1000)]
    items: Option<Vec<ChosenItem>>,
    /// Every file that matches, instead of `items`.
    files: Option<MatchingFiles>,
    /// True to be told what would be done, and nothing else.
    #[schema(default = false)]
    dry_run: Option<bool>,
}

/// What comes back from trash.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RestoreItems {
    /// Items of any kind, by id.
    #[schema(min_items = 1, max_items = 1000)]
    items: Vec<ChosenItem>,
    /// True to be told what would be done, and nothing else.
    #[schema(default = false)]
    dry_run: Option<bool>,
}

/// The selected items.
#[derive(Debug, Clone)]
pub(crate) enum Chosen {
    Items(Vec<ChosenItem>),
    Files(MatchingFiles),
}

impl Chosen {
    fn of(items: Option<Vec<ChosenItem>>, files: Option<MatchingFiles>) -> Result<Self, Problem> {
        match (items, files) {
            (Some(items), None) => Ok(Self::Items(items)),
            (None, Some(files)) => Ok(Self::Files(files)),
            (None, None) | (Some(_), Some(_)) => {
                let message = "give either items, or files that match";
                Err(Problem::validation(vec![Violation::new("items", "invalid", message)]))
            }
        }
    }

    fn selection(self) -> Result<Selection, Problem> {
        Ok(match self {
            Self::Items(items) => {
                let name = |item: ChosenItem| proto::ItemName { kind: item.kind.into(), item_id: item.id };
                Selection::Items(proto::ItemList { items: items.into_iter().map(name).collect() })
            }
            Self::Files(files) => {
                let recursive = files.recursive.unwrap_or_default();
                let folder = folder_choice(files.folder_id, "files.folderId")?;
                Selection::Files(proto::FileMatch {
                    folder: folder.map(|folder_id| proto::FolderFilter { folder_id, recursive }),
                    tags: files.tags.unwrap_or_default(),
                    query: files.query.unwrap_or_default(),
                    expected_count: files.expected_count,
                })
            }
        })
    }
}

/// The operation on each item.
#[derive(Debug, Clone)]
pub(crate) enum BulkAction {
    /// `None` is the root.
    Move(Option<String>),
    Tag {
        add: Vec<String>,
        remove: Vec<String>,
    },
    Trash,
    Restore,
}

impl From<BulkAction> for Change {
    fn from(action: BulkAction) -> Self {
        match action {
            BulkAction::Move(folder_id) => Self::Move(proto::MoveItems { folder_id }),
            BulkAction::Tag { add, remove } => Self::Tag(proto::TagItems { add, remove }),
            BulkAction::Trash => Self::Trash(proto::TrashItems {}),
            BulkAction::Restore => Self::Restore(proto::RestoreItems {}),
        }
    }
}

/// Applies the operation to all items, or plans it in a dry run.
pub(crate) async fn change(
    context: &Context,
    chosen: Chosen,
    action: BulkAction,
    dry_run: bool,
) -> Result<Written<ChangedItems>, Problem> {
    let request = context.call.request(proto::ChangeItemsRequest {
        selection: Some(chosen.selection()?),
        change: Some(action.into()),
        dry_run,
    });
    let done = answered(context.upstreams.batches().change_items(request).await)?;
    let change = change::of_content(done.change_position);
    Ok(Written { value: ChangedItems::read(done, dry_run), change })
}

pub(crate) async fn move_items(
    context: &Context,
    input: MoveItems,
) -> Result<Written<ChangedItems>, Problem> {
    let chosen = Chosen::of(input.items, input.files)?;
    change(context, chosen, BulkAction::Move(input.folder_id), input.dry_run.unwrap_or_default()).await
}

pub(crate) async fn tag(context: &Context, input: TagItems) -> Result<Written<ChangedItems>, Problem> {
    let chosen = Chosen::of(input.items, input.files)?;
    let action =
        BulkAction::Tag { add: input.add.unwrap_or_default(), remove: input.remove.unwrap_or_default() };
    change(context, chosen, action, input.dry_run.unwrap_or_default()).await
}

pub(crate) async fn trash(context: &Context, input: TrashItems) -> Result<Written<ChangedItems>, Problem> {
    let chosen = Chosen::of(input.items, input.files)?;
    change(context, chosen, BulkAction::Trash, input.dry_run.unwrap_or_default()).await
}

pub(crate) async fn restore(
    context: &Context,
    input: RestoreItems,
) -> Result<Written<ChangedItems>, Problem> {
    change(context, Chosen::Items(input.items), BulkAction::Restore, input.dry_run.unwrap_or_default()).await
}
