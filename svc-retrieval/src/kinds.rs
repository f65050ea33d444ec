//! Kinds of documents: their names in indexes, and the feeds of their owners.

use cairn_index::StoredChunk;
use cairn_proto::domain::Feed;
use cairn_proto::feed::v1::Kind;

/// Every kind with its name in indexes. These names are stored: they stay what they are, whatever the contract calls the
/// kinds.
const STORED: [(Kind, &str); 8] = [
    (Kind::Unspecified, "KIND_UNSPECIFIED"),
    (Kind::File, "KIND_FILE"),
    (Kind::Folder, "KIND_FOLDER"),
    (Kind::Memory, "KIND_MEMORY"),
    (Kind::Database, "KIND_DATABASE"),
    (Kind::Record, "KIND_RECORD"),
    (Kind::SourceDocument, "KIND_SOURCE_DOCUMENT"),
    (Kind::Ingested, "KIND_INGESTED"),
];

/// The name of a kind in indexes.
pub(crate) fn stored(kind: Kind) -> &'static str {
    STORED.iter().find(|(known, _)| *known == kind).map_or("KIND_UNSPECIFIED", |(_, name)| name)
}

/// The kind of a chunk's document.
pub(crate) fn of_chunk(chunk: &StoredChunk) -> Kind {
    known(&chunk.kind)
}

/// The kind with that name in indexes.
pub(crate) fn known(stored: &str) -> Kind {
    STORED.iter().find(|(_, name)| *name == stored).map_or(Kind::Unspecified, |(kind, _)| *kind)
}

/// The feed of the service that owns documents of that kind.
pub(crate) fn feed_of(kind: Kind) -> Feed {
    match kind {
        Kind::SourceDocument | Kind::Ingested => Feed::Ingest,
        Kind::File | Kind::Folder | Kind::Memory | Kind::Database | Kind::Record | Kind::Unspecified => {
            Feed::Content
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let kinds = (0..).map_while(|number| Kind::try_from(number).ok());
        for (place, kind) in kinds.enumerate() {
            assert_eq!(STORED[place].0, kind);
            assert!(STORED[..place].iter().all(|(_, name)| *name != stored(kind)), "{kind:?}");
        }
    }
}
