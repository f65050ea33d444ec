//! The schema, and the conversion of chunks from and to tantivy documents.

use tantivy::schema::document::{DeserializeError, DocumentDeserialize, DocumentDeserializer};
use tantivy::schema::{
    BytesOptions, FAST, Field, IndexRecordOption, OwnedValue, STORED, Schema, SchemaBuilder,
    TextFieldIndexing, TextOptions, Value,
};
use tantivy::{TantivyDocument, Term};
use uuid::Uuid;

use super::tokens::{self, TOKEN_LIST};
use crate::vectors::{Composed, UnitVector};
use crate::words::{Language, SearchableText, Stems};
use crate::{ChunkId, IndexedChunk, IndexedDocument, StoredChunk};

/// Fast fields, from which the [`ChunkId`] of a hit is read without the stored chunk.
pub(super) const DOCUMENT_HIGH: &str = "document_high";
pub(super) const DOCUMENT_LOW: &str = "document_low";
pub(super) const ORDINAL: &str = "ordinal";

/// The fields. Ids are indexed as bytes; the keys of documents and chunks start with the workspace, so that a lookup cannot leave
/// it.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pub(super) schema: Schema,
    pub(super) workspace: Field,
    pub(super) container: Field,
    document_key: Field,
    chunk_key: Field,
    document_high: Field,
    document_low: Field,
    ordinal: Field,
    /// The tokens of all searchable texts of a chunk.
    pub(super) words: Field,
    pub(super) language: Field,
    title: Field,
    heading: Field,
    table_header: Field,
    body: Field,
    kind: Field,
    start_line: Field,
    end_line: Field,
    content_hash: Field,
    updated_at: Field,
    embedding: Field,
    /// The pieces that the embedding is the sum of, two bytes each, little-endian.
    pieces: Field,
}

impl Fields {
    pub(super) fn new() -> Self {
        let mut builder = SchemaBuilder::new();
        let key = || BytesOptions::default().set_indexed();
        let words = TextFieldIndexing::default()
            .set_tokenizer(TOKEN_LIST)
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        Self {
            workspace: builder.add_bytes_field("workspace", key()),
            container: builder.add_bytes_field("container", key().set_stored()),
            document_key: builder.add_bytes_field("document_key", key()),
            chunk_key: builder.add_bytes_field("chunk_key", key().set_stored()),
            document_high: builder.add_u64_field(DOCUMENT_HIGH, FAST),
            document_low: builder.add_u64_field(DOCUMENT_LOW, FAST),
            ordinal: builder.add_u64_field(ORDINAL, FAST),
            words: builder.add_text_field("words", TextOptions::default().set_indexing_options(words)),
            language: builder.add_bytes_field("language", key()),
            title: builder.add_text_field("title", STORED),
            heading: builder.add_text_field("heading", STORED),
            table_header: builder.add_text_field("table_header", STORED),
            body: builder.add_text_field("body", STORED),
            kind: builder.add_text_field("kind", STORED),
            start_line: builder.add_u64_field("start_line", STORED),
            end_line: builder.add_u64_field("end_line", STORED),
            content_hash: builder.add_text_field("content_hash", STORED),
            updated_at: builder.add_i64_field("updated_at", STORED),
            embedding: builder.add_bytes_field("embedding", STORED),
            pieces: builder.add_bytes_field("pieces", STORED),
            schema: builder.build(),
        }
    }

    pub(super) fn word_term(&self, word: &str) -> Term {
        Term::from_field_text(self.words, word)
    }

    pub(super) fn workspace_term(&self, workspace: Uuid) -> Term {
        Term::from_field_bytes(self.workspace, workspace.as_bytes())
    }

    pub(super) fn container_term(&self, container: Uuid) -> Term {
        Term::from_field_bytes(self.container, container.as_bytes())
    }

    pub(super) fn document_term(&self, workspace: Uuid, document: Uuid) -> Term {
        Term::from_field_bytes(self.document_key, &document_key(workspace, document))
    }

    pub(super) fn chunk_term(&self, workspace: Uuid, chunk: ChunkId) -> Term {
        Term::from_field_bytes(self.chunk_key, &chunk_key(workspace, chunk))
    }

    /// The tantivy documents of all chunks of some documents.
    pub(super) fn encode_all(&self, documents: &[IndexedDocument]) -> Vec<TantivyDocument> {
        let (mut rows, mut stems) = (Vec::new(), Stems::default());
        for document in documents {
            for (ordinal, chunk) in (0..).zip(&document.chunks) {
                let id = ChunkId { document: document.document, ordinal };
                rows.push(self.encode(document, id, chunk, Composed::of(chunk).as_ref(), &mut stems));
            }
        }
        rows
    }

    /// The tantivy document of one chunk.
    pub(super) fn encode(
        &self,
        document: &IndexedDocument,
        id: ChunkId,
        chunk: &IndexedChunk,
        composed: Option<&Composed>,
        stems: &mut Stems,
    ) -> TantivyDocument {
        let mut encoded = TantivyDocument::new();
        encoded.add_bytes(self.workspace, document.workspace.as_bytes());
        if let Some(container) = document.container {
            encoded.add_bytes(self.container, container.as_bytes());
        }
        encoded.add_bytes(self.document_key, &document_key(document.workspace, id.document));
        encoded.add_bytes(self.chunk_key, &chunk_key(document.workspace, id));
        let (high, low) = id.document.as_u64_pair();
        encoded.add_u64(self.document_high, high);
        encoded.add_u64(self.document_low, low);
        encoded.add_u64(self.ordinal, u64::from(id.ordinal));
        let searched = SearchableText {
            title: &document.title,
            path: &document.path,
            tags: &document.tags,
            container: document.named_parent(),
            headings: &chunk.heading_path,
            table_header: &chunk.table_header,
            text: &chunk.text,
            language: document.language,
        };
        encoded.add_text(self.words, tokens::encode(&searched.tokens(stems)));
        encoded.add_bytes(self.language, &language_key(document.workspace, document.language));
        encoded.add_text(self.title, &document.title);
        for heading in &chunk.heading_path {
            encoded.add_text(self.heading, heading);
        }
        if !chunk.table_header.is_empty() {
            encoded.add_text(self.table_header, &chunk.table_header);
        }
        encoded.add_text(self.body, &chunk.text);
        encoded.add_text(self.kind, &document.kind);
        encoded.add_u64(self.start_line, u64::from(chunk.start_line));
        encoded.add_u64(self.end_line, u64::from(chunk.end_line));
        encoded.add_text(self.content_hash, &document.content_hash);
        // The fields after this one are skipped by `BeforeVector`.
        encoded.add_i64(self.updated_at, document.updated_at);
        if let Some(Composed { vector, pieces }) = composed {
            encoded.add_bytes(self.embedding, &vector.to_bytes());
            let pieces: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_le_bytes()).collect();
            encoded.add_bytes(self.pieces, &pieces);
        }
        encoded
    }

    /// Decodes a stored chunk.
    pub(super) fn decode(&self, id: ChunkId, BeforeVector(stored): BeforeVector) -> StoredChunk {
        let mut chunk = StoredChunk {
            id,
            container: None,
            kind: String::new(),
            title: String::new(),
            heading_path: Vec::new(),
            table_header: String::new(),
            text: String::new(),
            start_line: 0,
            end_line: 0,
            content_hash: String::new(),
            updated_at: 0,
        };
        for (field, value) in stored {
            if field == self.container {
                chunk.container = id_of(&value);
            } else if field == self.title {
                chunk.title = text(value);
            } else if field == self.heading {
                chunk.heading_path.push(text(value));
            } else if field == self.table_header {
                chunk.table_header = text(value);
            } else if field == self.body {
                chunk.text = text(value);
            } else if field == self.kind {
                chunk.kind = text(value);
            } else if field == self.start_line {
                chunk.start_line = line(&value);
            } else if field == self.end_line {
                chunk.end_line = line(&value);
            } else if field == self.content_hash {
                chunk.content_hash = text(value);
            } else if field == self.updated_at {
                chunk.updated_at = timestamp(&value);
            }
        }
        chunk
    }

    /// Decodes chunk, container, vector and pieces of a tantivy document; `None` without a vector.
    pub(super) fn decode_vector(
        &self,
        stored: &TantivyDocument,
    ) -> Option<(ChunkId, Option<Uuid>, Composed)> {
        let bytes = |field| stored.get_first(field).and_then(|value| value.as_bytes());
        let vector = UnitVector::from_bytes(bytes(self.embedding)?);
        let id = parse_chunk_key(bytes(self.chunk_key)?)?;
        let (pairs, _odd) = bytes(self.pieces).unwrap_or_default().as_chunks::<2>();
        let pieces = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        Some((id, self.decode_container(stored), Composed { vector, pieces }))
    }

    /// Decodes the fields of a chunk's document: workspace and id, kind, content hash.
    pub(super) fn decode_document(&self, stored: &TantivyDocument) -> Option<((Uuid, Uuid), String, String)> {
        let text = |field| stored.get_first(field).and_then(|value| value.as_str()).map(str::to_owned);
        let key = stored.get_first(self.chunk_key).and_then(|value| value.as_bytes())?;
        let (workspace, _) = key.split_first_chunk::<16>()?;
        let document = parse_chunk_key(key)?.document;
        Some(((Uuid::from_bytes(*workspace), document), text(self.kind)?, text(self.content_hash)?))
    }

    fn decode_container(&self, stored: &TantivyDocument) -> Option<Uuid> {
        let bytes = stored.get_first(self.container).and_then(|value| value.as_bytes())?;
        Uuid::from_slice(bytes).ok()
    }
}

/// The stored fields of a chunk without its vector and pieces, which no response contains.
pub(super) struct BeforeVector(Vec<(Field, OwnedValue)>);

impl DocumentDeserialize for BeforeVector {
    fn deserialize<'de, D>(mut deserializer: D) -> Result<Self, DeserializeError>
    where
        D: DocumentDeserializer<'de>,
    {
        let mut stored = Vec::with_capacity(deserializer.size_hint());
        while let Some((field, value)) = deserializer.next_field::<OwnedValue>()? {
            // Fields are stored in the order in which they were encoded; the last one before the vector is the only signed number.
            let is_last = matches!(value, OwnedValue::I64(_));
            stored.push((field, value));
            if is_last {
                break;
            }
        }
        Ok(Self(stored))
    }
}

fn text(value: OwnedValue) -> String {
    let OwnedValue::Str(text) = value else { return String::new() };
    text
}

fn id_of(value: &OwnedValue) -> Option<Uuid> {
    Uuid::from_slice(value.as_bytes()?).ok()
}

fn timestamp(value: &OwnedValue) -> i64 {
    value.as_i64().unwrap_or_default()
}

fn line(value: &OwnedValue) -> u32 {
    u32::try_from(value.as_u64().unwrap_or_default()).unwrap_or(u32::MAX)
}

/// The key of a workspace and the language of a chunk in it.
fn language_key(workspace: Uuid, language: Language) -> Vec<u8> {
    [workspace.as_bytes().as_slice(), language.code().as_bytes()].concat()
}

pub(super) fn parse_language_key(key: &[u8]) -> Option<(Uuid, Language)> {
    let (workspace, code) = key.split_first_chunk::<16>()?;
    Some((Uuid::from_bytes(*workspace), Language::from_code(std::str::from_utf8(code).ok()?)?))
}

fn document_key(workspace: Uuid, document: Uuid) -> Vec<u8> {
    [workspace.as_bytes().as_slice(), document.as_bytes().as_slice()].concat()
}

fn chunk_key(workspace: Uuid, chunk: ChunkId) -> Vec<u8> {
    let mut key = document_key(workspace, chunk.document);
    key.extend_from_slice(&chunk.ordinal.to_be_bytes());
    key
}

fn parse_chunk_key(key: &[u8]) -> Option<ChunkId> {
    let (_workspace, rest) = key.split_first_chunk::<16>()?;
    let (document, ordinal) = rest.split_first_chunk::<16>()?;
    let ordinal = ordinal.first_chunk::<4>()?;
    Some(ChunkId { document: Uuid::from_bytes(*document), ordinal: u32::from_be_bytes(*ordinal) })
}
