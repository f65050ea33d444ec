//! `/w/{id}/databases`: the databases of a workspace.

use cairn_chassis::status::Problem;
use cairn_proto::domain::Permission;
use cairn_proto::ids::WorkspaceId;
use http::request::Parts;
use maud::{Markup, html};
use serde_json::json;

use super::address as address_of;
use crate::answers::Database;
use crate::operations::databases::{self, CreateDatabase};
use crate::operations::{Page, Paging};
use crate::pages::form::{self, Form};
use crate::pages::frame;
use crate::pages::notice::Notice;
use crate::pages::popover::is_of_a_form;
use crate::pages::viewer::Viewer;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, folders, marks, parts as part, words};

const PAGE: u32 = 50;

/// The URL of the list.
pub(super) fn address(workspace: WorkspaceId) -> String {
    format!("/w/{workspace}/databases")
}

pub(super) async fn show(visitor: Visitor, parts: Parts) -> Answer {
    list(&Viewer::by(&visitor, &parts).await?, &parts, None).await
}

/// `POST /w/{id}/databases/new`.
pub(super) async fn create(visitor: Visitor, parts: Parts, form: Form) -> Answer {
    let folder = Some(form.trimmed("folder")).filter(|id| !id.is_empty());
    let description = Some(form.trimmed("description")).filter(|text| !text.is_empty());
    let fields = json!({"name": form.trimmed("name"), "description": description, "folderId": folder});
    let made = match form::input::<CreateDatabase>(fields) {
        Ok(input) => databases::create(&visitor.context()?, input).await,
        Err(problem) => Err(problem),
    };
    match made {
        Ok(made) => {
            // A new database starts with its fields.
            let fields = format!("{}/fields", address_of(&made.value.id));
            Ok(visitor.done(&fields, &Notice::Created))
        }
        Err(problem) if is_of_a_form(&problem) => {
            list(&Viewer::of(&visitor, None).await?, &parts, Some((&problem, &form))).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn list(viewer: &Viewer, parts: &Parts, failed: Option<(&Problem, &Form)>) -> Answer {
    let visitor = &viewer.visitor;
    let here = visitor.here()?;
    let context = visitor.context()?;
    let trail = marks(parts);
    let paging = Paging { limit: Some(PAGE), cursor: trail.last().cloned() };
    let (listed, tree) = tokio::join!(databases::list(&context, None, paging), folders::Tree::of(&context));
    let listed = match listed {
        // A stale page token: start over.
        Err(problem) if !problem.violations.is_empty() && !trail.is_empty() => {
            return Ok(crate::pages::see_other(&visitor.onward(address(here.id))));
        }
        listed => listed?,
    };
    let tree = tree?;
    let path = address(here.id);
    let kept: Vec<(&str, &str)> = viewer.token().map(|token| ("as", token)).into_iter().collect();
    let pages = part::Pages::of(&path, &kept, trail, PAGE, &listed);
    // Errors link to the fields of the form below, which is rendered for those who may submit it.
    let labels = [("name", "Name"), ("description", "Description")];
    let labels: &[_] = if visitor.may(Permission::Write) { &labels } else { &[] };
    let body = html! {
        (part::summary(failed.map(|(problem, _)| problem), labels))
        (viewer.form(&path))
        @if listed.items.is_empty() { (none(visitor)) } @else {
            (table(visitor, &tree, &listed))
            (part::pages(&pages))
        }
        @if let (Some((problem, form)), true) = (failed, visitor.may(Permission::Write)) {
            h2 { "New database" }
            (creation(&path, &tree, Some(problem), Some(form)))
        }
    };
    let mut page = frame::Page::new("Databases");
    if visitor.may(Permission::Write) && failed.is_none() {
        let form = creation(&path, &tree, None, None);
        page = page.actions(html! {
            a.button href={ (path) "/import" } { "New from CSV" }
            (folders::popover("new", "New database", Some("n"), &form))
        });
    }
    let page = if failed.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

fn creation(path: &str, tree: &folders::Tree, problem: Option<&Problem>, form: Option<&Form>) -> Markup {
    let typed = |name: &str| form.map(|form| form.text(name)).unwrap_or_default();
    html! {
        form method="post" action={ (path) "/new" } {
            (part::Field::text("name", "Name").value(typed("name")).problem(problem).render())
            (part::Field::text("description", "Description").optional().value(typed("description")).hint("What agents are told that it holds.").problem(problem).render())
            (tree.choice("folder", Some(typed("folder")).filter(|id| !id.is_empty()), None))
            button.primary type="submit" { "Create database" }
        }
    }
}

fn none(visitor: &Visitor) -> Markup {
    let action = html! {
        @if visitor.may(Permission::Write) { p { "Make one with New database: rows with fields that agents search, filter and write." } }
        p { a href="/docs/guides" { "How agents use databases" } }
    };
    part::empty("No databases are here.", &action)
}

fn table(visitor: &Visitor, tree: &folders::Tree, listed: &Page<Database>) -> Markup {
    let rows = html! {
        @for one in &listed.items {
            tr {
                th scope="row" {
                    a href=(visitor.onward(address_of(&one.id))) { bdi { (one.name) } }
                    @if let Some(description) = &one.description { span.hint { bdi { (description) } } }
                }
                td.number { (words::grouped(one.record_count)) }
                td.number { (words::grouped(one.properties.len() as u64)) }
                td { bdi { (one.folder_id.as_deref().and_then(|id| tree.get(id)).map_or("/", |folder| folder.path.as_str())) } }
                td { (part::time(&one.updated_at)) }
                td {
                    @if visitor.may(Permission::Delete) {
                        (part::action(&format!("{}/delete", address_of(&one.id)), "Move to trash", &one.name, &[]))
                    }
                }
            }
        }
    };
    part::table("Databases", &["Name", "Records", "Fields", "Folder", "Changed", ""], &rows)
}
