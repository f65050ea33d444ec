//! Runs the commands of a pipeline: the first one writes, and its output is pushed through the others in pieces. There
//! is no recursion, so a pipeline may be as long as its script.

use crate::block::Block;
use crate::commands::{self, Flow, Program};
use crate::context::{Context, DONE, HELD_BYTES, Halt, Patterns, Status, Stop};
use crate::expand;
use crate::out::{Drain, Out};
use crate::parse::{Complaints, Stage, Step};

/// Runs one step; returns the status of its last command.
pub(crate) fn run(ctx: &Context<'_>, step: &Step) -> Result<Status, Stop> {
    let (cwd, previous) = (ctx.cwd(), ctx.previous());
    let status = run_stages(ctx, &step.stages)?;
    ctx.patterns.set(Patterns::default());
    if step.stages.len() > 1 {
        ctx.restore(cwd, previous);
    }
    Ok(if step.negated { Status::from(status == DONE) } else { status })
}

fn run_stages(ctx: &Context<'_>, stages: &[Stage]) -> Result<Status, Stop> {
    let mut running = Vec::with_capacity(stages.len());
    let mut room = expand::MAX_PATH_BYTES;
    for (at, stage) in stages.iter().enumerate() {
        // Starting takes time, too: patterns are compiled.
        ctx.check().map_err(stop_of)?;
        let program = match commands::start(ctx, &stage.words, at > 0, &mut room) {
            Ok(program) => program,
            Err(Halt::Stop(stop)) => return Err(stop),
            Err(Halt::Closed) => continue,
        };
        running.push(Running {
            program,
            complaints: stage.complaints,
            partial: Block::default(),
            done: false,
        });
    }
    let mut status = DONE;
    let mut rest = running.as_mut_slice();
    while !rest.is_empty() {
        // A command that does not read its input starts a new chain: the output of those before it is discarded.
        let length = 1 + rest.iter().skip(1).take_while(|stage| stage.program.reads_input()).count();
        let (segment, after) = rest.split_at_mut(length);
        status = run_segment(ctx, segment, after.is_empty())?;
        rest = after;
    }
    Ok(status)
}

struct Running {
    program: Box<dyn Program>,
    complaints: Complaints,
    /// The incomplete last line of the input so far.
    partial: Block,
    /// Whether it reads no more.
    done: bool,
}

fn run_segment(ctx: &Context<'_>, stages: &mut [Running], printed: bool) -> Result<Status, Stop> {
    let mut status = DONE;
    let many = stages.len();
    for phase in [Phase::Begin, Phase::End] {
        let mut at = 0;
        while at < many {
            let Some((stage, rest)) = stages.get_mut(at..).and_then(<[Running]>::split_first_mut) else {
                break;
            };
            // Input for a command that reads no more is discarded, along with the work of all commands before it.
            let closed = rest.iter().rposition(|later| later.done);
            if let (Some(closed), Phase::End) = (closed, phase) {
                at += 1 + closed;
                continue;
            }
            ctx.check().map_err(stop_of)?;
            let mut drain = Rest { ctx, stages: rest, printed };
            let mut out = Out::draining(ctx, stage.complaints, &mut drain, many);
            match advance(ctx, stage, phase, &mut out) {
                Ok(ended) => status = ended,
                Err(Halt::Closed) => status = DONE,
                Err(Halt::Stop(stop)) => {
                    // Output that is already written is still flushed, as far as the budget allows.
                    return match out.flush() {
                        Err(Halt::Stop(Stop::Output)) => Err(Stop::Output),
                        Ok(()) | Err(_) => Err(stop),
                    };
                }
            }
            at += 1;
        }
    }
    Ok(status)
}

fn stop_of(halt: Halt) -> Stop {
    match halt {
        Halt::Stop(stop) => stop,
        Halt::Closed => Stop::Cancelled,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    End,
}

fn advance(ctx: &Context<'_>, stage: &mut Running, phase: Phase, out: &mut Out<'_>) -> Result<Status, Halt> {
    let status = match phase {
        Phase::Begin => {
            stage.program.begin(ctx, out)?;
            DONE
        }
        Phase::End => {
            if !stage.done && !stage.partial.is_empty() {
                let partial = std::mem::take(&mut stage.partial);
                stage.program.take(ctx, &partial.as_chunk(), out)?;
            }
            stage.program.end(ctx, out)?
        }
    };
    out.flush()?;
    Ok(status)
}

/// The commands after the writing one.
struct Rest<'a> {
    ctx: &'a Context<'a>,
    stages: &'a mut [Running],
    /// Whether the last of them writes to the output of the script.
    printed: bool,
}

impl Drain for Rest<'_> {
    fn drain(&mut self, block: &mut Block) -> Result<(), Halt> {
        let ctx = self.ctx;
        let mut closed = false;
        for stage in self.stages.iter_mut() {
            ctx.check()?;
            if stage.done {
                return Err(Halt::Closed);
            }
            let mut out = Out::gathering(ctx, stage.complaints);
            stage.accept(ctx, block, &mut out)?;
            closed |= stage.done;
            *block = out.into_gathered();
            if block.is_empty() {
                return if closed { Err(Halt::Closed) } else { Ok(()) };
            }
        }
        if !self.printed {
            return Err(Halt::Closed);
        }
        ctx.sink.borrow_mut().take(block)?;
        if closed { Err(Halt::Closed) } else { Ok(()) }
    }
}

impl Running {
    /// Splits off the whole lines, and keeps the incomplete last line.
    fn accept(&mut self, ctx: &Context<'_>, block: &mut Block, out: &mut Out<'_>) -> Result<(), Halt> {
        let whole = memchr::memrchr(b'\n', &block.bytes).map_or(0, |at| at + 1);
        let mut next_partial = Block::default();
        if whole < block.len() {
            next_partial.carry(&block.as_chunk(), whole..block.len());
            block.truncate(whole);
        }
        if !self.partial.is_empty() {
            let joined = &mut self.partial;
            if joined.len() + block.len() + next_partial.len() > HELD_BYTES {
                return Err(Halt::Stop(Stop::Memory));
            }
            joined.carry(&block.as_chunk(), 0..block.len());
            if whole == 0 {
                joined.carry(&next_partial.as_chunk(), 0..next_partial.len());
                return Ok(());
            }
            std::mem::swap(joined, block);
        }
        self.partial = next_partial;
        if block.is_empty() {
            return Ok(());
        }
        ctx.meter.charge_bytes(block.len())?;
        if self.program.take(ctx, &block.as_chunk(), out)? == Flow::Done {
            self.done = true;
            self.partial.clear();
        }
        Ok(())
    }
}
