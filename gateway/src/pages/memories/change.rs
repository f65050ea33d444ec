//! Actions on a memory from its page.

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::domain::{MemberKind, TrashKind};
use cairn_proto::ids::MemberId;
use serde_json::{Value, json};

use super::at::LocatedMemory;
use super::{address, show};
use crate::operations::memories::{self, AddMembers, Membership, MoveMember, UpdateMemory};
use crate::operations::trash;
use crate::pages::Answer;
use crate::pages::form::{self, Form};
use crate::pages::notice::Notice;

/// `POST /memories/{id}/add`: `item`, each a kind and an id, such as `file:…`.
pub(super) async fn add(at: LocatedMemory, form: Form) -> Answer {
    let context = at.visitor.context()?;
    let members: Option<Vec<Value>> = form.all("item").map(member).collect();
    let members = members.filter(|members| !members.is_empty());
    let read = members.ok_or_else(nothing_chosen);
    let added = match read.and_then(|members| form::input::<AddMembers>(json!({"members": members}))) {
        Ok(input) => memories::add_members(&context, at.id, input).await.map(drop),
        Err(problem) => Err(problem),
    };
    answer(&at, added, &Notice::Saved).await
}

/// The input of a member.
fn member(item: &str) -> Option<Value> {
    let (kind, id) = item.split_once(':')?;
    let kind: MemberKind = kind.parse().ok()?;
    let reference = match kind {
        MemberKind::File => "fileId",
        MemberKind::Folder => "folderId",
        MemberKind::SourceDocument => "sourceDocumentId",
        MemberKind::Database => "databaseId",
    };
    Some(json!({"kind": kind.as_str(), reference: id}))
}

fn nothing_chosen() -> Problem {
    Problem::validation(vec![Violation::new("members", "required", "need at least one: select some first")])
}

/// `POST /memories/{id}/move`.
pub(super) async fn move_member(at: LocatedMemory, form: Form) -> Answer {
    let member = named(&form)?;
    let context = at.visitor.context()?;
    // A non-numeric position is passed on as text, for the schema to reject.
    let position = form.trimmed("position");
    let position = position.parse::<u32>().map_or_else(|_| json!(position), |position| json!(position));
    let moved = match form::input::<MoveMember>(json!({"position": position})) {
        Ok(input) => memories::move_member(&context, at.id, member, input).await.map(drop),
        Err(problem) => Err(problem),
    };
    answer(&at, moved, &Notice::Saved).await
}

/// `POST /memories/{id}/remove`.
pub(super) async fn remove(at: LocatedMemory, form: Form) -> Answer {
    let member = named(&form)?;
    let context = at.visitor.context()?;
    let removed = memories::remove_member(&context, at.id, member).await.map(drop);
    answer(&at, removed, &Notice::MemberRemoved).await
}

fn named(form: &Form) -> Result<MemberId, Problem> {
    let no_member = |_| Problem::not_found("there is no such member in this memory");
    form.trimmed("member").parse().map_err(no_member)
}

/// `POST /memories/{id}/publish`.
pub(super) async fn publish(at: LocatedMemory) -> Answer {
    show_to(&at, true).await
}

/// `POST /memories/{id}/unpublish`.
pub(super) async fn unpublish(at: LocatedMemory) -> Answer {
    show_to(&at, false).await
}

/// `POST /memories/{id}/list`: allows search engines to list the public page.
pub(super) async fn list(at: LocatedMemory) -> Answer {
    change(&at, json!({"isListed": true})).await
}

/// `POST /memories/{id}/unlist`.
pub(super) async fn unlist(at: LocatedMemory) -> Answer {
    change(&at, json!({"isListed": false})).await
}

async fn show_to(at: &LocatedMemory, everybody: bool) -> Answer {
    change(at, json!({"isPublic": everybody})).await
}

async fn change(at: &LocatedMemory, fields: Value) -> Answer {
    let context = at.visitor.context()?;
    let input = form::input::<UpdateMemory>(fields)?;
    let changed = memories::update(&context, at.id.to_string(), input, Membership::default()).await;
    answer(at, changed.map(drop), &Notice::Saved).await
}

/// `POST /memories/{id}/delete`: moves to trash, with Undo on the next page.
pub(super) async fn delete(at: LocatedMemory) -> Answer {
    memories::delete(&at.visitor.context()?, at.id).await?;
    let to = format!("/w/{}/memories", at.visitor.here()?.id);
    Ok(at.visitor.done(&to, &Notice::Trashed(vec![(TrashKind::Memory, at.id.0)])))
}

/// `POST /memories/{id}/restore`.
pub(super) async fn restore(at: LocatedMemory) -> Answer {
    let person = &at.visitor.person;
    trash::restore(&person.upstreams, &person.call, TrashKind::Memory, at.id.to_string()).await?;
    Ok(at.visitor.done(&address(at.id), &Notice::Restored))
}

async fn answer(at: &LocatedMemory, done: Result<(), Problem>, notice: &Notice) -> Answer {
    match done {
        Ok(()) => Ok(at.visitor.done(&address(at.id), notice)),
        Err(problem) if problem.violations.is_empty() => Err(problem.into()),
        Err(problem) => show::failed(at, &problem).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_a_kind_and_its_reference() {
        assert_eq!(member("file:x"), Some(json!({"kind": "file", "fileId": "x"})));
        assert_eq!(
            member("source_document:x"),
            Some(json!({"kind": "source_document", "sourceDocumentId": "x"}))
        );
        for odd in ["", "file", "record:x", ":x"] {
            assert_eq!(member(odd), None, "{odd}");
        }
    }
}
