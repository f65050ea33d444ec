//! Injects overlapping faults for a while.

use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::ledger::Violations;
use crate::numbers::Numbers;
use crate::say;
use crate::stage::Stage;

const MAX_AT_ONCE: usize = 3;
/// One of this many faults overlaps with the next.
const ONE_OVERLAPS_OF: u64 = 3;
const MAX_PAUSE_MILLIS: u64 = 1_500;

/// The targets of a fault.
pub(crate) type Targets = Vec<&'static str>;

/// Injects faults for this long, and waits until all are over; returns their number. The random choices do not depend
/// on when a fault ends.
pub(crate) async fn rage<S: Stage>(
    stage: &S,
    numbers: &mut Numbers,
    lasting: Duration,
    violations: &Violations,
) -> usize {
    let mut ongoing = Ongoing { stage, violations, running: FuturesUnordered::new(), taken: Vec::new() };
    let (began, mut count) = (Instant::now(), 0);
    while began.elapsed() < lasting {
        let fault = stage.choose(numbers);
        let pause = Duration::from_millis(numbers.below(MAX_PAUSE_MILLIS));
        let overlaps = numbers.below(ONE_OVERLAPS_OF) == 0;
        let targets = S::targets(&fault);
        ongoing.until(|taken| has_room(taken, &targets)).await;
        let besides = if ongoing.taken.is_empty() { "" } else { " (besides)" };
        say(&format!("{:>6.1} s: {fault}{besides}", began.elapsed().as_secs_f32()));
        ongoing.begin(fault, targets);
        count += 1;
        if !overlaps {
            ongoing.until(<[Targets]>::is_empty).await;
        }
        ongoing.go_on_for(pause).await;
    }
    ongoing.until(<[Targets]>::is_empty).await;
    count
}

/// Whether another one may begin: no target has two faults at a time.
fn has_room(taken: &[Targets], targets: &[&'static str]) -> bool {
    taken.len() < MAX_AT_ONCE && !taken.iter().flatten().any(|target| targets.contains(target))
}

/// Faults in progress.
struct Ongoing<'a, S> {
    stage: &'a S,
    violations: &'a Violations,
    running: FuturesUnordered<LocalBoxFuture<'a, Targets>>,
    /// The targets of each of them.
    taken: Vec<Targets>,
}

impl<S: Stage> Ongoing<'_, S> {
    fn begin(&mut self, fault: S::Fault, targets: Targets) {
        let (stage, violations) = (self.stage, self.violations);
        self.taken.push(targets.clone());
        self.running.push(Box::pin(async move {
            stage.happen(&fault, violations).await;
            targets
        }));
    }

    /// Waits until the remaining faults satisfy the condition, at the latest until none remains.
    async fn until(&mut self, is_enough: impl Fn(&[Targets]) -> bool) {
        while !is_enough(&self.taken) {
            let Some(over) = self.running.next().await else { return };
            self.end(&over);
        }
    }

    async fn go_on_for(&mut self, pause: Duration) {
        let end = Instant::now() + pause;
        while let Ok(over) = timeout_at(end, self.running.next()).await {
            match over {
                Some(over) => self.end(&over),
                None => return sleep_until(end).await,
            }
        }
    }

    fn end(&mut self, over: &[&'static str]) {
        self.taken.retain(|targets| targets != over);
    }
}
