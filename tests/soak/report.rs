//! The report at the end of a run.

use std::fmt::Write as _;
use std::time::Duration;

use crate::judgement::Verdict;
use crate::meter::{Latency, Meter};
use crate::samples::Sample;

const MIB: f64 = 1024.0 * 1024.0;

/// The latencies of each kind in both halves, and every figure at the beginning, in the middle and at the end.
pub(crate) fn table(meter: &Meter, samples: &[Sample], verdicts: &[Verdict]) -> String {
    let mut text = format!(
        "{} requests answered in {:.0} s, {} writes, {} too late\n\n",
        meter.answered(),
        meter.elapsed().as_secs_f64(),
        meter.writes(),
        meter.late(),
    );
    text.push_str("| kind | answered | p50, first half | second | p99, first half | second |\n|---|---|---|---|---|---|\n");
    for (kind, [first, second]) in meter.latencies() {
        let millis = |latency: Latency| {
            let tell = |took: Duration| format!("{:.1} ms", took.as_secs_f64() * 1_000.0);
            (tell(latency.median), tell(latency.worst_of_hundred))
        };
        let ((early, early_worst), (late, late_worst)) = (millis(first), millis(second));
        let count = first.count + second.count;
        let name = kind.name();
        writeln!(text, "| {name} | {count} | {early} | {late} | {early_worst} | {late_worst} |").unwrap();
    }
    text.push_str("\n| figure | begin | middle | end | grew in the second half | might have |\n|---|---|---|---|---|---|\n");
    let (Some(begin), Some(middle), Some(end)) =
        (samples.first(), samples.get(samples.len() / 2), samples.last())
    else {
        return text;
    };
    for (name, last) in &end.values {
        let at = |sample: &Sample| shown(name, sample.values.get(name).copied().unwrap_or_default() as f64);
        let judged = verdicts.iter().find(|verdict| verdict.name == *name);
        let (grew, might) = judged.map_or((String::new(), String::new()), |verdict| {
            (shown(name, verdict.growth), shown(name, verdict.allowed))
        });
        let last = shown(name, *last as f64);
        writeln!(text, "| {name} | {} | {} | {last} | {grew} | {might} |", at(begin), at(middle)).unwrap();
    }
    text
}

/// Sizes in MiB, counts as they are.
fn shown(name: &str, value: f64) -> String {
    let is_size =
        name == "memory" || name.ends_with('/') || name.ends_with(".db") || name.ends_with(".db-wal");
    if is_size { format!("{:.1} MiB", value / MIB) } else { format!("{value:.0}") }
}
