//! `/w/{id}/activity/undo`: the plan of an undo, item by item, and its execution.

use std::time::Duration;

use cairn_chassis::clock::Timestamp;
use cairn_proto::content::v1::UndoStep;
use cairn_proto::domain::{ActivityAction, TrashKind, UndoAction};
use http::request::Parts;
use maud::{Markup, html};

use super::query::PageQuery;
use super::row;
use crate::answers::{ActivityEntry, Author, Undo};
use crate::operations::activity::{self, UndoActivity};
use crate::pages::form::Form;
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self, Choice};
use crate::pages::sign_in::is_own_path;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, words};

/// The periods offered, in hours; the first is the default.
const WITHIN: [(&str, u64, &str); 4] = [
    ("all", 0, "Everything that is kept"),
    ("1", 1, "The last hour"),
    ("24", 24, "The last 24 hours"),
    ("168", 168, "The last 7 days"),
];
const HOUR: Duration = Duration::from_secs(60 * 60);
/// Items named in a plan; nobody reads a longer list.
const MAX_NAMED: usize = 300;
/// Calls per form, each for up to 200 items.
const MAX_CALLS: usize = 10;

/// The link to the plan of one entry.
pub(super) fn of_one(visitor: &Visitor, path: &str, entry: &ActivityEntry) -> Markup {
    let is_gone = ActivityAction::from_number(entry.action) == Some(ActivityAction::DeletedPermanently);
    html! {
        @if visitor.may_undo() && !is_gone {
            a href={ (path) "/undo?entry=" (entry.id) } data-key="u" { "Undo…" span.sr { " the change of " (entry.name) } }
        }
    }
}

/// The link to the plan of a whole write.
pub(super) fn of_write(visitor: &Visitor, path: &str, write: &str) -> Markup {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("write", write).finish();
    html! {
        @if visitor.may_undo() { a href={ (path) "/undo?" (query) } data-key="u" { "Undo… all of it" } }
    }
}

/// The link to the plan of everything by one principal, when the list is filtered by one.
pub(super) fn of_all(visitor: &Visitor, path: &str, page_query: &PageQuery, actors: &[Author]) -> Markup {
    let who = actors.iter().find(|actor| page_query.who.as_deref() == Some(&actor.id));
    html! {
        @if let (Some(who), true) = (who, visitor.may_undo()) {
            @let query = form_urlencoded::Serializer::new(String::new()).append_pair("who", &who.id).finish();
            p { a.button href={ (path) "/undo?" (query) } data-key="u" { "Undo… all that " bdi { (row::named(who)) } " did" } }
        }
    }
}

/// The selection of a URL or a form.
#[derive(Debug, Default)]
struct UndoSelection {
    entries: Vec<String>,
    write: Option<String>,
    who: Option<String>,
    within: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

impl UndoSelection {
    fn read(fields: &Form) -> Self {
        let one = |name: &str| Some(fields.trimmed(name).to_owned()).filter(|text| !text.is_empty());
        Self {
            entries: fields.all("entry").map(ToOwned::to_owned).collect(),
            write: one("write"),
            who: one("who"),
            within: one("within"),
            from: one("from"),
            to: one("to"),
        }
    }

    /// With the end time fixed: changes made after the plan are not undone.
    fn settled(self, now: Timestamp) -> Self {
        let hours = WITHIN
            .iter()
            .find(|(name, ..)| self.within.as_deref() == Some(name))
            .map_or(0, |(_, hours, _)| *hours);
        let ago = i64::try_from(HOUR.as_micros())
            .unwrap_or(i64::MAX)
            .saturating_mul(i64::try_from(hours).unwrap_or(0));
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(ago)).to_rfc3339();
        let from = self.from.clone().or_else(|| (hours > 0).then_some(since));
        let to = self.to.clone().or_else(|| self.who.is_some().then(|| now.to_rfc3339()));
        Self { from, to, ..self }
    }

    fn input(&self, dry_run: bool) -> UndoActivity {
        UndoActivity {
            principal: self.who.clone(),
            entries: self.entries.clone(),
            write: self.write.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            dry_run: Some(dry_run),
        }
    }

    /// The query of the plan's URL.
    fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.fields());
        query.finish()
    }

    fn fields(&self) -> Vec<(&str, &str)> {
        let one = [("write", &self.write), ("who", &self.who), ("from", &self.from), ("to", &self.to)];
        let one = one.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        self.entries.iter().map(|entry| ("entry", entry.as_str())).chain(one).collect()
    }
}

pub(super) async fn show(visitor: Visitor, parts: Parts) -> Answer {
    let asked = Form::read(parts.uri.query().unwrap_or_default().as_bytes());
    let selected = UndoSelection::read(&asked);
    let within = selected.within.clone();
    let path = format!("/w/{}/activity", visitor.here()?.id);
    if selected.entries.is_empty() && selected.write.is_none() && selected.who.is_none() {
        let list = html! { p { a.button href=(path) { "Choose in the activity" } } };
        let body = parts::empty("Nothing is chosen to be undone.", &list);
        return Ok(Page::new("Undo").crumbs(vec![("Activity".to_owned(), path)]).show(&visitor, &body));
    }
    let selected = selected.settled(visitor.now());
    let plan = activity::undo(&visitor.person, selected.input(true)).await?.value;
    let body = html! {
        @if selected.who.is_some() && selected.entries.is_empty() && selected.write.is_none() { (times(&path, &selected, within.as_deref())) }
        (planned(&visitor, &plan)?)
        @if plan.steps.is_empty() {
            p { a.button href=(path) { "Back to the activity" } }
        } @else {
            form.buttons method="post" action={ (path) "/undo" } {
                @for (name, value) in selected.fields() { input type="hidden" name=(name) value=(value); }
                button type="submit" { "Undo" }
                a.button href=(path) { "Cancel" }
            }
            p.quiet { "What is undone stands in the activity too, so it can be undone itself." }
        }
    };
    Ok(Page::new("Undo").crumbs(vec![("Activity".to_owned(), path)]).show(&visitor, &body))
}

pub(super) async fn carry_out(visitor: Visitor, form: Form) -> Answer {
    let selected = UndoSelection::read(&form);
    let path = format!("/w/{}/activity", visitor.here()?.id);
    let planned = activity::undo(&visitor.person, selected.input(true)).await?.value.left_alone.len();
    let (mut is_whole, mut is_all_back) = (false, true);
    for _ in 0..MAX_CALLS {
        let undone = activity::undo(&visitor.person, selected.input(false)).await?.value;
        let comes_back = |step: &UndoStep| step.action == UndoAction::Restore.number();
        is_all_back = is_all_back && undone.steps.iter().all(comes_back);
        if !undone.has_more {
            is_whole = undone.left_alone.len() <= planned;
            break;
        }
    }
    if is_whole {
        // Returns to the page of the button, or to the filtered list.
        let back = form.text("back");
        if !is_own_path(back) {
            return Ok(visitor.done(&path, &Notice::Undone));
        }
        return Ok(visitor.done(back, if is_all_back { &Notice::Restored } else { &Notice::Undone }));
    }
    Ok(visitor.done(&format!("{path}/undo?{}", selected.query()), &Notice::UndoneInPart))
}

/// The choice of the period, as a GET form.
fn times(path: &str, selected: &UndoSelection, within: Option<&str>) -> Markup {
    let offered =
        WITHIN.into_iter().map(|(value, _, label)| Choice { value, label, is_chosen: within == Some(value) });
    html! {
        form.filter method="get" action={ (path) "/undo" } {
            input type="hidden" name="who" value=(selected.who.as_deref().unwrap_or_default());
            (parts::choices("within", "Since", offered))
            button type="submit" { "Plan" }
        }
    }
}

const fn planned_effect(action: UndoAction) -> &'static str {
    match action {
        UndoAction::Trash => "goes to trash",
        UndoAction::Restore => "comes back from trash",
        UndoAction::Revert => "is as it was before",
    }
}

fn planned(visitor: &Visitor, plan: &Undo) -> Result<Markup, crate::error::Error> {
    let workspace = visitor.here()?.id;
    let link = |kind: i32, id: &str, database: Option<&str>, name: &str| {
        let address = row::address(workspace, TrashKind::from_number(kind).unwrap_or_default(), id, database);
        html! { @match address { Some(address) => a href=(address) { bdi { (name) } }, None => bdi { (name) } } }
    };
    let steps = html! {
        @for step in plan.steps.iter().take(MAX_NAMED) {
            tr {
                th scope="row" { (link(step.kind, &step.item_id, step.database_id.as_deref(), &step.name)) }
                td { bdi { (step.path) } }
                td { (planned_effect(UndoAction::from_number(step.action).unwrap_or_default())) }
            }
        }
    };
    let left = html! {
        @for one in plan.left_alone.iter().take(MAX_NAMED) {
            tr {
                th scope="row" { (link(one.kind, &one.item_id, one.database_id.as_deref(), &one.name)) }
                td { bdi { (one.path) } }
                td { (words::sentence(&one.reason)) @if let Some(by) = &one.author { " By " bdi { (row::named(by)) } "." } }
            }
        }
    };
    Ok(html! {
        @if plan.steps.is_empty() {
            (parts::empty("Nothing is left to be undone.", &html! {}))
        } @else {
            h2 { (words::count(plan.steps.len() as u64, "item", "items")) " taken back" }
            (parts::table("Taken back", &["What", "Where", "What becomes of it"], &steps))
            (more(plan.steps.len()))
        }
        @if !plan.left_alone.is_empty() {
            h2 { (words::count(plan.left_alone.len() as u64, "item", "items")) " left alone" }
            (parts::table("Left alone", &["What", "Where", "Why"], &left))
            (more(plan.left_alone.len()))
        }
    })
}

fn more(count: usize) -> Markup {
    html! {
        @if count > MAX_NAMED { p.quiet { "And " (words::grouped((count - MAX_NAMED) as u64)) " more." } }
    }
}
