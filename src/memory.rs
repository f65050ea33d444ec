//! Gives memory back to the system that the allocator keeps for later: after a bulk of writes it is as much as everything else
//! (docs/adr/0091-memory-goes-back-at-rest.md).

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use crate::allocator::trim;

/// How often the process is looked at.
const INTERVAL: Duration = Duration::from_secs(2);
/// It rests while it takes less than so much of one core.
const REST: f64 = 0.1;
/// What it must have grown by since it last gave back: to look through the heap takes some milliseconds.
const GROWN: u64 = 8 << 20;
/// The same while it works, and no more often than this.
const GROWN_AT_WORK: u64 = 32 << 20;
const PAUSE_AT_WORK: Duration = Duration::from_secs(20);
/// Rounds of rest, about a minute, after which what was let go meanwhile goes back, too; and again after twice as many, and so on.
/// Connections and caches end with time and not with work, and nothing grows by that.
const SETTLED: u32 = 32;
/// What Linux counts memory in where its pages have the usual size, and CPU time (proc(5), USER_HZ).
const PAGE: u64 = 4_096;
const TICKS_A_SECOND: f64 = 100.0;

/// Begins, inside of the runtime. `bound` is what the process should stay within: above it, it gives back whatever it does.
pub(crate) fn give_back(bound: Option<u64>) {
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        tokio::spawn(watch(bound));
    }
}

async fn watch(bound: Option<u64>) {
    let mut rounds = tokio::time::interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let Some(mut before) = Look::now() else { return };
    let mut given = (before.resident, Instant::now());
    let mut rested = 0_u32;
    loop {
        rounds.tick().await;
        let Some(now) = Look::now() else { return };
        let busy = (now.cpu - before.cpu) / INTERVAL.as_secs_f64();
        before = now;
        rested = if busy < REST { rested.saturating_add(1) } else { 0 };
        // What has gone back by itself is not grown anew.
        given.0 = given.0.min(now.resident);
        if !is_due(now.resident, given.0, busy, given.1.elapsed(), bound) && !has_settled(rested) {
            continue;
        }
        // It looks at every free piece of the heap.
        if tokio::task::spawn_blocking(trim).await.is_err() {
            return;
        }
        given = (Look::now().map_or(now.resident, |look| look.resident), Instant::now());
    }
}

/// Whether it is time to give back, of a process that holds so much, held so much when it last did, and is so busy.
fn is_due(resident: u64, given: u64, busy: f64, since: Duration, bound: Option<u64>) -> bool {
    let grown = resident.saturating_sub(given);
    let is_over = bound.is_some_and(|bound| resident > bound);
    grown >= GROWN && (busy < REST || is_over) || grown >= GROWN_AT_WORK && since >= PAUSE_AT_WORK
}

/// Whether it is time to give back because the process has rested for so many rounds.
const fn has_settled(rested: u32) -> bool {
    rested >= SETTLED && rested.is_power_of_two()
}

/// The process at a moment.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// Bytes in memory.
    resident: u64,
    /// Seconds of all its threads so far.
    cpu: f64,
}

impl Look {
    fn now() -> Option<Self> {
        let read = |name: &str| fs_err::read_to_string(format!("/proc/self/{name}")).ok();
        Some(Self { resident: resident(&read("statm")?)?, cpu: cpu(&read("stat")?)? })
    }
}

fn resident(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

fn cpu(stat: &str) -> Option<f64> {
    // The second field is the name in parentheses, which may hold spaces; utime and stime are fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Some(ticks.sum::<Result<f64, _>>().ok()? / TICKS_A_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn it_gives_back_at_rest_and_seldom_at_work() {
        let due = |grown: u64, busy, since| {
            is_due(100 * MIB + grown * MIB, 100 * MIB, busy, Duration::from_secs(since), None)
        };
        assert!(due(9, 0.01, 2));
        assert!(!due(7, 0.01, 3_600), "not worth it");
        assert!(!due(31, 0.5, 3_600), "it works");
        assert!(due(33, 0.5, 21));
        assert!(!due(33, 0.5, 19));
        assert!(is_due(120 * MIB, 100 * MIB, 0.9, Duration::ZERO, Some(110 * MIB)), "above its bound");
        assert!(!is_due(120 * MIB, 100 * MIB, 0.9, Duration::ZERO, Some(130 * MIB)));
    }

    #[test]
    fn what_is_let_go_at_rest_goes_back_ever_more_seldom() {
        let times: Vec<u32> = (0..300).filter(|rested| has_settled(*rested)).collect();
        assert_eq!(times, [32, 64, 128, 256]);
    }

    #[test]
    fn the_kernel_tells_what_it_is() {
        assert_eq!(resident("1000 250 30 4 0 5 0\n"), Some(250 * 4_096));
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 10 0 0 0 150 50 0 0 20 0 4 0 100 1 1";
        assert_eq!(cpu(stat), Some(2.0));
        assert_eq!(cpu("nothing"), None);
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn what_is_free_goes_back() {
        // Small pieces, so that none is mapped by itself, and something behind them that stays.
        let pieces: Vec<Vec<u8>> = (0..64_000).map(|_| vec![1_u8; 1_000]).collect();
        let stays = vec![1_u8; 1_000];
        let full = Look::now().unwrap().resident;
        drop(pieces);
        trim();
        let left = Look::now().unwrap().resident;
        assert!(left + 32 * MIB < full, "{left} of {full}");
        assert_eq!(stays.len(), 1_000);
    }
}
