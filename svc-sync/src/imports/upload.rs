//! Uploads of archives: streamed to the local disk, so that no archive is held in memory.

use bytes::Bytes;
use cairn_chassis::wording::{self, Unit};
use futures::stream::{Stream, TryStreamExt as _};

use super::{Draft, Imports, RunView};
use crate::Error;
use crate::reading::Scratch;
use crate::scope::Caller;

/// Bytes of an archive that may come before the caller's plan and permission are known.
const MAX_UNKNOWN_BYTES: u64 = 64 * 1024 * 1024;

/// The trailer of an upload: tells a complete one from a truncated one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UploadEnd {
    pub(crate) size_bytes: u64,
}

/// A part of an upload. As in a multipart form, the draft may come before or after the bytes.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// With the caller, who may write in the workspace.
    Draft(Box<(Caller, Draft)>),
    Bytes(Bytes),
    End(UploadEnd),
}

impl Imports {
    /// Receives an archive and plans its import. Nothing is written to the workspace.
    pub(crate) async fn preview(
        &self,
        mut parts: impl Stream<Item = Result<Part, Error>> + Send + Unpin,
    ) -> Result<RunView, Error> {
        let mut scratch = Scratch::new(self.context.scratch.clone()).await.map_err(Error::Scratch)?;
        let mut asked: Option<(Caller, Draft)> = None;
        let mut most: Option<u64> = None;
        let end = loop {
            match parts.try_next().await? {
                None => return Err(cut()),
                Some(Part::End(end)) => break end,
                Some(Part::Bytes(bytes)) => scratch.push(bytes).await.map_err(Error::Scratch)?,
                // Form fields after the archive override those before it.
                Some(Part::Draft(draft)) => {
                    most = Some(self.context.limits.of(draft.0.plan.as_deref()).object_bytes);
                    asked = Some(*draft);
                }
            }
            require_size(scratch.length(), most)?;
        };
        require_size(scratch.length(), most)?;
        if end.size_bytes != scratch.length() {
            return Err(cut());
        }
        if scratch.length() == 0 {
            return Err(Error::invalid(
                "archive",
                "required",
                "send the ZIP file of the vault or the export",
            ));
        }
        scratch.close_volume();
        let (caller, draft) = asked
            .ok_or_else(|| Error::invalid("draft", "required", "an upload has a draft before its end"))?;
        self.preview_of(&caller, draft, scratch).await
    }
}

fn require_size(bytes: u64, most: Option<u64>) -> Result<(), Error> {
    if bytes <= most.unwrap_or(MAX_UNKNOWN_BYTES) {
        return Ok(());
    }
    let Some(most) = most else {
        let message = "an archive of more than 64 MiB comes behind it: put 'workspaceId' and 'provider' before 'archive'";
        return Err(Error::invalid("workspaceId", "required", message));
    };
    let most = wording::at_most(usize::try_from(most).unwrap_or(usize::MAX), Unit::Bytes);
    Err(Error::TooLarge(format!("an archive {most} on this workspace's plan: divide it")))
}

fn cut() -> Error {
    Error::invalid("archive", "incomplete", "the upload ended before it was whole: send it again")
}
