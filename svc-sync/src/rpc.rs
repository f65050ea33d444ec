//! The generated servers: decode, authorize, call, encode.

pub(crate) mod imports;
pub(crate) mod syncs;

use cairn_proto::content::v1::Author;

use crate::model::Asker;

/// Who asked for what a run does; `None` where nobody noted how they were called.
fn author(asker: Asker) -> Option<Author> {
    let author = Author { kind: asker.kind.as_str().to_owned(), id: asker.id, name: asker.name };
    Some(author).filter(|author| !author.name.is_empty())
}
