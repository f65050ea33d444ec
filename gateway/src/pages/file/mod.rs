//! The pages of a file: text, source, versions, uses; and its actions.

mod at;
mod changes;
mod cited;
mod edit;
mod endings;
mod index;
mod linking;
mod merge;
mod read;
mod save;
mod uses;
mod version;

use axum::response::IntoResponse as _;
use cairn_proto::domain::{FileType, Permission, TrashKind};
use http::{HeaderValue, header};
use maud::{Markup, html};
use serde_json::json;

use self::at::{Found, LocatedFile};
use super::ask_again::{self, AskAgain};
use super::form::{self, Form};
use super::frame::Page;
use super::notice::Notice;
pub(super) use super::places::file as address;
use super::popover::{Popovers, Refused, is_of_a_form};
use super::text::Language;
use super::visitor::Visitor;
use super::{Answer, PERSON, folders, parts as part};
use crate::answers::{self, File};
use crate::class::FILE_BYTES;
use crate::error::Error;
use crate::operations::files::{self, UpdateFile};
use crate::operations::trash;
use crate::routes::Routes;

pub(super) use self::at::{located, trashed};
pub(super) use self::changes::who;
pub(super) use self::index::in_index;

pub(super) fn routes() -> Routes {
    let writing = PERSON.up_to(FILE_BYTES);
    Routes::default()
        .get(PERSON, "/file/{id}", read::show)
        .get(PERSON, "/file/{id}/download", download)
        .get(PERSON.patient(), "/file/{id}/index", index::show)
        .post(PERSON, "/file/{id}/rename", rename)
        .post(PERSON, "/file/{id}/move", move_to)
        .post(PERSON, "/file/{id}/tags", tag)
        .post(PERSON, "/file/{id}/delete", delete)
        .post(PERSON, "/file/{id}/restore", restore)
        .get(PERSON, "/file/{id}/edit", edit::show)
        .post(writing, "/file/{id}/edit", save::save)
        .post(writing, "/file/{id}/preview", edit::preview)
        .post(writing.patient(), "/file/{id}/check", save::check)
        .get(PERSON, "/file/{id}/versions/{version}", version::show)
        .post(PERSON, "/file/{id}/versions/{version}/restore", version::restore)
}

/// The views of a file, by their query value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Read,
    Source,
    Changes,
    Uses,
}

impl View {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Read, "", "Read"),
        (Self::Source, "source", "Source"),
        (Self::Changes, "changes", "Changes"),
        (Self::Uses, "uses", "Uses"),
    ];

    fn of(name: &str) -> Self {
        Self::ALL.into_iter().find(|(_, known, _)| *known == name).map_or(Self::Read, |(view, ..)| view)
    }
}

fn tabs(visitor: &Visitor, id: &str, current: Option<View>) -> Markup {
    html! {
        nav.tabs aria-label="Views" {
            @for (view, name, label) in View::ALL {
                @let query = if name.is_empty() { String::new() } else { format!("?view={name}") };
                a href=(visitor.onward(format!("{}{query}", address(id)))) aria-current=[(current == Some(view)).then_some("page")] { (label) }
            }
        }
    }
}

/// The frame of every page about a file.
fn page<'a>(at: &LocatedFile, file: &'a File, tree: &folders::Tree) -> Result<Page<'a>, Error> {
    let crumbs = tree.crumbs(at.visitor.here()?.id, file.folder_id.as_deref());
    Ok(Page::new(&file.name).heading(html! { bdi { (file.name) } }).crumbs(crumbs))
}

/// The forms of the actions that the visitor's role allows.
fn forms<'a>(
    visitor: &Visitor,
    file: &'a File,
    tree: &'a folders::Tree,
    refused: Option<Refused<'a>>,
) -> Popovers<'a> {
    let base = address(&file.id);
    let mut forms = Popovers::new(refused);
    if !visitor.may(Permission::Write) {
        return forms;
    }
    forms.add("rename", "Rename", None, |filled| {
        html! {
            form method="post" action={ (base) "/rename" } {
                (filled.field(part::Field::text("name", "Name"), &file.name).render())
                button type="submit" { "Rename" }
            }
        }
    });
    forms.add("move", "Move", Some("m"), |filled| {
        html! {
            form method="post" action={ (base) "/move" } {
                (tree.choice("folder", filled.choice("folder", file.folder_id.as_deref()), None))
                button type="submit" { "Move" }
            }
        }
    });
    let tags = file.tags.join(", ");
    forms.add("tag", "Tags", None, |filled| {
        let field = part::Field::text("tags", "Tags").optional().hint("Words with commas between them.");
        html! {
            form method="post" action={ (base) "/tags" } {
                (filled.field(field, &tags).render())
                button type="submit" { "Save tags" }
            }
        }
    });
    forms
}

/// The buttons of the actions that the visitor's role allows.
fn actions(visitor: &Visitor, file: &File, forms: &Popovers<'_>, ask: Option<&AskAgain>) -> Markup {
    let base = address(&file.id);
    let edit = ask_again::carried(&format!("{base}/edit"), ask);
    html! {
        @if visitor.may(Permission::Write) { a.button href=(edit) data-key="e" { "Edit" } }
        (forms.buttons())
        (part::copy_link())
        a.button href=(visitor.onward(format!("{base}/download"))) { "Download" }
        @if visitor.may(Permission::Delete) {
            (part::action(&format!("{base}/delete"), "Move to trash", "", &[]))
        }
    }
}

/// The language for syntax highlighting.
fn language(file: &File) -> Language {
    match FileType::from_number(file.file_type).unwrap_or_default() {
        FileType::Markdown => Language::Markdown,
        FileType::Json => Language::Json,
        FileType::Yaml => Language::Yaml,
        FileType::Text => Language::Plain,
    }
}

fn is_markdown(file: &File) -> bool {
    FileType::from_number(file.file_type) == Some(FileType::Markdown)
}

/// `GET /file/{id}/download`: the raw text.
async fn download(at: LocatedFile) -> Answer {
    let file = match at.file().await? {
        Found::Live(file) => file,
        Found::Elsewhere(response) => return Ok(response),
    };
    let kind = answers::content_type(&file);
    let name: String = form_urlencoded::byte_serialize(file.name.as_bytes()).collect();
    let disposition = format!("attachment; filename*=UTF-8''{}", name.replace('+', "%20"));
    let mut response = file.content.unwrap_or_default().into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    Ok(response)
}

/// `POST /file/{id}/rename`.
async fn rename(at: LocatedFile, form: Form) -> Answer {
    change(at, ("rename", &form), json!({"name": form.trimmed("name")}), &Notice::Renamed).await
}

/// `POST /file/{id}/move`.
async fn move_to(at: LocatedFile, form: Form) -> Answer {
    let folder = form.trimmed("folder");
    let folder = (!folder.is_empty()).then_some(folder);
    change(at, ("move", &form), json!({"folderId": folder}), &Notice::Saved).await
}

/// `POST /file/{id}/tags`.
async fn tag(at: LocatedFile, form: Form) -> Answer {
    change(at, ("tag", &form), json!({"tags": folders::tags(form.text("tags"))}), &Notice::Saved).await
}

/// Applies a form's change to the file.
async fn change(
    at: LocatedFile,
    (of, form): (&str, &Form),
    fields: serde_json::Value,
    notice: &Notice,
) -> Answer {
    let context = at.visitor.context()?;
    let changed = match form::input::<UpdateFile>(fields) {
        Ok(input) => files::update(&context, at.id, input, Vec::new()).await,
        Err(problem) => Err(problem),
    };
    match changed {
        Ok(_) => Ok(at.visitor.done(&address(at.id), notice)),
        Err(problem) if is_of_a_form(&problem) => {
            let problem = form::renamed(problem, &[("folderId", "folder")]);
            read::failed(&at, Refused { of, form, problem: &problem }).await
        }
        Err(problem) => Err(problem.into()),
    }
}

/// `POST /file/{id}/delete`: moves to trash, with Undo on the next page.
async fn delete(at: LocatedFile) -> Answer {
    let context = at.visitor.context()?;
    let file = files::get(&context, at.id).await?;
    files::delete(&context, at.id).await?;
    let to = folders::address(at.visitor.here()?.id, file.folder_id.as_deref());
    Ok(at.visitor.done(&to, &Notice::Trashed(vec![(TrashKind::File, at.id.0)])))
}

/// `POST /file/{id}/restore`.
async fn restore(at: LocatedFile) -> Answer {
    let person = &at.visitor.person;
    trash::restore(&person.upstreams, &person.call, TrashKind::File, at.id.to_string()).await?;
    Ok(at.visitor.done(&address(at.id), &Notice::Restored))
}
