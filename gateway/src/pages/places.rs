//! Where things are shown.

use std::fmt::Display;

use cairn_proto::domain::DocumentKind;

/// Characters of a passage that an address carries.
const QUOTED: usize = 300;

/// The page about a thing; a record is shown in its database.
pub(crate) fn of(kind: DocumentKind, id: &str, database: Option<&str>) -> Option<String> {
    match kind {
        DocumentKind::File => Some(file(id)),
        DocumentKind::Record => Some(record(database?, id)),
        DocumentKind::Memory => Some(memory(id)),
        // What was read just now and is kept nowhere has no id here.
        DocumentKind::SourceDocument | DocumentKind::Ingested => {
            Some(document(id)).filter(|_| !id.is_empty())
        }
    }
}

/// Whether the page about such a thing has lines that an address can cite.
pub(crate) const fn has_lines(kind: DocumentKind) -> bool {
    matches!(kind, DocumentKind::File | DocumentKind::SourceDocument | DocumentKind::Ingested)
}

/// The address of a file's page.
pub(crate) fn file(id: impl Display) -> String {
    format!("/file/{id}")
}

/// The address of a database's page.
pub(crate) fn database(id: impl Display) -> String {
    format!("/databases/{id}")
}

/// The address of a record: its database with the record beside the grid.
pub(crate) fn record(database: &str, record: &str) -> String {
    format!("/databases/{database}?record={record}")
}

/// The address of the page of a document from outside.
pub(crate) fn document(id: impl Display) -> String {
    format!("/documents/{id}")
}

/// The address of the page of a connected source.
pub(crate) fn source(workspace: impl Display, id: impl Display) -> String {
    format!("/w/{workspace}/sources/{id}")
}

/// The address of a memory's page.
pub(crate) fn memory(id: impl Display) -> String {
    format!("/memories/{id}")
}

/// What the address of cited lines says of the words that stand there; nothing without words. Of a document from outside only
/// the text of now is kept, so that they are all that tells of then.
pub(crate) fn quoted(words: &str) -> String {
    let words: String = words.trim().chars().take(QUOTED).collect();
    if words.is_empty() {
        return words;
    }
    format!("&{}", form_urlencoded::Serializer::new(String::new()).append_pair("quote", &words).finish())
}
