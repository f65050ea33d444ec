//! The output of a command: the next command of its pipeline, or the output of the script.

use std::ops::Range;

use crate::block::{Block, Chunk};
use crate::context::{Context, HELD_BYTES, Halt, Stop};
use crate::parse::Complaints;

/// The buffer size at which output is passed on.
const MAX_GATHERED: usize = 32 << 10;
/// The first output is passed on early, so that `head` can stop the commands before it.
const FIRST_GATHERED: usize = 256;

/// Consumes the output of a command.
pub(crate) trait Drain {
    fn drain(&mut self, block: &mut Block) -> Result<(), Halt>;
}

/// The buffered output of a command.
pub(crate) struct Out<'a> {
    ctx: &'a Context<'a>,
    gathered: Block,
    threshold: usize,
    most: usize,
    /// `None` if the output is only buffered, for the caller to pass on.
    drain: Option<&'a mut dyn Drain>,
    complaints: Complaints,
}

impl<'a> Out<'a> {
    /// Buffers all output.
    pub(crate) fn gathering(ctx: &'a Context<'a>, complaints: Complaints) -> Self {
        Self {
            ctx,
            gathered: Block::default(),
            threshold: HELD_BYTES,
            most: usize::MAX,
            drain: None,
            complaints,
        }
    }

    /// Passes output on, in smaller pieces the more commands follow.
    pub(crate) fn draining(
        ctx: &'a Context<'a>,
        complaints: Complaints,
        drain: &'a mut dyn Drain,
        stages: usize,
    ) -> Self {
        let most = (MAX_GATHERED / (1 + stages / 8)).max(FIRST_GATHERED);
        Self {
            ctx,
            gathered: Block::default(),
            threshold: FIRST_GATHERED,
            most,
            drain: Some(drain),
            complaints,
        }
    }

    pub(crate) fn into_gathered(self) -> Block {
        self.gathered
    }

    /// Writes text without an origin.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) {
        self.gathered.text(text.as_ref());
    }

    /// Writes a range of a chunk, which may be long.
    pub(crate) fn carry(&mut self, chunk: &Chunk<'_>, range: Range<usize>) -> Result<(), Halt> {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start.saturating_add(self.most));
            self.gathered.carry(chunk, start..end);
            self.flow()?;
            start = end;
        }
        Ok(())
    }

    /// Passes on the buffer if it is full enough. To be called after each line or so.
    pub(crate) fn flow(&mut self) -> Result<(), Halt> {
        if self.gathered.len() < self.threshold {
            return Ok(());
        }
        if self.drain.is_none() {
            return Err(Halt::Stop(Stop::Memory));
        }
        self.threshold = self.threshold.saturating_mul(2).min(self.most);
        self.flush()
    }

    /// Passes on everything.
    pub(crate) fn flush(&mut self) -> Result<(), Halt> {
        let Some(drain) = &mut self.drain else { return Ok(()) };
        if self.gathered.is_empty() {
            return Ok(());
        }
        let drained = drain.drain(&mut self.gathered);
        self.gathered.clear();
        drained
    }

    /// Writes an error message on a line of its own.
    pub(crate) fn complain(&mut self, text: &str) -> Result<(), Halt> {
        match self.complaints {
            Complaints::Dropped => Ok(()),
            Complaints::Merged => {
                self.text(text);
                self.text("\n");
                self.flow()
            }
            Complaints::Shown => {
                self.flush()?;
                self.ctx.sink.borrow_mut().complain(&format!("{text}\n"))
            }
        }
    }
}
