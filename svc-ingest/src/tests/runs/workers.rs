//! How runs and workers share what a process has.

use async_trait::async_trait;
use cairn_providers::{Account, Call, ExternalId, Fault, Fetched, Page, Position, Search, Traits, Version};

use super::*;

/// Ends whoever works on it.
#[derive(Debug)]
struct Deadly;

#[async_trait]
impl Provider for Deadly {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::Exhaustive,
            changes: Changes::None,
            deletions: Deletions::FromListing,
            gone_after: None,
            search: Search::None,
            every: HOUR,
        }
    }

    async fn check(&self, _: &Call) -> Result<Account, Fault> {
        Err(Fault::Unavailable)
    }

    async fn list(&self, _: &Call, _: Option<&Position>) -> Result<Page, Fault> {
        panic!("its worker panics")
    }

    async fn fetch(&self, _: &Call, _: &ExternalId, _: Option<&Version>) -> Result<Fetched, Fault> {
        Err(Fault::Unavailable)
    }
}

/// A shelf that is closed, and a provider that is deadly for those whose settings say so.
#[derive(Debug)]
struct Mixed {
    shelf: Shelf,
    guard: Guard,
}

impl Connect for Mixed {
    fn modes(&self, _: ProviderKind) -> &'static [SourceMode] {
        &[SourceMode::Indexed]
    }

    fn connect(
        &self,
        _: ProviderKind,
        settings: &Value,
        _: Option<&Value>,
        _: Option<SourceMode>,
    ) -> Result<Box<dyn Provider>, Vec<Violation>> {
        Ok(if settings.get("deadly").is_some() { Box::new(Deadly) } else { self.shelf.provider() })
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

/// Another process, with what it connects to.
fn process(stand: &Stand, db: Db, connect: Arc<dyn Connect>) -> Runner {
    let runner = stand.runner.clone();
    let context = Context { db, ..runner.context };
    Runner::new(context, connect, runner.extractor, runner.keyring, runner.entropy)
}

#[tokio::test]
async fn a_run_is_queued_over_one_connection() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("one").await;
        stand.work().await;
        stand.clock.advance(HOUR * 2);
        let config = stand.bench.test.config.clone().with_connections(1);
        let db = Db::open(&config, store::SCHEMA, store::MIGRATIONS).await.unwrap();
        let runner = process(&stand, db, Arc::clone(&stand.runner.connect));
        let queued = tokio::time::timeout(Duration::from_secs(5), runner.queue_due()).await;
        queued.expect("it waits for a connection that it holds itself").unwrap();
        assert_eq!(stand.last(id).await.state, SourceRunStatus::Queued, "{}", stand.engine());
    }
}

#[tokio::test]
async fn a_worker_that_panics_makes_room_for_one_other_only() {
    for stand in listed().await {
        let shelf = stand.shelf.clone();
        shelf.close();
        let connect = Arc::new(Mixed { shelf, guard: Guard::new(&[]).unwrap() });
        let runner = process(&stand, stand.runner.context.db.clone(), connect);
        let sources = Sources::new(runner.clone(), stand.live.clone());
        let mut deadly = draft("deadly", Some(SourceMode::Indexed));
        deadly.settings = br#"{"deadly": true}"#.to_vec();
        sources.connect(&caller(1), deadly).await.unwrap();
        for workspace in 2..10 {
            stand.clock.advance(Duration::from_millis(10));
            let slow = draft("slow", Some(SourceMode::Indexed));
            sources.connect(&caller(workspace), slow).await.unwrap();
        }
        let shutdown = CancellationToken::new();
        let (running, stop) = (runner.clone(), shutdown.clone());
        let running = tokio::spawn(async move { running.run(stop).await });
        for _ in 0..400 {
            if stand.shelf.requests().listed >= 4 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Time enough to take up more.
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        assert_eq!(stand.shelf.requests().listed, 4, "{}: as many as a process works on", stand.engine());
        shutdown.cancel();
        running.await.unwrap();
    }
}
