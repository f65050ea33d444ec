//! The lines that a URL cites, and what became of them if the text has changed since.

use cairn_chassis::status::Reason;
use cairn_proto::ids::FileId;
use maud::{Markup, html};

use crate::answers::File;
use crate::error::Error;
use crate::operations::{Context, Paging, file_versions};
use crate::pages::reading::Stale;
use crate::pages::text::{Lines, compare};

/// Limit of changed lines that are shown.
const MAX_LINES: usize = 60;

/// A resolved citation.
#[derive(Debug, Default)]
pub(super) struct Cited {
    /// The lines to highlight in the current text.
    pub(super) now: Option<Lines>,
    /// The notice about a citation of an older text.
    pub(super) notice: Markup,
}

/// Resolves a citation: `lines`, and the `hash` of the text they refer to; `quote` are the cited words.
pub(super) async fn read(
    context: &Context,
    file: &File,
    lines: Option<&str>,
    hash: Option<&str>,
    quote: Option<&str>,
) -> Result<Cited, Error> {
    let lines = lines.and_then(Lines::parse);
    let hash = hash.filter(|hash| !hash.is_empty() && *hash != file.content_hash);
    let Some(hash) = hash else { return Ok(Cited { now: lines, notice: html! {} }) };
    let id: FileId =
        file.id.parse().map_err(|_| cairn_chassis::status::Problem::internal("a file without an id"))?;
    let found = version_of(context, id, hash).await?;
    let Some(lines) = lines else {
        let notice = found.map_or_else(|| html! {}, |(version, _)| stale_whole_text(file, version));
        return Ok(Cited { now: None, notice });
    };
    let Some((version, text)) = found else {
        let (page, content) = (super::address(&file.id), file.content.as_deref().unwrap_or_default());
        let stale = Stale { page: &page, content, lines: Some(lines), hash, quote };
        let (now, notice) = stale.show(&html! {});
        return Ok(Cited { now, notice });
    };
    let content = file.content.as_deref().unwrap_or_default();
    let now = compare(&text, content).now(lines);
    Ok(Cited { now, notice: stale(file, &text, content, lines, now, version) })
}

/// The version that has that text, and the text.
pub(super) async fn version_of(
    context: &Context,
    id: FileId,
    hash: &str,
) -> Result<Option<(u64, String)>, Error> {
    let mut paging = Paging::default();
    loop {
        let listed = file_versions::list(context, id, paging).await?;
        if let Some(found) = listed.items.iter().find(|version| version.content_hash == hash) {
            return match file_versions::get(context, id, found.version).await {
                Ok(version) => Ok(Some((version.version, version.content.unwrap_or_default()))),
                Err(problem) if problem.reason == Reason::NotFound => Ok(None),
                Err(problem) => Err(problem.into()),
            };
        }
        match listed.next {
            Some(next) => paging = Paging { cursor: Some(next), ..Paging::default() },
            None => return Ok(None),
        }
    }
}

fn stale(file: &File, then: &str, now: &str, lines: Lines, place: Option<Lines>, version: u64) -> Markup {
    let was = truncated(then, lines);
    let is = place.map(|place| truncated(now, place));
    let page = super::address(&file.id);
    html! {
        div.notice {
            @match (&place, &is) {
                (Some(place), Some(is)) if *is == was => {
                    p { strong { "The text has changed since it was cited." } " The cited lines are the same; they stand at " a href={ (page) "?lines=" (place) "#L" (place.first) } { "line " (place) } " now." }
                }
                (Some(place), _) => {
                    p { strong { "The text has changed since it was cited." } " In the place of the cited lines there is " a href={ (page) "?lines=" (place) "#L" (place.first) } { "line " (place) } " now." }
                }
                (None, _) => {
                    p { strong { "The text has changed since it was cited." } " The cited lines are not in it any more." }
                }
            }
            p { "As they were, in " a href={ (page) "/versions/" (version) } { "version " (version) } ", lines " (lines) ":" }
            pre.cited-then tabindex="0" { @for line in &was { del { (line) } "\n" } }
            @if let Some(is) = is.filter(|is| *is != was) {
                p { "As they are:" }
                pre.cited-now tabindex="0" { @for line in &is { ins { (line) } "\n" } }
            }
        }
    }
}

/// For a citation of the whole text.
fn stale_whole_text(file: &File, version: u64) -> Markup {
    let page = super::address(&file.id);
    html! {
        div.notice { p { strong { "The text has changed since it was cited." } " As it was: " a href={ (page) "/versions/" (version) } { "version " (version) } "." } }
    }
}

fn truncated(text: &str, lines: Lines) -> Vec<&str> {
    let count = (lines.last + 1 - lines.first).min(MAX_LINES);
    text.lines().skip(lines.first - 1).take(count).collect()
}
