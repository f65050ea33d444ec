//! `GET /file/{id}`: the text rendered or as it was typed, and the other views.

use cairn_chassis::status::Problem;
use maud::{Markup, html};
use serde::Deserialize;
use utoipa::ToSchema;

use super::at::{At, Found};
use super::cited::{self, Cited};
use super::parts::{self, Part};
use super::{View, actions, address, changes, is_markdown, language, page, tabs, uses};
use crate::answers::File;
use crate::extract::Query;
use crate::pages::parts as part;
use crate::pages::text::{self, Lines, Relative, Style};
use crate::pages::{Answer, folders, words};
use crate::schema::inputs;

inputs!(Looking);

/// What of a file is looked at.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Looking {
    view: Option<String>,
    /// The cited lines, and the hash of the text that they were counted in.
    lines: Option<String>,
    hash: Option<String>,
    /// A line of the part that is wanted of a large text.
    line: Option<String>,
    /// The marks of the pages of a list up to this one.
    #[serde(default)]
    from: Vec<String>,
}

pub(super) async fn show(at: At, Query(looking): Query<Looking>) -> Answer {
    match at.file().await? {
        Found::Live(file) => shown(&at, &file, looking, None).await,
        Found::Elsewhere(response) => Ok(response),
    }
}

/// The page again, with what was wrong with a form on it.
pub(super) async fn failed(at: &At, problem: &Problem) -> Answer {
    match at.file().await? {
        Found::Live(file) => shown(at, &file, Looking::default(), Some(problem)).await,
        Found::Elsewhere(response) => Ok(response),
    }
}

async fn shown(at: &At, file: &File, looking: Looking, problem: Option<&Problem>) -> Answer {
    let context = at.visitor.context()?;
    let view = View::of(looking.view.as_deref().unwrap_or_default());
    let tree = folders::Tree::of(&context).await?;
    let body = match view {
        View::Read | View::Source => {
            let cited =
                cited::read(&context, file, looking.lines.as_deref(), looking.hash.as_deref()).await?;
            reading(file, view, &looking, &cited)
        }
        View::Changes => changes::list(&context, at, file, looking.from).await?,
        View::Uses => uses::show(&context, at, file).await,
    };
    let labels = [("name", "Name"), ("tags", "Tags"), ("folderId", "Folder")];
    let body = html! {
        (part::summary(problem, &labels))
        (facts(file))
        (tabs(&file.id, Some(view)))
        (body)
    };
    let page = page(at, file, &tree)?.actions(actions(&at.visitor, file, &tree));
    let page = if problem.is_some() { page.failed() } else { page };
    Ok(page.show(&at.visitor, &body))
}

fn facts(file: &File) -> Markup {
    let changed = crate::answers::optional_time(file.updated_at.as_ref());
    html! {
        p.quiet {
            bdi { (file.path) } " · " (words::bytes(file.size_bytes)) " · changed " (part::time_or(changed.as_deref(), "at a time that nobody noted"))
            @for tag in &file.tags { " " span.badge { bdi { (tag) } } }
        }
        @if let Some(description) = &file.description { p { bdi { (description) } } }
    }
}

fn reading(file: &File, view: View, looking: &Looking, cited: &Cited) -> Markup {
    let content = file.content.as_deref().unwrap_or_default();
    let line = looking.line.as_deref().and_then(|line| line.parse().ok());
    let line: usize = line.or(cited.now.map(|lines| lines.first)).unwrap_or(1);
    let part = parts::around(content, line);
    let ways = ways(file, view, &part);
    let text = if view == View::Read && is_markdown(file) {
        rendered(file, &part, cited.now)
    } else {
        source(file, &part, cited.now)
    };
    html! {
        (cited.notice)
        (ways)
        @if content.trim().is_empty() { p.quiet { "The file is empty." } } @else { (text) }
        (ways)
    }
}

fn rendered(file: &File, part: &Part<'_>, cited: Option<Lines>) -> Markup {
    let workspace = file.workspace_id.as_str();
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let relative = Relative::Folder { workspace, path: folder };
    let style = Style { top_level: 2, first_line: part.lines.first, cited, relative };
    let rendered = text::render(part.text, style);
    html! {
        div.reading {
            article.prose dir="auto" { (rendered.markup) }
            @if rendered.outline.len() > 1 {
                nav.outline aria-label="Outline" {
                    ul {
                        @for heading in &rendered.outline {
                            li class={ "l" (heading.level) } { a href={ "#" (heading.id) } { bdi { (heading.text) } } }
                        }
                    }
                }
            }
        }
    }
}

/// The lines with their numbers.
fn source(file: &File, part: &Part<'_>, cited: Option<Lines>) -> Markup {
    numbered(language(file), part.text, part.lines.first, cited)
}

pub(super) fn numbered(
    language: text::Language,
    content: &str,
    first_line: usize,
    cited: Option<Lines>,
) -> Markup {
    html! {
        pre.source tabindex="0" dir="auto" aria-label="Source" role="group" {
            @for (index, line) in text::source_lines(language, content).enumerate() {
                @let number = first_line + index;
                @let is_cited = cited.is_some_and(|cited| cited.has(number));
                span.line id={ "L" (number) } data-n=(number) data-cited[is_cited] aria-current=[is_cited.then_some("true")] { (line) }
                "\n"
            }
        }
    }
}

/// The way through a text that is shown in parts.
fn ways(file: &File, view: View, part: &Part<'_>) -> Markup {
    if part.is_all() {
        return html! {};
    }
    let name = if view == View::Source { "view=source&" } else { "" };
    let page = |line: usize| format!("{}?{name}line={line}", address(&file.id));
    html! {
        nav.pages aria-label="Pages" {
            @if let Some(previous) = part.previous { a.button rel="prev" href=(page(previous)) { "Previous" } }
            span { "Lines " (words::grouped(part.lines.first as u64)) "–" (words::grouped(part.lines.last as u64)) " of " (words::grouped(part.total as u64)) }
            @if let Some(next) = part.next { a.button rel="next" href=(page(next)) { "Next" } }
        }
    }
}
