//! Returns memory that the allocator retains to the OS: after a bulk of writes it is as much as everything else
//! (docs/adr/0091-memory-goes-back-at-rest.md).

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior};

use crate::allocator::trim;

/// How often CPU time and resident memory are sampled.
const INTERVAL: Duration = Duration::from_secs(2);
/// The process counts as idle below this share of one core.
const IDLE_CPU: f64 = 0.1;
/// Growth since the last trim that triggers the next one while idle. A trim walks the heap, which takes some
/// milliseconds.
const IDLE_GROWTH: u64 = 8 << 20;
/// Growth that triggers a trim while busy, and the minimum interval between such trims.
const BUSY_GROWTH: u64 = 32 << 20;
const BUSY_PAUSE: Duration = Duration::from_secs(20);
/// Idle rounds, about a minute, after which the heap is trimmed even without growth; again after twice as many, and so
/// on. Connections and caches expire with time, not with work, and freeing them is not growth.
const IDLE_ROUNDS: u32 = 32;
/// The usual page size of Linux, and the unit of CPU time (proc(5), USER_HZ).
const PAGE_BYTES: u64 = 4_096;
const TICKS_PER_SECOND: f64 = 100.0;

/// Spawns the trimmer; needs a runtime. Above `bound`, the memory that the process should stay within, it also trims
/// while busy.
pub(crate) fn spawn_trimmer(bound: Option<u64>) {
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        tokio::spawn(watch(bound));
    }
}

async fn watch(bound: Option<u64>) {
    let mut rounds = tokio::time::interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let Some(mut before) = Sample::now() else { return };
    let mut last_trim = (before.resident, Instant::now());
    let mut idle_rounds = 0_u32;
    loop {
        rounds.tick().await;
        let Some(now) = Sample::now() else { return };
        let busy = (now.cpu - before.cpu) / INTERVAL.as_secs_f64();
        before = now;
        idle_rounds = if busy < IDLE_CPU { idle_rounds.saturating_add(1) } else { 0 };
        // Memory that was returned by other means does not count as growth later.
        last_trim.0 = last_trim.0.min(now.resident);
        if !is_due(now.resident, last_trim.0, busy, last_trim.1.elapsed(), bound)
            && !is_long_idle(idle_rounds)
        {
            continue;
        }
        // A trim visits every free chunk of the heap.
        if tokio::task::spawn_blocking(trim).await.is_err() {
            return;
        }
        last_trim = (Sample::now().map_or(now.resident, |sample| sample.resident), Instant::now());
    }
}

/// Whether growth since the last trim justifies another one.
fn is_due(resident: u64, last_trim: u64, busy: f64, since: Duration, bound: Option<u64>) -> bool {
    let grown = resident.saturating_sub(last_trim);
    let is_over = bound.is_some_and(|bound| resident > bound);
    grown >= IDLE_GROWTH && (busy < IDLE_CPU || is_over) || grown >= BUSY_GROWTH && since >= BUSY_PAUSE
}

/// Whether a process that has been idle for `idle_rounds` rounds is due for a trim.
const fn is_long_idle(idle_rounds: u32) -> bool {
    idle_rounds >= IDLE_ROUNDS && idle_rounds.is_power_of_two()
}

/// A sample of the process.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Resident bytes.
    resident: u64,
    /// CPU seconds of all threads so far.
    cpu: f64,
}

impl Sample {
    fn now() -> Option<Self> {
        let read = |name: &str| fs_err::read_to_string(format!("/proc/self/{name}")).ok();
        Some(Self { resident: resident(&read("statm")?)?, cpu: cpu(&read("stat")?)? })
    }
}

fn resident(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE_BYTES)
}

fn cpu(stat: &str) -> Option<f64> {
    // The second field is the name in parentheses, which may hold spaces; utime and stime are fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Some(ticks.sum::<Result<f64, _>>().ok()? / TICKS_PER_SECOND)
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
        let times: Vec<u32> = (0..300).filter(|idle_rounds| is_long_idle(*idle_rounds)).collect();
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
        // Small allocations, so that none is mapped separately, and one behind them that stays.
        let pieces: Vec<Vec<u8>> = (0..64_000).map(|_| vec![1_u8; 1_000]).collect();
        let stays = vec![1_u8; 1_000];
        let full = Sample::now().unwrap().resident;
        drop(pieces);
        trim();
        let left = Sample::now().unwrap().resident;
        assert!(left + 32 * MIB < full, "{left} of {full}");
        assert_eq!(stays.len(), 1_000);
    }
}
