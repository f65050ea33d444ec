//! `GET /databases/{id}`: the grid of a database, with a record beside it.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::{Permission, TrashKind};
use cairn_proto::ids::RecordId;
use http::StatusCode;
use http::request::Parts;
use maud::{Markup, html};

use super::at::{Found, LocatedDatabase, no_part};
use super::form_outcome::{FormLocation, FormOutcome};
use super::model::field_name;
use super::names::{Names, References};
use super::record::RecordPanel;
use super::rows::{Cell, Grid};
use super::values::typed;
use super::view_state::{NEW, ViewState};
use super::{address, filters, groups, list, tabs, view_state};
use crate::answers::{Database, Record, RecordPage};
use crate::error::Error;
use crate::operations::Context;
use crate::operations::records::{self, Selection};
use crate::pages::frame::Page;
use crate::pages::popover::{Popovers, Refused};
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, file, folders, parts as part};

pub(super) async fn show(at: LocatedDatabase, parts: Parts) -> Answer {
    show_page(&at, &ViewState::read(parts.uri.query().unwrap_or_default()), FormOutcome::default()).await
}

/// The page again, with the outcome of a form.
pub(super) async fn show_again(
    at: &LocatedDatabase,
    view_state: &ViewState,
    outcome: FormOutcome<'_>,
) -> Answer {
    show_page(at, view_state, outcome).await
}

async fn show_page(at: &LocatedDatabase, view_state: &ViewState, outcome: FormOutcome<'_>) -> Answer {
    let database = match at.database().await? {
        Found::Live(database) => database,
        Found::Elsewhere(response) => return Ok(response),
    };
    let context = at.visitor.context()?;
    let (page, problem) = match listed(&context, at, &database, view_state).await {
        Ok(page) => (page, None),
        Err(problem) if problem.violations.is_empty() => return Err(problem.into()),
        Err(problem) => (nothing(), Some(view_state.named(problem, &database))),
    };
    // Invalid filters are already reported for the grid.
    let grouped = match &problem {
        None => groups::of(&context, at.id, &database, view_state).await?,
        Some(_) => None,
    };
    let opened = match view_state.record.as_deref() {
        None | Some(NEW) => None,
        Some(id) => match opened(&context, at, id).await? {
            Opened::Record(record) => Some(record),
            Opened::Trashed(response) => return Ok(response),
        },
    };
    let wanted = {
        let known: Vec<&Record> = page.records.iter().chain(opened.as_deref()).collect();
        References::by(&database.properties, &known)
    };
    let names = Names::of(&context, wanted).await;
    let grid = Grid {
        visitor: &at.visitor,
        database: &database,
        view_state,
        page: &page,
        names: &names,
        // Without the right to write there is no cell form, whatever the URL says.
        cell: if at.visitor.may(Permission::Write) { cell(&database, view_state, outcome) } else { None },
    };
    let is_asked_well = problem.is_none();
    let problem = problem.as_ref().or(outcome.problem);
    let aside = if view_state.record.is_some() {
        let beside = RecordPanel {
            visitor: &at.visitor,
            database: &database,
            view_state,
            record: opened.as_deref(),
            names: &names,
            outcome: outcome.at(FormLocation::Record).unwrap_or_default(),
        };
        Some(beside.markup(&context).await)
    } else {
        None
    };
    let tree =
        if at.visitor.may(Permission::Write) { Some(folders::Tree::of(&context).await?) } else { None };
    let forms = forms(&at.visitor, &database, tree.as_ref(), outcome.refused);
    let is_left_out =
        opened.as_deref().is_some_and(|record| !page.records.iter().any(|one| one.id == record.id));
    let body = html! {
        // A cell's error is shown in the cell.
        @if outcome.place != FormLocation::Cell || !is_asked_well { (summary(&database, outcome, problem)) }
        @if let Some(description) = &database.description { p { bdi { (description) } } }
        (forms.open())
        (tabs::tabs(&at.visitor, &database, view_state, outcome.refused))
        div.beside[aside.is_some()] {
            div {
                (filters::bar(&database, view_state, is_asked_well.then_some(page.total)))
                @if let Some(grouped) = grouped.as_ref().filter(|grouped| grouped.total.count > 0) { (groups::table(&database, view_state, grouped)) }
                @if is_left_out { p.notice { "The record beside is not among those that the grid shows now." } }
                @if page.records.is_empty() { (none(&at.visitor, &database, view_state)) } @else { (grid.table()) }
            }
            @if let Some(aside) = aside { (aside) }
        }
    };
    let crumbs = vec![("Databases".to_owned(), at.visitor.onward(list::address(at.visitor.here()?.id)))];
    let page = Page::new(&database.name)
        .heading(html! { bdi { (database.name) } })
        .crumbs(crumbs)
        .actions(actions(&at.visitor, &database, view_state, &forms));
    let page = match problem {
        None => page,
        Some(problem) if problem.reason == Reason::VersionConflict => page.with_error(StatusCode::CONFLICT),
        Some(_) => page.failed(),
    };
    Ok(page.show(&at.visitor, &body))
}

const fn nothing() -> RecordPage {
    RecordPage {
        records: Vec::new(),
        total: 0,
        limit: view_state::PAGE,
        offset: 0,
        property_names: std::collections::BTreeMap::new(),
    }
}

/// The requested page; if the URL has a record but no page, the one with the record.
async fn listed(
    context: &Context,
    at: &LocatedDatabase,
    database: &Database,
    view_state: &ViewState,
) -> Result<RecordPage, Problem> {
    let record = view_state.record.as_ref().filter(|id| *id != NEW && view_state.page.is_none());
    if let Some(record) = record {
        let selection = Selection { record_id: Some(record.clone()), ..view_state.selection(database) };
        match records::list(context, at.id, selection).await {
            // The record does not exist or is filtered out: show the first page, and the record by itself.
            Err(problem) if problem.reason == Reason::NotFound => {}
            listed => return listed,
        }
    }
    records::list(context, at.id, view_state.selection(database)).await
}

enum Opened {
    Record(Box<Record>),
    Trashed(axum::response::Response),
}

/// The record in the query; for a trashed one the page that says so.
async fn opened(context: &Context, at: &LocatedDatabase, id: &str) -> Result<Opened, Error> {
    let id: RecordId = id.parse().map_err(|_| no_part())?;
    match records::get(context, at.id, id).await {
        Ok(record) => Ok(Opened::Record(Box::new(record))),
        Err(problem) if problem.reason == Reason::NotFound => {
            let page = file::trashed(&at.visitor, TrashKind::Record, id.to_string()).await?;
            page.map(Opened::Trashed).ok_or_else(|| no_part().into())
        }
        Err(problem) => Err(problem.into()),
    }
}

/// The cell being edited: the one in the URL, or the one that could not be saved.
fn cell<'a>(database: &Database, view_state: &'a ViewState, outcome: FormOutcome<'a>) -> Option<Cell<'a>> {
    let (record, field) = view_state.cell.as_ref()?;
    let outcome = outcome.at(FormLocation::Cell);
    let property = view_state::property(&database.properties, field)?;
    let problem = outcome.and_then(|outcome| outcome.problem);
    Some(Cell {
        record,
        field,
        typed: outcome.and_then(|outcome| outcome.form).map(|form| typed(property, form)),
        problem,
        is_outrun: problem.is_some_and(|problem| problem.reason == Reason::VersionConflict),
    })
}

fn summary(database: &Database, outcome: FormOutcome<'_>, problem: Option<&Problem>) -> Markup {
    let fields: Vec<(String, &str)> = match outcome.place {
        FormLocation::Record => {
            database.properties.iter().map(|one| (field_name(one), one.name.as_str())).collect()
        }
        FormLocation::Page | FormLocation::Cell => Vec::new(),
    };
    let of_record = fields.iter().map(|(name, label)| (name.as_str(), *label));
    let of_button = [("name", "Name"), ("description", "Description"), ("folder", "Folder")];
    let of_button = of_button.into_iter().filter(|_| outcome.refused.is_some());
    let labels: Vec<(&str, &str)> = of_record.chain(of_button).chain([("filter", "Filter")]).collect();
    part::summary(problem, &labels)
}

fn none(visitor: &Visitor, database: &Database, view_state: &ViewState) -> Markup {
    let of_view = view_state.view_of(database).is_some_and(|view| !view.filters.is_empty());
    if filters::is_narrowed(view_state) || of_view || view_state.page.is_some_and(|page| page > 1) {
        let all = view_state.whole_view();
        let action =
            html! { p { a href=(all.address(&database.id)) { "Show the view without further filters" } } };
        return part::empty("No record fits.", &action);
    }
    let action = html! {
        @if visitor.may(Permission::Write) {
            p { a.button href=(view_state.beside(NEW).address(&database.id)) { "Add the first record" } }
            @if database.properties.len() < 2 {
                p.quiet { "It has only a name so far. " a href={ (address(&database.id)) "/fields" } { "Add fields" } " for what else is to be kept." }
            }
        }
        p { a href="/docs/guides" { "How agents use databases" } }
    };
    part::empty("No records are here.", &action)
}

/// The forms of the actions, for those who may write; they need the folder selector.
fn forms<'a>(
    visitor: &Visitor,
    database: &'a Database,
    tree: Option<&'a folders::Tree>,
    refused: Option<Refused<'a>>,
) -> Popovers<'a> {
    let base = address(&database.id);
    let mut forms = Popovers::new(refused);
    let Some(tree) = tree.filter(|_| visitor.may(Permission::Write)) else { return forms };
    let told = "What agents are told that it holds.";
    forms.add("rename", "Rename", None, |filled| {
        let description = part::Field::text("description", "Description").optional().hint(told);
        html! {
            form method="post" action={ (base) "/rename" } {
                (filled.field(part::Field::text("name", "Name"), &database.name).render())
                (filled.field(description, database.description.as_deref().unwrap_or_default()).render())
                button type="submit" { "Rename" }
            }
        }
    });
    forms.add("move", "Move", Some("m"), |filled| {
        html! {
            form method="post" action={ (base) "/move" } {
                (tree.choice("folder", filled.choice("folder", database.folder_id.as_deref()), None))
                button type="submit" { "Move" }
            }
        }
    });
    forms
}

/// The actions that the visitor's role allows.
fn actions(visitor: &Visitor, database: &Database, view_state: &ViewState, forms: &Popovers<'_>) -> Markup {
    let base = address(&database.id);
    let query = view_state.anew().query();
    let export = if query.is_empty() { format!("{base}/csv") } else { format!("{base}/csv?{query}") };
    html! {
        @if visitor.may(Permission::Write) {
            a.button.primary href=(view_state.beside(NEW).address(&database.id)) data-key="n" { "New record" }
        }
        a.button href=(visitor.onward(format!("{base}/fields"))) { "Fields" }
        a.button href=(export) data-no-prefetch download { "Export CSV" }
        @if visitor.may(Permission::Write) { a.button href={ (base) "/import" } { "Import CSV" } }
        (forms.buttons())
        @if visitor.may(Permission::Delete) {
            (part::action(&format!("{base}/delete"), "Move to trash", &database.name, &[]))
        }
    }
}
