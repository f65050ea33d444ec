//! The assets that a caller may see. An asset is in no folder: a folder scope covers it if a live record of a
//! database in those folders refers to it. Only visible assets can be referred to, so that no caller can extend its
//! own view.

use std::collections::HashSet;

use cairn_chassis::sql::Db;
use cairn_proto::ids::AssetId;

use crate::model::PropertyType;
use crate::scope::Caller;
use crate::{Error, store};

/// Those of these assets in the scope of the caller, whether they exist or not.
pub(crate) async fn reachable(db: &Db, caller: &Caller, ids: &[AssetId]) -> Result<HashSet<AssetId>, Error> {
    if caller.listed().is_none() {
        return Ok(ids.iter().copied().collect());
    }
    let references = store::assets::references(db, caller.workspace, ids).await?;
    let holders: HashSet<_> = references.iter().map(|reference| reference.database).collect();
    let holders: Vec<_> = holders.into_iter().collect();
    let mut databases = store::databases::get_many(db.engine(), caller.workspace, &holders).await?;
    databases.retain(|database| caller.covers(&database.folders));
    let is_named = |reference: &store::assets::AssetReference| {
        let holder = databases.iter().find(|database| database.id == reference.database);
        let property = holder.and_then(|database| database.property(reference.property));
        property.is_some_and(|property| property.kind == PropertyType::AssetReference)
    };
    Ok(references.into_iter().filter(is_named).map(|reference| reference.asset).collect())
}
