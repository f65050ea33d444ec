//! The content of the embedded index by owner, for consistency checks.

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
pub struct Held {
    /// Files, memories and records.
    pub content: Indexed,
    /// Documents from outside.
    pub ingest: Indexed,
}

/// Reads the last commit of the current index in that folder; `None` where there is none that this version can use. Read-only, and
/// the index may be in use.
///
/// # Errors
/// When the index cannot be read.
pub async fn held(index_folder: &Path) -> Result<Option<Held>, Error> {
    let folder = index_folder.to_owned();
    let read = tokio::task::spawn_blocking(move || index::held(&folder)).await??;
    Ok(read.map(by_owner))
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

fn by_owner(read: index::Held) -> Held {
    let mut held = Held::default();
    // Entries of catalogs have a partition of their own.
    let mut catalogs: HashMap<Uuid, WorkspaceId> = HashMap::new();
    for (feed, indexed) in [(Feed::Content, &mut held.content), (Feed::Ingest, &mut held.ingest)] {
        for (workspace, position) in read.cursors.get(feed.as_str()).into_iter().flatten() {
            let workspace = WorkspaceId(*workspace);
            indexed.positions.insert(workspace, *position);
            catalogs.insert(partition::of(workspace, true), workspace);
        }
    }
    for ((workspace, document), found) in read.documents {
        let workspace = catalogs.get(&workspace).copied().unwrap_or(WorkspaceId(workspace));
        let indexed = match kinds::feed_of(kinds::known(&found.kind)) {
            Feed::Content => &mut held.content,
            Feed::Ingest => &mut held.ingest,
        };
        indexed.documents.insert((workspace, document), found.content_hash);
    }
    held
}
