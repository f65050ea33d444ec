//! The activity log of a workspace.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1 as proto;
use cairn_proto::domain::TrashKind;
use serde::Deserialize;
use utoipa::ToSchema;

use super::person::Person;
use super::{Paging, Written, answered};
use crate::answers::{ActivityEntry, Author, Undo};
use crate::change;
use crate::schema::inputs;

inputs!(UndoActivity);

/// Filters of the list; absent ones match everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActivityFilter {
    /// A person, a token or a grant.
    pub(crate) principal: Option<String>,
    pub(crate) kind: Option<TrashKind>,
    /// Includes its subfolders.
    pub(crate) folder: Option<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

/// A page of the list; there is no total.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) entries: Vec<ActivityEntry>,
    pub(crate) next: Option<String>,
}

/// The activity, newest first.
pub(crate) async fn list(person: &Person, filter: ActivityFilter, page: Paging) -> Result<Listed, Problem> {
    let request = person.call.request(proto::ListActivityRequest {
        page_size: page.limit.unwrap_or_default(),
        page_token: page.cursor.unwrap_or_default(),
        principal_id: filter.principal,
        kind: filter.kind.map_or(0, TrashKind::number),
        folder_id: filter.folder,
        since: filter.since.map(Timestamp::to_proto),
        until: filter.until.map(Timestamp::to_proto),
    });
    let listed = answered(person.upstreams.activity().list_activity(request).await)?;
    let next = Some(listed.next_page_token).filter(|token| !token.is_empty());
    Ok(Listed { entries: listed.entries, next })
}

/// Everybody who appears in the log.
pub(crate) async fn actors(person: &Person) -> Result<Vec<Author>, Problem> {
    let request = person.call.request(proto::ListActorsRequest {});
    Ok(answered(person.upstreams.activity().list_actors(request).await)?.actors)
}

/// Parses a time parameter.
pub(crate) fn time(path: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let read = Timestamp::parse_rfc3339(text).map(Some);
    read.ok_or_else(|| {
        let message = "is no time: write it as 2026-11-23T14:00:00Z (RFC 3339)";
        Problem::validation(vec![Violation::new(path, "invalid", message)])
    })
}

/// What is to be undone: all that somebody did, what one write did, or some entries.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct UndoActivity {
    /// Whose changes: a person, a token or a grant, by id. Without entries, all of them.
    #[schema(max_length = 200)]
    pub(crate) principal: Option<String>,
    /// Which entries of the activity, at most 1000.
    #[schema(max_items = 1000)]
    #[serde(default)]
    pub(crate) entries: Vec<String>,
    /// All that one write did, by the `writeId` of an entry or of the write's own answer.
    #[schema(max_length = 100)]
    pub(crate) write: Option<String>,
    /// What was done from this time on (RFC 3339).
    #[schema(format = DateTime)]
    pub(crate) from: Option<String>,
    /// What was done before this time (RFC 3339).
    #[schema(format = DateTime)]
    pub(crate) to: Option<String>,
    /// True to be told what would be done, and nothing else.
    #[schema(default = false)]
    pub(crate) dry_run: Option<bool>,
}

/// Undoes what can be undone; a dry run only plans it.
pub(crate) async fn undo(person: &Person, input: UndoActivity) -> Result<Written<Undo>, Problem> {
    let selection = Some(proto::UndoSelection {
        since: time("from", input.from.as_deref())?.map(Timestamp::to_proto),
        until: time("to", input.to.as_deref())?.map(Timestamp::to_proto),
        principal_id: input.principal,
        entry_ids: input.entries,
        write_id: input.write,
    });
    let mut service = person.upstreams.activity();
    if input.dry_run.unwrap_or_default() {
        let request = person.call.request(proto::PlanUndoRequest { selection });
        let plan = answered(service.plan_undo(request).await)?;
        let value = Undo { dry_run: true, steps: plan.steps, left_alone: plan.left_alone, has_more: false };
        return Ok(Written { value, change: change::of_content(0) });
    }
    let request = person.call.request(proto::UndoRequest { selection });
    let undone = answered(service.undo(request).await)?;
    let change = change::of_content(undone.change_position);
    let value = Undo {
        dry_run: false,
        steps: undone.steps,
        left_alone: undone.left_alone,
        has_more: undone.has_more,
    };
    Ok(Written { value, change })
}
