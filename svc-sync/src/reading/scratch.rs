//! The scratch file of an archive.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use cairn_proto::domain::ImportProvider;

use super::answer::{Answers, Failure, QuestionFile, Reader};
use super::wire::{Frame, Query, Question};

/// Parts may hold this many bytes plus a multiple of the archive, like the limits of cairn-import on decompression.
const MAX_PARTS_BYTES: u64 = 100 * 1024 * 1024;
const MAX_PARTS_RATIO: u64 = 50;

/// An archive in an unlinked file on the local disk: gone when this value is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: Arc<File>,
    /// The ranges of the archive and then of its parts.
    volumes: Vec<Range<u64>>,
    length: u64,
}

impl Scratch {
    /// Creates an empty file in a folder, and the folder if it is missing.
    pub(crate) async fn new(folder: PathBuf) -> io::Result<Self> {
        let make = move || {
            std::fs::create_dir_all(&folder)?;
            tempfile::tempfile_in(folder)
        };
        let file = blocking(make).await?;
        Ok(Self { file: Arc::new(file), volumes: Vec::new(), length: 0 })
    }

    /// Its size in bytes.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes of the archive, or of a part.
    pub(crate) async fn push(&mut self, bytes: Bytes) -> io::Result<()> {
        let (file, at, count) = (Arc::clone(&self.file), self.length, bytes.len() as u64);
        blocking(move || file.write_all_at(&bytes, at)).await?;
        self.length += count;
        Ok(())
    }

    /// Ends the archive, or the part, to which bytes were appended.
    pub(crate) fn close_volume(&mut self) {
        let begin = self.volumes.last().map_or(0, |last| last.end);
        self.volumes.push(begin..self.length);
    }

    /// Reads bytes of the archive at an offset.
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

    /// Extracts the nested archives that are parts of this one.
    pub(crate) async fn add_parts(&mut self, reader: &Reader, of: &Source) -> Result<(), Failure> {
        if of.provider != ImportProvider::NotionZip {
            return Ok(());
        }
        let archive = self.length;
        let most = MAX_PARTS_BYTES.saturating_add(archive.saturating_mul(MAX_PARTS_RATIO));
        let mut answers = self.ask(reader, of, Query::Parts).await?;
        // The first part overwrites the question, which the child reads before it answers.
        while let Some(told) = answers.next().await? {
            let Frame::Part { .. } = told else { return Err(Failure::Lost) };
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

    /// Asks a child about the archive.
    pub(crate) async fn ask(&self, reader: &Reader, of: &Source, what: Query) -> Result<Answers, Failure> {
        let question = Question {
            provider: of.provider,
            file_name: of.file_name.clone(),
            volumes: self.volumes.clone(),
            folders: of.folders,
            asset_bytes: of.asset_bytes,
            what,
        };
        let (file, offset) = (Arc::clone(&self.file), self.length);
        let put = move || {
            let question = serde_json::to_vec(&question)?;
            file.set_len(offset)?;
            file.write_all_at(&question, offset)?;
            let mut input = file.try_clone()?;
            input.seek(SeekFrom::Start(0))?;
            input.flush()?;
            Ok(input)
        };
        let file = blocking(put).await.map_err(|_| Failure::Unavailable)?;
        reader.ask(QuestionFile { file, offset }).await
    }
}

/// The parameters of each question about an archive.
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
