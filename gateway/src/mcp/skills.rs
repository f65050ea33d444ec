//! The usage guides as skills (SEP-2640): the same for every caller, hence publicly cacheable.

use serde_json::{Map, Value, json};

use super::envelope::Request;
use super::failure::Failure;
use super::reply::Cache;
use crate::guides::{self, Guide, GuideFile, MAIN_FILE};

/// The extension's name in the capabilities.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/skills";
/// The prefix of every skill URI.
const ROOT: &str = "skill://cairn";
/// The extension's media type of folders.
const FOLDER: &str = "inode/directory";

/// `skills/list`: always a single page.
pub(super) fn list(request: &Request) -> Result<Map<String, Value>, Failure> {
    request.no_cursor()?;
    let skills: Vec<Value> = guides::all().iter().map(skill).collect();
    Ok(Cache::PUBLIC.completed(json!({"resultType": "complete", "skills": skills})))
}

/// `skills/get`: one skill, by the URI of its `SKILL.md`.
pub(super) fn get(request: &Request) -> Result<Map<String, Value>, Failure> {
    let uri = request.required("uri")?;
    let guide = guides::all().iter().find(|guide| address(guide, MAIN_FILE) == uri).ok_or_else(|| {
        let message =
            "skills/get: there is no such skill; skills/list has the addresses of those that there are";
        Failure::invalid_params(message).about(uri)
    })?;
    Ok(Cache::PUBLIC.completed(json!({"resultType": "complete", "skill": skill(guide)})))
}

/// `resources/directory/read`: the direct children of a skill's folder, or of the root of all skills.
pub(super) fn read_folder(request: &Request) -> Result<Map<String, Value>, Failure> {
    request.no_cursor()?;
    let uri = request.required("uri")?;
    let inside = children(uri);
    if inside.is_empty() {
        let message = "resources/directory/read: there is no such folder; skills/list has what there is";
        return Err(Failure::invalid_params(message).about(uri));
    }
    Ok(Cache::PUBLIC.completed(json!({"resultType": "complete", "resources": inside})))
}

/// The skills' entries in `resources/list`, for agents that do not know the extension.
pub(super) fn resources() -> impl Iterator<Item = Value> {
    guides::all().iter().map(|guide| {
        let mut entry = described(&address(guide, MAIN_FILE), guide.name, guide.file(MAIN_FILE));
        entry.insert("description".to_owned(), Value::from(guide.description));
        Value::Object(entry)
    })
}

/// A file of a skill by its URI.
pub(super) fn read(uri: &str) -> Option<&'static GuideFile> {
    let (name, path) = uri.strip_prefix(ROOT)?.strip_prefix('/')?.split_once('/')?;
    guides::named(name)?.file(path)
}

/// The media type of a skill's file.
pub(super) fn mime_type(file: &GuideFile) -> &'static str {
    match file.path.rsplit_once('.') {
        Some((_, "md")) => "text/markdown",
        Some((_, "json")) => "application/json",
        Some((_, "yaml" | "yml")) => "text/yaml",
        _ => "text/plain",
    }
}

fn skill(guide: &Guide) -> Value {
    let files = guide.files.iter().map(
        |file| json!({"uri": address(guide, file.path), "digest": file.digest, "size": file.text.len()}),
    );
    json!({
        "uri": address(guide, MAIN_FILE),
        "frontmatter": serde_json::from_str::<Value>(guide.front_matter).unwrap_or_default(),
        "resources": files.collect::<Vec<_>>(),
    })
}

fn address(guide: &Guide, path: &str) -> String {
    format!("{ROOT}/{}/{path}", guide.name)
}

/// The direct children of a folder URI; empty for anything else.
fn children(uri: &str) -> Vec<Value> {
    let prefix = format!("{}/", uri.strip_suffix('/').unwrap_or(uri));
    let mut found: Vec<Value> = Vec::new();
    for guide in guides::all() {
        for file in guide.files {
            let whole = address(guide, file.path);
            let Some(rest) = whole.strip_prefix(&prefix).filter(|_| prefix.starts_with(ROOT)) else {
                continue;
            };
            let (name, file) = match rest.split_once('/') {
                Some((folder, _)) => (folder, None),
                None => (rest, Some(file)),
            };
            let entry = Value::Object(described(&format!("{prefix}{name}"), name, file));
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    found
}

/// The entry of a file or a folder.
fn described(uri: &str, name: &str, file: Option<&GuideFile>) -> Map<String, Value> {
    let mut entry = Map::new();
    entry.insert("uri".to_owned(), Value::from(uri));
    entry.insert("name".to_owned(), Value::from(name));
    entry.insert("mimeType".to_owned(), Value::from(file.map_or(FOLDER, mime_type)));
    if let Some(file) = file {
        entry.insert("size".to_owned(), Value::from(file.text.len()));
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_every_skill_is_read_by_its_address() {
        for guide in guides::all() {
            for file in guide.files {
                assert_eq!(read(&address(guide, file.path)).unwrap().text, file.text, "{}", file.path);
            }
        }
        for odd in ["", "skill://cairn", "skill://cairn/x/SKILL.md", "skill://other/x", "cairn://file/x"] {
            assert!(read(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn folders_lead_to_every_file() {
        let mut folders = vec![ROOT.to_owned()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            let inside = children(&folder);
            assert!(!inside.is_empty(), "{folder}");
            for entry in inside {
                let uri = entry["uri"].as_str().unwrap().to_owned();
                if entry["mimeType"] == FOLDER { folders.push(uri) } else { files.push(uri) }
            }
        }
        let all =
            guides::all().iter().flat_map(|guide| guide.files.iter().map(|file| address(guide, file.path)));
        let mut all: Vec<String> = all.collect();
        all.sort();
        files.sort();
        assert_eq!(files, all);
        assert!(children("skill://cairn/no-such").is_empty());
        assert!(children("skill:").is_empty() && children("").is_empty());
    }
}
