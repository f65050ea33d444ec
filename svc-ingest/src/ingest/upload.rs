//! Streaming uploads: bytes are stored as they arrive, so that a large file is never in memory whole.

use bytes::{Bytes, BytesMut};
use cairn_chassis::sql::Db;
use cairn_chassis::wording::{self, Unit};
use cairn_extract::MAX_FILE_BYTES;
use futures::stream::{Stream, TryStreamExt as _};

use super::draft::{CheckedDraft, CheckedFile, FileDraft};
use super::{Accepted, DOCUMENTS, Ingests, Sent};
use crate::model::{Pieces, Place, Upload};
use crate::scope::Caller;
use crate::{Error, store};

/// The trailer after the bytes: distinguishes a complete upload from a truncated one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UploadEnd {
    pub(crate) size_bytes: u64,
}

/// A part of an upload. The draft may come before or after the bytes, like the parts of a form.
#[derive(Debug, Clone)]
pub(crate) enum UploadPart {
    Draft(Box<FileDraft>),
    Bytes(Bytes),
    End(UploadEnd),
}

impl Ingests {
    /// Ingests a file and queues it for extraction.
    pub(crate) async fn file(
        &self,
        caller: &Caller,
        parts: impl Stream<Item = Result<UploadPart, Error>> + Send + Unpin,
    ) -> Result<Accepted, Error> {
        caller.require_whole_workspace(DOCUMENTS)?;
        let place = Place { workspace: caller.workspace, document: self.context.ids.next() };
        let allowed = self.context.limits.of(caller.plan.as_deref()).object_bytes;
        let mut spool = Spool::new(&self.context.db, place, allowed.min(MAX_FILE_BYTES as u64));
        let taken = match receive(&mut spool, parts).await {
            Ok(file) => {
                let (draft, sent) = spool.sent(file);
                self.queue(caller, &draft, sent).await
            }
            Err(error) => Err(error),
        };
        let is_kept = matches!(&taken, Ok(taken) if taken.document.id == place.document);
        if !is_kept && spool.pieces > 0 {
            // If this fails, the sweep of abandoned uploads removes the rest.
            let _swept_later = store::extractions::remove_pieces(&self.context.db, place).await;
        }
        taken
    }
}

/// Receives an upload and verifies it against the trailer.
async fn receive(
    spool: &mut Spool<'_>,
    mut parts: impl Stream<Item = Result<UploadPart, Error>> + Send + Unpin,
) -> Result<CheckedFile, Error> {
    let mut file = None;
    let end = loop {
        match parts.try_next().await? {
            None => return Err(cut()),
            Some(UploadPart::End(end)) => break end,
            Some(UploadPart::Bytes(bytes)) => spool.push(&bytes).await?,
            Some(UploadPart::Draft(draft)) if file.is_none() => file = Some(draft.check()?),
            Some(UploadPart::Draft(_)) => {
                return Err(Error::invalid("draft", "invalid", "an upload has one draft"));
            }
        }
    };
    if parts.try_next().await?.is_some() {
        return Err(Error::invalid("end", "not_last", "nothing may follow `end`"));
    }
    if end.size_bytes != spool.size_bytes {
        let message = format!("{} bytes came, not {}: send it again", spool.size_bytes, end.size_bytes);
        return Err(Error::invalid("end.sizeBytes", "mismatch", message));
    }
    if spool.size_bytes == 0 {
        return Err(Error::invalid("file", "required", "the file is empty: send one with a text"));
    }
    file.ok_or_else(|| Error::invalid("draft", "required", "an upload has a draft before its end"))
}

fn cut() -> Error {
    Error::invalid("file", "incomplete", "the upload ended before it was whole: send it again")
}

/// Says which limit was exceeded: upgrading the plan raises only the plan's.
fn too_large(most_bytes: u64) -> String {
    let most = usize::try_from(most_bytes).unwrap_or(usize::MAX);
    let whose = if most < MAX_FILE_BYTES { " on this workspace's plan" } else { "" };
    format!("a file {}{whose}: divide it", wording::at_most(most, Unit::Bytes))
}

/// Splits incoming bytes into pieces, with at most one piece in memory.
struct Spool<'a> {
    db: &'a Db,
    place: Place,
    most_bytes: u64,
    size_bytes: u64,
    hasher: blake3::Hasher,
    waiting: BytesMut,
    /// The number of stored pieces.
    pieces: u64,
}

impl<'a> Spool<'a> {
    fn new(db: &'a Db, place: Place, most_bytes: u64) -> Self {
        let (hasher, waiting) = (blake3::Hasher::new(), BytesMut::new());
        Self { db, place, most_bytes, size_bytes: 0, hasher, waiting, pieces: 0 }
    }

    async fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.size_bytes = self.size_bytes.saturating_add(bytes.len() as u64);
        if self.size_bytes > self.most_bytes {
            return Err(Error::TooLarge(too_large(self.most_bytes)));
        }
        self.hasher.update(bytes);
        self.waiting.extend_from_slice(bytes);
        while self.waiting.len() > Pieces::MAX_BYTES {
            let piece = self.waiting.split_to(Pieces::MAX_BYTES);
            store::extractions::spool_piece(self.db, self.place, self.pieces, &piece).await?;
            self.pieces += 1;
        }
        Ok(())
    }

    fn sent(&mut self, file: CheckedFile) -> (CheckedDraft, Sent) {
        let sent = Sent {
            id: self.place.document,
            hash: format!("blake3:{}", self.hasher.finalize().to_hex()),
            upload: Upload {
                file_name: Some(file.file_name).filter(|name| !name.is_empty()),
                mime_type: file.mime_type,
                is_html: false,
                size_bytes: self.size_bytes,
            },
            rest: Pieces::of(self.waiting.split().freeze()),
            spooled: self.pieces,
        };
        (file.draft, sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_no_plan_moves_names_no_plan() {
        assert_eq!(
            too_large(10_000_000),
            "a file may have at most 10000000 bytes on this workspace's plan: divide it"
        );
        assert_eq!(too_large(MAX_FILE_BYTES as u64), "a file may have at most 104857600 bytes: divide it");
    }
}
