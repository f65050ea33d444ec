//! The rules of connected sources (spec 2.4, 4.4).

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::ids::SourceId;

use crate::Error;
use crate::scope::Caller;

/// What a refusal is about.
const SOURCES: &str = "connected sources";
const MOST_QUERY_CHARS: usize = 10_000;
const MOST_EXTERNAL_ID_CHARS: usize = 1_000;

/// A connected source. There is no provider yet that one could be of, so there is none: whatever handles a source says
/// so by an empty `match`, and no longer compiles once there is a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {}

/// The sources of the caller's workspace.
pub(crate) fn list(caller: &Caller) -> Result<Vec<Source>, Error> {
    caller.require_whole_workspace(SOURCES)?;
    Ok(Vec::new())
}

/// The source of the caller's workspace with that id.
pub(crate) fn find(caller: &Caller, source_id: &str) -> Result<Source, Error> {
    caller.require_whole_workspace(SOURCES)?;
    finish(check_id(source_id).into_iter().collect())?;
    Err(Error::NoSource(source_id.to_owned()))
}

/// The source that a query is for.
pub(crate) fn find_for_query(caller: &Caller, source_id: &str, query: &str) -> Result<Source, Error> {
    caller.require_whole_workspace(SOURCES)?;
    let text = check_text("query", query, "say what to look for", MOST_QUERY_CHARS);
    finish(check_id(source_id).into_iter().chain(text).collect())?;
    find(caller, source_id)
}

/// The source that a document is fetched from.
pub(crate) fn find_for_fetch(caller: &Caller, source_id: &str, external_id: &str) -> Result<Source, Error> {
    caller.require_whole_workspace(SOURCES)?;
    let advice = "give the provider's id of the document";
    let text = check_text("externalId", external_id, advice, MOST_EXTERNAL_ID_CHARS);
    finish(check_id(source_id).into_iter().chain(text).collect())?;
    find(caller, source_id)
}

fn check_id(source_id: &str) -> Option<Violation> {
    let message = "must be the id of a connected source: a UUID";
    source_id.parse::<SourceId>().is_err().then(|| Violation::new("sourceId", "invalid_id", message))
}

fn check_text(path: &str, text: &str, advice: &str, most: usize) -> Option<Violation> {
    if text.trim().is_empty() {
        return Some(Violation::new(path, "required", advice));
    }
    let is_long = text.chars().count() > most;
    is_long.then(|| Violation::new(path, "too_long", wording::at_most(most, Unit::Characters)))
}

fn finish(violations: Vec<Violation>) -> Result<(), Error> {
    if violations.is_empty() { Ok(()) } else { Err(Error::Invalid(violations)) }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::identity::Scope;
    use cairn_proto::ids::WorkspaceId;
    use uuid::Uuid;

    use super::*;

    const ID: &str = "0199c0de-0000-7000-8000-000000000001";

    #[test]
    fn a_workspace_has_no_source_and_says_which_one_was_asked_for() {
        let caller = Caller::of_test(WorkspaceId(Uuid::nil()), Scope::All, "selfhosted");
        assert_eq!(list(&caller).unwrap(), Vec::new());
        for found in
            [find(&caller, ID), find_for_query(&caller, ID, "x"), find_for_fetch(&caller, ID, "page/1")]
        {
            assert!(matches!(found, Err(Error::NoSource(id)) if id == ID));
        }
    }

    #[test]
    fn a_token_that_is_bound_to_folders_learns_nothing() {
        let caller = Caller::of_test(WorkspaceId(Uuid::nil()), Scope::Folders([].into()), "selfhosted");
        assert!(matches!(list(&caller), Err(Error::BoundToFolders(_))));
        for found in [
            find(&caller, "no id"),
            find_for_query(&caller, "no id", ""),
            find_for_fetch(&caller, "no id", ""),
        ] {
            assert!(matches!(found, Err(Error::BoundToFolders(_))));
        }
    }

    #[test]
    fn every_problem_is_said_at_once() {
        let caller = Caller::of_test(WorkspaceId(Uuid::nil()), Scope::All, "selfhosted");
        let paths = |found: Result<Source, Error>| match found {
            Err(Error::Invalid(violations)) => violations.into_iter().map(|one| one.path).collect(),
            other => vec![format!("{other:?}")],
        };
        assert_eq!(paths(find_for_query(&caller, "x", " ")), ["sourceId", "query"]);
        assert_eq!(paths(find_for_query(&caller, ID, &"x".repeat(10_001))), ["query"]);
        assert_eq!(paths(find_for_fetch(&caller, "x", "")), ["sourceId", "externalId"]);
    }
}
