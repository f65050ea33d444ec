//! Records are found by the text of their page body too, so they change with the file that is their body.

use cairn_chassis::feed::{Entry, Kind};
use cairn_chassis::sql::Tx;
use cairn_proto::ids::{DeletionId, RecordId, WorkspaceId};

use crate::{Error, store};

/// The entries, and one for each live record whose body is among their files.
pub(crate) async fn with_bodied_records(
    tx: &mut Tx,
    workspace: WorkspaceId,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>, Error> {
    let is_file = |entry: &&Entry| entry.kind == Kind::File;
    let files: Vec<String> = entries.iter().filter(is_file).map(|entry| entry.item_id.clone()).collect();
    if !files.is_empty() {
        entries.extend(changed(store::records::bodied(tx, workspace, &files).await?));
    }
    Ok(entries)
}

/// An entry for each live record whose body the deletion of a folder has taken to trash.
pub(crate) async fn bodied_by_trash(
    tx: &mut Tx,
    workspace: WorkspaceId,
    deletion: DeletionId,
) -> Result<Vec<Entry>, Error> {
    Ok(changed(store::records::bodied_by_trash(tx, workspace, deletion).await?).collect())
}

fn changed(records: Vec<RecordId>) -> impl Iterator<Item = Entry> {
    records.into_iter().map(|record| Entry::upsert(Kind::Record, record))
}
