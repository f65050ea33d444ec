//! Parses responses of ListObjectsV2.

use cairn_chassis::clock::Timestamp;

use crate::Fault;
use crate::xml::{self, Node};

/// A page of keys.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) objects: Vec<Object>,
    pub(super) is_truncated: bool,
}

/// One object.
#[derive(Debug, Default)]
pub(super) struct Object {
    pub(super) key: String,
    pub(super) etag: String,
    pub(super) size: u64,
    pub(super) modified: Option<Timestamp>,
    pub(super) is_archived: bool,
}

/// Parses a page.
pub(super) fn read(document: &[u8]) -> Result<Answer, Fault> {
    let (mut answer, mut is_listing, mut is_encoded, mut is_broken) =
        (Answer::default(), false, false, false);
    let mut object: Option<Object> = None;
    xml::read(document, |node| match (node, object.as_mut()) {
        (Node::Open("ListBucketResult"), _) => is_listing = true,
        (Node::Open("Contents"), _) => object = Some(Object::default()),
        (Node::Close("Key", text), Some(object)) => text.clone_into(&mut object.key),
        (Node::Close("ETag", text), Some(object)) => text.clone_into(&mut object.etag),
        (Node::Close("Size", text), Some(object)) => match text.parse() {
            Ok(size) => object.size = size,
            Err(_) => is_broken = true,
        },
        (Node::Close("LastModified", text), Some(object)) => object.modified = Timestamp::parse_rfc3339(text),
        (Node::Close("StorageClass", text), Some(object)) => {
            object.is_archived = matches!(text, "GLACIER" | "DEEP_ARCHIVE");
        }
        (Node::Close("Contents", _), Some(_)) => answer.objects.extend(object.take()),
        (Node::Close("IsTruncated", text), None) => answer.is_truncated = text == "true",
        (Node::Close("EncodingType", text), None) => is_encoded = text == "url",
        (Node::Open(_) | Node::Attribute(..) | Node::Close(..), _) => {}
    })?;
    if !is_listing || is_broken || answer.objects.iter().any(|object| object.key.is_empty()) {
        return Err(Fault::broken("the object store's answer is not the listing that it should be"));
    }
    if is_encoded {
        for object in &mut answer.objects {
            object.key = decoded(&object.key);
        }
    }
    Ok(answer)
}

/// The code of an error; never shown to people.
pub(super) fn error_code(document: &[u8]) -> Option<String> {
    let mut code = None;
    let read = xml::read(document, |node| {
        if let Node::Close("Code", text) = node {
            code = Some(text.to_owned());
        }
    });
    read.ok().and(code)
}

fn decoded(key: &str) -> String {
    let with_spaces = key.replace('+', " ");
    percent_encoding::percent_decode_str(&with_spaces).decode_utf8_lossy().into_owned()
}
