//! `GET /file/{id}`: the text, rendered or as source, and the other views.

use cairn_proto::domain::Permission;
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::at::{Found, LocatedFile};
use super::cited::{self, Cited};
use super::{View, actions, address, changes, edit, forms, index, language, page, tabs, uses};
use crate::answers::File;
use crate::extract::Query;
use crate::pages::ask_again::AskAgain;
use crate::pages::notice::Notice;
use crate::pages::parts as part;
use crate::pages::popover::Refused;
use crate::pages::reading::Reading;
use crate::pages::text::Relative;
use crate::pages::{Answer, folders, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// The view of a file.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    view: Option<String>,
    /// The cited lines, and the hash of the text they refer to.
    lines: Option<String>,
    hash: Option<String>,
    /// What to ask again once the text is saved.
    ask: Option<String>,
    /// The cited words, in case no version with them is kept.
    quote: Option<String>,
    /// A line within the requested part of a large text.
    line: Option<String>,
    /// The page tokens of a list up to this page.
    #[serde(default)]
    from: Vec<String>,
}

pub(super) async fn show(at: LocatedFile, Query(page_query): Query<PageQuery>) -> Answer {
    match at.file().await? {
        Found::Live(file) => show_page(&at, &file, page_query, None).await,
        Found::Elsewhere(response) => Ok(response),
    }
}

/// The page again, with the error of a form.
pub(super) async fn failed(at: &LocatedFile, refused: Refused<'_>) -> Answer {
    match at.file().await? {
        Found::Live(file) => show_page(at, &file, PageQuery::default(), Some(refused)).await,
        Found::Elsewhere(response) => Ok(response),
    }
}

async fn show_page(
    at: &LocatedFile,
    file: &File,
    page_query: PageQuery,
    refused: Option<Refused<'_>>,
) -> Answer {
    let context = at.visitor.context()?;
    let view = View::of(page_query.view.as_deref().unwrap_or_default());
    let seen_as = at.visitor.seen_as().map(|seen| seen.id.as_str());
    let tree = folders::Tree::of(&context).await?.seen_as(seen_as);
    let ask = page_query.ask.as_deref().and_then(AskAgain::parse);
    let body = match view {
        View::Read | View::Source => {
            let (lines, hash) = (page_query.lines.as_deref(), page_query.hash.as_deref());
            let cited = cited::read(&context, file, lines, hash, page_query.quote.as_deref()).await?;
            html! { (warning(at, file)) (reading(at, file, view, &page_query, &cited)) }
        }
        View::Changes => changes::list(&context, at, file, page_query.from).await?,
        View::Uses => uses::show(&context, at, file, &tree).await,
    };
    let labels = [("name", "Name"), ("tags", "Tags"), ("folder", "Folder")];
    let forms = forms(&at.visitor, file, &tree, refused);
    // The page is live-updated by changes of the file, and by the index status.
    let follows = format!("change:{} changes index", file.id);
    let body = html! {
        (part::summary(refused.map(|refused| refused.problem), &labels))
        (forms.open())
        section #file data-live=(follows) {
            (facts(file))
            @if matches!(at.visitor.notice, Some(Notice::Saved | Notice::SavedOdd)) {
                p.notice { "Searches find it as it is now as soon as it is marked as searchable above. " a href={ "/w/" (at.visitor.here()?.id) "/search" } { "Ask again" } }
            }
            (tabs(&at.visitor, &file.id, Some(view)))
            (body)
        }
    };
    let page = page(at, file, &tree)?.actions(actions(&at.visitor, file, &forms, ask.as_ref())).live();
    let page = if refused.is_some() { page.failed() } else { page };
    Ok(page.show(&at.visitor, &body))
}

/// The warning about a syntax error, for those who may edit.
fn warning(at: &LocatedFile, file: &File) -> Markup {
    let told = at.visitor.may(Permission::Write).then_some(file.content.as_deref()).flatten();
    let told = told.and_then(|text| edit::warning(file, text));
    html! { @if let Some(told) = told { p.notice { (told) } } }
}

fn facts(file: &File) -> Markup {
    let changed = crate::answers::optional_time(file.updated_at.as_ref());
    html! {
        p.quiet {
            bdi { (file.path) } " · " (words::bytes(file.size_bytes)) " · changed " (part::time_or(changed.as_deref(), "at a time that nobody noted"))
            @for tag in &file.tags { " " span.badge { bdi { (tag) } } }
            " · " (index::place(&file.id))
        }
        @if let Some(description) = &file.description { p { bdi { (description) } } }
    }
}

fn reading(at: &LocatedFile, file: &File, view: View, page_query: &PageQuery, cited: &Cited) -> Markup {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let page = address(&file.id);
    let reading = Reading {
        page: &page,
        visitor: &at.visitor,
        content: file.content.as_deref().unwrap_or_default(),
        hash: Some(&file.content_hash),
        language: language(file),
        is_source: view == View::Source,
        line: page_query.line.as_deref().and_then(|line| line.parse().ok()),
        cited: cited.now,
        relative: Relative::Folder { workspace: &file.workspace_id, path: folder },
    };
    html! {
        (cited.notice)
        (reading.show("The file"))
    }
}
