//! `/file/{id}/versions/{version}`: the diff of a version, its text, and restoring it.

use axum::extract::{FromRequestParts, RawPathParams};
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::Permission;
use http::request::Parts;
use maud::html;
use serde::Deserialize;
use utoipa::ToSchema;

use super::at::{Found, LocatedFile};
use super::{address, changes, language, page, tabs};
use crate::app::App;
use crate::error::Error;
use crate::extract::Query;
use crate::operations::file_versions;
use crate::pages::notice::Notice;
use crate::pages::parts as part;
use crate::pages::text::{Lines, compare};
use crate::pages::{Answer, folders, reading, words};
use crate::schema::inputs;

inputs!(PageQuery);

/// The view of a version.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    /// `now`: the diff to the current text; `text`: the text; else the diff to the previous version.
    show: Option<String>,
    lines: Option<String>,
}

/// The version number in the path.
pub(super) struct Number(u64);

impl FromRequestParts<App> for Number {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let no_version = || Problem::not_found("there is no such version");
        let path = RawPathParams::from_request_parts(parts, app).await.map_err(|_| no_version())?;
        let named = path.iter().find(|(name, _)| *name == "version");
        let number = named.and_then(|(_, number)| number.parse().ok());
        Ok(Self(number.ok_or_else(no_version)?))
    }
}

pub(super) async fn show(
    at: LocatedFile,
    Number(number): Number,
    Query(page_query): Query<PageQuery>,
) -> Answer {
    let file = match at.file().await? {
        Found::Live(file) => file,
        Found::Elsewhere(response) => return Ok(response),
    };
    let context = at.visitor.context()?;
    let version = file_versions::get(&context, at.id, number).await?;
    let around = neighbours(&at, number).await?;
    let tree = folders::Tree::of(&context).await?;
    let text = version.content.as_deref().unwrap_or_default();
    let now = file.content.as_deref().unwrap_or_default();
    let wanted = page_query.show.as_deref().unwrap_or_default();
    let here = format!("{}/versions/{number}", address(at.id));
    let shown = match wanted {
        "text" => reading::numbered(
            language(&file),
            text,
            None,
            1,
            page_query.lines.as_deref().and_then(Lines::parse),
        ),
        "now" => compare(text, now).markup(),
        _ => {
            let before = match around.older {
                Some(older) => file_versions::get(&context, at.id, older).await?.content.unwrap_or_default(),
                None => String::new(),
            };
            compare(&before, text).markup()
        }
    };
    let is_now = version.content_hash == file.content_hash;
    let kinds = [("", "What it changed"), ("now", "What has changed since"), ("text", "Text")];
    let body = html! {
        (tabs(&at.visitor, &file.id, None))
        h2 { "Version " (number) @if is_now { " " (part::badge(part::Tone::Plain, "Now")) } }
        p.quiet { (part::time(&version.created_at)) " by " (changes::who(&version)) " · " (words::bytes(version.size_bytes)) }
        div.buttons {
            @if !is_now && at.visitor.may(Permission::Write) {
                (part::action(&format!("{here}/restore"), "Restore this version", "", &[("hash", &file.content_hash)]))
            }
            @if let Some(older) = around.older { a.button rel="prev" href=(at.visitor.onward(format!("{}/versions/{older}", address(at.id)))) { "Older" } }
            @if let Some(newer) = around.newer { a.button rel="next" href=(at.visitor.onward(format!("{}/versions/{newer}", address(at.id)))) { "Newer" } }
        }
        nav.tabs aria-label="Of this version" {
            @for (name, label) in kinds {
                @let query = if name.is_empty() { String::new() } else { format!("?show={name}") };
                a href=(at.visitor.onward(format!("{here}{query}"))) aria-current=[(name == wanted).then_some("page")] { (label) }
            }
        }
        (shown)
    };
    Ok(page(&at, &file, &tree)?.show(&at.visitor, &body))
}

/// The previous and the next version.
#[derive(Debug, Default)]
struct AdjacentVersions {
    older: Option<u64>,
    newer: Option<u64>,
}

async fn neighbours(at: &LocatedFile, number: u64) -> Result<AdjacentVersions, Error> {
    let context = at.visitor.context()?;
    let (mut found, mut paging) = (AdjacentVersions::default(), crate::operations::Paging::default());
    loop {
        let listed = file_versions::list(&context, at.id, paging).await?;
        for version in &listed.items {
            if version.version > number {
                found.newer = Some(version.version);
            } else if version.version < number {
                found.older = Some(version.version);
                return Ok(found);
            }
        }
        match listed.next {
            Some(next) => paging = crate::operations::Paging { cursor: Some(next), ..Default::default() },
            None => return Ok(found),
        }
    }
}

/// `POST /file/{id}/versions/{version}/restore`, unless the file has changed since the page was shown.
pub(super) async fn restore(
    at: LocatedFile,
    Number(number): Number,
    form: crate::pages::form::Form,
) -> Answer {
    let context = at.visitor.context()?;
    let hash = form.trimmed("hash");
    let if_match = if hash.is_empty() { Vec::new() } else { vec![hash.to_owned()] };
    match file_versions::restore(&context, at.id, number, if_match).await {
        Ok(_) => Ok(at.visitor.done(&address(at.id), &Notice::Restored)),
        Err(problem) if problem.reason == Reason::VersionConflict => {
            let message =
                "the file was changed meanwhile: look at what has changed since, and restore it from there";
            Err(Problem::version_conflict(message).into())
        }
        Err(problem) => Err(problem.into()),
    }
}
