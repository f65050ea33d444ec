//! How lines of a document are cited, by scripts and by searches: a reader finds them by this, and can check them.

use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::domain::page_of;
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::{Citation, Location, SyncMode};

/// Of lines of a document with that content.
pub fn of_lines(location: Location, content_hash: String, document: &ConfirmedDocument) -> Citation {
    let (kind, id) = match &document.r#ref {
        Some(reference) => (reference.kind(), reference.id.clone()),
        None => (Kind::Unspecified, String::new()),
    };
    Citation {
        label: format!("{}, lines {}–{}", document.title, location.start_line, location.end_line),
        url: page_of(kind, &id, document.database_id.as_deref()),
        kind: kind.into(),
        id,
        path: document.path.clone(),
        location: Some(location),
        content_hash,
        sync_mode: SyncMode::Indexed.into(),
        updated_at: document.updated_at,
        source_id: document.source_id.clone(),
        address: document.url.clone(),
        external_id: document.external_id.clone(),
    }
}
