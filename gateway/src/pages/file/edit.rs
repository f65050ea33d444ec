//! `/file/{id}/edit`: the editor with a preview beside it.

use cairn_chassis::status::Problem;
use cairn_proto::domain::{FileType, Permission};
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::IgnoredAny;
use utoipa::ToSchema;

use super::at::{Found, LocatedFile};
use super::{address, endings, is_markdown, page};
use crate::answers::File;
use crate::error::Error;
use crate::extract::Query;
use crate::pages::ask_again::{self, AskAgain};
use crate::pages::form::Form;
use crate::pages::reading::parts;
use crate::pages::text::{self, Lines, Relative, Style, problems};
use crate::pages::visitor::Here;
use crate::pages::{Answer, folders, palette, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// Larger texts are edited in parts: browsers take minutes for so many lines in one text area.
pub(super) const MAX_BYTES: usize = 700_000;
/// Limit of the initial preview, the same as in editor.js.
const MAX_PREVIEWED: usize = 200_000;
/// A text area with more lines takes a browser minutes to lay out, however short they are.
const MAX_LINES: usize = 20_000;

/// Where the editor starts.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    line: Option<String>,
    /// What to ask again once the text is saved.
    ask: Option<String>,
}

/// The state of the editor.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    pub(super) text: &'a str,
    /// The hash of the base text.
    pub(super) hash: &'a str,
    /// The lines of the base text that it replaces; all of them if absent.
    pub(super) lines: Option<Lines>,
    /// The message above it.
    pub(super) message: Markup,
    /// Whether a person merged it from two texts: the browser's autosaved drafts do not apply to it.
    pub(super) is_merged: bool,
    /// The preview beside it.
    pub(super) preview: Markup,
    /// What may be asked again once it is saved.
    pub(super) ask: Option<AskAgain>,
}

pub(super) async fn show(at: LocatedFile, Query(page_query): Query<PageQuery>) -> Answer {
    let file = match at.file().await? {
        Found::Live(file) => file,
        Found::Elsewhere(response) => return Ok(response),
    };
    may_edit(&at)?;
    let content = file.content.as_deref().unwrap_or_default();
    let ask = page_query.ask.as_deref().and_then(AskAgain::parse);
    let draft = Draft { text: content, hash: &file.content_hash, ask, ..Draft::default() };
    let draft = if content.len() <= MAX_PREVIEWED {
        Draft { preview: previewed(&file, content, None), ..draft }
    } else {
        draft
    };
    if content.len() <= MAX_BYTES && content.split('\n').count() <= MAX_LINES {
        return show_draft(&at, &file, draft, Status::Fine).await;
    }
    let line = page_query.line.as_deref().and_then(|line| line.parse().ok()).unwrap_or(1);
    let part = parts::around(content, line);
    let at_line =
        |line: usize| ask_again::carried(&format!("{}/edit?line={line}", address(at.id)), draft.ask.as_ref());
    let message = html! {
        p.notice { "The file is large, so it is edited in parts: these are lines " (words::grouped(part.lines.first as u64)) "–" (words::grouped(part.lines.last as u64)) " of " (words::grouped(part.total as u64)) "." }
        nav.pages aria-label="Pages" {
            @if let Some(previous) = part.previous { a.button rel="prev" href=(at_line(previous)) { "Previous" } }
            @if let Some(next) = part.next { a.button rel="next" href=(at_line(next)) { "Next" } }
        }
    };
    let draft = Draft { text: part.text, lines: Some(part.lines), message, ..draft };
    show_draft(&at, &file, draft, Status::Fine).await
}

/// `POST /file/{id}/preview`: the editor with an updated preview.
pub(super) async fn preview(at: LocatedFile, form: Form) -> Answer {
    let file = match at.file().await? {
        Found::Live(file) => file,
        Found::Elsewhere(response) => return Ok(response),
    };
    may_edit(&at)?;
    let typed = endings::plain(form.text("content"));
    let lines = Lines::parse(form.text("part"));
    let preview = previewed(&file, &typed, lines);
    let ask = AskAgain::parse(form.text(ask_again::NAME));
    let draft = Draft { text: &typed, hash: form.text("hash"), lines, preview, ask, ..Draft::default() };
    show_draft(&at, &file, draft, Status::Fine).await
}

/// Checks that the visitor may write.
pub(super) fn may_edit(at: &LocatedFile) -> Result<(), Error> {
    if at.visitor.may(Permission::Write) {
        return Ok(());
    }
    let role = at.visitor.here()?.role;
    let message =
        format!("editing takes a role that may write, and yours here is {}: ask an owner", role.as_str());
    Err(Problem::forbidden(message).into())
}

/// The status of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Fine,
    /// The draft has to be corrected.
    Wrong,
}

pub(super) async fn show_draft(at: &LocatedFile, file: &File, draft: Draft<'_>, status: Status) -> Answer {
    let tree = folders::Tree::of(&at.visitor.context()?).await?;
    let base = address(at.id);
    let body = html! {
        (draft.message)
        div.editing {
            form.editor method="post" action={ (base) "/edit" } data-editor=(at.id) data-merged[draft.is_merged] {
                input type="hidden" name="hash" value=(draft.hash);
                @if let Some(ask) = &draft.ask { (ask.field()) }
                @if let Some(lines) = draft.lines { input type="hidden" name="part" value=(lines); }
                label for="content" { "Text" }
                // Browsers drop a leading line break.
                div.writing {
                    textarea #content name="content" rows="24" dir="auto" spellcheck="false" autocomplete="off" { "\n" (draft.text) }
                    @if is_markdown(file) { (links(at.visitor.here()?)) }
                }
                div.buttons {
                    button.primary type="submit" { "Save" }
                    @if draft.ask.is_some() { (AskAgain::button()) }
                    @if status == Status::Wrong { button type="submit" name="anyway" value="yes" { "Save anyway" } }
                    button type="submit" formaction={ (base) "/preview" } data-swap="#preview" { "Preview" }
                    button type="submit" formaction={ (base) "/check" } data-swap="#preview" { "Check golden questions" }
                    a.button href=(ask_again::carried(&base, draft.ask.as_ref())) { "Cancel" }
                }
            }
            section #preview aria-label="Preview" { (draft.preview) }
        }
    };
    let page = page(at, file, &tree)?;
    let page = if status == Status::Wrong { page.failed() } else { page };
    Ok(page.show(&at.visitor, &body))
}

/// The data for editor.js's file completion after `[[`.
fn links(here: &Here) -> Markup {
    html! {
        ul #links .offers role="listbox" aria-label="Files to link to" data-names=(palette::address(here)) hidden
            data-one="One file. Enter takes it, Escape leaves it."
            data-many="{} files. Up and Down choose one, Enter takes it, Escape leaves them." {}
        output #links-told .sr {}
    }
}

/// The rendered preview, or what is wrong with the text.
fn previewed(file: &File, typed: &str, lines: Option<Lines>) -> Markup {
    if is_markdown(file) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let relative = Relative::Folder { workspace: &file.workspace_id, path: folder };
        let first_line = lines.map_or(1, |lines| lines.first);
        let warning = (first_line == 1).then(|| warning(file, typed)).flatten();
        let rendered =
            text::render(typed, Style { top_level: 3, first_line, cited: None, relative, ids: "" });
        return html! {
            h2 { "Preview" }
            @if let Some(warning) = warning { p.notice { (warning) } }
            article.prose dir="auto" { (rendered.markup) }
        };
    }
    let problem = lines.is_none().then(|| problem(file, typed).or_else(|| warning(file, typed))).flatten();
    html! {
        h2 { "Preview" }
        @match problem {
            Some(problem) => { p { (problem) } }
            None => { p.quiet { "No problem was found." } }
        }
    }
}

/// A warning about a syntax error, with its line; the text is saved all the same.
pub(super) fn warning(file: &File, text: &str) -> Option<String> {
    match FileType::from_number(file.file_type) {
        Some(FileType::Markdown) => problems::of_front_matter(text),
        Some(FileType::Yaml) => problems::of_yaml(text),
        Some(FileType::Json | FileType::Text) | None => None,
    }
}

/// The syntax error of a text of its type, with its line.
pub(super) fn problem(file: &File, text: &str) -> Option<String> {
    if FileType::from_number(file.file_type) != Some(FileType::Json) {
        return None;
    }
    let error = serde_json::from_str::<IgnoredAny>(text).err()?;
    let (line, column) = (error.line(), error.column());
    Some(format!("This is not JSON: something is wrong at line {line}, column {column}."))
}
