//! The messages of an upload: a draft, the bytes, and a trailer to check them against.

use bytes::Bytes;
use cairn_proto::ids::AssetId;
use futures::stream::{Stream, TryStreamExt as _};

use super::objects::ObjectWriter;
use crate::Error;
use crate::checks::Checks;

const MAX_MEDIA_TYPE_CHARS: usize = 127;
const ANY_BYTES: &str = "application/octet-stream";
const HASH_PREFIX: &str = "blake3:";

/// The header of an upload.
#[derive(Debug, Clone, Default)]
pub(crate) struct AssetDraft {
    pub(crate) name: String,
    /// Empty when unknown.
    pub(crate) media_type: String,
    /// Lets an upload that is too large be rejected before it is sent.
    pub(crate) size_bytes: Option<u64>,
    /// Chosen here when absent.
    pub(crate) new_id: Option<String>,
}

/// A validated draft.
#[derive(Debug)]
pub(super) struct CheckedAssetDraft {
    pub(super) new_id: Option<AssetId>,
    pub(super) name: String,
    pub(super) media_type: String,
}

/// The trailer of an upload: without it, an interrupted upload would look complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UploadEnd {
    pub(crate) size_bytes: u64,
    /// Absent when the caller does not know it.
    pub(crate) content_hash: Option<String>,
}

/// A message of an upload.
#[derive(Debug, Clone)]
pub(crate) enum UploadPart {
    Bytes(Bytes),
    End(UploadEnd),
}

/// What was received, as measured here.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) size_bytes: u64,
    pub(super) hash: String,
}

impl AssetDraft {
    pub(super) fn check(self, max_bytes: u64) -> Result<CheckedAssetDraft, Error> {
        let mut checks = Checks::default();
        checks.name(&self.name);
        let media_type = if self.media_type.is_empty() {
            ANY_BYTES.to_owned()
        } else {
            self.media_type.to_ascii_lowercase()
        };
        if !is_media_type(&media_type) {
            let message = "must be a type such as image/png, without parameters";
            checks.violation("mediaType", "invalid", message);
        }
        let new_id = checks.optional_id("newId", self.new_id.as_deref());
        checks.finish()?;
        if self.size_bytes.is_some_and(|size| size > max_bytes) {
            return Err(too_large(max_bytes));
        }
        Ok(CheckedAssetDraft { new_id, name: self.name, media_type })
    }
}

/// Writes the received bytes, and checks them against the trailer.
pub(super) async fn receive(
    writing: &mut ObjectWriter,
    mut parts: impl Stream<Item = Result<UploadPart, Error>> + Send + Unpin,
    max_bytes: u64,
) -> Result<Received, Error> {
    let mut hasher = blake3::Hasher::new();
    let mut size_bytes: u64 = 0;
    let end = loop {
        match parts.try_next().await? {
            None => {
                let message = "the upload ended before its last message: send `end` after the bytes";
                return Err(Error::invalid("end", "required", message));
            }
            Some(UploadPart::End(end)) => break end,
            Some(UploadPart::Bytes(bytes)) => {
                size_bytes = size_bytes.saturating_add(bytes.len() as u64);
                if size_bytes > max_bytes {
                    return Err(too_large(max_bytes));
                }
                hasher.update(&bytes);
                writing.put(bytes).await?;
            }
        }
    };
    if parts.try_next().await?.is_some() {
        return Err(Error::invalid("end", "not_last", "nothing may follow `end`"));
    }
    let hash = spelled(&hasher);
    agree(&end, size_bytes, &hash)?;
    Ok(Received { size_bytes, hash })
}

/// The hash as spelled in the contract.
pub(super) fn spelled(hasher: &blake3::Hasher) -> String {
    format!("{HASH_PREFIX}{}", hasher.finalize().to_hex())
}

fn agree(end: &UploadEnd, size_bytes: u64, hash: &str) -> Result<(), Error> {
    let mut checks = Checks::default();
    if end.size_bytes != size_bytes {
        let message = format!("{size_bytes} bytes came, not {}: upload it again", end.size_bytes);
        checks.violation("end.sizeBytes", "mismatch", message);
    }
    if end.content_hash.as_deref().is_some_and(|claimed| claimed != hash) {
        let message = format!("the bytes that came have the hash {hash}: upload it again");
        checks.violation("end.contentHash", "mismatch", message);
    }
    checks.finish()
}

fn too_large(max_bytes: u64) -> Error {
    Error::TooLarge(format!("an asset has at most {max_bytes} bytes on this workspace's plan"))
}

/// `type/subtype`, as RFC 6838 restricts names.
fn is_media_type(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.len() <= MAX_MEDIA_TYPE_CHARS
        && text.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_has_two_names() {
        for good in ["image/png", "application/vnd.ms-excel", "image/svg+xml", "x-a/b.c"] {
            assert!(is_media_type(good), "{good}");
        }
        let long = format!("a/{}", "b".repeat(126));
        for odd in ["", "png", "/", "a/", "/b", "a/b/c", "a/b; c=d", "a/b\r\nx: y", "a b/c", "ä/b", &long] {
            assert!(!is_media_type(odd), "{odd:?}");
        }
    }
}
