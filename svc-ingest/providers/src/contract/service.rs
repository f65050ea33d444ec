//! The contract of providers of services, against a fake that can misbehave.

use std::time::Duration;

use serde_json::json;

use super::{Caller, read};
use crate::rest::fake::{Fake, Mood, Reply, WORDS};
use crate::{ExternalId, Fault, Fetched, Position, Provider, Then};

/// How a service addresses documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// Each document has a URL, which returns 404 after its deletion.
    Addresses,
    /// One endpoint for all documents, whose success responses report deletions.
    OneAddress,
    /// Each document has a URL, and any response is the document.
    Pages,
}

/// Creates a new connection.
type Connect<'c> = &'c (dyn Fn() -> Box<dyn Provider> + Sync);

/// Whatever a service responds, a listing and a fetch end soon with a fault and with few requests. No bad response is taken for an empty
/// complete listing or for a document, and at most a 404 for a deletion.
pub(crate) async fn survives_hostile_answers(
    caller: &Caller,
    fake: &Fake,
    connect: Connect<'_>,
    id: &str,
    service: Service,
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
        let shown: String = format!("{mood:?}").chars().take(200).collect();
        let call = caller.hurried(Duration::from_secs(2));
        match connect().list(&call, None).await {
            Ok(page) => {
                let is_whole = matches!(&page.then, Then::End { partial, .. } if partial.is_empty());
                let has_pages = service == Service::Pages && !page.items.is_empty();
                assert!(!is_whole || has_pages, "{shown} was taken for all that there is");
            }
            Err(fault) => {
                assert!(!fault.to_string().contains(WORDS), "{fault}");
                assert!(!matches!(fault, Fault::Waiting { .. } | Fault::Budget), "{fault}");
            }
        }
        match connect().fetch(&call, &id, None).await {
            Ok(Fetched::Gone) => {
                let is_404 = matches!(&mood, Mood::Always(reply) if reply.status() == 404);
                assert!(is_404 && service != Service::OneAddress, "{shown} was taken for a deletion");
            }
            Ok(Fetched::TooLarge(_)) => {}
            Ok(Fetched::Body(body)) if service == Service::Pages => assert!(body.bytes.len() < 10_000_000),
            Ok(other) => panic!("{shown} was taken for a document: {other:?}"),
            Err(fault) => assert!(!fault.to_string().contains(WORDS), "{fault}"),
        }
        let asked = fake.take_asked().len();
        assert!(asked <= 20, "{asked} requests while the service is as {shown}");
    }
    fake.set_mood(None);
}

/// A rate limit is recorded for the connection; no request is sent while it lasts, and afterwards requests work.
pub(crate) async fn keeps_limits(caller: &Caller, fake: &Fake, connect: Connect<'_>, limit: Reply) {
    fake.set_mood(Mood::Once(limit));
    let waiting = connect().list(&caller.call, None).await.unwrap_err();
    let Fault::Waiting { until } = waiting else { panic!("{waiting}") };
    assert_eq!(caller.ledger.not_before(), Some(until));
    fake.take_asked();
    assert!(matches!(connect().list(&caller.call, None).await, Err(Fault::Waiting { .. })));
    assert!(fake.take_asked().is_empty(), "the provider was asked although it wants to be left alone");
    caller.clock.advance(Duration::from_secs(3_600));
    read(&caller.call, connect, None).await.unwrap();
}

/// Revoked credentials are reported with few requests.
pub(crate) async fn tells_wrong_credentials(
    caller: &Caller,
    fake: &Fake,
    connect: Connect<'_>,
    refusal: Reply,
) {
    fake.set_mood(Mood::Always(refusal));
    fake.take_asked();
    assert_eq!(connect().list(&caller.call, None).await, Err(Fault::Credentials));
    assert_eq!(connect().check(&caller.call).await, Err(Fault::Credentials));
    assert!(fake.take_asked().len() <= 6);
    fake.set_mood(None);
}

/// A cancelled call sends no more requests.
pub(crate) async fn can_be_cancelled(caller: &Caller, fake: &Fake, connect: Connect<'_>) {
    fake.set_mood(Mood::Silent);
    fake.take_asked();
    let provider = connect();
    let cut = tokio::time::timeout(Duration::from_millis(200), provider.list(&caller.call, None)).await;
    assert!(cut.is_err());
    fake.set_mood(None);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(fake.take_asked().len() <= 1);
}

/// A foreign or outdated position is lost, and leads to no request elsewhere.
pub(crate) async fn loses_odd_positions(caller: &Caller, provider: &dyn Provider) {
    for odd in [json!({}), json!({"v": 999, "at": {}}), json!({"v": 1, "at": {"odd": [1, 2]}}), json!("x")] {
        let odd = Position::try_from(odd.to_string()).unwrap();
        assert_eq!(provider.list(&caller.call, Some(&odd)).await, Err(Fault::PositionLost));
    }
}
