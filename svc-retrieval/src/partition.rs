//! Where in an index documents stand.
//!
//! Titles of catalogs are short and may be many: beside texts they would fill the candidates of every search and move the
//! weight of its words. So they stand in a workspace of their own for the index, which a search asks for by itself and
//! which costs it nothing otherwise.

use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

/// What a catalog's partition is derived with; stored indexes depend on it.
const CATALOG: &[u8] = b"cairn catalog of workspace ";

/// The workspace under which an index keeps documents: those of catalogs, or all others.
pub(crate) fn of(workspace: WorkspaceId, catalog_only: bool) -> Uuid {
    if !catalog_only {
        return workspace.0;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(CATALOG).update(workspace.0.as_bytes());
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_catalog_stands_apart_and_always_at_the_same_place() {
        let workspace = WorkspaceId(Uuid::from_u128(1));
        assert_eq!(of(workspace, false), workspace.0);
        assert_eq!(of(workspace, true).to_string(), of(workspace, true).to_string());
        assert_ne!(of(workspace, true), of(WorkspaceId(Uuid::from_u128(2)), true));
        assert_eq!(of(workspace, true).get_version_num(), 8, "no id that is given out looks like it");
    }
}
