//! What every provider of a service promises, driven on its fake.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use super::fake::{Fake, Mood, Reply, WORDS, World};
use crate::{ExternalId, Fault, Fetched, Item, Page, Position, Provider, Then};

/// What a run knows at its end.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// Titles by id.
    pub(crate) present: BTreeMap<String, String>,
    pub(crate) gone: BTreeSet<String>,
    pub(crate) faults: Vec<(Option<String>, String)>,
    pub(crate) partial: Vec<String>,
    pub(crate) pages: usize,
}

impl Seen {
    fn take(&mut self, page: &Page) {
        self.pages += 1;
        for item in &page.items {
            match item {
                Item::Present(entry) => {
                    self.present.insert(entry.id.to_string(), entry.title.clone());
                }
                Item::Gone(id) => {
                    self.gone.insert(id.to_string());
                }
            }
        }
        for fault in &page.faults {
            assert!(!fault.reason.contains(WORDS) && !fault.reason.is_empty());
            self.faults.push((fault.id.as_ref().map(ToString::to_string), fault.reason.to_string()));
        }
    }

    pub(crate) fn ids(&self) -> Vec<&str> {
        self.present.keys().map(String::as_str).collect()
    }
}

/// More pages than any fake has.
const MOST_PAGES: usize = 200;

/// Reads pages to the end; each position goes through its text, and each page may be another process's.
pub(crate) async fn read(
    world: &World,
    connect: &dyn Fn() -> Box<dyn Provider>,
    changes_from: Option<&Position>,
) -> Result<(Seen, Position), Fault> {
    let mut seen = Seen::default();
    let mut at: Option<Position> = changes_from.cloned();
    for _ in 0..MOST_PAGES {
        let provider = connect();
        let page = match (&at, changes_from) {
            (Some(at), Some(_)) => provider.changes(&world.call, at).await?,
            (at, _) => provider.list(&world.call, at.as_ref()).await?,
        };
        seen.take(&page);
        match page.then {
            Then::More(next) => at = Some(Position::try_from(next.as_str().to_owned()).unwrap()),
            Then::End { next, partial } => {
                seen.partial = partial.into_iter().map(|partial| partial.reason.to_string()).collect();
                return Ok((seen, next));
            }
        }
    }
    panic!("the listing does not end")
}

/// The text of a document.
pub(crate) async fn text(world: &World, provider: &dyn Provider, id: &str) -> Option<String> {
    let id = ExternalId::new(id).unwrap();
    match provider.fetch(&world.call, &id, None).await {
        Ok(Fetched::Body(body)) => Some(String::from_utf8(body.bytes.to_vec()).unwrap()),
        Ok(Fetched::Gone) => None,
        other => panic!("{other:?}"),
    }
}

/// Whatever a service answers, a listing and a fetch end with a fault of ours, soon, and with few requests.
pub(crate) async fn survives_hostile_answers(
    world: &World,
    fake: &Fake,
    connect: &dyn Fn() -> Box<dyn Provider>,
    id: &str,
) {
    let id = ExternalId::new(id).unwrap();
    let json = "application/json";
    let million = format!("[{}0]", "{},".repeat(1_000_000));
    let moods = [
        Mood::Always(Reply::with(200, "text/html", "<!DOCTYPE html><title>Sign in</title>")),
        Mood::Always(Reply::with(200, json, "")),
        Mood::Always(Reply::with(200, json, "{\"results\": [{\"id\": \"")),
        Mood::Always(Reply::with(200, json, "[".repeat(1_000_000))),
        Mood::Always(Reply::with(
            200,
            json,
            format!("{{\"results\":{million},\"issues\":{million},\"files\":{million}}}"),
        )),
        Mood::Always(Reply::with(200, json, million)),
        Mood::Always(Reply::with(200, json, vec![0xff, 0xfe, 0x00])),
        Mood::Always(Reply::refusal(500)),
        Mood::Always(Reply::refusal(404)),
        Mood::Always(Reply::with(302, json, "").header("location", "http://10.0.0.1/")),
        Mood::Always(Reply::with(302, json, "").header("location", "/around")),
        Mood::Endless,
        Mood::Cut,
        Mood::Silent,
    ];
    for mood in moods {
        fake.set_mood(mood.clone());
        fake.take_asked();
        let call = world.hurried(Duration::from_secs(2));
        if let Err(fault) = connect().list(&call, None).await {
            assert!(!fault.to_string().contains(WORDS), "{fault}");
            assert!(!matches!(fault, Fault::Waiting { .. } | Fault::Budget), "{fault}");
        }
        match connect().fetch(&call, &id, None).await {
            Ok(Fetched::Body(body)) => assert!(body.bytes.len() < 10_000_000),
            Ok(_) => {}
            Err(fault) => assert!(!fault.to_string().contains(WORDS), "{fault}"),
        }
        let asked = fake.take_asked().len();
        assert!(asked <= 20, "{asked} requests while the service is as {mood:?}");
    }
    fake.set_mood(None);
}

/// A limit is written down for the connection, nothing is asked while it lasts, and then it goes on.
pub(crate) async fn keeps_limits(
    world: &World,
    fake: &Fake,
    connect: &dyn Fn() -> Box<dyn Provider>,
    limit: Reply,
) {
    fake.set_mood(Mood::Once(limit));
    let waiting = connect().list(&world.call, None).await.unwrap_err();
    let Fault::Waiting { until } = waiting else { panic!("{waiting}") };
    assert_eq!(world.ledger.not_before(), Some(until));
    fake.take_asked();
    assert!(matches!(connect().list(&world.call, None).await, Err(Fault::Waiting { .. })));
    assert!(fake.take_asked().is_empty(), "the provider was asked although it wants to be left alone");
    world.clock.advance(Duration::from_secs(3_600));
    read(world, connect, None).await.unwrap();
}

/// Credentials that ended are told, with few requests.
pub(crate) async fn tells_wrong_credentials(
    world: &World,
    fake: &Fake,
    connect: &dyn Fn() -> Box<dyn Provider>,
    refusal: Reply,
) {
    fake.set_mood(Mood::Always(refusal));
    fake.take_asked();
    assert_eq!(connect().list(&world.call, None).await, Err(Fault::Credentials));
    assert_eq!(connect().check(&world.call).await, Err(Fault::Credentials));
    assert!(fake.take_asked().len() <= 6);
    fake.set_mood(None);
}

/// A call that is dropped asks nothing more.
pub(crate) async fn can_be_cancelled(world: &World, fake: &Fake, connect: &dyn Fn() -> Box<dyn Provider>) {
    fake.set_mood(Mood::Silent);
    fake.take_asked();
    let provider = connect();
    let cut = tokio::time::timeout(Duration::from_millis(200), provider.list(&world.call, None)).await;
    assert!(cut.is_err());
    fake.set_mood(None);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(fake.take_asked().len() <= 1);
}

/// A place that is not of this provider, or of another time, is lost, and is not followed elsewhere.
pub(crate) async fn loses_odd_positions(world: &World, provider: &dyn Provider) {
    for odd in [json!({}), json!({"v": 999, "at": {}}), json!({"v": 1, "at": {"odd": [1, 2]}}), json!("x")] {
        let odd = Position::try_from(odd.to_string()).unwrap();
        assert_eq!(provider.list(&world.call, Some(&odd)).await, Err(Fault::PositionLost));
    }
}
