//! The bodies of files: stored once in each workspace by their hash, compressed when that helps.

use std::cell::RefCell;
use std::io;

use cairn_chassis::sql;
use zstd::bulk::Decompressor;

use crate::Error;

/// Bytes of a content.
pub(crate) const MAX_CONTENT_BYTES: usize = 5 * 1024 * 1024;
/// Smaller texts do not repay the frame that compression puts around them.
const MIN_COMPRESSED: usize = 256;
const LEVEL: i32 = 3;
/// Hashing and compressing more than this takes long enough to hold up other requests on the same thread.
const MAX_INLINE: usize = 64 * 1024;

/// How a body's bytes stand in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As they are.
    Plain,
    /// One zstd frame.
    Zstd,
}

/// A body as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Body {
    /// `blake3:` and 64 hexadecimal digits, of the text's bytes.
    pub(crate) hash: String,
    pub(crate) encoding: Encoding,
    /// Of the text.
    pub(crate) size_bytes: u64,
    pub(crate) data: Vec<u8>,
}

impl Body {
    /// The stored form of a text.
    pub(crate) async fn of(text: String) -> Result<Self, Error> {
        if text.len() <= MAX_INLINE {
            return Ok(Self::pack(text));
        }
        let packed = tokio::task::spawn_blocking(|| Self::pack(text)).await;
        packed.map_err(|_| Error::Storage(sql::Error::corrupt("a body could not be compressed")))
    }

    fn pack(text: String) -> Self {
        let hash = content_hash(&text);
        let size_bytes = text.len() as u64;
        let compressed = if text.len() < MIN_COMPRESSED {
            None
        } else {
            zstd::bulk::compress(text.as_bytes(), LEVEL).ok().filter(|bytes| bytes.len() < text.len())
        };
        match compressed {
            Some(data) => Self { hash, encoding: Encoding::Zstd, size_bytes, data },
            None => Self { hash, encoding: Encoding::Plain, size_bytes, data: text.into_bytes() },
        }
    }

    /// The text. What does not have the recorded size is damaged, so a forged frame cannot fill the memory.
    pub(crate) fn into_text(self) -> Result<String, Error> {
        let damaged =
            |detail: &str| Error::DamagedBody { hash: self.hash.clone(), detail: detail.to_owned() };
        let size = usize::try_from(self.size_bytes).unwrap_or(usize::MAX);
        if size > MAX_CONTENT_BYTES {
            return Err(damaged("it is larger than any body may be"));
        }
        let bytes = match self.encoding {
            Encoding::Plain => self.data,
            Encoding::Zstd => decompress(&self.data, size)
                .map_err(|error| Error::DamagedBody { hash: self.hash.clone(), detail: error.to_string() })?,
        };
        if bytes.len() != size {
            return Err(Error::DamagedBody {
                hash: self.hash,
                detail: "its size is not the recorded one".into(),
            });
        }
        String::from_utf8(bytes)
            .map_err(|_| Error::DamagedBody { hash: self.hash, detail: "it is not UTF-8".into() })
    }
}

/// To make a decompressor costs more than to decompress a usual body, so each thread keeps its own.
fn decompress(data: &[u8], size: usize) -> io::Result<Vec<u8>> {
    thread_local! {
        static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::default();
    }
    DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.decompress(data, size))
}

/// The content hash of a text.
pub(crate) fn content_hash(text: &str) -> String {
    format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_comes_back(text in ".{0,2000}") {
            prop_assert_eq!(Body::pack(text.clone()).into_text().unwrap(), text);
        }
    }

    #[test]
    fn compression_only_when_it_helps() {
        assert_eq!(Body::pack("short".into()).encoding, Encoding::Plain);
        let long = Body::pack("again and ".repeat(1_000));
        assert_eq!(long.encoding, Encoding::Zstd);
        assert!(long.data.len() < 200);
    }

    #[test]
    fn a_damaged_body_is_said_not_served() {
        let good = Body::pack("again and ".repeat(1_000));
        let bomb = Body { size_bytes: 10, ..good.clone() };
        assert!(bomb.into_text().is_err());
        let huge = Body { size_bytes: u64::MAX, ..good.clone() };
        assert!(huge.into_text().is_err());
        let short = Body { size_bytes: 20_000, ..good.clone() };
        assert!(short.into_text().is_err());
        let noise = Body { data: vec![1, 2, 3], ..good };
        assert!(noise.into_text().is_err());
    }
}
