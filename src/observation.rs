//! Metrics about the process itself: build information and the memory of its cgroup.

use std::path::Path;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::version;

/// How often memory is sampled.
const INTERVAL: Duration = Duration::from_secs(5);
/// The cgroup of the container itself (cgroup v2).
const GROUP: &str = "/sys/fs/cgroup";

/// Starts the recording; needs a runtime, and metrics must be initialized.
pub(crate) fn start() {
    version::record();
    tokio::spawn(watch_memory());
}

async fn watch_memory() {
    let mut rounds = tokio::time::interval(INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        rounds.tick().await;
        // A few reads of virtual files: no disk is involved.
        record(Memory::of(Path::new(GROUP)));
    }
}

/// Usage and limit of a cgroup, in bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Memory {
    /// Charged memory minus what the kernel can reclaim at once: the figure that the OOM killer goes by.
    working_set: Option<u64>,
    /// `None` without a limit.
    limit: Option<u64>,
}

impl Memory {
    fn of(group: &Path) -> Self {
        let read = |name: &str| fs_err::read_to_string(group.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let inactive = || {
            let stat = read("memory.stat")?;
            stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse::<u64>().ok())
        };
        let working_set =
            number("memory.current").map(|all| all.saturating_sub(inactive().unwrap_or_default()));
        // `max` is not a number: no limit.
        Self { working_set, limit: number("memory.max") }
    }
}

fn record(memory: Memory) {
    if let Some(bytes) = memory.working_set {
        metrics::gauge!("cairn_cgroup_memory_working_set_bytes").set(bytes as f64);
    }
    if let Some(bytes) = memory.limit {
        metrics::gauge!("cairn_cgroup_memory_limit_bytes").set(bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> Memory {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Memory::of(folder.path())
    }

    #[test]
    fn memory_is_what_counts_before_a_process_is_killed() {
        let stat = "anon 70\nfile 30\ninactive_file 20\nactive_file 10\n";
        let bounded = group(&[("memory.current", "100\n"), ("memory.max", "500\n"), ("memory.stat", stat)]);
        assert_eq!(bounded, Memory { working_set: Some(80), limit: Some(500) });
        let free = group(&[("memory.current", "100\n"), ("memory.max", "max\n")]);
        assert_eq!(free, Memory { working_set: Some(100), limit: None });
        assert_eq!(group(&[]), Memory::default(), "where there is no such group");
    }
}
