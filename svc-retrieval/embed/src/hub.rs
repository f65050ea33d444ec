//! Downloads a model once, when that is allowed.
//!
//! The files go into a staging folder that is renamed when it is complete: an interrupted download is never taken for a model.
//! `download.json` records the source of each file and its SHA-256.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_chassis::outbound::{DownloadError, Guard, Limits, Refused};

use super::draft::Draft;
use super::prefixes;
use super::record::{self, FileRecord, FileWriter};
use super::transformer::{OPTIONAL_FILES, REQUIRED_FILES};
use super::{AddOptions, Error, FetchedModel, Prefixes, Progress};

/// Limits of one file: the weights of a large embedding model, over a slow line.
const LIMITS: Limits = Limits { time: Duration::from_secs(3_600), bytes: 4 << 30 };
/// Progress is logged each time that many bytes have arrived.
const LOG_STEP: u64 = 16 << 20;

/// Why a file was not downloaded.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {reason}")]
pub(super) struct NotFetched {
    file: &'static str,
    reason: DownloadError,
}

impl FetchedModel {
    /// Downloads the model when it is missing.
    pub(super) async fn fetch(&self, guard: &Guard) -> Result<PathBuf, Error> {
        let folder = self.folder();
        if folder.is_dir() {
            return Ok(folder);
        }
        tracing::warn!(model = self.name, hub = self.hub, "the embedding model is fetched, once");
        let unavailable = |reason: String| Error::Unavailable { reason };
        let draft = Draft::begin(&folder).map_err(|error| unavailable(error.to_string()))?;
        let mut told = 0;
        let mut log = |progress: Progress<'_>| {
            if progress.bytes < told || progress.bytes - told >= LOG_STEP {
                told = progress.bytes;
                tracing::info!(file = progress.file, bytes = told, whole = ?progress.whole, "fetching");
            }
        };
        let fetched = self.fetch_into(draft.path(), guard, &mut log).await;
        let records =
            fetched.map_err(|reason| unavailable(format!("cannot fetch {}: {reason}", self.name)))?;
        // Malformed prompts fail the opening of the model. Its files are kept, so that no retry downloads them again.
        if Prefixes::of_folder(draft.path()).is_ok() {
            prefixes::store(draft.path(), &[self.name.as_str()], &AddOptions::default())?;
        }
        let stored = record::write(draft.path(), &records).and_then(|()| draft.finish());
        stored.map_err(|error| unavailable(error.to_string()))?;
        tracing::warn!(model = self.name, folder = %folder.display(), "the embedding model is there");
        Ok(folder)
    }

    /// Downloads all files of the model into a folder.
    pub(super) async fn fetch_into(
        &self,
        folder: &Path,
        guard: &Guard,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<Vec<FileRecord>, NotFetched> {
        let mut records = Vec::new();
        for file in REQUIRED_FILES {
            records.push(self.fetch_file(folder, file, guard, progress).await?);
        }
        for file in OPTIONAL_FILES {
            match self.fetch_file(folder, file, guard, progress).await {
                Ok(record) => records.push(record),
                Err(NotFetched { reason: DownloadError::Refused(Refused::Status(404)), .. }) => {
                    let removed = fs_err::remove_file(folder.join(file));
                    removed.map_err(|error| NotFetched { file, reason: error.into() })?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    /// Downloads one file of the model into a folder.
    pub(super) async fn fetch_file(
        &self,
        folder: &Path,
        file: &'static str,
        guard: &Guard,
        progress: &mut (dyn FnMut(Progress<'_>) + Send),
    ) -> Result<FileRecord, NotFetched> {
        let url = format!("{}/{}/resolve/main/{file}", self.hub.trim_end_matches('/'), self.name);
        let path = folder.join(file);
        download(&url, file, &path, guard, progress).await.map_err(|reason| NotFetched { file, reason })
    }
}

async fn download(
    url: &str,
    file: &str,
    path: &Path,
    guard: &Guard,
    progress: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<FileRecord, DownloadError> {
    let mut writer = FileWriter::create(path)?;
    let keep = |part: &[u8], whole: Option<u64>| -> io::Result<()> {
        let bytes = writer.write(part)?;
        progress(Progress { file, bytes, whole });
        Ok(())
    };
    guard.download(url, LIMITS, keep).await?;
    Ok(writer.finish(url.to_owned())?)
}

#[cfg(test)]
mod tests;
