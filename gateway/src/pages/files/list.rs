//! The list of a folder.

use axum::response::Response;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::{FileType, Permission, TrashKind};
use cairn_proto::ids::FolderId;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::columns::FileColumns;
use super::list_filters::ListFilters;
use super::selection::{self, MANY};
use crate::answers::{File, Folder, optional_time};
use crate::error::Error;
use crate::extract::Query;
use crate::operations::files::{self, SearchFiles, Selection};
use crate::operations::{Context, Page, Paging};
use crate::pages::frame;
use crate::pages::parts as part;
use crate::pages::popover::{FormValues, Popovers, Refused};
use crate::pages::viewer::Viewer;
use crate::pages::visitor::Visitor;
use crate::pages::{Answer, file, folders, form, words};
use crate::schema::inputs;

inputs!(PageQuery);

const PAGE: u32 = 50;
/// The labels of form fields.
const LABELS: [(&str, &str); 4] =
    [("name", "Name"), ("parent", "Folder"), ("to", "Folder"), ("tag-selected", "Tag")];

/// The filters of the list.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    /// The folder; the root without one.
    folder: Option<String>,
    /// A part of a name, in the folder and below it.
    q: Option<String>,
    tag: Option<String>,
    /// The id of a token to view the list as.
    #[serde(rename = "as")]
    seen_as: Option<String>,
    /// The page tokens up to this page.
    #[serde(default)]
    from: Vec<String>,
}

/// The outcome of a form that could not do everything.
#[derive(Debug, Default)]
pub(super) struct FormOutcome<'a> {
    pub(super) problem: Option<&'a Problem>,
    pub(super) more: Markup,
    /// The form, if it can be corrected.
    pub(super) refused: Option<Refused<'a>>,
}

pub(super) async fn show(visitor: Visitor, Query(page_query): Query<PageQuery>) -> Answer {
    let viewer = Viewer::of(&visitor, page_query.seen_as.as_deref()).await?;
    show_page(&viewer, &page_query, FormOutcome::default()).await
}

/// The list again, with the outcome of a form.
pub(super) async fn show_again(
    visitor: &Visitor,
    narrowed: ListFilters<'_>,
    outcome: FormOutcome<'_>,
) -> Answer {
    let owned = |text: Option<&str>| text.map(ToOwned::to_owned);
    let page_query = PageQuery {
        folder: owned(narrowed.folder()),
        q: owned(narrowed.query()),
        tag: owned(narrowed.tag()),
        ..PageQuery::default()
    };
    show_page(&Viewer::of(visitor, None).await?, &page_query, outcome).await
}

async fn show_page(viewer: &Viewer, page_query: &PageQuery, outcome: FormOutcome<'_>) -> Answer {
    let visitor = &viewer.visitor;
    let context = visitor.context()?;
    let tree = folders::Tree::of(&context).await?.seen_as(viewer.token());
    let here = match page_query.folder.as_deref().filter(|id| !id.is_empty()) {
        None => None,
        Some(id) => match folder(visitor, &context, &tree, id).await? {
            Place::Folder(folder) => Some(folder),
            Place::Elsewhere(response) => return Ok(response),
        },
    };
    let current = here.as_ref().map(|folder| folder.id.as_str());
    let narrowed = ListFilters::of(current, page_query.q.as_deref(), page_query.tag.as_deref());
    let files = found(&context, &narrowed, page_query.from.last().cloned()).await?;
    let beside = FileColumns::of(&context, &files.items).await;
    let workspace = visitor.here()?.id;
    let is_first = page_query.from.is_empty() && page_query.q.is_none() && page_query.tag.is_none();
    let below: Vec<&Folder> = if is_first { tree.below(current) } else { Vec::new() };
    let path = folders::address(workspace, None);
    let kept = [("folder", current), ("tag", page_query.tag.as_deref()), ("as", viewer.token())];
    let query: Vec<(&str, &str)> =
        kept.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let pages = part::Pages::of(&path, &query, page_query.from.clone(), PAGE, &files);
    let forms = forms(visitor, &tree, here.as_ref(), outcome.refused);
    let labels: &[_] = if outcome.refused.is_some() { &LABELS } else { &[] };
    let body = html! {
        (part::summary(outcome.problem, labels))
        (outcome.more)
        (forms.open())
        div.files {
            (tree.markup(workspace, current))
            div {
                (filter(viewer, page_query, current))
                (table(visitor, &tree, &narrowed, &Listed { below: &below, files: &files, beside: &beside }, outcome.refused)?)
                (part::pages(&pages))
            }
        }
    };
    let title = here.as_ref().map_or("Files", |folder| folder.name.as_str());
    let mut crumbs = tree.crumbs(workspace, current);
    // The page's title is the last crumb.
    crumbs.pop();
    let page = frame::Page::new(title).heading(html! { bdi { (title) } }).crumbs(crumbs).actions(actions(
        visitor,
        here.as_ref(),
        &forms,
    ));
    let page = if outcome.problem.is_some() { page.failed() } else { page };
    Ok(page.show(visitor, &body))
}

enum Place {
    Folder(Folder),
    Elsewhere(Response),
}

/// The folder of the query; for a trashed one the page that says so.
async fn folder(
    visitor: &Visitor,
    context: &Context,
    tree: &folders::Tree,
    id: &str,
) -> Result<Place, Error> {
    if let Some(folder) = tree.get(id) {
        return Ok(Place::Folder(folder.clone()));
    }
    let no_folder = || Problem::not_found("there is no such folder here");
    let parsed: FolderId = id.parse().map_err(|_| no_folder())?;
    match crate::operations::folders::get(context, parsed).await {
        Ok(folder) => Ok(Place::Folder(folder)),
        Err(problem) if problem.reason == Reason::NotFound => {
            let page = file::trashed(visitor, TrashKind::Folder, id.to_owned()).await?;
            page.map(Place::Elsewhere).ok_or_else(|| no_folder().into())
        }
        Err(problem) => Err(problem.into()),
    }
}

/// A page of the listed files.
pub(super) async fn found(
    context: &Context,
    narrowed: &ListFilters<'_>,
    mark: Option<String>,
) -> Result<Page<File>, Problem> {
    let (folder, tag) = (narrowed.folder(), narrowed.tag());
    if let Some(name) = narrowed.query() {
        let mut fields =
            Map::from_iter([("query".to_owned(), json!(name)), ("limit".to_owned(), json!(200))]);
        let given = [("folderId", folder), ("tag", tag)];
        fields.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
        return files::search(context, form::input::<SearchFiles>(Value::Object(fields))?).await;
    }
    let folder = folder.unwrap_or(crate::operations::ROOT).to_owned();
    let selection = match tag {
        // Tags are searched in all subfolders.
        Some(_) if folder == crate::operations::ROOT => Selection::default(),
        Some(_) => Selection::of_folder(folder, true),
        None => Selection::of_filter(Some(folder))?,
    };
    let selection = selection.with_tags(tag.into_iter().map(ToOwned::to_owned).collect());
    files::list(context, selection, Paging { limit: Some(PAGE), cursor: mark }).await
}

fn filter(viewer: &Viewer, page_query: &PageQuery, folder: Option<&str>) -> Markup {
    let action = viewer.visitor.here_if_any().map(|here| folders::address(here.id, None)).unwrap_or_default();
    html! {
        form.filter role="search" method="get" action=(action) {
            @if let Some(folder) = folder { input type="hidden" name="folder" value=(folder); }
            div.field {
                label for="f-q" { "Find" }
                input #f-q type="search" name="q" value=[page_query.q.as_deref()] maxlength="255" autocomplete="off" placeholder="A part of the name" data-key="/";
            }
            div.field {
                label for="f-tag" { "With tag" }
                input #f-tag type="text" name="tag" value=[page_query.tag.as_deref()] autocomplete="off" dir="auto";
            }
            (viewer.field())
            button type="submit" { "Find" }
        }
    }
}

/// The contents of the list.
struct Listed<'a> {
    below: &'a [&'a Folder],
    files: &'a Page<File>,
    beside: &'a FileColumns,
}

fn table(
    visitor: &Visitor,
    tree: &folders::Tree,
    narrowed: &ListFilters<'_>,
    listed: &Listed<'_>,
    refused: Option<Refused<'_>>,
) -> Result<Markup, Error> {
    let workspace = visitor.here()?.id;
    let again = refused.filter(|refused| refused.of == MANY).map(|refused| refused.form);
    let is_selected = |value: &str| again.is_some_and(|form| form.all("item").any(|item| item == value));
    let may_write = visitor.may(Permission::Write);
    let may_select = may_write || visitor.may(Permission::Delete);
    let Listed { below, files, beside } = *listed;
    if below.is_empty() && files.items.is_empty() {
        let action = html! {
            @if may_write { p { "Make one with New file, or upload some." } }
            p { a href="/docs/guides" { "How agents use files" } }
        };
        return Ok(part::empty("No files are here.", &action));
    }
    let rows = html! {
        @for one in below {
            tr {
                @let value = format!("folder:{}", one.id);
                td { @if may_select { input type="checkbox" name="item" form="many" value=(value) checked[is_selected(&value)] aria-label={ "Select " (one.name) }; } }
                th scope="row" { a href=(tree.address(workspace, Some(&one.id))) { bdi { (one.name) } "/" } }
                td { "Folder" } td {} td {} td {} td {} td {}
            }
        }
        @for one in &files.items {
            @let changed = optional_time(one.updated_at.as_ref());
            tr {
                @let value = format!("file:{}", one.id);
                td { @if may_select { input type="checkbox" name="item" form="many" value=(value) checked[is_selected(&value)] aria-label={ "Select " (one.name) }; } }
                th scope="row" { a href=(visitor.onward(file::address(&one.id))) { bdi { (one.name) } } }
                td { (FileType::from_number(one.file_type).unwrap_or_default().as_str()) }
                td { @for tag in &one.tags { span.badge { bdi { (tag) } } " " } }
                td.number { (words::bytes(one.size_bytes)) }
                td { (part::time_or(changed.as_deref(), "")) }
                td { (beside.author(one)) }
                td { (beside.searchable(one)) }
            }
        }
    };
    let columns = ["", "Name", "Type", "Tags", "Size", "Changed", "Changed by", "Searchable"];
    Ok(html! {
        (part::table("Files", &columns, &rows))
        @if may_select { (selection::bar(visitor, tree, narrowed, files.total, FormValues::new(MANY, refused))?) }
    })
}

/// The forms of the actions that the visitor's role allows.
fn forms<'a>(
    visitor: &Visitor,
    tree: &'a folders::Tree,
    here: Option<&'a Folder>,
    refused: Option<Refused<'a>>,
) -> Popovers<'a> {
    let mut forms = Popovers::new(refused);
    let Some(workspace) = visitor.here_if_any().filter(|_| visitor.may(Permission::Write)) else {
        return forms;
    };
    let base = folders::address(workspace.id, None);
    let within = html! { @if let Some(here) = here { input type="hidden" name="folder" value=(here.id); } };
    forms.add("new", "New file", Some("n"), |filled| {
        let name = part::Field::text("name", "Name").hint("With its ending, such as notes.md.");
        html! {
            form method="post" action={ (base) "/new" } {
                (within)
                (filled.field(name, "").render())
                button.primary type="submit" { "Create file" }
            }
        }
    });
    forms.add("new-folder", "New folder", None, |filled| {
        html! {
            form method="post" action={ (base) "/new-folder" } {
                (within)
                (filled.field(part::Field::text("name", "Name"), "").render())
                button.primary type="submit" { "Create folder" }
            }
        }
    });
    forms.add("upload", "Upload", None, |_| {
        html! {
            form method="post" enctype="multipart/form-data" action={ (base) "/upload" } data-upload {
                (within)
                div.field { label for="f-files" { "Files" } input #f-files type="file" name="files" multiple required; }
                p.hint { "Texts of at most 5 MB each. Files can also be dropped on the list." }
                button.primary type="submit" { "Upload files" }
            }
        }
    });
    let Some(here) = here else { return forms };
    forms.add("rename-folder", "Rename", None, |filled| {
        html! {
            form method="post" action={ (base) "/rename" } {
                (within)
                (filled.field(part::Field::text("name", "Name"), &here.name).render())
                button type="submit" { "Rename folder" }
            }
        }
    });
    forms.add("move-folder", "Move", None, |filled| {
        html! {
            form method="post" action={ (base) "/move-folder" } {
                (within)
                (tree.choice("parent", filled.choice("parent", here.parent_id.as_deref()), Some(&here.id)))
                button type="submit" { "Move folder" }
            }
        }
    });
    forms
}

fn actions(visitor: &Visitor, here: Option<&Folder>, forms: &Popovers<'_>) -> Markup {
    let base = visitor.here_if_any().map(|here| folders::address(here.id, None)).unwrap_or_default();
    html! {
        (forms.buttons())
        @if let Some(here) = here.filter(|_| visitor.may(Permission::Delete)) {
            (part::action(&format!("{base}/delete-folder"), "Move to trash", &here.name, &[("folder", &here.id)]))
        }
    }
}

/// A readable number of names.
pub(super) fn name_list(names: &[String]) -> Markup {
    const SHOWN: usize = 20;
    html! {
        ul { @for name in names.iter().take(SHOWN) { li { bdi { (name) } } } }
        @if names.len() > SHOWN { p { "And " (words::count((names.len() - SHOWN) as u64, "other", "others")) "." } }
    }
}
