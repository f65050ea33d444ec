//! Where the console shows things.

use std::fmt::Display;

use crate::feed::v1::Kind;

/// The path of the page about a thing, of a record with its database's id. What opens such a path finds the workspace by
/// the thing, so there is none in it.
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

/// The same for a thing that stands in no database.
pub fn plain_page_of(kind: Kind, id: impl Display) -> String {
    page_of(kind, id, None::<&str>)
}
