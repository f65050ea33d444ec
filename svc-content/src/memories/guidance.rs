//! The guidance of a memory as a document, so that a search finds which memory to load.

use cairn_chassis::feed::Kind;
use cairn_proto::ids::DocumentId;

use crate::model::{Document, FileType, Memory, content_hash};

/// The document and its text. It is in no folder: only callers of the whole workspace find it.
pub(crate) fn document(memory: Memory) -> (Document, String) {
    let mut text = format!("# {}\n", memory.name);
    if let Some(description) = &memory.description {
        text.push_str(&format!("\n{description}\n"));
    }
    if let Some(use_when) = &memory.use_when {
        text.push_str(&format!("\nUse when: {use_when}\n"));
    }
    let document = Document {
        kind: Kind::Memory,
        id: DocumentId(memory.id.0),
        folders: Vec::new(),
        path: format!("/memories/{}", memory.slug),
        title: memory.name,
        tags: Vec::new(),
        format: FileType::Markdown,
        content_hash: content_hash(&text),
        updated_at: memory.updated_at,
        database_id: None,
    };
    (document, text)
}
