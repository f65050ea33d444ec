//! Large documents, part by part.

use std::io;

use http::{StatusCode, header};
use thiserror::Error;
use url::Url;

use super::{Guard, Limits, Refused, refused_by};

/// Hosts of large files send on to where they are stored, and that place may do so once more.
const MOST_REDIRECTS: usize = 5;

/// Why a download ended early.
#[derive(Debug, Error)]
pub enum DownloadError {
    /// The address, or one that it sends on to, is refused or does not answer with the whole document.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Whoever takes the parts failed.
    #[error("what was downloaded cannot be kept: {0}")]
    Keep(#[from] io::Error),
}

impl Guard {
    /// Hands each part of a document to `keep` as it comes, with the length of the whole when the host tells it.
    /// Redirects are followed, and each address is checked as the first is.
    ///
    /// # Errors
    /// When an address is refused, the answer is no 200 or breaks a limit, or `keep` fails.
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
        for _ in 0..=MOST_REDIRECTS {
            let answer =
                self.client(&url).get(url.clone()).send().await.map_err(|error| refused_by(&error))?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            url = self.check(target(&url, &answer)?.as_str())?;
        }
        Err(Refused::Status(StatusCode::LOOP_DETECTED.as_u16()))
    }
}

/// Where a redirect leads.
fn target(from: &Url, answer: &reqwest::Response) -> Result<Url, Refused> {
    let location = answer.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
    location.and_then(|location| from.join(location).ok()).ok_or(Refused::Status(answer.status().as_u16()))
}

async fn read(
    mut answer: reqwest::Response,
    limit: usize,
    mut keep: impl FnMut(&[u8], Option<u64>) -> io::Result<()>,
) -> Result<(), DownloadError> {
    if answer.status() != StatusCode::OK {
        return Err(Refused::Status(answer.status().as_u16()).into());
    }
    let announced = answer.content_length();
    let mut taken = 0_usize;
    while let Some(part) = answer.chunk().await.map_err(|error| refused_by(&error))? {
        taken = taken.saturating_add(part.len());
        if taken > limit {
            return Err(Refused::TooLarge(limit).into());
        }
        keep(&part, announced)?;
    }
    Ok(())
}
