//! A record beside the grid: its form, its body page, its versions, and its backlinks.

mod history;

use cairn_chassis::status::Problem;
use cairn_proto::domain::{Permission, PropertyType};
use cairn_proto::ids::FileId;
use maud::{Markup, html};

use super::form_outcome::FormOutcome;
use super::model::{kind_of, title_of, value_of};
use super::names::Names;
use super::values::{Control, Room, as_typed, render_value, typed};
use super::view_state::{Side, ViewState};
use super::{address, record_address};
use crate::answers::{Database, Property, Record};
use crate::operations::records::{self, Selection};
use crate::operations::{Context, Paging, databases, files};
use crate::pages::text::{self, Relative, Style};
use crate::pages::visitor::Visitor;
use crate::pages::{file, parts as part, words};

/// In larger databases, relations are entered by id.
const MAX_CHOICES: u32 = 200;
/// Relations with a record selector.
const MAX_RELATIONS: usize = 5;
/// Properties that are searched for backlinks.
const MAX_ASKED: usize = 8;
const MAX_BACKLINKS: u32 = 20;
/// A larger body is only linked.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// A record beside the grid; without one the form of a new record.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordPanel<'a> {
    pub(super) visitor: &'a Visitor,
    pub(super) database: &'a Database,
    pub(super) view_state: &'a ViewState,
    pub(super) record: Option<&'a Record>,
    pub(super) names: &'a Names,
    pub(super) outcome: FormOutcome<'a>,
}

impl RecordPanel<'_> {
    pub(super) async fn markup(&self, context: &Context) -> Markup {
        let title = self.record.map_or("New record", title_of);
        let content = match self.record {
            None => self.form(context, None).await,
            Some(record) => self.side(context, record).await,
        };
        html! {
            aside aria-label=(title) {
                div.top {
                    h2 #record-title tabindex="-1" autofocus { bdi { (title) } }
                    a.button href=(self.closed()) data-close { "Close" span.sr { " the record" } }
                }
                (content)
            }
        }
    }

    /// The URL of the grid alone, at the record's row.
    fn closed(&self) -> String {
        let grid = self.view_state.grid().address(&self.database.id);
        match self.record {
            Some(record) => format!("{grid}#r-{}", record.id),
            None => grid,
        }
    }

    async fn side(&self, context: &Context, record: &Record) -> Markup {
        let content = match self.view_state.side {
            Side::Fields => {
                let form = self.form(context, Some(record)).await;
                let body = self.body(context, record).await;
                html! {
                    (form)
                    @if let Some(checked) = self.outcome.checked { section #checked aria-label="Golden questions" { (checked) } }
                    (body)
                    (self.ends(record))
                }
            }
            Side::Versions => history::versions(self, context, record).await,
            Side::Backlinks => self.backlinks(context, record).await,
        };
        html! {
            nav.tabs aria-label="Record" {
                @for (side, _, label) in Side::ALL {
                    a href=(self.view_state.at_side(side).address(&self.database.id)) aria-current=[(side == self.view_state.side).then_some("page")] { (label) }
                }
            }
            (content)
        }
    }

    /// The form, editable with the right to write.
    async fn form(&self, context: &Context, record: Option<&Record>) -> Markup {
        if !self.visitor.may(Permission::Write) {
            return html! {
                @if let Some(record) = record { (self.facts(record)) }
                @if let Some(here) = self.visitor.here_if_any().filter(|_| self.visitor.seen_as().is_none()) { (part::not_in_role(here)) }
            };
        }
        let choices = self.choices(context).await;
        let base = format!("{}/records", address(&self.database.id));
        let action = record.map_or_else(|| base.clone(), |record| format!("{base}/{}", record.id));
        html! {
            form.record method="post" action=(action) {
                input type="hidden" name="back" value=(self.view_state.query());
                @if let Some(record) = record { input type="hidden" name="version" value=(record.version); }
                @for property in &self.database.properties {
                    @let held = match self.outcome.form {
                        Some(form) => typed(property, form),
                        None => as_typed(property, record.and_then(|record| value_of(record, property))),
                    };
                    @let choices = choices.iter().find(|(id, _)| *id == property.id).map(|(_, choices)| choices.as_slice());
                    (Control { property, typed: &held, problem: self.outcome.problem, choices }.labelled())
                }
                div.buttons {
                    button.primary type="submit" { (if record.is_some() { "Save" } else { "Create record" }) }
                    @if record.is_some() {
                        button type="submit" formaction={ (action) "/check" } { "Check golden questions" }
                    }
                    a.button href=(self.closed()) { "Cancel" }
                }
            }
        }
    }

    fn facts(&self, record: &Record) -> Markup {
        html! {
            dl.facts {
                @for property in &self.database.properties {
                    dt { bdi { (property.name) } }
                    dd { (render_value(property, value_of(record, property), self.names, Room::Whole)) }
                }
            }
        }
    }

    /// Ids and titles of the records that relations can reference, by property; not for large databases.
    async fn choices(&self, context: &Context) -> Vec<(&str, Vec<(String, String)>)> {
        let mut all = Vec::new();
        let relations = self.database.properties.iter().filter(|one| kind_of(one) == PropertyType::Relation);
        let relations: Vec<&Property> = relations.take(MAX_RELATIONS).collect();
        for property in relations {
            let Some(Ok(related)) = related(property).map(str::parse) else { continue };
            let selection = Selection { limit: Some(MAX_CHOICES), ..Selection::default() };
            match records::list(context, related, selection).await {
                Ok(page) if page.total <= u64::from(MAX_CHOICES) => {
                    let choice = |record: &Record| (record.id.clone(), title_of(record).to_owned());
                    all.push((property.id.as_str(), page.records.iter().map(choice).collect()));
                }
                // Ids are typed instead.
                Ok(_) | Err(_) => {}
            }
        }
        all
    }

    /// The rendered body file of the record.
    async fn body(&self, context: &Context, record: &Record) -> Markup {
        let base = format!("{}/records/{}", address(&self.database.id), record.id);
        let back = self.view_state.query();
        let Some(id) = record.content_file_id.as_deref() else {
            return html! {
                @if self.visitor.may(Permission::Write) {
                    (part::action(&format!("{base}/page"), "Add a page", "", &[("back", &back)]))
                    p.hint { "A file for what does not fit in fields. It stands beside the database." }
                }
            };
        };
        let read = match id.parse::<FileId>() {
            Ok(id) => files::get(context, id).await,
            Err(_) => Err(Problem::not_found("the page of this record cannot be found")),
        };
        html! {
            section aria-label="Page" {
                h3 { "Page" }
                @match &read {
                    Err(problem) => { p { (words::describe(problem)) " It may be in trash, or out of your reach." } }
                    Ok(file) => { (rendered(file)) }
                }
                @if self.visitor.may(Permission::Write) {
                    div.buttons {
                        @if read.is_ok() { a.button href={ (file::address(id)) "/edit" } data-key="e" { "Edit page" } }
                        (part::action(&format!("{base}/no-page"), "Remove page", "from the record; the file stays", &[("back", &back)]))
                    }
                }
            }
        }
    }

    fn ends(&self, record: &Record) -> Markup {
        let base = format!("{}/records/{}", address(&self.database.id), record.id);
        html! {
            (part::copy_link())
            p.quiet { "Version " (record.version) " · changed " (part::time(&record.updated_at)) }
            @if self.visitor.may(Permission::Delete) {
                (part::action(&format!("{base}/delete"), "Move to trash", title_of(record), &[("back", &self.view_state.grid().query())]))
            }
        }
    }

    /// Records of the workspace's databases that reference this one by a relation.
    async fn backlinks(&self, context: &Context, record: &Record) -> Markup {
        let listed = match databases::list(context, None, Paging::default()).await {
            Ok(listed) => listed.items,
            Err(problem) => return part::failed(&problem, &self.visitor.address),
        };
        let relates = |property: &&Property| related(property) == Some(self.database.id.as_str());
        let relations: Vec<(&Database, &Property)> = listed
            .iter()
            .flat_map(|database| {
                database.properties.iter().filter(relates).map(move |property| (database, property))
            })
            .take(MAX_ASKED)
            .collect();
        let mut found = Vec::new();
        for (database, property) in relations {
            let Ok(id) = database.id.parse() else { continue };
            let selection = Selection {
                filter_field_id: Some(property.id.clone()),
                filter_operator: Some("contains".to_owned()),
                filter_value: Some(record.id.clone()),
                limit: Some(MAX_BACKLINKS),
                ..Selection::default()
            };
            found.push((database, property, records::list(context, id, selection).await));
        }
        let is_none = found.iter().all(|(.., page)| page.as_ref().is_ok_and(|page| page.records.is_empty()));
        html! {
            @if is_none { p.quiet { "No record names this one." } }
            @for (database, property, page) in &found {
                @match page {
                    Err(problem) => { p { bdi { (database.name) } ": " (words::describe(problem)) } }
                    Ok(page) if page.records.is_empty() => {}
                    Ok(page) => {
                        h3 { bdi { (database.name) } ", as " bdi { (property.name) } }
                        ul {
                            @for one in &page.records {
                                li { a href=(record_address(&database.id, &one.id)) { bdi { (title_of(one)) } } }
                            }
                        }
                        @if page.total > page.records.len() as u64 {
                            p.quiet { "The first " (page.records.len()) " of " (words::grouped(page.total)) "." }
                        }
                    }
                }
            }
        }
    }
}

/// The target database of a relation.
fn related(property: &Property) -> Option<&str> {
    property.config.as_ref()?.relation_database_id.as_deref()
}

fn rendered(file: &crate::answers::File) -> Markup {
    let content = file.content.as_deref().unwrap_or_default();
    if content.len() > MAX_BODY_BYTES {
        return html! { p { a href=(file::address(&file.id)) { "Read the page" } " (" (words::bytes(file.size_bytes)) ")" } };
    }
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let relative = Relative::Folder { workspace: &file.workspace_id, path: folder };
    // The page's own headings beside the grid are of the second and third level.
    let style = Style { top_level: 4, first_line: 1, cited: None, relative, ids: "page-" };
    html! {
        p { a href=(file::address(&file.id)) { bdi { (file.path) } } }
        @if content.trim().is_empty() { p.quiet { "The page is empty." } } @else {
            article.prose dir="auto" { (text::render(content, style).markup) }
        }
    }
}
