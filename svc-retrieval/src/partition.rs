//! The partition of a document in an index.
//!
//! Titles of catalogs are short and may be many: among texts they would fill the candidates of every search and skew its term
//! statistics. So the index has them under a workspace id of their own, which is searched separately.

use cairn_proto::ids::WorkspaceId;
use uuid::Uuid;

/// The namespace that a catalog's partition is derived with; stored indexes depend on it.
const CATALOG: &[u8] = b"cairn catalog of workspace ";

/// The workspace id in the index: for entries of catalogs, or for all other documents.
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
