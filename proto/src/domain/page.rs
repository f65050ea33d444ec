//! Paths of console pages.

use std::fmt::Display;

use crate::feed::v1::Kind;

/// The path of an item's page; a record also needs its database's id. The path contains no workspace, because the page
/// finds it by the item.
pub fn page_of(kind: Kind, id: impl Display, database_id: Option<impl Display>) -> String {
    match (kind, database_id) {
        (Kind::Record, Some(database)) => format!("/databases/{database}?record={id}"),
        (Kind::Database, _) => format!("/databases/{id}"),
        (Kind::Folder, _) => format!("/folder/{id}"),
        (Kind::Memory, _) => format!("/memories/{id}"),
        (Kind::SourceDocument | Kind::Ingested, _) => format!("/documents/{id}"),
        (Kind::File | Kind::Unspecified | Kind::Record, _) => format!("/file/{id}"),
    }
}

/// The same for an item outside of databases.
pub fn plain_page_of(kind: Kind, id: impl Display) -> String {
    page_of(kind, id, None::<&str>)
}
