//! The parameters of a new token, and their validation.

use std::collections::HashSet;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Permission, PermissionSet, Role, Scope};
use cairn_chassis::status::Violation;
use cairn_chassis::wording;
use cairn_proto::domain::limits::SCOPE_FOLDERS;
use cairn_proto::ids::FolderId;

use crate::error::Error;
use crate::names;

/// A requested token.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) name: String,
    /// `None` stands for an unknown permission.
    pub(crate) permissions: Vec<Option<Permission>>,
    /// Folder ids; `None` for the whole workspace.
    pub(crate) folders: Option<Vec<String>>,
    pub(crate) expires_at: Option<Timestamp>,
}

/// A validated draft.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) name: String,
    pub(super) permissions: PermissionSet,
    pub(super) scope: Scope,
    /// The folders of the scope in the requested order.
    pub(super) requested: Vec<FolderId>,
    pub(super) expires_at: Option<Timestamp>,
}

impl Checked {
    /// Checks that every folder of the scope exists.
    pub(super) fn check_live(&self, live: &HashSet<FolderId>) -> Result<(), Error> {
        let gone = self.requested.iter().enumerate().filter(|(_, folder)| !live.contains(folder));
        let violations: Vec<Violation> = gone
            .map(|(place, _)| {
                let message = "is no folder of this workspace; one in trash does not count";
                Violation::new(format!("scope.folderIds[{place}]"), "unknown_folder", message)
            })
            .collect();
        if violations.is_empty() { Ok(()) } else { Err(Error::Invalid(violations)) }
    }
}

impl Draft {
    /// Validates everything, for a creator with that role.
    pub(super) fn check(self, role: Role, now: Timestamp) -> Result<Checked, Error> {
        let mut violations = Vec::new();
        let name = names::check("name", &self.name, &mut violations);
        let permissions = check_permissions(&self.permissions, role, &mut violations);
        let requested = check_folders(self.folders.as_deref(), &mut violations);
        let scope = if self.folders.is_some() { scope_of(&requested) } else { Scope::All };
        let checked = Checked { name, permissions, scope, requested, expires_at: self.expires_at };
        if self.expires_at.is_some_and(|end| end <= now) {
            violations.push(Violation::new("expiresAt", "invalid", "must be in the future"));
        }
        if violations.is_empty() { Ok(checked) } else { Err(Error::Invalid(violations)) }
    }
}

fn check_permissions(
    requested: &[Option<Permission>],
    role: Role,
    violations: &mut Vec<Violation>,
) -> PermissionSet {
    if requested.is_empty() {
        let message = "must name at least one of: read, write, delete";
        violations.push(Violation::new("permissions", "required", message));
    }
    for (place, permission) in requested.iter().enumerate() {
        let path = format!("permissions[{place}]");
        match permission {
            None => violations.push(Violation::new(path, "invalid", "must be one of: read, write, delete")),
            Some(permission) if !role.permissions().contains(*permission) => {
                let message = format!(
                    "'{}' is beyond your role '{}' in this workspace",
                    permission.as_str(),
                    role.as_str()
                );
                violations.push(Violation::new(path, "beyond_role", message));
            }
            Some(_) => {}
        }
    }
    requested.iter().flatten().copied().collect()
}

/// An empty list is rejected rather than read as "everything": a caller with a bug must not get more than it asked for.
fn check_folders(requested: Option<&[String]>, violations: &mut Vec<Violation>) -> Vec<FolderId> {
    let Some(requested) = requested else {
        return Vec::new();
    };
    if requested.is_empty() || requested.len() > SCOPE_FOLDERS {
        let message =
            format!("must have 1 to {SCOPE_FOLDERS} folder ids; leave the scope out for the whole workspace");
        violations.push(Violation::new("scope.folderIds", "invalid", message));
        return Vec::new();
    }
    let mut folders = Vec::with_capacity(requested.len());
    for (place, text) in requested.iter().enumerate() {
        match text.parse::<FolderId>() {
            Ok(folder) => folders.push(folder),
            Err(_) => {
                let path = format!("scope.folderIds[{place}]");
                violations.push(Violation::new(path, "invalid", wording::ID));
            }
        }
    }
    folders
}

/// The scope of a hypothetical token; its folders are not looked up.
pub(super) fn draft_scope(folders: Option<&[String]>) -> Result<Scope, Error> {
    let mut violations = Vec::new();
    let requested = check_folders(folders, &mut violations);
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    Ok(if folders.is_some() { scope_of(&requested) } else { Scope::All })
}

fn scope_of(requested: &[FolderId]) -> Scope {
    let mut folders = requested.to_vec();
    folders.sort_unstable();
    folders.dedup();
    Scope::Folders(folders.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = "0199c0de-0000-7000-8000-000000000001";

    fn draft() -> Draft {
        Draft {
            name: "agent".into(),
            permissions: vec![Some(Permission::Read)],
            folders: Some(vec![FOLDER.into(), FOLDER.to_uppercase()]),
            expires_at: Some(Timestamp::from_seconds(11)),
        }
    }

    fn violations(draft: Draft, role: Role) -> Vec<(String, String)> {
        match draft.check(role, Timestamp::from_seconds(10)) {
            Err(Error::Invalid(violations)) => {
                violations.into_iter().map(|broken| (broken.path, broken.code)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_good_draft_is_taken_as_it_is() {
        let checked = draft().check(Role::Viewer, Timestamp::from_seconds(10)).unwrap();
        assert_eq!(checked.permissions, [Permission::Read].into_iter().collect());
        assert_eq!(checked.scope, Scope::Folders([FOLDER.parse().unwrap()].into()));
    }

    #[test]
    fn every_violation_is_told_at_once() {
        let bad = Draft {
            name: " ".into(),
            permissions: vec![
                Some(Permission::Read),
                None,
                Some(Permission::Write),
                Some(Permission::Delete),
            ],
            folders: Some(vec![FOLDER.into(), "x".into()]),
            expires_at: Some(Timestamp::from_seconds(10)),
        };
        let found = violations(bad, Role::Contributor);
        let expected = [
            ("name", "required"),
            ("permissions[1]", "invalid"),
            ("permissions[3]", "beyond_role"),
            ("scope.folderIds[1]", "invalid"),
            ("expiresAt", "invalid"),
        ];
        assert_eq!(found, expected.map(|(path, code)| (path.to_owned(), code.to_owned())));
    }

    #[test]
    fn a_scope_without_folders_is_not_the_whole_workspace() {
        let mut empty = draft();
        empty.folders = Some(Vec::new());
        assert_eq!(violations(empty, Role::Owner), [("scope.folderIds".to_owned(), "invalid".to_owned())]);
        let mut many = draft();
        many.folders = Some(vec![FOLDER.into(); SCOPE_FOLDERS + 1]);
        assert_eq!(violations(many, Role::Owner), [("scope.folderIds".to_owned(), "invalid".to_owned())]);
        let mut whole = draft();
        whole.folders = None;
        assert_eq!(whole.check(Role::Owner, Timestamp::from_seconds(10)).unwrap().scope, Scope::All);
    }

    #[test]
    fn a_token_without_permissions_is_not_made() {
        let mut none = draft();
        none.permissions = Vec::new();
        assert_eq!(violations(none, Role::Owner), [("permissions".to_owned(), "required".to_owned())]);
    }
}
