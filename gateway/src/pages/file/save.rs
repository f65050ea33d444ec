//! `POST /file/{id}/edit`: saves a text. On a conflict nothing is saved, and both texts are shown.

use cairn_chassis::status::{Problem, Reason};
use http::StatusCode;
use maud::html;

use super::at::{Found, LocatedFile};
use super::edit::{self, Draft, MAX_BYTES, Status};
use super::{address, cited, endings, merge, page};
use crate::answers::File;
use crate::error::Error;
use crate::operations::files::{self, UpdateFile};
use crate::pages::ask_again::{self, AskAgain};
use crate::pages::form::Form;
use crate::pages::notice::Notice;
use crate::pages::reading::parts;
use crate::pages::text::{Lines, compare};
use crate::pages::{Answer, folders, golden, parts as part};

pub(super) async fn save(at: LocatedFile, form: Form) -> Answer {
    let file = match at.file().await? {
        Found::Live(file) => file,
        Found::Elsewhere(response) => return Ok(response),
    };
    edit::may_edit(&at)?;
    if form.text("then") == "merge" {
        return edit_both(&at, &file, &form).await;
    }
    let lines = Lines::parse(form.text("part"));
    let content = file.content.as_deref().unwrap_or_default();
    if form.text("hash") != file.content_hash {
        let mine = mine_of(&at, content, &form, lines).await?;
        return conflict(&at, &file, &mine, &form).await;
    }
    let text = typed(content, form.text("content"), lines);
    if !form.has("anyway")
        && let Some(problem) = edit::problem(&file, &text)
    {
        let message = html! { div.problem role="alert" { p { (problem) " It is not saved yet." } } };
        let typed = endings::plain(form.text("content"));
        let ask = ask_again(&form);
        let draft = Draft { text: &typed, hash: &file.content_hash, lines, message, ask, ..Draft::default() };
        return edit::show_draft(&at, &file, draft, Status::Wrong).await;
    }
    let context = at.visitor.context()?;
    let input = UpdateFile::of_content(text.clone(), None);
    match files::update(&context, at.id, input, vec![file.content_hash.clone()]).await {
        Ok(written) => {
            let notice = if edit::warning(&file, &text).is_some() { Notice::SavedOdd } else { Notice::Saved };
            let ask = ask_again(&form);
            let to = match ask.as_ref().filter(|_| ask_again::is_wanted(&form)) {
                Some(ask) => ask.address(at.visitor.here()?.id, written.change),
                None => to(&at, lines, ask.as_ref()),
            };
            Ok(at.visitor.done(&to, &notice))
        }
        Err(problem) if problem.reason == Reason::VersionConflict => match at.file().await? {
            Found::Live(now) => conflict(&at, &now, &text, &form).await,
            Found::Elsewhere(response) => Ok(response),
        },
        Err(problem) => refused(&at, &file, &form, lines, &problem).await,
    }
}

/// `POST /file/{id}/check`: the editor, with the golden questions' results for its text beside it.
pub(super) async fn check(at: LocatedFile, form: Form) -> Answer {
    let file = match at.file().await? {
        Found::Live(file) => file,
        Found::Elsewhere(response) => return Ok(response),
    };
    edit::may_edit(&at)?;
    let lines = Lines::parse(form.text("part"));
    let content = file.content.as_deref().unwrap_or_default();
    let text = match form.text("hash") == file.content_hash {
        true => typed(content, form.text("content"), lines),
        false => mine_of(&at, content, &form, lines).await?,
    };
    let preview = golden::effects(&at.visitor, file.id.clone(), text).await;
    let typed = endings::plain(form.text("content"));
    let ask = ask_again(&form);
    let draft = Draft { text: &typed, hash: form.text("hash"), lines, preview, ask, ..Draft::default() };
    edit::show_draft(&at, &file, draft, Status::Fine).await
}

/// What led to the file and can be asked again.
fn ask_again(form: &Form) -> Option<AskAgain> {
    AskAgain::parse(form.text(ask_again::NAME))
}

/// The next page.
fn to(at: &LocatedFile, lines: Option<Lines>, ask: Option<&AskAgain>) -> String {
    let page = match lines {
        Some(lines) => format!("{}?line={}", address(at.id), lines.first),
        None => address(at.id),
    };
    ask_again::carried(&page, ask)
}

/// The whole text as typed, with its original line endings.
fn typed(before: &str, typed: &str, lines: Option<Lines>) -> String {
    match lines {
        None => endings::restore_endings(before, typed),
        Some(lines) => {
            let part = parts::around(before, lines.first);
            let kept = endings::restore_endings(part.text, typed);
            parts::replaced(before, lines, &kept)
        }
    }
}

/// The visitor's text, when it is based on an older one than the current.
async fn mine_of(at: &LocatedFile, now: &str, form: &Form, lines: Option<Lines>) -> Result<String, Error> {
    let context = at.visitor.context()?;
    let begun = cited::version_of(&context, at.id, form.text("hash")).await?;
    Ok(match (begun, lines) {
        (Some((_, begun)), lines) => typed(&begun, form.text("content"), lines),
        (None, None) => typed(now, form.text("content"), None),
        // The context of the edited lines is unknown.
        (None, Some(_)) => endings::plain(form.text("content")),
    })
}

/// The conflict page: both texts, and the three resolutions.
async fn conflict(at: &LocatedFile, file: &File, mine: &str, form: &Form) -> Answer {
    let tree = folders::Tree::of(&at.visitor.context()?).await?;
    let theirs = file.content.as_deref().unwrap_or_default();
    let (base, ask) = (address(at.id), ask_again(form));
    let body = html! {
        div.problem role="alert" {
            p { "Somebody else changed this file meanwhile. Nothing of yours is stored yet, and nothing is lost." }
        }
        div.buttons {
            form.inline method="post" action={ (base) "/edit" } {
                input type="hidden" name="hash" value=(file.content_hash);
                textarea name="content" hidden aria-label="Your text" { "\n" (mine) }
                input type="hidden" name="anyway" value="yes";
                @if let Some(ask) = &ask { (ask.field()) }
                @if ask_again::is_wanted(form) { input type="hidden" name="again" value="yes"; }
                button type="submit" { "Keep mine" }
                @if mine.len().max(theirs.len()) <= MAX_BYTES { button type="submit" name="then" value="merge" { "Edit both" } }
            }
            a.button href=(ask_again::carried(&base, ask.as_ref())) { "Keep theirs" }
        }
        h2 { "From theirs to yours" }
        (compare(theirs, mine).markup())
    };
    let page = page(at, file, &tree)?.with_error(StatusCode::CONFLICT);
    Ok(page.show(&at.visitor, &body))
}

/// The editor with both texts merged.
async fn edit_both(at: &LocatedFile, file: &File, form: &Form) -> Answer {
    let theirs = endings::plain(file.content.as_deref().unwrap_or_default());
    let text = merge::merged(&theirs, &endings::plain(form.text("content")));
    let message = html! { p.notice { "What is different stands twice: first theirs, then yours. Take out what is not to stay, and the marks." } };
    let ask = ask_again(form);
    let draft =
        Draft { text: &text, hash: &file.content_hash, message, is_merged: true, ask, ..Draft::default() };
    edit::show_draft(at, file, draft, Status::Fine).await
}

/// The editor again, with the reason why nothing was saved.
async fn refused(
    at: &LocatedFile,
    file: &File,
    form: &Form,
    lines: Option<Lines>,
    problem: &Problem,
) -> Answer {
    let message = part::summary(Some(problem), &[("content", "Text")]);
    let typed = endings::plain(form.text("content"));
    let ask = ask_again(form);
    let draft = Draft { text: &typed, hash: form.text("hash"), lines, message, ask, ..Draft::default() };
    edit::show_draft(at, file, draft, Status::Wrong).await
}
