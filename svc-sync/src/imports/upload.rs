//! Archives on their way in: their bytes go to our disk as they come, so that none is ever in memory.

use bytes::Bytes;
use cairn_chassis::wording::{self, Unit};
use futures::stream::{Stream, TryStreamExt as _};

use super::{Draft, Imports, Shown};
use crate::Error;
use crate::reading::Scratch;
use crate::scope::Caller;

/// Of an archive that comes before it is known whose plan it is held to, and whether the caller may write there.
const MOST_UNKNOWN_BYTES: u64 = 64 * 1024 * 1024;

/// What a caller says after the bytes: without it, nobody could tell an upload that was cut from one that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UploadEnd {
    pub(crate) size_bytes: u64,
}

/// A piece of an upload. The draft may come before the bytes or behind them, as the parts of a form do.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// With who asks, who may write in the workspace.
    Draft(Box<(Caller, Draft)>),
    Bytes(Bytes),
    End(UploadEnd),
}

impl Imports {
    /// Takes an archive and plans what it comes to. Nothing is written to the workspace.
    pub(crate) async fn preview(
        &self,
        mut parts: impl Stream<Item = Result<Part, Error>> + Send + Unpin,
    ) -> Result<Shown, Error> {
        let mut scratch = Scratch::new(self.context.scratch.clone()).await.map_err(Error::Scratch)?;
        let mut asked: Option<(Caller, Draft)> = None;
        let mut most: Option<u64> = None;
        let end = loop {
            match parts.try_next().await? {
                None => return Err(cut()),
                Some(Part::End(end)) => break end,
                Some(Part::Bytes(bytes)) => scratch.push(bytes).await.map_err(Error::Scratch)?,
                // Parts of a form that stand behind the archive say more than those before it.
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
    if bytes <= most.unwrap_or(MOST_UNKNOWN_BYTES) {
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
