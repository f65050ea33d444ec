//! Memories in trash. Nobody can read them there, not even through a public export, and their members keep their targets.

use cairn_chassis::feed::Kind;
use cairn_chassis::sql::Tx;
use cairn_proto::ids::WorkspaceId;

use super::{Memories, locked, parse, require_all, slug};
use crate::change::Change;
use crate::model::{Deletion, Memory};
use crate::scope::Caller;
use crate::{Error, store};

impl Memories {
    /// Moves a memory to trash; its slug becomes free.
    pub(crate) async fn delete(&self, caller: &Caller, named: &str) -> Result<u64, Error> {
        let mut change = Change::begin(&self.context, caller).await?;
        let memory = locked(&mut change, caller, &parse(named)?).await?;
        require_all(caller, &memory.members, "delete")?;
        let deletion = change.deletion(caller, Kind::Memory, memory.id, memory.name, path(&memory.slug));
        change.trash(&deletion).await?;
        Ok(change.commit().await?.last)
    }
}

/// Checks that the scope covers the targets of the members of a memory in trash, as its deletion did.
pub(crate) async fn require_trashed(
    tx: &mut Tx,
    caller: &Caller,
    deletion: &Deletion,
    action: &str,
) -> Result<(), Error> {
    let memory = trashed(tx, caller.workspace, caller, &deletion.item_id).await?;
    require_all(caller, &memory.members, action)
}

/// Gives a restored memory a slug that no live one has: its own, if necessary with a numeric suffix. Returns its
/// path.
pub(crate) async fn revive(tx: &mut Tx, caller: &Caller, deletion: &Deletion) -> Result<String, Error> {
    store::memories::lock_slugs(tx, deletion.workspace).await?;
    let mut memory = trashed(tx, deletion.workspace, caller, &deletion.item_id).await?;
    if memory.is_public {
        caller.require_publisher("bringing a public memory back")?;
    }
    let taken = store::memories::slugs(tx, deletion.workspace, &memory.slug).await?;
    let slug = slug::first_free(&memory.slug, &taken);
    if slug != memory.slug {
        memory.slug = slug;
        store::memories::update(tx, &memory).await?;
    }
    Ok(path(&memory.slug))
}

async fn trashed(tx: &mut Tx, workspace: WorkspaceId, caller: &Caller, id: &str) -> Result<Memory, Error> {
    let found = store::memories::get_trashed(tx, workspace, id, caller.listed()).await?;
    found.ok_or_else(|| Error::no_memory(id))
}

/// The path in the virtual filesystem.
pub(super) fn path(slug: &str) -> String {
    format!("/memories/{slug}")
}
