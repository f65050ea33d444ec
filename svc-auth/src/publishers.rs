//! Who may make memories public.

use std::str::FromStr;

use cairn_chassis::identity::{Permission, PermissionSet, Role};

/// Which roles of a workspace may make its memories public: whoever may, lets everybody on the internet read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Publishers {
    /// Owners and admins.
    #[default]
    Admins,
    /// Owners, admins and editors.
    Editors,
    /// Everybody who may write.
    Writers,
}

impl Publishers {
    /// All of them, from the narrowest.
    pub(crate) const ALL: [Self; 3] = [Self::Admins, Self::Editors, Self::Writers];

    /// The contract's spelling.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Admins => "admins",
            Self::Editors => "editors",
            Self::Writers => "writers",
        }
    }

    /// Whether somebody of that role may publish with those permissions, which may be a token's and so less than the
    /// role's.
    pub(crate) const fn allow(self, role: Role, permissions: PermissionSet) -> bool {
        let includes_role = match self {
            Self::Admins => role.is_manager(),
            Self::Editors => role.is_manager() || matches!(role, Role::Editor),
            Self::Writers => true,
        };
        includes_role && permissions.contains(Permission::Write)
    }
}

impl FromStr for Publishers {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|publishers| publishers.as_str() == text).ok_or(())
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
        for publishers in Publishers::ALL {
            assert_eq!(publishers.as_str().parse(), Ok(publishers));
        }
    }
}
