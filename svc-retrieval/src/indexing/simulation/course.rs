//! What happens to one process of retrieval: at which of its calls it is lost or refused, and what is written meanwhile.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cairn_chassis::testing::simulation::World;
use tokio_util::sync::CancellationToken;

use super::owner::{Edit, Truth};

/// Calls of a process among which something happens.
const CALLS: u64 = 14;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The process ends there. Nothing that it waits for comes any more.
    Lost,
    /// That call is refused.
    Refused,
}

/// A call was refused.
#[derive(Debug, thiserror::Error)]
#[error("the simulation refuses this call")]
pub(in crate::indexing) struct Refused;

/// The course of one process; cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::indexing) struct Course(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    truth: Arc<Mutex<Truth>>,
    calls: AtomicU64,
    fault: Option<(u64, Fault)>,
    was_refused: AtomicBool,
    lost: CancellationToken,
    /// What is written before which call.
    edits: Mutex<Vec<(u64, Edit)>>,
}

impl fmt::Display for Course {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.fault {
            Some((call, fault)) => write!(formatter, "{fault:?} at call {call}")?,
            None => formatter.write_str("undisturbed")?,
        }
        for (call, edit) in self.0.edits.lock().unwrap().iter() {
            write!(formatter, ", {edit} before call {call}")?;
        }
        Ok(())
    }
}

impl Course {
    /// To which nothing happens.
    pub(in crate::indexing) fn calm(truth: &Arc<Mutex<Truth>>) -> Self {
        Self::new(truth, None, Vec::new())
    }

    /// Which the world decides, with these edits at some of its calls.
    pub(in crate::indexing) fn draw(
        world: &mut World,
        truth: &Arc<Mutex<Truth>>,
        may_be_refused: bool,
        edits: Vec<Edit>,
    ) -> Self {
        let call = world.between(1, CALLS);
        let fault = match world.below(6) {
            0..=2 => Some((call, Fault::Lost)),
            3 if may_be_refused => Some((call, Fault::Refused)),
            _ => None,
        };
        let edits = edits.into_iter().map(|edit| (world.between(1, CALLS), edit)).collect();
        Self::new(truth, fault, edits)
    }

    fn new(truth: &Arc<Mutex<Truth>>, fault: Option<(u64, Fault)>, edits: Vec<(u64, Edit)>) -> Self {
        Self(Arc::new(Inner {
            truth: Arc::clone(truth),
            calls: AtomicU64::new(0),
            fault,
            was_refused: AtomicBool::new(false),
            lost: CancellationToken::new(),
            edits: Mutex::new(edits),
        }))
    }

    /// One call, before it has an effect or after it had one.
    pub(in crate::indexing) async fn pass(&self) -> Result<(), Refused> {
        let call = self.0.calls.fetch_add(1, Ordering::SeqCst) + 1;
        self.edit(call);
        match self.0.fault.filter(|(at, _)| *at == call) {
            None => Ok(()),
            Some((_, Fault::Refused)) => {
                self.0.was_refused.store(true, Ordering::SeqCst);
                Err(Refused)
            }
            Some((_, Fault::Lost)) => {
                self.0.lost.cancel();
                std::future::pending().await
            }
        }
    }

    fn edit(&self, call: u64) {
        let mut edits = self.0.edits.lock().unwrap();
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *edits).into_iter().partition(|(before, _)| *before == call);
        *edits = later;
        let mut truth = self.0.truth.lock().unwrap();
        due.into_iter().for_each(|(_, edit)| truth.apply(edit));
    }

    /// Returns when the process is lost.
    pub(in crate::indexing) async fn lost(&self) {
        self.0.lost.cancelled().await;
    }

    pub(in crate::indexing) fn was_refused(&self) -> bool {
        self.0.was_refused.load(Ordering::SeqCst)
    }
}
