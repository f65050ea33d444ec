//! URLs of pages.

use std::fmt::Display;

use cairn_proto::domain::DocumentKind;

/// Characters of a passage carried in a URL.
const QUOTED: usize = 300;

/// The page of an item; a record is shown in its database.
pub(crate) fn of(kind: DocumentKind, id: &str, database: Option<&str>) -> Option<String> {
    match kind {
        DocumentKind::File => Some(file(id)),
        DocumentKind::Record => Some(record(database?, id)),
        DocumentKind::Memory => Some(memory(id)),
        // A live result that is stored nowhere has no id here.
        DocumentKind::SourceDocument | DocumentKind::Ingested => {
            Some(document(id)).filter(|_| !id.is_empty())
        }
    }
}

/// Whether the page of such an item has citable lines.
pub(crate) const fn has_lines(kind: DocumentKind) -> bool {
    matches!(kind, DocumentKind::File | DocumentKind::SourceDocument | DocumentKind::Ingested)
}

/// The URL of a file's page.
pub(crate) fn file(id: impl Display) -> String {
    format!("/file/{id}")
}

/// The URL of a database's page.
pub(crate) fn database(id: impl Display) -> String {
    format!("/databases/{id}")
}

/// The URL of a record: its database with the record beside the grid.
pub(crate) fn record(database: &str, record: &str) -> String {
    format!("/databases/{database}?record={record}")
}

/// The URL of an ingested or source document's page.
pub(crate) fn document(id: impl Display) -> String {
    format!("/documents/{id}")
}

/// The URL of a connected source's page.
pub(crate) fn source(workspace: impl Display, id: impl Display) -> String {
    format!("/w/{workspace}/sources/{id}")
}

/// The URL of a memory's page.
pub(crate) fn memory(id: impl Display) -> String {
    format!("/memories/{id}")
}

/// The query parameter with the words of cited lines; empty without words. Of ingested and source documents only the
/// current text is kept, so the words are all that remains of the cited one.
pub(crate) fn quoted(words: &str) -> String {
    let words: String = words.trim().chars().take(QUOTED).collect();
    if words.is_empty() {
        return words;
    }
    format!("&{}", form_urlencoded::Serializer::new(String::new()).append_pair("quote", &words).finish())
}
