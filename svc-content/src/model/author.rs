//! Who wrote something.

use cairn_chassis::identity::{Principal, PrincipalKind};

/// Who wrote a version, or brought an asset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Author {
    /// Of files and assets `token`, `user` or `sync`; of records and of activity the kind of the principal.
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) name: String,
}

impl Author {
    /// The author of a file's content or of an asset.
    pub(crate) fn of_content(principal: &Principal) -> Self {
        let kind = match principal.kind {
            PrincipalKind::Token | PrincipalKind::Grant => "token",
            PrincipalKind::User => "user",
            // What services write by themselves, they sync.
            PrincipalKind::Service => "sync",
        };
        Self::new(kind, principal)
    }

    /// The author of a record, and of anything in the list of activity.
    pub(crate) fn of_record(principal: &Principal) -> Self {
        Self::new(principal.kind.as_str(), principal)
    }

    fn new(kind: &str, principal: &Principal) -> Self {
        Self { kind: kind.to_owned(), id: principal.id.clone(), name: principal.name.clone() }
    }
}
