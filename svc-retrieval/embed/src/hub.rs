//! Fetches a model once, when that is allowed.
//!
//! The files go into a folder beside the one that is wanted, which gets its name when all are there: a download that was
//! interrupted is never taken for a model. `download.json` records where each file came from and its SHA-256.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cairn_chassis::outbound::{DownloadError, Guard, Limits, Refused};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::transformer::{OPTIONAL_FILES, REQUIRED_FILES};
use super::{Error, FetchedModel};

/// Of one file: the weights of a large embedding model, over a slow line.
const LIMITS: Limits = Limits { time: Duration::from_secs(3_600), bytes: 4 << 30 };
/// Progress is told for so many further bytes.
const PROGRESS_STEP: u64 = 16 << 20;
const RECORD_FILE: &str = "download.json";

#[derive(Debug, Serialize)]
struct Recorded {
    url: String,
    sha256: String,
    bytes: u64,
}

impl FetchedModel {
    /// Fetches the model when it is not there.
    pub(super) async fn fetch(&self, guard: &Guard) -> Result<PathBuf, Error> {
        let folder = self.folder();
        if folder.is_dir() {
            return Ok(folder);
        }
        tracing::warn!(model = self.name, hub = self.hub, "the embedding model is fetched, once");
        let draft = folder.with_extension("part");
        let fetched = self.fetch_into(&draft, guard).await;
        if let Err(reason) = fetched {
            return Err(Error::Unavailable { reason: format!("cannot fetch {}: {reason}", self.name) });
        }
        fs_err::rename(&draft, &folder).map_err(|error| Error::Unavailable { reason: error.to_string() })?;
        tracing::warn!(model = self.name, folder = %folder.display(), "the embedding model is there");
        Ok(folder)
    }

    async fn fetch_into(&self, draft: &Path, guard: &Guard) -> Result<(), DownloadError> {
        if draft.is_dir() {
            fs_err::remove_dir_all(draft)?;
        }
        fs_err::create_dir_all(draft)?;
        let mut records = Vec::new();
        for file in REQUIRED_FILES {
            records.push(self.fetch_file(draft, file, guard).await?);
        }
        for file in OPTIONAL_FILES {
            match self.fetch_file(draft, file, guard).await {
                Ok(record) => records.push(record),
                Err(DownloadError::Refused(Refused::Status(404))) => fs_err::remove_file(draft.join(file))?,
                Err(error) => return Err(error),
            }
        }
        let text = serde_json::to_vec_pretty(&records).map_err(std::io::Error::from)?;
        fs_err::write(draft.join(RECORD_FILE), text)?;
        Ok(())
    }

    async fn fetch_file(&self, draft: &Path, file: &str, guard: &Guard) -> Result<Recorded, DownloadError> {
        let url = format!("{}/{}/resolve/main/{file}", self.hub.trim_end_matches('/'), self.name);
        let path = draft.join(file);
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent)?;
        }
        let mut kept = fs_err::File::create(&path)?;
        let (mut hasher, mut bytes, mut told) = (Sha256::new(), 0_u64, 0_u64);
        guard
            .download(&url, LIMITS, |part, whole| {
                hasher.update(part);
                bytes += u64::try_from(part.len()).unwrap_or(0);
                if bytes - told >= PROGRESS_STEP {
                    told = bytes;
                    tracing::info!(file, bytes, ?whole, "fetching");
                }
                kept.write_all(part)
            })
            .await?;
        kept.sync_all()?;
        let sha256 = hex::encode(hasher.finalize());
        Ok(Recorded { url, sha256, bytes })
    }
}

#[cfg(test)]
mod tests;
