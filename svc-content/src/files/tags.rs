//! Additions and removals of tags that leave the other tags of a file alone.

use cairn_chassis::status::Violation;
use cairn_proto::ids::FileId;

use super::{FilePatch, Files, check, checked_tags, locked};
use crate::Error;
use crate::change::Change;
use crate::model::File;
use crate::scope::Caller;

/// Tags to add and to remove; other tags stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TagChange {
    pub(crate) add: Vec<String>,
    pub(crate) remove: Vec<String>,
}

impl TagChange {
    /// Validates the tags; none may be both added and removed.
    pub(crate) fn checked(self) -> Result<Self, Error> {
        let (add, remove) = (checked_as("add", self.add)?, checked_as("remove", self.remove)?);
        if add.is_empty() && remove.is_empty() {
            return Err(Error::invalid("add", "required", "needs at least one, or one to remove"));
        }
        if let Some(both) = add.iter().find(|tag| remove.contains(tag)) {
            let message = format!("may not have '{both}', which is among those to add");
            return Err(Error::invalid("remove", "invalid", message));
        }
        Ok(Self { add, remove })
    }

    /// The tags of a file after the change.
    fn of(&self, tags: &[String]) -> Vec<String> {
        let kept = tags.iter().filter(|tag| !self.remove.contains(tag));
        let new = self.add.iter().filter(|tag| !tags.contains(tag));
        kept.chain(new).cloned().collect()
    }
}

/// Validates the tags of a field.
fn checked_as(field: &str, tags: Vec<String>) -> Result<Vec<String>, Error> {
    match checked_tags(tags) {
        Err(Error::Invalid(violations)) => {
            let of_field = |one: Violation| Violation { path: one.path.replacen("tags", field, 1), ..one };
            Err(Error::Invalid(violations.into_iter().map(of_field).collect()))
        }
        checked => checked,
    }
}

impl Files {
    /// Changes the tags of a file as part of a larger change.
    pub(crate) async fn retag_in(
        &self,
        change: &mut Change,
        caller: &Caller,
        id: FileId,
        tags: &TagChange,
    ) -> Result<File, Error> {
        let before = locked(change, caller, id).await?;
        let patch = FilePatch { tags: Some(tags.of(&before.tags)), ..FilePatch::default() };
        self.update_in(change, caller, id, check(patch)?, None).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(tags: &[&str]) -> Vec<String> {
        tags.iter().map(|tag| (*tag).to_owned()).collect()
    }

    #[test]
    fn tags_come_and_go_and_others_stay() {
        let change = TagChange { add: owned(&["c", "a"]), remove: owned(&["b", "x"]) }.checked().unwrap();
        assert_eq!(change.of(&owned(&["a", "b", "d"])), owned(&["a", "d", "c"]));
        assert_eq!(change.of(&[]), owned(&["c", "a"]));
    }

    #[test]
    fn a_change_of_tags_says_one_thing() {
        let change = |add: &[&str], remove: &[&str]| TagChange { add: owned(add), remove: owned(remove) };
        assert!(matches!(change(&[], &[]).checked(), Err(Error::Invalid(_))));
        assert!(matches!(change(&["a"], &["a"]).checked(), Err(Error::Invalid(_))));
        assert!(matches!(change(&[" "], &[]).checked(), Err(Error::Invalid(_))));
        assert_eq!(change(&["a", "a"], &[]).checked().unwrap().add, ["a"]);
    }
}
