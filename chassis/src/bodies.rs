//! The texts of documents: content-addressed, deduplicated within a workspace, and compressed when that helps.
//!
//! A service that stores texts has a table `bodies` among its migrations, whose rows are written and read here; only the
//! service knows which of them are still referenced.

mod rows;

use std::cell::RefCell;
use std::io;

use zstd::bulk::{Compressor, Decompressor};

pub use self::rows::{Row, get_many, list_all, lock, mends, put, remove, replace, statements};
use crate::doctor::{Finding, Progress};
use crate::sql::{self, Tx};

/// The maximum size of a text.
pub const MAX_CONTENT_BYTES: usize = 5 * 1024 * 1024;
/// Smaller texts are not compressed: a zstd frame has tables of its own, which are rebuilt at each read (4 % of a read of 2 kB
/// by profile), and it saves less than a page of the database.
const MIN_COMPRESSED: usize = 3 * 1024;
const LEVEL: i32 = 3;
/// Hashing and compressing more than this would block other requests on the same runtime thread.
const MAX_INLINE: usize = 64 * 1024;

/// The encoding of a stored body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Uncompressed.
    Plain,
    /// One zstd frame.
    Zstd,
}

/// A stored body is corrupt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the body {hash} is damaged: {detail}")]
pub struct CorruptBody {
    /// The hash of the body.
    pub hash: String,
    /// The reason.
    pub detail: String,
}

impl CorruptBody {
    /// For a body that is referenced but missing.
    pub fn missing(hash: &str) -> Self {
        Self { hash: hash.to_owned(), detail: "it is missing".to_owned() }
    }
}

/// A body as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// `blake3:` and 64 hexadecimal digits, of the text's bytes.
    pub hash: String,
    /// The encoding of `data`.
    pub encoding: Encoding,
    /// The size of the text.
    pub size_bytes: u64,
    /// The encoded text.
    pub data: Vec<u8>,
}

impl Body {
    /// Hashes and encodes a text; a long one on a blocking thread.
    ///
    /// # Errors
    /// When that thread panics.
    pub async fn of(text: String) -> Result<Self, sql::Error> {
        if text.len() <= MAX_INLINE {
            return Ok(Self::encode(text));
        }
        let encoded = tokio::task::spawn_blocking(|| Self::encode(text)).await;
        encoded.map_err(|_| sql::Error::corrupt("a body could not be compressed"))
    }

    fn encode(text: String) -> Self {
        let hash = content_hash(&text);
        let size_bytes = text.len() as u64;
        let compressed = if text.len() < MIN_COMPRESSED {
            None
        } else {
            compress(text.as_bytes()).ok().filter(|bytes| bytes.len() < text.len())
        };
        match compressed {
            Some(data) => Self { hash, encoding: Encoding::Zstd, size_bytes, data },
            None => Self { hash, encoding: Encoding::Plain, size_bytes, data: text.into_bytes() },
        }
    }

    /// Decodes the text. Decompression stops at the recorded size, so a forged frame cannot exhaust memory.
    ///
    /// # Errors
    /// When the stored data is corrupt.
    pub fn into_text(self) -> Result<String, CorruptBody> {
        let damaged = |detail: &str| CorruptBody { hash: self.hash.clone(), detail: detail.to_owned() };
        let size = usize::try_from(self.size_bytes).unwrap_or(usize::MAX);
        if size > MAX_CONTENT_BYTES {
            return Err(damaged("it is larger than any body may be"));
        }
        let bytes = match self.encoding {
            Encoding::Plain => self.data,
            Encoding::Zstd => decompress(&self.data, size)
                .map_err(|error| CorruptBody { hash: self.hash.clone(), detail: error.to_string() })?,
        };
        if bytes.len() != size {
            return Err(CorruptBody { hash: self.hash, detail: "its size is not the recorded one".into() });
        }
        String::from_utf8(bytes)
            .map_err(|_| CorruptBody { hash: self.hash, detail: "it is not UTF-8".into() })
    }
}

/// Creating a compressor costs more than compressing a typical text, so each runtime thread reuses its own. Long texts are
/// compressed on the blocking pool, where each thread would keep a large one.
fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    }
    if bytes.len() > MAX_INLINE {
        return zstd::bulk::compress(bytes, LEVEL);
    }
    COMPRESSOR.with_borrow_mut(|slot| {
        let mut compressor = slot.take().map_or_else(|| Compressor::new(LEVEL), Ok)?;
        let compressed = compressor.compress(bytes)?;
        *slot = Some(compressor);
        Ok(compressed)
    })
}

/// Creating a decompressor costs more than decompressing a typical body, so each thread reuses its own.
fn decompress(data: &[u8], size: usize) -> io::Result<Vec<u8>> {
    thread_local! {
        static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::default();
    }
    DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.decompress(data, size))
}

/// The rule that [`examine`] checks.
const RULE: &str = "every body can be read and has its hash and size";
/// The page size of [`faulty`]: bodies of up to 5 MiB that are in memory at once.
const EXAMINE_PAGE: i64 = 16;

/// A stored body that is corrupt or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyFault {
    /// Its workspace.
    pub workspace: String,
    /// The hash under which it is stored.
    pub hash: String,
    /// The reason.
    pub wrong: String,
    /// Its text, if it can be decoded and has the recorded size.
    pub text: Option<String>,
}

impl BodyFault {
    /// For a body that is referenced, by workspace and hash, but missing.
    pub fn missing((workspace, hash): (String, String)) -> Self {
        Self { workspace, hash, wrong: "it is not there".to_owned(), text: None }
    }
}

/// Reads every body of a storage, for the doctor.
///
/// # Errors
/// When the database fails.
pub async fn examine(tx: &mut Tx, progress: Progress<'_>) -> Result<Vec<Finding>, sql::Error> {
    let finding = |BodyFault { workspace, hash, wrong, .. }| Finding {
        rule: RULE,
        subject: format!("workspace {workspace} body {hash}: {wrong}"),
    };
    Ok(faulty(tx, progress).await?.into_iter().map(finding).collect())
}

/// Reads every body of a storage; returns those that are corrupt.
///
/// # Errors
/// When the database fails.
pub async fn faulty(tx: &mut Tx, progress: Progress<'_>) -> Result<Vec<BodyFault>, sql::Error> {
    progress(RULE);
    let mut found = Vec::new();
    let mut after = (String::new(), String::new());
    loop {
        let bodies = list_all(tx, &after.0, &after.1, EXAMINE_PAGE).await?;
        let Some((workspace, last)) = bodies.last() else { return Ok(found) };
        after = (workspace.clone(), last.hash.clone());
        // Decompressing and hashing this much would block the runtime thread.
        let examined = tokio::task::spawn_blocking(move || {
            bodies.into_iter().filter_map(|(workspace, body)| damage(workspace, body)).collect::<Vec<_>>()
        });
        found.extend(examined.await.map_err(|_| sql::Error::corrupt("a body could not be examined"))?);
    }
}

fn damage(workspace: String, body: Body) -> Option<BodyFault> {
    let hash = body.hash.clone();
    let (wrong, text) = match body.into_text() {
        Ok(text) if content_hash(&text) == hash => return None,
        Ok(text) => (format!("what is stored has the hash {}", content_hash(&text)), Some(text)),
        Err(error) => (error.to_string(), None),
    };
    Some(BodyFault { workspace, hash, wrong, text })
}

/// The content hash of a text: `blake3:` and 64 hexadecimal digits.
pub fn content_hash(text: &str) -> String {
    format!("blake3:{}", blake3::hash(text.as_bytes()).to_hex())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_comes_back(text in ".{0,2000}", times in 1_usize..8) {
            let text = text.repeat(times);
            prop_assert_eq!(Body::encode(text.clone()).into_text().unwrap(), text);
        }
    }

    #[test]
    fn compression_only_when_it_helps() {
        assert_eq!(Body::encode("short".into()).encoding, Encoding::Plain);
        let usual = Body::encode("again and ".repeat(300));
        assert_eq!(usual.encoding, Encoding::Plain, "a read of it builds no tables");
        let long = Body::encode("again and ".repeat(1_000));
        assert_eq!(long.encoding, Encoding::Zstd);
        assert!(long.data.len() < 200);
    }

    #[test]
    fn a_damaged_body_is_said_not_served() {
        let good = Body::encode("again and ".repeat(1_000));
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
