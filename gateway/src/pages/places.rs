//! Where things are shown. What has no page yet has no link either.

use cairn_proto::domain::DocumentKind;

/// The page about a thing.
pub(crate) fn of(kind: DocumentKind, id: &str) -> Option<String> {
    match kind {
        DocumentKind::File => Some(super::file::address(id)),
        DocumentKind::Record
        | DocumentKind::SourceDocument
        | DocumentKind::Ingested
        | DocumentKind::Memory => None,
    }
}
