//! Connections of questions: how long they have, and how long they are kept.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cairn_chassis::outbound::Guard;
use cairn_chassis::status::Violation;
use cairn_proto::domain::SourceMode;
use cairn_providers::testing::Shelf;
use cairn_providers::{Changes, Deletions, Fault, Listing, Provider, ProviderKind};
use serde_json::Value;

use super::live_rules::{MINUTE, contents, only};
use super::runs::{Stand, draft, listed};
use super::*;
use crate::live::{Live, Outcome};
use crate::runs::{Connect, Runner};
use crate::sources::{Draft, Patch, Sources};

/// Questions, and the rules of sources, over connections of that kind.
fn over(stand: &Stand, connect: Arc<dyn Connect>) -> (Live, Sources) {
    let usual = stand.runner.clone();
    let runner = Runner::new(usual.context, connect, usual.extractor, usual.keyring, usual.entropy);
    let live = Live::new(runner.clone(), runner.extractor.clone(), 16 << 20);
    (live.clone(), Sources::new(runner, live))
}

/// Connects each source to the shelf that its settings name.
#[derive(Debug)]
struct ByName {
    shelves: BTreeMap<&'static str, Shelf>,
    guard: Guard,
}

impl Connect for ByName {
    fn modes(&self, _: ProviderKind) -> &'static [SourceMode] {
        &[SourceMode::Live]
    }

    fn connect(
        &self,
        _: ProviderKind,
        settings: &Value,
        _: Option<&Value>,
        _: Option<SourceMode>,
    ) -> Result<Box<dyn Provider>, Vec<Violation>> {
        let name = settings["shelf"].as_str().unwrap_or_default();
        Ok(self.shelves[name].provider())
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

#[tokio::test]
async fn a_provider_has_two_seconds_and_keeps_no_other_waiting() {
    for stand in listed().await {
        let shelf = || Shelf::new(Listing::Exhaustive, Changes::None, Deletions::FromListing);
        let (slow, quick) = (shelf(), shelf());
        quick.put("a", "plan");
        slow.close();
        let shelves = BTreeMap::from([("slow", slow.clone()), ("quick", quick)]);
        let connect = Arc::new(ByName { shelves, guard: Guard::new(&[]).unwrap() });
        let (live, sources) = over(&stand, connect);
        let mut ids = Vec::new();
        for (name, settings) in [("slow", r#"{"shelf": "slow"}"#), ("quick", r#"{"shelf": "quick"}"#)] {
            let draft = Draft { settings: settings.into(), ..draft(name, Some(SourceMode::Live)) };
            ids.push(sources.connect(&stand.caller, draft).await.unwrap().source.id.to_string());
        }
        let began = Instant::now();
        let answers = live.ask(&stand.caller, "plan".to_owned(), &ids, &[]).await.unwrap();
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(1_900) && took < Duration::from_millis(3_500), "{took:?}");
        assert_eq!(contents(&answers), ["plan"], "{}", stand.engine());
        let outcomes: Vec<_> = answers.sources.iter().map(|asked| (asked.outcome, asked.used)).collect();
        assert_eq!(outcomes, [(Outcome::Unavailable, 1), (Outcome::Answered, 2)]);
    }
}

/// Counts the connections to a shelf.
#[derive(Debug)]
struct Counted {
    shelf: Shelf,
    guard: Guard,
    made: AtomicU64,
}

impl Connect for Counted {
    fn modes(&self, _: ProviderKind) -> &'static [SourceMode] {
        &[SourceMode::Live]
    }

    fn connect(
        &self,
        _: ProviderKind,
        _: &Value,
        _: Option<&Value>,
        _: Option<SourceMode>,
    ) -> Result<Box<dyn Provider>, Vec<Violation>> {
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(self.shelf.provider())
    }

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

#[tokio::test]
async fn a_connection_with_a_greeting_is_used_again_until_something_happens_to_it() {
    for stand in listed().await {
        stand.shelf.put("a", "plan");
        let (shelf, guard) = (stand.shelf.clone(), Guard::new(&[]).unwrap());
        let connect = Arc::new(Counted { shelf, guard, made: AtomicU64::new(0) });
        let (live, sources) = over(&stand, Arc::clone(&connect) as _);
        let greeted = Draft { provider: "mcp".into(), ..draft("tools", Some(SourceMode::Live)) };
        let id = sources.connect(&stand.caller, greeted).await.unwrap().source.id.to_string();
        let made = || connect.made.swap(0, Ordering::Relaxed);
        let ask = async || {
            live.ask(&stand.caller, "plan".to_owned(), std::slice::from_ref(&id), &[]).await.unwrap()
        };
        made();
        for _ in 0..3 {
            assert_eq!(only(&ask().await).outcome, Outcome::Answered);
        }
        assert_eq!(made(), 1, "{}", stand.engine());
        stand.shelf.fail_next([Fault::Unavailable]);
        assert_eq!(only(&ask().await).outcome, Outcome::Unavailable);
        assert_eq!(made(), 0);
        ask().await;
        assert_eq!(made(), 1, "it had failed");
        stand.clock.advance(MINUTE);
        ask().await;
        assert_eq!(made(), 1, "it was too old");
        let patch = Patch { settings: Some(b"{}".to_vec()), ..Patch::default() };
        stand.clock.advance(Duration::from_millis(1));
        sources.update(&stand.caller, &id, patch).await.unwrap();
        made();
        ask().await;
        assert_eq!(made(), 1, "the source was changed");
    }
}
