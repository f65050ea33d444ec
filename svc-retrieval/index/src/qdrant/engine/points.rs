//! The points of a collection: one per chunk, per document and per cursor, and two for the collection itself.
//!
//! A chunk's point has its vector, its words and the fields that are returned. A document's point, its head, has the complete revision
//! and the number of chunks; it stays as a tombstone when the document is deleted, so that a stale writer cannot restore an older
//! revision. A cursor's point says how far a feed has been applied for a workspace. One point has the identity of the embedder, and
//! one identifies the collection ([`super::mark`]).

use std::collections::HashMap;

use qdrant_client::qdrant::value::Kind;
use qdrant_client::qdrant::vectors_output::VectorsOptions;
use qdrant_client::qdrant::{
    DenseVector, ListValue, NamedVectors, PointId, PointStruct, SparseVector, Value, Vector, VectorsOutput,
    vector, vector_output,
};
use uuid::Uuid;

use super::Error;
use super::words::Words;
use crate::vectors::UnitVector;
use crate::{ChunkId, IndexedChunk, IndexedDocument, StoredChunk};

/// The names of vectors.
pub(super) const MEANING: &str = "meaning";
pub(super) const WORDS: &str = "words";

/// The payload fields that filters use; each is indexed (`collection.rs`).
pub(super) const ROLE: &str = "role";
pub(super) const WORKSPACE: &str = "workspace";
pub(super) const DOCUMENT: &str = "document";
pub(super) const CONTAINER: &str = "container";
pub(super) const ORDINAL: &str = "ordinal";
pub(super) const REVISION: &str = "revision";
pub(super) const POSITION: &str = "position";
/// The code of the language used for stemming.
pub(super) const LANGUAGE: &str = "language";
/// The tokens in sequence, for phrases and exclusions.
pub(super) const TOKENS: &str = "tokens";
/// The distinct words that can complete a prefix.
pub(super) const FORMS: &str = "forms";

/// The pieces that the vector is the sum of, if any; indexed to count how many chunks contain each.
pub(super) const PIECES: &str = "pieces";

/// The payload fields that are only returned.
pub(super) const FEED: &str = "feed";
pub(super) const CHUNKS: &str = "chunks";
pub(super) const KIND: &str = "kind";
pub(super) const TITLE: &str = "title";
pub(super) const HEADINGS: &str = "headings";
pub(super) const TABLE_HEADER: &str = "table_header";
pub(super) const TEXT: &str = "text";
pub(super) const START_LINE: &str = "start_line";
pub(super) const END_LINE: &str = "end_line";
pub(super) const CONTENT_HASH: &str = "content_hash";
pub(super) const UPDATED_AT: &str = "updated_at";
/// The identity of the embedder, and since when the collection is current.
pub(super) const IDENTITY: &str = "maker";
pub(super) const SINCE: &str = "since";
/// Identifies the collection among successive ones of the same name; cursors have it, too.
pub(super) const MARK: &str = "mark";

/// The fields that a [`StoredChunk`] is read from.
pub(super) const STORED_FIELDS: &[&str] =
    &[CONTAINER, KIND, TITLE, HEADINGS, TABLE_HEADER, TEXT, START_LINE, END_LINE, CONTENT_HASH, UPDATED_AT];

/// The UUID namespace of point ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x5a2e_51c7_98d0_4d0c_8a3f_6f4e_0c1d_7b92);

/// The kind of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Chunk,
    /// The head of a document with chunks.
    Document,
    /// The head of a document without chunks, or of a deleted one.
    Gone,
    Cursor,
    Identity,
    Mark,
}

impl Role {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Document => "document",
            Self::Gone => "gone",
            Self::Cursor => "cursor",
            Self::Identity => "maker",
            Self::Mark => "mark",
        }
    }
}

type Payload = HashMap<String, Value>;

/// The id of a chunk's point.
pub(super) fn chunk_point(workspace: Uuid, chunk: ChunkId) -> Uuid {
    named(&[workspace.as_bytes(), chunk.document.as_bytes(), &chunk.ordinal.to_be_bytes()])
}

/// The id of a document's head.
pub(super) fn document_point(workspace: Uuid, document: Uuid) -> Uuid {
    named(&[workspace.as_bytes(), document.as_bytes(), b"document"])
}

/// The id of a cursor's point.
pub(super) fn cursor_point(workspace: Uuid, feed: &str) -> Uuid {
    named(&[workspace.as_bytes(), b"cursor", feed.as_bytes()])
}

fn named(parts: &[&[u8]]) -> Uuid {
    Uuid::new_v5(&NAMESPACE, &parts.concat())
}

/// The id of the point with the embedder's identity.
pub(super) fn identity_point() -> Uuid {
    named(&[b"maker"])
}

/// The id of the point with the mark.
pub(super) fn mark_point() -> Uuid {
    named(&[b"mark"])
}

/// The id as an API type.
pub(super) fn point_id(id: Uuid) -> PointId {
    PointId::from(id.hyphenated().to_string())
}

/// The id of a returned point; `None` for one that is not ours.
pub(super) fn uuid_of(id: Option<&PointId>) -> Option<Uuid> {
    use qdrant_client::qdrant::point_id::PointIdOptions;
    match id?.point_id_options.as_ref()? {
        PointIdOptions::Uuid(id) => Uuid::try_parse(id).ok(),
        PointIdOptions::Num(_) => None,
    }
}

/// A chunk to be written.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) ordinal: u32,
    pub(super) payload: Payload,
    pub(super) words: Words,
    pub(super) vector: Option<UnitVector>,
}

impl Row {
    /// A chunk of a document, with its words.
    pub(super) fn of_chunk(
        document: &IndexedDocument,
        ordinal: u32,
        chunk: &IndexedChunk,
        vector: Option<UnitVector>,
    ) -> Self {
        let headings = chunk.heading_path.iter().map(|heading| Value::from(heading.as_str())).collect();
        let mut payload = Payload::from([
            (KIND.to_owned(), Value::from(document.kind.as_str())),
            (TITLE.to_owned(), Value::from(document.title.as_str())),
            (HEADINGS.to_owned(), Value::from(Kind::ListValue(ListValue { values: headings }))),
            (TABLE_HEADER.to_owned(), Value::from(chunk.table_header.as_str())),
            (TEXT.to_owned(), Value::from(chunk.text.as_str())),
            (START_LINE.to_owned(), Value::from(i64::from(chunk.start_line))),
            (END_LINE.to_owned(), Value::from(i64::from(chunk.end_line))),
            (CONTENT_HASH.to_owned(), Value::from(document.content_hash.as_str())),
            (UPDATED_AT.to_owned(), Value::from(document.updated_at)),
            (LANGUAGE.to_owned(), Value::from(document.language.code())),
        ]);
        put_container(&mut payload, document.container);
        if vector.is_some() && !chunk.pieces.is_empty() {
            let pieces = chunk.pieces.iter().map(|piece| Value::from(i64::from(*piece))).collect();
            payload.insert(PIECES.to_owned(), Value::from(Kind::ListValue(ListValue { values: pieces })));
        }
        Self { ordinal, payload, words: Words::of_chunk(document, chunk), vector }
    }

    /// The point of this chunk in a revision of its document.
    pub(super) fn into_point(self, workspace: Uuid, document: Uuid, revision: u64) -> PointStruct {
        let id = chunk_point(workspace, ChunkId { document, ordinal: self.ordinal });
        let mut payload = common(Role::Chunk, workspace);
        payload.extend(self.payload);
        payload.insert(DOCUMENT.to_owned(), Value::from(document.hyphenated().to_string()));
        payload.insert(ORDINAL.to_owned(), Value::from(i64::from(self.ordinal)));
        payload.insert(REVISION.to_owned(), Value::from(revision.cast_signed()));
        let mut vectors = HashMap::new();
        if let Some(vector) = self.vector {
            let dense = DenseVector { data: vector.to_f32() };
            vectors.insert(MEANING.to_owned(), in_api(vector::Vector::Dense(dense)));
        }
        if !self.words.weights.is_empty() {
            let (indices, values) = self.words.weights.into_iter().unzip();
            let sparse = SparseVector { values, indices };
            vectors.insert(WORDS.to_owned(), in_api(vector::Vector::Sparse(sparse)));
        }
        if !self.words.tokens.is_empty() {
            payload.insert(TOKENS.to_owned(), Value::from(self.words.tokens));
        }
        if !self.words.forms.is_empty() {
            payload.insert(FORMS.to_owned(), Value::from(self.words.forms));
        }
        point(id, payload, vectors)
    }
}

fn in_api(vector: vector::Vector) -> Vector {
    Vector { vector: Some(vector), ..Vector::default() }
}

fn put_container(payload: &mut Payload, container: Option<Uuid>) {
    if let Some(container) = container {
        payload.insert(CONTAINER.to_owned(), Value::from(container.hyphenated().to_string()));
    }
}

fn common(role: Role, workspace: Uuid) -> Payload {
    Payload::from([
        (ROLE.to_owned(), Value::from(role.as_str())),
        (WORKSPACE.to_owned(), Value::from(workspace.hyphenated().to_string())),
    ])
}

fn point(id: Uuid, payload: Payload, vectors: HashMap<String, Vector>) -> PointStruct {
    PointStruct { id: Some(point_id(id)), payload, vectors: Some(NamedVectors { vectors }.into()) }
}

/// The head of a document: the complete revision, and its number of ordinals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) document: Uuid,
    pub(super) revision: u64,
    pub(super) chunks: u32,
}

impl Head {
    pub(super) fn into_point(self, workspace: Uuid) -> PointStruct {
        let role = if self.chunks == 0 { Role::Gone } else { Role::Document };
        let mut payload = common(role, workspace);
        payload.insert(DOCUMENT.to_owned(), Value::from(self.document.hyphenated().to_string()));
        payload.insert(REVISION.to_owned(), Value::from(self.revision.cast_signed()));
        payload.insert(CHUNKS.to_owned(), Value::from(i64::from(self.chunks)));
        point(document_point(workspace, self.document), payload, HashMap::new())
    }

    pub(super) fn read(payload: &Payload) -> Result<Self, Error> {
        let document = uuid(payload, DOCUMENT).ok_or(Error::Answer("a document's point has no document"))?;
        let revision = integer(payload, REVISION).cast_unsigned();
        Ok(Self { document, revision, chunks: small(payload, CHUNKS) })
    }
}

/// The point of a cursor, with the mark of the collection that its batch was written into.
pub(super) fn cursor(workspace: Uuid, feed: &str, position: u64, mark: Uuid) -> PointStruct {
    let mut payload = common(Role::Cursor, workspace);
    payload.insert(FEED.to_owned(), Value::from(feed));
    payload.insert(POSITION.to_owned(), Value::from(position.cast_signed()));
    payload.insert(MARK.to_owned(), Value::from(mark.hyphenated().to_string()));
    point(cursor_point(workspace, feed), payload, HashMap::new())
}

/// The point with the embedder's identity, and since when the collection is current.
pub(super) fn identity(identity: String, since: i64) -> PointStruct {
    let payload = Payload::from([
        (ROLE.to_owned(), Value::from(Role::Identity.as_str())),
        (IDENTITY.to_owned(), Value::from(identity)),
        (SINCE.to_owned(), Value::from(since)),
    ]);
    point(identity_point(), payload, HashMap::new())
}

/// Reads the serialized identity, and since when the collection is current.
pub(super) fn read_identity(payload: &Payload) -> (String, i64) {
    (text(payload, IDENTITY), integer(payload, SINCE))
}

/// The point with the mark.
pub(super) fn mark(mark: Uuid) -> PointStruct {
    let payload = Payload::from([
        (ROLE.to_owned(), Value::from(Role::Mark.as_str())),
        (MARK.to_owned(), Value::from(mark.hyphenated().to_string())),
    ]);
    point(mark_point(), payload, HashMap::new())
}

/// Reads the mark from its point, or from a cursor's.
pub(super) fn read_mark(payload: &Payload) -> Option<Uuid> {
    uuid(payload, MARK)
}

/// The mark of a cursor that does not belong to the collection: its writer did not know yet that the collection had been replaced.
/// Cursors of earlier versions have no mark and are valid.
pub(super) fn foreign_mark(cursor: &Payload, collection: Option<Uuid>) -> Option<Uuid> {
    read_mark(cursor).filter(|mark| Some(*mark) != collection)
}

/// Reads feed, workspace and position of a cursor.
pub(super) fn read_cursor(payload: &Payload) -> Option<(String, Uuid, u64)> {
    Some((text(payload, FEED), uuid(payload, WORKSPACE)?, integer(payload, POSITION).cast_unsigned()))
}

/// Reads the id of a chunk.
pub(super) fn read_chunk_id(payload: &Payload) -> Result<ChunkId, Error> {
    let document = uuid(payload, DOCUMENT).ok_or(Error::Answer("a chunk's point has no document"))?;
    Ok(ChunkId { document, ordinal: small(payload, ORDINAL) })
}

/// Reads a stored chunk.
pub(super) fn read_chunk(id: ChunkId, payload: &Payload) -> StoredChunk {
    StoredChunk {
        id,
        container: uuid(payload, CONTAINER),
        kind: text(payload, KIND),
        title: text(payload, TITLE),
        heading_path: texts(payload, HEADINGS),
        table_header: text(payload, TABLE_HEADER),
        text: text(payload, TEXT),
        start_line: small(payload, START_LINE),
        end_line: small(payload, END_LINE),
        content_hash: text(payload, CONTENT_HASH),
        updated_at: integer(payload, UPDATED_AT),
    }
}

/// Reads the dense vector.
pub(super) fn read_vector(vectors: Option<VectorsOutput>) -> Option<Vec<f32>> {
    let VectorsOptions::Vectors(mut named) = vectors?.vectors_options? else { return None };
    match named.vectors.remove(MEANING)?.into_vector() {
        vector_output::Vector::Dense(dense) => Some(dense.data),
        vector_output::Vector::Sparse(_) | vector_output::Vector::MultiDense(_) => None,
    }
}

/// Reads the weight of one dimension of the sparse vector.
pub(super) fn weight(vectors: Option<&VectorsOutput>, dimension: u32) -> Option<f32> {
    let VectorsOptions::Vectors(named) = vectors?.vectors_options.as_ref()? else { return None };
    let vector_output::Vector::Sparse(words) = named.vectors.get(WORDS)?.clone().into_vector() else {
        return None;
    };
    let place = words.indices.iter().position(|other| *other == dimension)?;
    words.values.get(place).copied()
}

fn kind<'a>(payload: &'a Payload, field: &str) -> Option<&'a Kind> {
    payload.get(field)?.kind.as_ref()
}

fn text_of(value: &Kind) -> Option<&str> {
    if let Kind::StringValue(text) = value { Some(text) } else { None }
}

pub(super) fn text(payload: &Payload, field: &str) -> String {
    kind(payload, field).and_then(text_of).unwrap_or_default().to_owned()
}

pub(super) fn texts(payload: &Payload, field: &str) -> Vec<String> {
    let Some(Kind::ListValue(list)) = kind(payload, field) else { return Vec::new() };
    let texts = list.values.iter().filter_map(|value| value.kind.as_ref().and_then(text_of));
    texts.map(str::to_owned).collect()
}

/// Reads the pieces of a chunk's vector.
pub(super) fn pieces(payload: &Payload) -> Vec<u16> {
    let Some(Kind::ListValue(list)) = kind(payload, PIECES) else { return Vec::new() };
    let piece = |value: &Value| {
        let Some(Kind::IntegerValue(number)) = &value.kind else { return None };
        u16::try_from(*number).ok()
    };
    list.values.iter().filter_map(piece).collect()
}

fn integer(payload: &Payload, field: &str) -> i64 {
    if let Some(Kind::IntegerValue(number)) = kind(payload, field) { *number } else { 0 }
}

fn small(payload: &Payload, field: &str) -> u32 {
    u32::try_from(integer(payload, field)).unwrap_or(u32::MAX)
}

fn uuid(payload: &Payload, field: &str) -> Option<Uuid> {
    kind(payload, field).and_then(text_of).and_then(|text| Uuid::try_parse(text).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{
        ChunkId, Head, MEANING, Row, WORDS, chunk_point, cursor, cursor_point, document_point, foreign_mark,
        point_id, read_chunk, read_chunk_id, read_cursor, uuid_of,
    };
    use crate::{IndexedChunk, IndexedDocument};

    fn any_document() -> impl Strategy<Value = IndexedDocument> {
        let chunk =
            (any::<String>(), prop::collection::vec(any::<String>(), 0..4), any::<u32>(), any::<u32>());
        let chunk = chunk.prop_map(|(text, heading_path, start_line, end_line)| IndexedChunk {
            text,
            table_header: heading_path.concat(),
            heading_path,
            start_line,
            end_line,
            embedding: vec![1.0, 0.0],
            pieces: Vec::new(),
        });
        let fields = (any::<u128>(), any::<u128>(), any::<Option<u128>>(), any::<String>(), any::<i64>());
        (fields, any::<String>(), chunk).prop_map(|(fields, title, chunk)| {
            let (workspace, document, container, content_hash, updated_at) = fields;
            IndexedDocument {
                workspace: Uuid::from_u128(workspace),
                document: Uuid::from_u128(document),
                container: container.map(Uuid::from_u128),
                holder: None,
                kind: "KIND_FILE".to_owned(),
                title,
                path: String::new(),
                tags: Vec::new(),
                language: crate::words::Language::English,
                content_hash,
                updated_at,
                chunks: vec![chunk],
            }
        })
    }

    proptest! {
        #[test]
        fn a_chunk_reads_back_from_its_payload(document in any_document(), ordinal: u32, revision: u64) {
            let chunk = &document.chunks[0];
            let row = Row::of_chunk(&document, ordinal, chunk, None);
            let point = row.into_point(document.workspace, document.document, revision);
            let id = ChunkId { document: document.document, ordinal };
            prop_assert_eq!(uuid_of(point.id.as_ref()), Some(chunk_point(document.workspace, id)));
            prop_assert_eq!(read_chunk_id(&point.payload).unwrap(), id);
            let stored = read_chunk(id, &point.payload);
            prop_assert_eq!(&stored.text, &chunk.text);
            prop_assert_eq!(&stored.heading_path, &chunk.heading_path);
            prop_assert_eq!(&stored.table_header, &chunk.table_header);
            prop_assert_eq!((stored.start_line, stored.end_line), (chunk.start_line, chunk.end_line));
            prop_assert_eq!((stored.title, stored.kind), (document.title, document.kind));
            prop_assert_eq!(stored.container, document.container);
            prop_assert_eq!((stored.content_hash, stored.updated_at), (document.content_hash, document.updated_at));
        }

        #[test]
        fn heads_and_cursors_read_back(document: u128, revision: u64, chunks: u32, feed in any::<String>()) {
            let workspace = Uuid::from_u128(7);
            let head = Head { document: Uuid::from_u128(document), revision, chunks };
            prop_assert_eq!(Head::read(&head.into_point(workspace).payload).unwrap(), head);
            let mark = Uuid::from_u128(document);
            let point = cursor(workspace, &feed, revision, mark);
            prop_assert_eq!(read_cursor(&point.payload), Some((feed, workspace, revision)));
            prop_assert_eq!(foreign_mark(&point.payload, Some(mark)), None);
            prop_assert_eq!(foreign_mark(&point.payload, Some(Uuid::new_v5(&mark, b"other"))), Some(mark));
            prop_assert_eq!(foreign_mark(&point.payload, None), Some(mark));
        }
    }

    #[test]
    fn every_point_has_an_id_of_its_own_that_never_changes() {
        let [workspace, document] = [1, 2].map(Uuid::from_u128);
        let chunk = |ordinal| chunk_point(workspace, ChunkId { document, ordinal });
        let ids =
            [chunk(0), chunk(1), document_point(workspace, document), cursor_point(workspace, "content")];
        for (place, id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(id));
        }
        assert_eq!(chunk(0), chunk(0));
        assert_eq!(uuid_of(Some(&point_id(chunk(0)))), Some(chunk(0)));
    }

    #[test]
    fn a_chunk_without_words_has_no_sparse_vector() {
        let document = crate::contract::document(1, &["…"]);
        let vector = crate::vectors::UnitVector::new(&[1.0, 0.0]);
        let row = Row::of_chunk(&document, 0, &document.chunks[0], vector);
        let shown = format!("{:?}", row.into_point(Uuid::nil(), Uuid::nil(), 1).vectors);
        assert!(shown.contains(MEANING) && !shown.contains(WORDS), "{shown}");
    }
}
