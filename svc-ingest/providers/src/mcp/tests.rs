use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;
use crate::ProviderKind;
use crate::contract::{self, Caller, Read};
use crate::rest::fake::{Asked, Fake, Mood, Reply};

mod world;

/// What the server holds, and how it speaks.
#[derive(Default)]
struct Shelf {
    resources: Vec<(String, String)>,
    is_legacy: bool,
    is_framed: bool,
    /// The sessions before this one are forgotten.
    session: u32,
    tools: Vec<Value>,
}

type Shared = Arc<Mutex<Shelf>>;

const TOKEN: &str = "t-0k3n";

fn served(shelf: &Shared, asked: &Asked) -> Reply {
    let shelf = shelf.lock().unwrap();
    if asked.header("authorization") != Some("Bearer t-0k3n") {
        return Reply::refusal(401);
    }
    let message = asked.json();
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    let version = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let session = format!("s-{}", shelf.session);
    if shelf.is_legacy {
        match method {
            "initialize" => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {}, "tools": {}},
                    "serverInfo": {"name": "legacy", "version": "1"}});
                return framed(&shelf, &result).header("mcp-session-id", session);
            }
            _ if asked.header("mcp-session-id").is_none() => return Reply::refusal(400),
            _ if asked.header("mcp-session-id") != Some(&session) => return Reply::refusal(404),
            "notifications/initialized" => return Reply::with(202, "text/plain", ""),
            _ => assert_eq!(asked.header("mcp-protocol-version"), Some("2025-11-25")),
        }
    } else {
        assert_eq!(version, asked.header("mcp-protocol-version"));
        assert_eq!(asked.header("mcp-method"), Some(method));
        if version != Some("2026-07-28") {
            return Reply::refusal(400);
        }
    }
    let result = match method {
        "server/discover" => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"resources": {}, "tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern"}}})
        }
        "resources/list" => {
            let from: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
            let resources: Vec<Value> = shelf.resources.iter().skip(from).take(2)
                .map(|(uri, _)| json!({"uri": uri, "name": uri.rsplit('/').next(), "mimeType": "text/markdown"})).collect();
            let next = (from + 2 < shelf.resources.len()).then(|| (from + 2).to_string());
            json!({"resources": resources, "nextCursor": next})
        }
        "resources/read" => {
            if !shelf.is_legacy {
                let (told, uri) = (asked.header("mcp-name"), params["uri"].as_str().unwrap());
                let is_plain = !uri.contains(char::is_control);
                assert!(
                    told == Some(uri)
                        || (!is_plain && told.is_some_and(|told| told.starts_with("=?base64?")))
                );
            }
            match shelf.resources.iter().find(|(uri, _)| params["uri"] == *uri) {
                Some((uri, text)) => {
                    json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": text}]})
                }
                None => return refused(-32_602),
            }
        }
        "tools/list" => json!({"tools": shelf.tools}),
        "tools/call" if params["name"] == "fetch" => json!({"content": [], "structuredContent":
            {"id": params["arguments"]["id"], "title": "Fetched", "text": "All of it.", "url": "https://docs.example/1"}}),
        "tools/call" => json!({"content": [{"type": "text", "text": json!({"results":
            [{"id": "d-1", "title": params["arguments"]["query"], "url": "https://docs.example/1"}]}).to_string()}]}),
        _ => return refused(-32_601),
    };
    framed(&shelf, &result)
}

fn framed(shelf: &Shelf, result: &Value) -> Reply {
    let message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
    if shelf.is_framed {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        return Reply::with(
            200,
            "text/event-stream",
            format!(": hi\n\ndata: {note}\n\nevent: message\ndata: {message}\n\n"),
        );
    }
    Reply::json(&message)
}

fn refused(code: i64) -> Reply {
    Reply::json(
        &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": crate::rest::fake::WORDS}}),
    )
}

struct Stage {
    world: Caller,
    fake: Fake,
    shelf: Shared,
}

impl Stage {
    async fn new() -> Self {
        let shelf = Shared::default();
        let behind = Arc::clone(&shelf);
        let fake = Fake::start(|_| move |asked: &Asked| served(&behind, asked)).await;
        let stage = Self { world: Caller::new(), fake, shelf };
        for name in ["a", "b", "c", "d", "e"] {
            stage.put(name, &format!("Body of {name}"));
        }
        stage
    }

    fn put(&self, name: &str, text: &str) {
        let uri = format!("docs://shelf/{name}");
        let mut shelf = self.shelf.lock().unwrap();
        shelf.resources.retain(|(known, _)| *known != uri);
        shelf.resources.push((uri, text.to_owned()));
    }

    fn settings(&self) -> Value {
        json!({"url": self.fake.base().as_str()})
    }

    fn connect(&self, mode: &str) -> Box<dyn Provider> {
        self.world.connect(ProviderKind::Mcp, &self.settings(), &json!({"token": TOKEN}), mode)
    }

    async fn read(&self) -> Read {
        contract::read(&self.world.call, &|| self.connect("indexed"), None).await.unwrap().0
    }

    async fn text(&self, name: &str) -> Option<String> {
        contract::text(&self.world.call, &*self.connect("indexed"), &format!("docs://shelf/{name}")).await
    }
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_says_nothing_of_a_resource() {
    for is_legacy in [false, true] {
        let stage = Stage::new().await;
        stage.shelf.lock().unwrap().is_legacy = is_legacy;
        let provider = stage.connect("indexed");
        provider.list(&stage.world.call, None).await.unwrap();
        let id = ExternalId::new("docs://shelf/a").unwrap();
        for status in [404, 410] {
            let page = Reply::with(status, "text/html", "<html>No such upstream</html>");
            stage.fake.set_mood(Mood::Always(page));
            let read = provider.fetch(&stage.world.call, &id, None).await;
            assert!(read.is_err(), "{status}: {read:?}");
        }
        stage.fake.set_mood(None);
        assert_eq!(stage.text("none").await, None, "the server itself says so");
    }
}

#[tokio::test]
async fn both_eras_are_listed_and_read_framed_or_not() {
    for (is_legacy, is_framed) in [(false, false), (false, true), (true, false), (true, true)] {
        let stage = Stage::new().await;
        {
            let mut shelf = stage.shelf.lock().unwrap();
            (shelf.is_legacy, shelf.is_framed) = (is_legacy, is_framed);
        }
        let seen = stage.read().await;
        let ids: Vec<String> = ["a", "b", "c", "d", "e"].map(|name| format!("docs://shelf/{name}")).into();
        assert_eq!(seen.ids(), ids, "legacy {is_legacy}, framed {is_framed}");
        assert_eq!((seen.pages, seen.partial.len()), (3, 0));
        assert_eq!(stage.text("c").await.as_deref(), Some("Body of c"));
        assert_eq!(stage.text("x").await, None);
        let account = stage.connect("indexed").check(&stage.world.call).await.unwrap();
        assert_eq!(account.name.as_deref(), Some(if is_legacy { "legacy" } else { "modern" }));
    }
}

#[tokio::test]
async fn a_session_that_was_forgotten_is_begun_anew() {
    let stage = Stage::new().await;
    stage.shelf.lock().unwrap().is_legacy = true;
    let provider = stage.connect("indexed");
    let id = ExternalId::new("docs://shelf/a").unwrap();
    assert!(matches!(provider.fetch(&stage.world.call, &id, None).await, Ok(Fetched::Body(_))));
    stage.shelf.lock().unwrap().session += 1;
    assert!(matches!(provider.fetch(&stage.world.call, &id, None).await, Ok(Fetched::Body(_))));
}

#[tokio::test]
async fn what_changed_is_known_by_its_bytes_and_what_went_by_asking() {
    let stage = Stage::new().await;
    let provider = stage.connect("indexed");
    let id = ExternalId::new("docs://shelf/a").unwrap();
    let Fetched::Body(body) = provider.fetch(&stage.world.call, &id, None).await.unwrap() else {
        panic!("no body")
    };
    assert_eq!(body.url.as_deref(), Some("docs://shelf/a"));
    let same = provider.fetch(&stage.world.call, &id, Some(&body.version)).await.unwrap();
    assert_eq!(same, Fetched::Same);
    stage.put("a", "Another body");
    let changed = provider.fetch(&stage.world.call, &id, Some(&body.version)).await.unwrap();
    assert!(matches!(changed, Fetched::Body(changed) if changed.bytes == "Another body"));
    stage.shelf.lock().unwrap().resources.retain(|(uri, _)| uri != "docs://shelf/a");
    assert_eq!(stage.read().await.present.len(), 4);
    assert_eq!(provider.fetch(&stage.world.call, &id, Some(&body.version)).await.unwrap(), Fetched::Gone);
    assert_eq!(
        (provider.traits().listing, provider.traits().deletions),
        (Listing::BestEffort, Deletions::ByProbe)
    );
}

#[tokio::test]
async fn only_tools_that_may_be_called_are_called() {
    let stage = Stage::new().await;
    let live = || stage.connect("live");
    stage.shelf.lock().unwrap().tools = vec![json!({"name": "search"}), json!({"name": "fetch"})];
    assert!(
        matches!(live().check(&stage.world.call).await, Err(Fault::Broken(reason)) if reason.contains("searchTool"))
    );
    assert_eq!(live().search(&stage.world.call, "x", 5).await, Err(Fault::Refused));
    assert!(stage.fake.take_asked().iter().all(|asked| asked.json()["method"] != "tools/call"));

    let read_only = |name: &str| json!({"name": name, "annotations": {"readOnlyHint": true}});
    stage.shelf.lock().unwrap().tools = vec![read_only("search"), read_only("fetch")];
    let provider = live();
    provider.check(&stage.world.call).await.unwrap();
    let found = provider.search(&stage.world.call, "onboarding", 5).await.unwrap();
    assert_eq!((found.len(), found[0].title.as_str()), (1, "onboarding"));
    let Fetched::Body(body) = provider.fetch(&stage.world.call, &found[0].id, None).await.unwrap() else {
        panic!("no body")
    };
    assert_eq!((body.bytes, body.url.as_deref()), ("All of it.".into(), Some("https://docs.example/1")));
}

#[tokio::test]
async fn the_tool_that_the_admin_chose_is_called_without_the_hint() {
    let stage = Stage::new().await;
    stage.shelf.lock().unwrap().tools = vec![json!({"name": "find"})];
    let settings = json!({"url": stage.fake.base().as_str(), "searchTool": "find", "queryArgument": "query"});
    let provider = stage.world.connect(ProviderKind::Mcp, &settings, &json!({"token": TOKEN}), "live");
    assert_eq!(provider.search(&stage.world.call, "x", 5).await.unwrap().len(), 1);
}

#[tokio::test]
async fn limits_credentials_hostility_and_cancelling_are_as_everywhere() {
    let stage = Stage::new().await;
    let connect = || stage.connect("indexed");
    let limit = Reply::refusal(429).header("retry-after", "30");
    contract::keeps_limits(&stage.world, &stage.fake, &connect, limit).await;
    contract::tells_wrong_credentials(&stage.world, &stage.fake, &connect, Reply::refusal(401)).await;
    contract::can_be_cancelled(&stage.world, &stage.fake, &connect).await;
    contract::loses_odd_positions(&stage.world, &*connect()).await;
    contract::survives_hostile_answers(
        &stage.world,
        &stage.fake,
        &connect,
        "docs://shelf/a",
        contract::Service::OneAddress,
    )
    .await;
}

#[tokio::test]
async fn a_cursor_that_is_no_longer_known_loses_the_place() {
    let stage = Stage::new().await;
    let provider = stage.connect("indexed");
    let Then::More(next) = provider.list(&stage.world.call, None).await.unwrap().then else {
        panic!("one page")
    };
    stage.fake.set_mood(Mood::Once(refused(INVALID_PARAMS)));
    assert_eq!(provider.list(&stage.world.call, Some(&next)).await, Err(Fault::PositionLost));
}

#[tokio::test]
async fn an_item_that_cannot_be_kept_costs_only_itself() {
    let stage = Stage::new().await;
    stage.put(&"x".repeat(10_000), "A long name.");
    let seen = stage.read().await;
    assert_eq!((seen.present.len(), seen.faults.len()), (5, 1));
}

#[tokio::test]
async fn settings_are_checked_all_at_once() {
    let world = Caller::new();
    let violations = world.violations(
        ProviderKind::Mcp,
        &json!({"urls": "x", "queryArgument": "q"}),
        &json!({"key": "x"}),
    );
    let expected = [
        "settings.url required",
        "settings.queryArgument invalid_value",
        "settings.urls unknown_field",
        "credentials.key unknown_field",
    ];
    assert_eq!(violations, expected);
    let inside = json!({"url": "https://169.254.169.254/mcp"});
    assert_eq!(world.violations(ProviderKind::Mcp, &inside, &json!({})), ["settings.url not_public"]);
}
