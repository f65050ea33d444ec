//! What a published model costs with one number of [`Limits`] and with another, for who chooses the defaults:
//!
//! ```sh
//! CAIRN_TEST_TRANSFORMER=FOLDER CAIRN_COLLECTION=FOLDER \
//!     cargo test --release -p cairn-embed --lib transformer::measured -- --ignored --nocapture
//! ```

use std::time::{Duration, Instant};

use serde_json::Value;

use super::*;

/// Passages that are embedded with each setting.
const PASSAGES: usize = 512;
/// As an indexing service hands them over.
const AT_ONCE: usize = 64;
const MIB: f64 = 1_048_576.0;
/// What two batches that go through at once may take beyond the model.
const MAX_MIB: f64 = 250.0;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement of minutes, which needs a published model and a collection"]
async fn what_goes_through_at_once_costs_time_and_memory() {
    let folder = std::env::var_os("CAIRN_TEST_TRANSFORMER").unwrap();
    let collection = std::env::var_os("CAIRN_COLLECTION").unwrap();
    let passages = passages(Path::new(&collection));
    let limits = Limits::of_this_machine();
    let cores = std::thread::available_parallelism().unwrap().get();
    println!("windows  MiB at once  tokens  threads  passages a second  a CPU second  MiB beyond the model");
    let mut settings: Vec<Limits> = [1, 4, 8, 16, 32].map(|windows| Limits { windows, ..limits }).into();
    settings.extend([26, 52, 208].map(|mebibytes| Limits { bytes: mebibytes << 20, ..limits }));
    settings.extend([128, 256].map(|tokens| Limits { tokens, ..limits }));
    settings.push(Limits { threads: cores, ..limits });
    for setting in settings {
        let beyond = measured(Path::new(&folder), setting, &passages).await;
        if setting == limits {
            assert!(beyond <= MAX_MIB, "the defaults take {beyond:.0} MiB beyond the model");
        }
    }
}

/// Prints a line of the table; answers the MiB beyond the model.
async fn measured(folder: &Path, limits: Limits, passages: &[String]) -> f64 {
    let model = Transformer::open_within(folder, limits).unwrap();
    // The file's bytes are free by now, and count no more.
    forget_peak();
    let (rest, cpu, wall) = (memory("VmRSS"), cpu_time(), Instant::now());
    let passages_of = async {
        for batch in passages.chunks(AT_ONCE) {
            let texts: Vec<&str> = batch.iter().map(String::as_str).collect();
            model.embed(TextKind::Passage, &texts).await.unwrap();
        }
    };
    // Somebody searches meanwhile.
    let questions = async {
        for passage in passages.iter().take(PASSAGES / AT_ONCE) {
            let question: String = passage.chars().take(60).collect();
            model.embed(TextKind::Query, &[question.as_str()]).await.unwrap();
        }
    };
    tokio::join!(passages_of, questions);
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), (cpu_time() - cpu).as_secs_f64());
    let beyond = (memory("VmHWM") - rest) / MIB;
    println!(
        "{:7}  {:11}  {:6}  {:7}  {:17.1}  {:12.1}  {beyond:20.0}",
        limits.windows,
        limits.bytes >> 20,
        limits.tokens,
        limits.threads,
        passages.len() as f64 / wall,
        passages.len() as f64 / cpu,
    );
    beyond
}

fn passages(collection: &Path) -> Vec<String> {
    let lines = fs_err::read_to_string(collection.join("corpus.jsonl")).unwrap();
    let texts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text =
        |line: Value| -> String { line["text"].as_str().unwrap_or_default().chars().take(1_500).collect() };
    texts.map(text).filter(|text| !text.trim().is_empty()).take(PASSAGES).collect()
}

/// Bytes, as `/proc/self/status` has them.
fn memory(line: &str) -> f64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    let kibibytes: f64 = found.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap();
    kibibytes * 1_024.0
}

/// Begins the peak anew (proc(5), clear_refs).
fn forget_peak() {
    fs_err::write("/proc/self/clear_refs", "5").unwrap();
}

/// User and system time of this process (proc(5), stat; ticks of a hundredth of a second).
fn cpu_time() -> Duration {
    let stat = fs_err::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}
