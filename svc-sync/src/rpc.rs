//! The generated servers: decode, authorize, call, encode.

pub(crate) mod imports;
pub(crate) mod syncs;

use cairn_proto::content::v1::Author;

use crate::model::Requester;

/// The requester of a run; `None` where its name was not recorded.
fn author(requester: Requester) -> Option<Author> {
    let author = Author { kind: requester.kind.as_str().to_owned(), id: requester.id, name: requester.name };
    Some(author).filter(|author| !author.name.is_empty())
}
