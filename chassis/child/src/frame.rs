//! The frames between parent and child: a length-prefixed JSON head, then a body.

use serde::Serialize;

/// The maximum length of a head: names, addresses and titles are short.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Encodes a head with its length prefix.
///
/// # Errors
/// When the head cannot be serialized as JSON.
pub fn encode(head: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let head = serde_json::to_vec(head)?;
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    Ok([&length.to_le_bytes(), head.as_slice()].concat())
}

/// Decodes the length prefix of a head; `None` when it exceeds the limit.
#[must_use]
pub fn head_length(bytes: [u8; 4]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes)).ok().filter(|length| *length <= MAX_HEAD_BYTES)
}
