//! The contract suite of providers: the tests of each provider supply a [`World`] in which documents can be written, and [`holds`] checks
//! the provider against it. Providers of services are also checked against a misbehaving service ([`service`]).

mod caller;
mod read;
mod service;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;

pub(crate) use self::caller::{Caller, NOW, counted, guard};
pub(crate) use self::read::{Read, changed, listed, read, text};
pub(crate) use self::service::{
    Service, can_be_cancelled, keeps_limits, loses_odd_positions, survives_hostile_answers,
    tells_wrong_credentials,
};
use crate::{Call, Changes, Deletions, ExternalId, Fault, Fetched, Listing, Position, Provider, Version};

/// The secret of all worlds.
pub(crate) const SECRET: &str = "hunter2-hunter2";

/// A backend of a provider, whose documents can be changed.
#[async_trait]
pub(crate) trait World: Send + Sync {
    /// A new connection.
    fn provider(&self) -> Box<dyn Provider>;
    /// Creates or overwrites a document, at a later time than all earlier writes.
    async fn put(&self, name: &str, text: &str);
    /// Deletes a document.
    async fn remove(&self, name: &str);
    /// The id of a document.
    async fn id(&self, name: &str) -> ExternalId;
    /// The names of 25 documents.
    fn names(&self) -> Vec<String> {
        (0..25).map(|number| format!("part-{}/note-{number:02}.md", number % 3)).collect()
    }
    /// Rate limits the next request for seven seconds; false if the backend has no rate limits.
    async fn limit(&self) -> bool {
        false
    }
    /// Invalidates all positions; false if they never become invalid.
    async fn lose_positions(&self) -> bool {
        false
    }
    /// The secret that must not leak.
    fn secret(&self) -> &'static str {
        SECRET
    }
    /// Revokes the credentials; false if there are none. Called last.
    async fn refuse(&self) -> bool {
        false
    }
}

/// The versions of documents: from the listing, else from fetching them.
async fn versions(provider: &dyn Provider, call: &Call, read: &Read) -> BTreeMap<ExternalId, Version> {
    let mut versions = BTreeMap::new();
    for (id, entry) in &read.entries {
        let version = match entry.version.is_known() {
            true => entry.version.clone(),
            false => match provider.fetch(call, id, None).await {
                Ok(Fetched::Body(body)) => body.version,
                other => panic!("{id}: {other:?}"),
            },
        };
        versions.insert(id.clone(), version);
    }
    versions
}

/// Checks the whole contract.
pub(crate) async fn holds(world: &dyn World) {
    let counted = counted(100_000);
    for name in world.names() {
        world.put(&name, &format!("the text of {name}")).await;
    }
    world.provider().check(&counted.call).await.unwrap();
    lists_everything_once(world, &counted.call).await;
    goes_on_where_it_stopped(world, &counted.call).await;
    tells_what_changed(world, &counted.call).await;
    tells_what_went(world, &counted.call).await;
    can_be_dropped(world, &counted.call).await;
    refuses_what_it_does_not_know(world, &counted.call).await;
    assert_eq!(counted.call.sent(), counted.ledger.reserved(), "each request is counted once");
    waits_when_it_is_asked_to(world).await;
    begins_again_when_the_place_is_lost(world, &counted.call).await;
    says_that_credentials_ended(world, &counted.call).await;
    let shown = format!("{:?}", world.provider());
    assert!(!shown.contains(world.secret()), "{shown}");
}

async fn lists_everything_once(world: &dyn World, call: &Call) {
    let provider = world.provider();
    let read = listed(provider.as_ref(), call).await;
    assert_eq!((read.faults.as_slice(), read.partial.as_slice()), ([].as_slice(), [].as_slice()));
    assert_eq!(read.entries.len(), world.names().len());
    let before = versions(provider.as_ref(), call, &read).await;
    for name in world.names() {
        let id = world.id(&name).await;
        let entry = &read.entries[&id];
        let text = text(call, provider.as_ref(), id.as_str()).await.unwrap();
        assert!(text.contains(&format!("the text of {name}")), "{name}: {text}");
        if let Some(body) = &entry.body {
            assert_eq!(body.version, entry.version);
        }
        match provider.fetch(call, &id, Some(&before[&id])).await {
            Ok(Fetched::Same) => {}
            Ok(Fetched::Body(body)) => assert_eq!(body.version, before[&id], "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let again = world.provider();
    let read = listed(again.as_ref(), call).await;
    let after = versions(again.as_ref(), call, &read).await;
    assert_eq!(after, before, "nothing changed, so no version did");
}

async fn goes_on_where_it_stopped(world: &dyn World, call: &Call) {
    let (read, _) = read(call, &|| world.provider(), None).await.unwrap();
    assert_eq!(read.entries.len(), world.names().len());
    assert!(read.partial.is_empty());
}

async fn tells_what_changed(world: &dyn World, call: &Call) {
    let provider = world.provider();
    let before = listed(provider.as_ref(), call).await;
    let known = versions(provider.as_ref(), call, &before).await;
    let name = &world.names()[7];
    world.put(name, &format!("the text of {name}, written anew")).await;
    let id = world.id(name).await;
    let (exact, after) = match provider.traits().changes {
        Changes::None => (true, listed(world.provider().as_ref(), call).await),
        Changes::Exact => (true, changed(world.provider().as_ref(), call, &before.next.unwrap()).await),
        Changes::HighWater { .. } => {
            (false, changed(world.provider().as_ref(), call, &before.next.unwrap()).await)
        }
    };
    for (one, version) in versions(world.provider().as_ref(), call, &after).await {
        assert_eq!(known[&one] == version, one != id, "{one}");
    }
    assert!(after.entries.contains_key(&id));
    if exact && provider.traits().changes != Changes::None {
        assert_eq!((after.entries.len(), after.gone.len()), (1, 0));
    }
    let provider = world.provider();
    let text = text(call, provider.as_ref(), id.as_str()).await.unwrap();
    assert!(text.contains("written anew"), "{text}");
    assert!(matches!(provider.fetch(call, &id, Some(&known[&id])).await, Ok(Fetched::Body(_))));
    if let Some(next) = after.next.filter(|_| provider.traits().changes == Changes::Exact) {
        let nothing = changed(provider.as_ref(), call, &next).await;
        assert_eq!((nothing.entries.len(), nothing.gone.len()), (0, 0));
    }
}

async fn tells_what_went(world: &dyn World, call: &Call) {
    let before = listed(world.provider().as_ref(), call).await;
    let name = &world.names()[3];
    let id = world.id(name).await;
    world.remove(name).await;
    let provider = world.provider();
    let traits = provider.traits();
    match traits.deletions {
        Deletions::FromListing => {
            let after = listed(provider.as_ref(), call).await;
            assert!(!after.entries.contains_key(&id) && after.partial.is_empty());
            assert_eq!(after.entries.len() + 1, before.entries.len());
        }
        Deletions::FromChanges => {
            let after = changed(provider.as_ref(), call, &before.next.unwrap()).await;
            assert_eq!(
                (after.gone.len(), after.gone.contains(id.as_str()), after.entries.len()),
                (1, true, 0)
            );
        }
        Deletions::ByProbe => {}
    }
    if traits.listing == Listing::BestEffort || traits.deletions != Deletions::FromListing {
        drop(listed(provider.as_ref(), call).await);
    }
    assert!(is_gone(provider.as_ref(), call, &id).await, "{id}");
    world.put(name, &format!("the text of {name}")).await;
    let provider = world.provider();
    drop(listed(provider.as_ref(), call).await);
    let text = text(call, provider.as_ref(), world.id(name).await.as_str()).await.unwrap();
    assert!(text.contains(&format!("the text of {name}")));
}

async fn is_gone(provider: &dyn Provider, call: &Call, id: &ExternalId) -> bool {
    matches!(provider.fetch(call, id, None).await, Ok(Fetched::Gone) | Err(Fault::Gone))
}

async fn can_be_dropped(world: &dyn World, call: &Call) {
    let provider = world.provider();
    let began = provider.list(call, None).now_or_never();
    drop(began);
    assert_eq!(listed(provider.as_ref(), call).await.entries.len(), world.names().len());
}

async fn refuses_what_it_does_not_know(world: &dyn World, call: &Call) {
    let provider = world.provider();
    drop(listed(provider.as_ref(), call).await);
    let long = "x".repeat(ExternalId::MAX_BYTES);
    for odd in ["nothing", "../../etc/passwd", "/etc/passwd", "\u{1}", "a//b", "%2e%2e/", "-", long.as_str()]
    {
        let id = ExternalId::new(odd).unwrap();
        match provider.fetch(call, &id, None).await {
            Ok(Fetched::Gone) | Err(Fault::Gone | Fault::Refused | Fault::Address | Fault::Unavailable) => {}
            other => panic!("{odd}: {other:?}"),
        }
    }
    if provider.traits().changes == Changes::None {
        let anywhere = Position::new(1, &()).unwrap();
        assert_eq!(provider.changes(call, &anywhere).await.unwrap_err(), Fault::Refused);
    }
    let of_another_version = Position::new(60_000, &()).unwrap();
    assert_eq!(provider.list(call, Some(&of_another_version)).await.unwrap_err(), Fault::PositionLost);
}

async fn waits_when_it_is_asked_to(world: &dyn World) {
    let provider = world.provider();
    if !world.limit().await {
        return;
    }
    let counted = counted(100_000);
    let until = NOW.plus(Duration::from_secs(7));
    let waiting = Fault::Waiting { until };
    assert_eq!(provider.list(&counted.call, None).await.unwrap_err(), waiting);
    assert_eq!(counted.ledger.not_before(), Some(until));
    let sent = counted.call.sent();
    let id = world.id(&world.names()[0]).await;
    assert_eq!(provider.fetch(&counted.call, &id, None).await.unwrap_err(), waiting);
    assert_eq!(counted.call.sent(), sent, "nothing is sent meanwhile");
    counted.clock.advance(Duration::from_secs(7));
    assert_eq!(listed(provider.as_ref(), &counted.call).await.entries.len(), world.names().len());
}

async fn begins_again_when_the_place_is_lost(world: &dyn World, call: &Call) {
    let provider = world.provider();
    let read = listed(provider.as_ref(), call).await;
    if !world.lose_positions().await {
        return;
    }
    if provider.traits().changes == Changes::None {
        return;
    }
    let lost = world.provider().changes(call, &read.next.unwrap()).await.unwrap_err();
    assert_eq!(lost, Fault::PositionLost);
    let again = listed(world.provider().as_ref(), call).await;
    assert_eq!(again.entries.len(), world.names().len());
}

async fn says_that_credentials_ended(world: &dyn World, call: &Call) {
    let id = world.id(&world.names()[0]).await;
    if !world.refuse().await {
        return;
    }
    let provider = world.provider();
    assert_eq!(provider.check(call).await.unwrap_err(), Fault::Credentials);
    assert_eq!(provider.list(call, None).await.unwrap_err(), Fault::Credentials);
    assert_eq!(provider.fetch(call, &id, None).await.unwrap_err(), Fault::Credentials);
}
