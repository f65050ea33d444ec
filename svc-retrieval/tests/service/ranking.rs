//! Age, rerankers and rounds of confirmation: what decides the order besides words and meaning.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::{Clock as _, SystemClock, Timestamp};
use cairn_proto::retrieval::v1::{SearchContextRequest, SearchContextResponse, Strategy};
use cairn_retrieval::Config;
use cairn_retrieval::Preferences;
use cairn_retrieval::rerank::{self, Reranker};
use uuid::Uuid;

use crate::owner::{Bench, config, request, serve, try_open};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Gives 1 to texts with the word, 0 to others, and remembers what it read.
#[derive(Debug, Default)]
struct Judge {
    word: &'static str,
    is_down: bool,
    read: Mutex<Vec<String>>,
}

#[async_trait]
impl Reranker for Judge {
    async fn rerank(&self, query: &str, texts: &[&str]) -> Result<Vec<f32>, rerank::Error> {
        assert!(!query.contains('"') && !query.contains("-not"), "the query without its marks: {query}");
        self.read.lock().unwrap().extend(texts.iter().map(|text| (*text).to_owned()));
        if self.is_down {
            return Err(rerank::Error::Status(500));
        }
        Ok(texts.iter().map(|text| if text.contains(self.word) { 1.0 } else { 0.0 }).collect())
    }
}

impl Bench {
    async fn with_reranker(mut self, judge: &Arc<Judge>) -> Self {
        let reranker: Arc<dyn Reranker> = Arc::clone(judge) as _;
        // The folder is one service's at a time.
        self.folder = tempfile::tempdir().unwrap();
        let settings = Config {
            ranking: Preferences { reranker: Some(reranker), ..Preferences::default() },
            ..config(&self.folder)
        };
        self.channel = serve(&try_open(&self.owner, settings).await.unwrap()).await;
        self
    }

    async fn explained(&self, query: &str, limit: u32, after: u64) -> SearchContextResponse {
        let asked = SearchContextRequest { explain: true, limit, ..request(query, Strategy::Keyword, after) };
        self.search_as(&self.token(), asked).await.unwrap()
    }

    fn date(&self, id: u128, days: u32) {
        // An hour more: age is counted in whole days, and the day must not change while the test runs.
        let age = DAY * days + Duration::from_secs(60 * 60);
        let then =
            Timestamp::from_micros(SystemClock.now().as_micros() - i64::try_from(age.as_micros()).unwrap());
        let mut state = self.owner.state.lock().unwrap();
        let document = state.documents.get_mut(&Uuid::from_u128(id).hyphenated().to_string()).unwrap();
        document.updated_at = Some(then.to_proto());
    }
}

fn documents(answer: &SearchContextResponse) -> Vec<u128> {
    answer.results.iter().map(|result| Uuid::parse_str(&result.document_id).unwrap().as_u128()).collect()
}

fn codes(answer: &SearchContextResponse) -> Vec<&str> {
    answer.coverage.iter().map(|note| note.code.as_str()).collect()
}

/// The parts of each score add up to it.
fn check_traces(answer: &SearchContextResponse) {
    for result in &answer.results {
        let trace = result.trace.as_ref().unwrap();
        let contributions: f64 = trace.subqueries.iter().map(|part| part.contribution).sum();
        let sum = contributions + trace.bonuses + trace.rerank.unwrap_or(0.0);
        assert!((sum - trace.r#final).abs() < 1e-6, "{trace:?}");
        assert!(
            (result.score - trace.r#final).abs() < 1e-12 && (0.0..=1.0).contains(&result.score),
            "{trace:?}"
        );
    }
    assert!(answer.results.is_sorted_by(|one, next| one.score >= next.score));
}

#[tokio::test(flavor = "multi_thread")]
async fn age_decides_between_equals_and_not_against_relevance() {
    let bench = Bench::new().await;
    bench.owner.write(1, "a.md", "The lamprey of pond 11 swims.\n", None);
    bench.owner.write(2, "b.md", "The lamprey of pond 12 swims.\n", None);
    let position = bench.owner.write(3, "c.md", "Lamprey lamprey lamprey lamprey swims.\n", None);
    for (id, days) in [(1, 180), (2, 0), (3, 3_650)] {
        bench.date(id, days);
    }
    let answer = bench.explained("lamprey", 10, position).await;
    check_traces(&answer);
    assert_eq!(documents(&answer), [3, 2, 1], "the far better one first, old as it is");
    let bonus = |place: usize| answer.results[place].trace.as_ref().unwrap().bonuses;
    let found = |place: usize| answer.results[place].score - bonus(place);
    assert_eq!(bonus(1), 0.0, "of today");
    // After 180 days, two half-lives, three quarters of 2 % are gone.
    assert!((bonus(2) + 0.015 * found(2)).abs() < 1e-9, "{}", bonus(2));
    assert!((found(1) - found(2)).abs() < 1e-6, "but for their age they are equals");
    assert!(
        bonus(0) < -0.019 * found(0) && bonus(0) >= -0.02 * found(0),
        "never more than 2 %: {}",
        bonus(0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reranker_has_half_of_the_score() {
    let judge = Arc::new(Judge { word: "gold", ..Judge::default() });
    let bench = Bench::new().await.with_reranker(&judge).await;
    bench.owner.write(1, "a.md", "Ferret ferret ferret ferret.\n", None);
    bench.owner.write(2, "b.md", "A ferret that found gold in the garden.\n", None);
    bench.owner.write(3, "c.md", "A ferret whose secret is trashed.\n", None);
    let position = bench.owner.write(4, "d.md", "A ferret that is not wanted.\n", None);
    bench.owner.trash_silently(3);
    let answer = bench.explained("ferret -wanted -\"not this\"", 10, position).await;
    check_traces(&answer);
    assert_eq!(documents(&answer), [2, 1]);
    let trace = answer.results[0].trace.as_ref().unwrap();
    let found = trace.r#final - trace.rerank.unwrap();
    assert!((trace.r#final - f64::midpoint(found, 1.0)).abs() < 1e-6, "{trace:?}");
    let read = judge.read.lock().unwrap();
    assert_eq!(read.len(), 2, "it reads only what the owner confirmed: {read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_rerankers_word_the_order_stays() {
    let judge = Arc::new(Judge { word: "gold", is_down: true, ..Judge::default() });
    let bench = Bench::new().await.with_reranker(&judge).await;
    bench.owner.write(1, "a.md", "Ferret ferret ferret ferret.\n", None);
    let position = bench.owner.write(2, "b.md", "A ferret that found gold in the garden.\n", None);
    let answer = bench.explained("ferret", 10, position).await;
    check_traces(&answer);
    assert_eq!((documents(&answer), codes(&answer)), (vec![1, 2], vec!["provider_unavailable"]));
    assert!(answer.results.iter().all(|result| result.trace.as_ref().unwrap().rerank.is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_reranker_has_not_read_comes_behind() {
    let judge = Arc::new(Judge { word: "nothing", ..Judge::default() });
    let bench = Bench::new().await.with_reranker(&judge).await;
    let mut position = 0;
    for id in 1..=45 {
        let content = format!("Stoat {}of den {id}.\n", "stoat ".repeat(usize::try_from(id % 9).unwrap()));
        position = bench.owner.write(id, &format!("{id}.md"), &content, None);
    }
    // Copies make room, so that the page reaches beyond what was read.
    for id in 46..=80 {
        position = bench.owner.write(id, &format!("{id}.md"), &format!("{}.\n", "Stoat ".repeat(30)), None);
    }
    let answer = bench.explained("stoat", 30, position).await;
    check_traces(&answer);
    assert_eq!(judge.read.lock().unwrap().len(), 30);
    assert_eq!(answer.results.len(), 30, "{:?}", documents(&answer));
    assert!(answer.results.iter().all(|result| result.trace.as_ref().unwrap().rerank.unwrap() <= 0.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_does_not_depend_on_how_many_are_looked_at() {
    let bench = Bench::new().await;
    let mut position = 0;
    for id in 1..=90 {
        let content = format!("Heron {}at pond {id}.\n", "heron ".repeat(usize::try_from(id % 7).unwrap()));
        position = bench.owner.write(id, &format!("{id}.md"), &content, None);
    }
    for id in 1..=90 {
        bench.date(id, u32::try_from(id * 37 % 400).unwrap());
    }
    // Most of the best are gone, and the index does not know.
    for id in (1..=90).filter(|id| id % 7 == 6) {
        bench.owner.trash_silently(id);
    }
    let whole = bench.explained("heron", 50, position).await;
    check_traces(&whole);
    assert_eq!(whole.results.len(), 50);
    for limit in [1, 3, 10, 25] {
        let some = bench.explained("heron", limit, position).await;
        assert_eq!(documents(&some), documents(&whole)[..limit as usize], "limit {limit}");
    }
    let least = whole.results[20].score;
    let asked = SearchContextRequest {
        limit: 50,
        min_score: Some(least),
        ..request("heron", Strategy::Keyword, position)
    };
    let narrowed = bench.search_as(&bench.token(), asked).await.unwrap();
    assert_eq!(narrowed.results.len(), whole.results.iter().filter(|result| result.score >= least).count());
}
