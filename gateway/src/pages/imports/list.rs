//! The upload form of archives, and the imports so far.

use std::sync::Arc;

use axum::extract::{Request, State};
use cairn_chassis::status::Problem;
use cairn_proto::domain::{ConflictPolicy, ImportProvider, Permission};
use http::HeaderMap;
use http::request::Parts;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::{address, words as said};
use crate::answers::ImportRun;
use crate::auth::Authenticator;
use crate::operations::Paging;
use crate::operations::imports::{self, WorkspaceAccess, form};
use crate::pages::frame::Page;
use crate::pages::notice::Notice;
use crate::pages::parts::{self as part, Choice, Pages};
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, folders, is_stale, marks, runs, words};

const PAGE_SIZE: u32 = 50;

/// A rejected form.
struct Refused<'a> {
    problem: &'a Problem,
    /// Its fields beside the archive.
    fields: &'a Map<String, Value>,
}

pub(super) async fn show(visitor: Visitor, parts: Parts) -> Answer {
    list(&visitor, &marks(&parts), None).await
}

/// Streams the archive to the service, and redirects to the preview.
pub(super) async fn upload(
    State(authenticator): State<Arc<Authenticator>>,
    headers: HeaderMap,
    visitor: Visitor,
    request: Request,
) -> Answer {
    let here = visitor.here()?.id;
    let access = WorkspaceAccess::of(&visitor.person, &authenticator, &headers);
    let mut fields = Map::from_iter([("workspaceId".to_owned(), Value::String(here.to_string()))]);
    match form::receive(&access, &headers, request.into_body(), &mut fields).await {
        Ok(run) => Ok(visitor.done(&format!("{}/{}", address(here), run.id), &Notice::Uploaded)),
        Err(problem) if runs::is_told_there(&problem) => {
            list(&visitor, &[], Some(Refused { problem: &problem, fields: &fields })).await
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn list(visitor: &Visitor, trail: &[String], refused: Option<Refused<'_>>) -> Answer {
    let here = visitor.here()?;
    let path = address(here.id);
    let paging = Paging { limit: Some(PAGE_SIZE), cursor: trail.last().cloned() };
    let context = visitor.context()?;
    let (listed, tree) = tokio::join!(imports::list(&visitor.person, paging), folders::Tree::of(&context));
    let listed = match listed {
        // A stale page token: start over.
        Err(problem) if is_stale(&problem, trail) => {
            return Ok(see_other(&path));
        }
        listed => listed?,
    };
    let pages = Pages::of(&path, &[], trail.to_vec(), PAGE_SIZE, &listed);
    let problem = refused.as_ref().map(|refused| refused.problem);
    let body = html! {
        (runs::problem(problem))
        @if visitor.may(Permission::Write) {
            (form_of(&path, &tree?, refused.as_ref()))
        } @else {
            (part::not_in_role(here))
        }
        h2 { "Imports so far" }
        @if listed.items.is_empty() {
            p.quiet { "Nothing was imported yet." }
        } @else {
            div #runs data-live="run" { (table(&path, &listed.items)) }
            (part::pages(&pages))
        }
    };
    let page = runs::with_problem(Page::new("Import").live(), problem);
    Ok(page.show(visitor, &body))
}

fn form_of(path: &str, tree: &folders::Tree, refused: Option<&Refused<'_>>) -> Markup {
    let typed = |name: &str| refused.and_then(|refused| refused.fields.get(name)?.as_str());
    let provider = |one: ImportProvider| Choice {
        value: one.as_str(),
        label: said::provider(one),
        is_chosen: typed("provider") == Some(one.as_str()),
    };
    let policy = |one: ConflictPolicy| Choice {
        value: one.as_str(),
        label: said::policy(one),
        is_chosen: typed("conflictPolicy") == Some(one.as_str()),
    };
    html! {
        p { "You see what becomes of everything in the archive before anything is written." }
        form.fields.card data-archive method="post" action=(path) enctype="multipart/form-data" {
            // Fields before the archive are known when it arrives, so that an oversized one is rejected at once.
            (part::choices("provider", "From", ImportProvider::ALL.map(provider)))
            (tree.choice("folderId", typed("folderId").filter(|id| !id.is_empty()), None))
            (part::choices("conflictPolicy", "What an earlier import wrote and the archive has otherwise", ConflictPolicy::ALL.map(policy)))
            div.field {
                label for="f-archive" { "Archive" }
                span.hint #archive-hint { "A ZIP file. Choose it, or drop it on this page." }
                input #f-archive type="file" name="archive" accept=".zip,application/zip" required aria-describedby="archive-hint";
            }
            progress aria-label="Upload" value="0" max="1" hidden {}
            div.buttons { button.primary type="submit" { "Upload and preview" } }
        }
        details {
            summary { "What is read" }
            ul {
                li { strong { "An Obsidian vault" } ": the folder of the vault as a ZIP file. Notes, canvases, bases and texts become files, everything else becomes attachments. Links between notes, embeds, tags and aliases are followed." }
                li { strong { "A Notion export" } ": Markdown & CSV, or HTML, as Notion sends it. An export in several parts is one ZIP file with the parts in it: upload that one. Pages become files, databases become databases with typed fields, and rows become records." }
                li { "Texts of more than 5 MB, encrypted archives, and archives with more than 100 000 entries are not read. The archive, and each attachment, may be as large as the objects that the workspace's plan allows." }
                li { "Importing the same tool's archive into the same folder again changes only what changed, and never what was edited here." }
            }
        }
    }
}

fn table(path: &str, runs: &[ImportRun]) -> Markup {
    let rows = html! {
        @for run in runs {
            tr {
                th scope="row" { a href={ (path) "/" (run.id) } { bdi { @if run.file_name.is_empty() { "An archive" } @else { (run.file_name) } } } }
                td { (said::provider(run.provider)) }
                td { (runs::badge(run.status)) }
                td { (words::count(run.total, "object", "objects")) ", " (words::bytes(run.size_bytes)) }
                td { (runs::by(run.by.as_ref())) }
                td { (part::time(&run.created_at)) }
            }
        }
    };
    part::table("Imports", &["Archive", "From", "State", "Holds", "By", "When"], &rows)
}
