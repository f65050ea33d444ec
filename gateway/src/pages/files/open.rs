//! `/w/{id}/open`: resolves links within texts, which name a file by path or by name.

use cairn_chassis::status::Problem;
use maud::html;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::answers::File;
use crate::extract::Query;
use crate::operations::files::{self, SearchFiles};
use crate::pages::frame::Page;
use crate::pages::visitor::{Visitor, see_other};
use crate::pages::{Answer, file, folders, form};
use crate::schema::inputs;

inputs!(PageQuery);

/// The link to resolve.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageQuery {
    path: Option<String>,
    name: Option<String>,
}

pub(super) async fn open(visitor: Visitor, Query(wanted): Query<PageQuery>) -> Answer {
    let path = wanted.path.as_deref().unwrap_or_default();
    let name = wanted.name.as_deref().or_else(|| path.rsplit('/').next()).unwrap_or_default().trim();
    if name.is_empty() || name.chars().count() > 255 || name.contains(char::is_control) {
        return Err(Problem::not_found("the link names no file").into());
    }
    let context = visitor.context()?;
    if let Some(folder) = folders::Tree::of(&context).await?.by_path(path) {
        return Ok(see_other(&folders::address(visitor.here()?.id, Some(&folder.id))));
    }
    let input = form::input::<SearchFiles>(json!({"query": name, "limit": 200}))?;
    let found = files::search(&context, input).await?.items;
    if let Some(file) = best(&found, path, name) {
        return Ok(see_other(&file::address(&file.id)));
    }
    let body = html! {
        p { "The link names " bdi { (if path.is_empty() { name } else { path }) } ", and there is no such file here." }
        @if !found.is_empty() {
            h2 { "Names that are near it" }
            ul { @for file in found.iter().take(20) { li { a href=(file::address(&file.id)) { bdi { (file.path) } } } } }
        }
        p { a href=(folders::address(visitor.here()?.id, None)) { "All files" } }
    };
    Ok(Page::new("No such file").with_error(http::StatusCode::NOT_FOUND).show(&visitor, &body))
}

/// The file at that path; without a path, the one of that name, with or without the Markdown extension.
fn best<'a>(found: &'a [File], path: &str, name: &str) -> Option<&'a File> {
    if !path.is_empty() {
        return found.iter().find(|file| file.path == path);
    }
    let same = |file: &&File, name: &str| file.name.to_lowercase() == name.to_lowercase();
    let with_ending = format!("{name}.md");
    found.iter().find(|file| same(file, name)).or_else(|| found.iter().find(|file| same(file, &with_ending)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_finds_its_file() {
        let file = |path: &str| File {
            path: path.to_owned(),
            name: path.rsplit('/').next().unwrap().to_owned(),
            ..File::default()
        };
        let found = [file("/a/Notes.md"), file("/b/notes.md"), file("/b/old notes.md")];
        let path = |found: Option<&File>| found.map(|file| file.path.clone());
        assert_eq!(path(best(&found, "/b/notes.md", "notes.md")).as_deref(), Some("/b/notes.md"));
        assert_eq!(path(best(&found, "/c/notes.md", "notes.md")), None);
        assert_eq!(path(best(&found, "", "NOTES")).as_deref(), Some("/a/Notes.md"));
        assert_eq!(path(best(&found, "", "Old notes")).as_deref(), Some("/b/old notes.md"));
        assert_eq!(path(best(&found, "", "new")), None);
    }
}
