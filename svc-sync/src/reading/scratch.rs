//! The file of an archive while it is read.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cairn_proto::domain::ImportProvider;

use super::answer::{Answers, Asked, Failure, Reader};
use super::wire::{Question, Told, What};

/// What parts may hold beside this many times the archive, as the crate of the archive bounds what is unpacked.
const MOST_PARTS_BYTES: u64 = 100 * 1024 * 1024;
const MOST_PARTS_RATIO: u64 = 50;

/// An archive on our disk, in a file of no name: it is gone with this value, however the process ends.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: Arc<File>,
    /// Of the archive, then of its parts.
    volumes: Vec<Range<u64>>,
    length: u64,
}

impl Scratch {
    /// An empty file in a folder, which is made where it is missing.
    pub(crate) async fn new(folder: PathBuf) -> io::Result<Self> {
        let make = move || {
            std::fs::create_dir_all(&folder)?;
            tempfile::tempfile_in(folder)
        };
        let file = blocking(make).await?;
        Ok(Self { file: Arc::new(file), volumes: Vec::new(), length: 0 })
    }

    /// How many bytes stand in it.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Adds bytes of the archive, or of a part.
    pub(crate) async fn push(&mut self, bytes: Bytes) -> io::Result<()> {
        let (file, at, count) = (Arc::clone(&self.file), self.length, bytes.len() as u64);
        blocking(move || file.write_all_at(&bytes, at)).await?;
        self.length += count;
        Ok(())
    }

    /// What was added last is the archive, or one of its parts.
    pub(crate) fn close_volume(&mut self) {
        let begin = self.volumes.last().map_or(0, |last| last.end);
        self.volumes.push(begin..self.length);
    }

    /// Bytes of the archive from a place on.
    pub(crate) async fn read(&self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        let end = self.volumes.first().map_or(0, |archive| archive.end);
        let count = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(most);
        let file = Arc::clone(&self.file);
        blocking(move || {
            let mut bytes = vec![0; count];
            file.read_exact_at(&mut bytes, at)?;
            Ok(bytes)
        })
        .await
    }

    /// Unpacks the archives within this one that are parts of it.
    pub(crate) async fn add_parts(&mut self, reader: &Reader, of: &Source) -> Result<(), Failure> {
        if of.provider != ImportProvider::NotionZip {
            return Ok(());
        }
        let archive = self.length;
        let most = MOST_PARTS_BYTES.saturating_add(archive.saturating_mul(MOST_PARTS_RATIO));
        let mut answers = self.ask(reader, of, What::Parts).await?;
        // The question stands where the first part begins; a child has read it before it tells anything.
        while let Some(told) = answers.next().await? {
            let Told::Part { .. } = told else { return Err(Failure::Lost) };
            while let Some(chunk) = answers.chunk().await? {
                self.push(chunk).await.map_err(|_| Failure::Unavailable)?;
                if self.length.saturating_sub(archive) > most {
                    return Err(Failure::Lost);
                }
            }
            self.close_volume();
        }
        Ok(())
    }

    /// Asks a child something about the archive.
    pub(crate) async fn ask(&self, reader: &Reader, of: &Source, what: What) -> Result<Answers, Failure> {
        let question = Question {
            provider: of.provider,
            file_name: of.file_name.clone(),
            volumes: self.volumes.clone(),
            folders: of.folders,
            asset_bytes: of.asset_bytes,
            what,
        };
        let (file, place) = (Arc::clone(&self.file), self.length);
        let put = move || {
            let question = serde_json::to_vec(&question)?;
            file.set_len(place)?;
            file.write_all_at(&question, place)?;
            let mut input = file.try_clone()?;
            input.seek(SeekFrom::Start(0))?;
            input.flush()?;
            Ok(input)
        };
        let file = blocking(put).await.map_err(|_| Failure::Unavailable)?;
        reader.ask(Asked { file, place }).await
    }
}

/// What is said of an archive whenever it is read.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) provider: ImportProvider,
    pub(crate) file_name: String,
    /// Folders that may nest below the import's own.
    pub(crate) folders: usize,
    /// Of an attachment.
    pub(crate) asset_bytes: u64,
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
}
