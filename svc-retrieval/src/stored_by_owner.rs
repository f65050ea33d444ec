//! The documents in the embedded index by the service that owns them, for consistency checks.

use std::collections::HashMap;
use std::path::Path;

use cairn_chassis::doctor::index::Indexed;
use cairn_index as index;
use cairn_proto::domain::Feed;
use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

use crate::error::Error;
use crate::{kinds, partition};

/// The documents of an index, by owner.
#[derive(Debug, Default)]
pub struct StoredByOwner {
    /// Files, memories and records.
    pub content: Indexed,
    /// Documents of connected sources and uploads.
    pub ingest: Indexed,
}

/// Reads the last commit of the current index in that folder; `None` if there is none that this version can open. Read-only: another
/// process may have the index open.
///
/// # Errors
/// When the index cannot be read.
pub async fn read_stored(index_folder: &Path) -> Result<Option<StoredByOwner>, Error> {
    let folder = index_folder.to_owned();
    let contents = tokio::task::spawn_blocking(move || index::contents(&folder)).await??;
    Ok(contents.map(by_owner))
}

/// How many files of the current index in that folder are corrupt. While another process writes there, a file that it has just
/// removed may be counted.
///
/// # Errors
/// When a file cannot be read at all.
pub async fn damaged_files(index_folder: &Path) -> Result<usize, Error> {
    let folder = index_folder.to_owned();
    Ok(tokio::task::spawn_blocking(move || index::damaged(&folder)).await??)
}

fn by_owner(contents: index::IndexContents) -> StoredByOwner {
    let mut stored = StoredByOwner::default();
    // Entries of catalogs have a partition of their own.
    let mut catalogs: HashMap<Uuid, WorkspaceId> = HashMap::new();
    for (feed, indexed) in [(Feed::Content, &mut stored.content), (Feed::Ingest, &mut stored.ingest)] {
        for (workspace, position) in contents.cursors.get(feed.as_str()).into_iter().flatten() {
            let workspace = WorkspaceId(*workspace);
            indexed.positions.insert(workspace, *position);
            catalogs.insert(partition::of(workspace, true), workspace);
        }
    }
    for ((workspace, document), found) in contents.documents {
        let workspace = catalogs.get(&workspace).copied().unwrap_or(WorkspaceId(workspace));
        let indexed = match kinds::feed_of(kinds::known(&found.kind)) {
            Feed::Content => &mut stored.content,
            Feed::Ingest => &mut stored.ingest,
        };
        indexed.documents.insert((workspace, document), found.content_hash);
    }
    stored
}
