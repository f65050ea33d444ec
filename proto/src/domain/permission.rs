//! Permissions and roles (contract, "Identity").

use super::domain;
use crate::auth::v1 as auth;

domain! {
    /// What a token may do.
    Permission of auth::Permission {
        /// Look.
        Read = "read",
        /// Create and change.
        Write = "write",
        /// Move to trash, restore what needs it, remove for good.
        Delete = "delete",
    }

    /// A user's standing in a workspace.
    Role of auth::Role {
        /// Everything, and the plan.
        Owner = "owner",
        /// Everything but the plan and closing the workspace.
        Admin = "admin",
        /// Read, write, delete.
        Editor = "editor",
        /// Read, write.
        Contributor = "contributor",
        /// Read.
        Viewer = "viewer",
    }

    /// Which roles of a workspace may make its memories public: whoever may, lets everybody on the internet read them.
    #[derive(Default)]
    Publishers of auth::Publishers {
        /// Owners and admins.
        #[default]
        Admins = "admins",
        /// Owners, admins and editors.
        Editors = "editors",
        /// Everybody who may write.
        Writers = "writers",
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermissionSet(u8);

impl Permission {
    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Delete => 4,
        }
    }
}

impl PermissionSet {
    /// All permissions.
    pub fn all() -> Self {
        Permission::ALL.into_iter().collect()
    }

    /// Whether the set contains it.
    pub const fn contains(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// The intersection.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The members, in the contract's order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.contains(*permission))
    }

    /// Their numbers in protobuf, in the contract's order.
    pub fn numbers(self) -> Vec<i32> {
        self.iter().map(Permission::number).collect()
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |bits, permission| bits | permission.bit()))
    }
}

impl Role {
    /// The role's permissions on content.
    pub fn permissions(self) -> PermissionSet {
        match self {
            Self::Owner | Self::Admin | Self::Editor => PermissionSet::all(),
            Self::Contributor => [Permission::Read, Permission::Write].into_iter().collect(),
            Self::Viewer => [Permission::Read].into_iter().collect(),
        }
    }

    /// Whether the role may manage what other members own.
    pub const fn is_manager(self) -> bool {
        match self {
            Self::Owner | Self::Admin => true,
            Self::Editor | Self::Contributor | Self::Viewer => false,
        }
    }
}

impl Publishers {
    /// Whether a member of that role may publish with those permissions, which may be a token's and thus fewer than the
    /// role's.
    pub const fn allow(self, role: Role, permissions: PermissionSet) -> bool {
        let includes_role = match self {
            Self::Admins => role.is_manager(),
            Self::Editors => role.is_manager() || matches!(role, Role::Editor),
            Self::Writers => true,
        };
        includes_role && permissions.contains(Permission::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_lets_more_roles_publish() {
        let may = |publishers: Publishers| {
            Role::ALL.into_iter().filter(|role| publishers.allow(*role, role.permissions())).count()
        };
        assert_eq!(Publishers::ALL.map(may), [2, 3, 4], "a viewer never may");
        let reads = [Permission::Read].into_iter().collect();
        assert!(!Publishers::Writers.allow(Role::Owner, reads), "an owner's reading token may not");
        assert_eq!(Publishers::default(), Publishers::Admins);
    }
}
