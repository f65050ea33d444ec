//! Streaming downloads of large documents.

use std::io;

use http::{StatusCode, header};
use thiserror::Error;
use url::Url;

use super::{Guard, Limits, Refused, refused_by};

/// Hosts of large files redirect to their storage, which may redirect again.
const MAX_REDIRECTS: usize = 5;

/// Why a download ended early.
#[derive(Debug, Error)]
pub enum DownloadError {
    /// The URL or a redirect is not allowed, or the transfer failed.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The consumer failed.
    #[error("what was downloaded cannot be kept: {0}")]
    Keep(#[from] io::Error),
}

impl Guard {
    /// Passes each chunk of a document to `keep` as it arrives, with the content length if the host sends one. Redirects are
    /// followed, and each URL is checked like the first.
    ///
    /// # Errors
    /// When a URL is not allowed, the status is not 200, a limit is exceeded, or `keep` fails.
    pub async fn download(
        &self,
        address: &str,
        limits: Limits,
        keep: impl FnMut(&[u8], Option<u64>) -> io::Result<()> + Send,
    ) -> Result<(), DownloadError> {
        let whole = async { read(self.follow(address).await?, limits.bytes, keep).await };
        tokio::time::timeout(limits.time, whole).await.unwrap_or(Err(Refused::TimedOut.into()))
    }

    async fn follow(&self, address: &str) -> Result<reqwest::Response, Refused> {
        let mut url = self.check(address)?;
        for _ in 0..=MAX_REDIRECTS {
            let response =
                self.client(&url).get(url.clone()).send().await.map_err(|error| refused_by(&error))?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            url = self.check(redirect_target(&url, &response)?.as_str())?;
        }
        Err(Refused::Status(StatusCode::LOOP_DETECTED.as_u16()))
    }
}

fn redirect_target(from: &Url, response: &reqwest::Response) -> Result<Url, Refused> {
    let location = response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    location.and_then(|location| from.join(location).ok()).ok_or(Refused::Status(response.status().as_u16()))
}

async fn read(
    mut response: reqwest::Response,
    limit: usize,
    mut keep: impl FnMut(&[u8], Option<u64>) -> io::Result<()>,
) -> Result<(), DownloadError> {
    if response.status() != StatusCode::OK {
        return Err(Refused::Status(response.status().as_u16()).into());
    }
    let content_length = response.content_length();
    let mut received = 0_usize;
    while let Some(chunk) = response.chunk().await.map_err(|error| refused_by(&error))? {
        received = received.saturating_add(chunk.len());
        if received > limit {
            return Err(Refused::TooLarge(limit).into());
        }
        keep(&chunk, content_length)?;
    }
    Ok(())
}
