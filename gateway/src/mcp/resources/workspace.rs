//! The caller's workspace as resources.

use std::fmt;

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::limits::PAGE;
use cairn_proto::ids::{DatabaseId, FileId, FolderId, SourceId};
use serde::Serialize;
use serde_json::{Value, json};

use super::{JSON, failure_of};
use crate::answers::{File, Memory, content_type, optional_time};
use crate::mcp::failure::Failure;
use crate::operations::{Context, Paging, databases, files, folders, memories, sources};

const FILE: &str = "cairn://file/";
const MEMORY: &str = "cairn://memory/";
const FOLDER: &str = "cairn://folder/";
const DATABASE: &str = "cairn://database/";
const SOURCE: &str = "cairn://source/";
/// The page size of list_source_documents.
const SOURCE_DOCUMENTS: u32 = 200;
/// A slug has at most 100 bytes, an id fewer.
const MAX_NAME_LENGTH: usize = 100;

/// What a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::mcp) enum Named {
    File(FileId),
    /// By its slug or id.
    Memory(String),
    Folder(FolderId),
    Database(DatabaseId),
    Source(SourceId),
}

impl Named {
    pub(in crate::mcp) fn parse(uri: &str) -> Option<Self> {
        if let Some(id) = uri.strip_prefix(FILE) {
            return id.parse().ok().map(Self::File);
        }
        if let Some(id) = uri.strip_prefix(FOLDER) {
            return id.parse().ok().map(Self::Folder);
        }
        if let Some(id) = uri.strip_prefix(DATABASE) {
            return id.parse().ok().map(Self::Database);
        }
        if let Some(id) = uri.strip_prefix(SOURCE) {
            return id.parse().ok().map(Self::Source);
        }
        let name = uri.strip_prefix(MEMORY)?;
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(is_plain);
        is_name.then(|| Self::Memory(name.to_owned()))
    }
}

/// Whether a problem must look like a missing resource.
pub(super) fn is_hidden(problem: &Problem) -> bool {
    matches!(problem.reason, Reason::NotFound | Reason::OutOfScope)
}

/// The media type and the full text of a resource, with the caller's rights.
pub(in crate::mcp) async fn read(context: &Context, named: Named) -> Result<(&'static str, String), Problem> {
    match named {
        Named::File(id) => {
            let file = files::get(context, id).await?;
            context.show(&[(&file.id, &file.content_hash)]);
            Ok((mime_type(&file), file.content.unwrap_or_default()))
        }
        Named::Memory(name) => {
            let memory = memories::get(context, name, None).await?;
            Ok(("text/markdown", memory.to_markdown()))
        }
        Named::Folder(id) => Ok((JSON, folder(context, id).await?)),
        Named::Database(id) => Ok((JSON, text(&databases::get(context, id).await?))),
        Named::Source(id) => {
            let page =
                sources::documents(context, Some(id.to_string()), Some(SOURCE_DOCUMENTS), None).await?;
            Ok((JSON, text(&json!({"documents": page.items, "total": page.total}))))
        }
    }
}

/// The direct children of a folder: at most a thousand folders and a thousand files, with their totals.
async fn folder(context: &Context, id: FolderId) -> Result<String, Problem> {
    let all = || Paging { limit: Some(PAGE), cursor: None };
    let folder = folders::get(context, id).await?;
    let below = folders::list(context, folders::Selection::of_parent(id.to_string()), all()).await?;
    let files = files::list(context, files::Selection::of_folder(id.to_string(), false), all()).await?;
    Ok(text(&json!({
        "folder": folder,
        "folders": below.items,
        "totalFolders": below.total,
        "files": files.items,
        "totalFiles": files.total,
    })))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A cursor into the list: memories come before files, because they say when they are worth reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListCursor {
    section: Section,
    /// The page token of the section; empty at its start.
    token: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Memories,
    Files,
}

impl ListCursor {
    pub(super) const fn first() -> Self {
        Self { section: Section::Memories, token: String::new() }
    }

    pub(super) fn is_first(&self) -> bool {
        *self == Self::first()
    }

    pub(super) fn read(cursor: &str) -> Option<Self> {
        let (section, token) = cursor.split_once('.')?;
        let section = match section {
            "m" if !token.is_empty() => Section::Memories,
            "f" => Section::Files,
            _ => return None,
        };
        Some(Self { section, token: token.to_owned() })
    }
}

/// The cursor's text.
impl fmt::Display for ListCursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = match self.section {
            Section::Memories => "m",
            Section::Files => "f",
        };
        write!(formatter, "{section}.{}", self.token)
    }
}

/// Fills a page up to `most` entries; returns the cursor of the next one. Without the permission to read it stays
/// empty.
pub(super) async fn append(
    context: &Context,
    mut place: ListCursor,
    entries: &mut Vec<Value>,
    most: usize,
) -> Result<Option<ListCursor>, Failure> {
    while let Some(room) = most.checked_sub(entries.len()).filter(|room| *room > 0) {
        let paging = Paging { limit: u32::try_from(room).ok(), cursor: Some(place.token) };
        let next = match part(context, place.section, paging, entries).await {
            Ok(next) => next,
            Err(problem) if problem.reason == Reason::Forbidden => return Ok(None),
            Err(problem) if problem.reason == Reason::ValidationError => return Err(Failure::wrong_cursor()),
            Err(problem) => return Err(failure_of(&problem)),
        };
        place = match (next, place.section) {
            (Some(token), section) => ListCursor { section, token },
            (None, Section::Memories) => ListCursor { section: Section::Files, token: String::new() },
            (None, Section::Files) => return Ok(None),
        };
    }
    Ok(Some(place))
}

async fn part(
    context: &Context,
    section: Section,
    paging: Paging,
    entries: &mut Vec<Value>,
) -> Result<Option<String>, Problem> {
    match section {
        Section::Memories => {
            let page = memories::list(context, paging).await?;
            entries.extend(page.items.iter().map(memory_entry));
            Ok(page.next)
        }
        Section::Files => {
            let page = files::list(context, files::Selection::default(), paging).await?;
            entries.extend(page.items.iter().map(file_entry));
            Ok(page.next)
        }
    }
}

fn file_entry(file: &File) -> Value {
    json!({
        "uri": format!("{FILE}{}", file.id),
        "name": file.name,
        "description": file.path,
        "mimeType": mime_type(file),
        "size": file.size_bytes,
        "annotations": {"lastModified": optional_time(file.updated_at.as_ref())},
    })
}

fn memory_entry(memory: &Memory) -> Value {
    let mut entry = json!({
        "uri": format!("{MEMORY}{}", memory.slug),
        "name": memory.name,
        "mimeType": "text/markdown",
        "annotations": {"lastModified": memory.updated_at},
    });
    let about = memory.use_when.as_deref().or(memory.description.as_deref());
    if let (Some(about), Some(fields)) = (about, entry.as_object_mut()) {
        fields.insert("description".to_owned(), Value::from(about));
    }
    entry
}

/// Without the charset: JSON strings are Unicode.
fn mime_type(file: &File) -> &'static str {
    let whole = content_type(file);
    whole.split(';').next().unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_one_thing() {
        let id = "0199c0de-0000-7000-8000-0000000000f1";
        assert_eq!(Named::parse(&format!("{FILE}{id}")), id.parse().ok().map(Named::File));
        assert_eq!(Named::parse("cairn://memory/a-guide"), Some(Named::Memory("a-guide".to_owned())));
        let long = format!("{MEMORY}{}", "x".repeat(MAX_NAME_LENGTH + 1));
        for odd in [
            "",
            "cairn://file/",
            "cairn://file/x",
            "cairn://memory/",
            "cairn://memory/A",
            "cairn://memory/a/b",
            "cairn://folder/x",
            "cairn://database/",
            "cairn://source/../x",
            "file:///etc/passwd",
            long.as_str(),
        ] {
            assert_eq!(Named::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_cursor_comes_back_as_its_place() {
        for (section, token) in [(Section::Memories, "abc_-"), (Section::Files, ""), (Section::Files, "a.b")]
        {
            let place = ListCursor { section, token: token.to_owned() };
            assert_eq!(ListCursor::read(&place.to_string()), Some(place));
        }
        for odd in ["", "m", "m.", "x.y", "f"] {
            assert_eq!(ListCursor::read(odd), None, "{odd}");
        }
    }
}
