//! The result or plan of an undo.

use cairn_proto::content::v1::{LeftAlone, UndoStep};
use serde::Serialize;
use utoipa::ToSchema;

/// What an undo would do, or did, and what it leaves alone.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Undo {
    /// Whether nothing was touched.
    pub(crate) dry_run: bool,
    /// In their order.
    pub(crate) steps: Vec<UndoStep>,
    pub(crate) left_alone: Vec<LeftAlone>,
    /// Whether the same request, sent again, undoes more: one takes at most 200 items.
    pub(crate) has_more: bool,
}
