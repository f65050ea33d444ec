//! What catalogs cost a search: `balanced` before anything from outside is there, and with 20 sources of 10 000 titles each.
//!
//! `cargo bench -p cairn-retrieval --bench catalogs [-- --check]`: 3 000 notes of about 150 words in one workspace, hybrid
//! searches of five words one after the other, all over the same vocabulary, whose words are as frequent as Zipf's law has
//! it. The same searches are asked in the mode `fast` beside, in turn. Providers answer at once and have nothing: what is
//! measured is the search of the catalogs. With `--check` it fails where the median grows by more than 1 ms.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench ends by panicking, and so does what it takes from the tests"
)]

#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/service/owner.rs"]
mod owner;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/service/providers.rs"]
mod providers;
#[path = "../tests/service/sources.rs"]
mod sources;

use std::time::{Duration, Instant};

use cairn_proto::document::v1::{Document, DocumentRef};
use cairn_proto::feed::v1::{Kind, Op};
use cairn_proto::retrieval::v1::{FeedPosition, Mode, SearchContextRequest, Strategy};
use uuid::Uuid;

use self::owner::{Bench, request};

const NOTES: u32 = 3_000;
const SOURCES: u32 = 20;
const TITLES: u32 = 10_000;
const WORDS: f64 = 30_000.0;
const SEARCHES: usize = 1_000;
/// A median of so many milliseconds more is too much.
const LIMIT_MS: f64 = 1.0;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let is_checked = std::env::args().any(|argument| argument == "--check");
    let bench = Bench::new().await;
    let mut numbers = Numbers(11);
    let mut inside = 0;
    for note in 0..NOTES {
        let content = format!("# {}\n\n{}.\n", numbers.text(4), numbers.text(150));
        inside = bench.owner.write(u128::from(note) + 1, &format!("{}.md", numbers.text(3)), &content, None);
    }
    indexed(&bench, inside, 0).await;
    let questions: Vec<String> = (0..SEARCHES).map(|_| numbers.text(5)).collect();
    measured(&bench, &questions[..SEARCHES / 4]).await;
    let [_, before] = measured(&bench, &questions).await;

    let filling = Instant::now();
    let mut outside = 0;
    for source in 0..SOURCES {
        for entry in 0..TITLES {
            outside = write_entry(&bench, source, entry, &numbers.text(5));
        }
    }
    indexed(&bench, inside, outside).await;
    println!("{} titles indexed in {:.1?}", SOURCES * TITLES, filling.elapsed());
    measured(&bench, &questions[..SEARCHES / 4]).await;
    let [fast, after] = measured(&bench, &questions).await;
    let asked = bench.owner.outside().state.lock().unwrap().providers.asked.len();

    println!("{SEARCHES} searches each            p50 ms   p95 ms");
    for (what, [p50, p95]) in [
        ("balanced, nothing outside", before),
        ("fast, with catalogs", fast),
        ("balanced, with catalogs", after),
    ] {
        println!("{what:<28} {p50:>8.2} {p95:>8.2}");
    }
    println!("providers were asked {asked} times");
    let more = after[0] - before[0];
    let word = if more <= LIMIT_MS { "within" } else { "MISSED" };
    println!("{word}  balanced with catalogs: {more:.2} ms more at the median, limit {LIMIT_MS:.1} ms");
    assert!(!is_checked || more <= LIMIT_MS, "a limit is missed");
}

/// Until the index has seen everything.
async fn indexed(bench: &Bench, inside: u64, outside: u64) {
    let position = |feed: &str, position| FeedPosition { feed: feed.to_owned(), position };
    let waiting = SearchContextRequest {
        after: vec![position("content", inside), position("ingest", outside)],
        max_wait: prost_types::Duration::try_from(Duration::from_secs(10)).ok(),
        mode: Mode::Fast.into(),
        ..request("anything", Strategy::Keyword, 0)
    };
    while !bench.search_as(&bench.token(), waiting.clone()).await.unwrap().coverage.is_empty() {}
}

fn write_entry(bench: &Bench, source: u32, entry: u32, title: &str) -> u64 {
    let owner = bench.owner.outside();
    let id = Uuid::from_u64_pair(u64::from(source) + 1, u64::from(entry)).to_string();
    let document = Document {
        r#ref: Some(DocumentRef { kind: Kind::SourceDocument.into(), id: id.clone() }),
        title: title.to_owned(),
        path: format!("/sources/Source {source}/Folder {}/{title}", entry % 100),
        catalog_only: true,
        source_id: Some(Uuid::from_u64_pair(9, u64::from(source)).to_string()),
        url: Some(format!("https://source-{source}.example/{entry}")),
        ..Document::default()
    };
    owner.state.lock().unwrap().documents.insert(id.clone(), document);
    owner.tell(&id, Op::Upsert)
}

/// The median and the 95th percentile in milliseconds, of `fast` and of `balanced`, in turn.
async fn measured(bench: &Bench, questions: &[String]) -> [[f64; 2]; 2] {
    let identity = bench.token();
    let mut took = [Vec::new(), Vec::new()];
    for question in questions {
        for (took, mode) in took.iter_mut().zip([Mode::Fast, Mode::Balanced]) {
            let asked = SearchContextRequest {
                mode: mode.into(),
                after: Vec::new(),
                ..request(question, Strategy::Hybrid, 0)
            };
            let began = Instant::now();
            bench.search_as(&identity, asked).await.unwrap();
            took.push(began.elapsed().as_secs_f64() * 1_000.0);
        }
    }
    took.map(|mut took| {
        took.sort_by(f64::total_cmp);
        [took[took.len() / 2], took[took.len() * 95 / 100]]
    })
}

/// A generator that gives the same numbers in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Words by Zipf's law with exponent 1, by inversion; each is spelled by its rank.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a bench"
    )]
    fn text(&mut self, words: usize) -> String {
        let mut text = Vec::with_capacity(words);
        for _ in 0..words {
            let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
            let mut rank = WORDS.powf(uniform) as u64;
            let mut word = "k".to_owned();
            while rank > 0 {
                word.push_str(
                    ["ba", "de", "fi", "go", "lu", "ma", "ne", "po", "ri", "su"][(rank % 10) as usize],
                );
                rank /= 10;
            }
            text.push(word);
        }
        text.join(" ")
    }
}
