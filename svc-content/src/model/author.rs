//! Authors.

use cairn_chassis::identity::{Principal, PrincipalKind};

/// The author of a version or of an asset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Author {
    /// For files and assets `token`, `user` or `sync`; for records and activity the kind of the principal.
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

impl Author {
    /// The author of a content of a file, or of an asset.
    pub(crate) fn of_content(principal: &Principal) -> Self {
        let kind = match principal.kind {
            PrincipalKind::Token | PrincipalKind::Grant => "token",
            PrincipalKind::User => "user",
            // Services write contents only when they sync.
            PrincipalKind::Service => "sync",
        };
        Self::new(kind, principal)
    }

    /// The author of a record, and of everything in the activity log.
    pub(crate) fn of_record(principal: &Principal) -> Self {
        Self::new(principal.kind.as_str(), principal)
    }

    fn new(kind: &str, principal: &Principal) -> Self {
        Self { kind: kind.to_owned(), id: principal.id.clone(), name: principal.name.clone() }
    }
}
