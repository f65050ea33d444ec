//! The gRPC servers: decode, authorize, call, encode.

pub(crate) mod changes;
pub(crate) mod documents;
pub(crate) mod indexing;
pub(crate) mod ingest;
pub(crate) mod live;
pub(crate) mod locations;
pub(crate) mod sources;
mod storage;
pub(crate) mod tree;
pub(crate) mod webhooks;

use cairn_chassis::feed::Kind;
use cairn_proto::document::v1::{self as proto, Format};

use crate::model::{DocumentRef, FileType};

fn decode_ref(reference: proto::DocumentRef) -> DocumentRef {
    DocumentRef { kind: Kind::try_from(reference.kind).ok(), id: reference.id }
}

fn encode_ref(kind: Kind, id: impl ToString) -> proto::DocumentRef {
    proto::DocumentRef { kind: kind.into(), id: id.to_string() }
}

const fn encode_format(format: FileType) -> Format {
    match format {
        FileType::Markdown => Format::Markdown,
        FileType::Json => Format::Json,
        FileType::Yaml => Format::Yaml,
        FileType::Text => Format::Text,
    }
}
