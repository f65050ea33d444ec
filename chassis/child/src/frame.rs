//! What travels between a parent and a child: a head in JSON with its length before it, then a body.

use serde::Serialize;

/// The longest head: names, addresses and titles are short.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;

/// The bytes of a head with its length before it.
///
/// # Errors
/// When the head cannot be written as JSON.
pub fn encode(head: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let head = serde_json::to_vec(head)?;
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
    Ok([&length.to_le_bytes(), head.as_slice()].concat())
}

/// How long the head is whose length stands in these bytes; `None` when no head is that long.
#[must_use]
pub fn head_length(bytes: [u8; 4]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(bytes)).ok().filter(|length| *length <= MOST_HEAD_BYTES)
}
