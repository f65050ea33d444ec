//! Tests against third-party servers: emulators of services, and the reference server of MCP. They run if the address of one is configured;
//! see CONTRIBUTING.md.

use bytes::Bytes;
use http::{Method, Request, header};
use serde_json::{Value, json};

use crate::contract::{self, Caller};
use crate::{Fetched, Item, ProviderKind};

/// Lists a counterpart.
async fn listed(kind: ProviderKind, settings: Value, credentials: Value) -> usize {
    let world = Caller::new();
    let connect = || world.connect(kind, &settings, &credentials, "indexed");
    let account = connect().check(&world.call).await.unwrap();
    println!("{kind}: {account:?}");
    let (seen, _) = contract::read(&world.call, &connect, None).await.unwrap();
    println!("{kind}: {} documents, {:?}, {:?}", seen.present.len(), seen.faults, seen.partial);
    assert!(seen.faults.is_empty(), "{:?}", seen.faults);
    let page = connect().list(&world.call, None).await.unwrap();
    let mut bodies = 0;
    for item in page.items.iter().take(3) {
        let Item::Present(entry) = item else { continue };
        let fetched = connect().fetch(&world.call, &entry.id, None).await;
        println!(
            "{kind}: {} {:?}",
            entry.title,
            fetched.as_ref().map(|fetched| matches!(fetched, Fetched::Body(_)))
        );
        bodies += usize::from(matches!(fetched, Ok(Fetched::Body(_))));
    }
    assert!(bodies > 0 || kind == ProviderKind::Notion, "{kind}: no body");
    seen.present.len()
}

/// Searches a counterpart, and fetches the results.
async fn searched(kind: ProviderKind, settings: Value, credentials: Value, query: &str) -> usize {
    let world = Caller::new();
    let provider = world.connect(kind, &settings, &credentials, "live");
    let account = provider.check(&world.call).await.unwrap();
    let found = provider.search(&world.call, query, 3).await.unwrap();
    println!("{kind}: {account:?}, {} documents", found.len());
    for entry in &found {
        let Ok(Fetched::Body(body)) = provider.fetch(&world.call, &entry.id, None).await else {
            panic!("{kind}: no body of {}", entry.title)
        };
        println!("{kind}: {} at {:?}, {} bytes", entry.title, body.url, body.bytes.len());
        assert!(!body.bytes.is_empty() && body.url.is_some());
    }
    found.len()
}

/// The address from an environment variable; otherwise prints that the test is skipped.
fn address(name: &str, what: &str) -> Option<String> {
    let address = std::env::var(name).ok().filter(|address| !address.is_empty());
    if address.is_none() {
        println!("skipped: {name} does not give the address of {what}");
    }
    address
}

#[tokio::test]
async fn an_emulator_of_services_is_read() {
    let Some(base) = address("CAIRN_TEST_BACKLOT", "a running backlot") else { return };
    let token = "admin-service-token";
    let github = json!({"owner": "acme", "content": ["issues", "pulls", "files"], "baseUrl": format!("{base}/github")});
    assert!(listed(ProviderKind::Github, github, json!({"token": token})).await > 0);
    let linear = json!({"baseUrl": format!("{base}/linear")});
    assert!(listed(ProviderKind::Linear, linear, json!({"token": token})).await > 0);
    let jira = json!({"site": format!("{base}/atlassian")});
    assert!(listed(ProviderKind::Jira, jira, json!({"email": "admin@acme.com", "token": token})).await > 0);
    // It lacks `/markdown`, which provides the texts of pages.
    let notion = json!({"baseUrl": format!("{base}/notion")});
    assert!(listed(ProviderKind::Notion, notion, json!({"token": token})).await > 0);
    // It only has the older search.
    let slack = json!({"baseUrl": format!("{base}/slack/api")});
    assert!(searched(ProviderKind::Slack, slack, json!({"token": token}), "the").await > 0);
}

#[tokio::test]
async fn a_mock_of_drive_is_read_and_followed() {
    let Some(base) = address("CAIRN_TEST_DRIVE_MOCK", "a running google-drive-mock") else { return };
    let world = Caller::new();
    let send = async |method: Method, path: &str, body: Value| {
        let request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(header::AUTHORIZATION, "Bearer valid-token")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Bytes::from(body.to_string()))
            .unwrap();
        world.call.send(request, 100_000).await.unwrap()
    };
    send(Method::POST, "/debug/clear", json!({})).await;
    for id in ["one", "two", "three"] {
        let file = json!({"id": id, "name": format!("{id}.md"), "mimeType": "text/markdown", "content": format!("# {id}")});
        send(Method::POST, "/drive/v3/files", file).await;
    }
    let (settings, credentials) = (json!({"baseUrl": base}), json!({"accessToken": "valid-token"}));
    let connect = || world.connect(ProviderKind::GoogleDrive, &settings, &credentials, "indexed");
    println!("google_drive: {:?}", connect().check(&world.call).await.unwrap());
    let (seen, from) = contract::read(&world.call, &connect, None).await.unwrap();
    assert_eq!((seen.ids(), seen.faults.len(), seen.partial.len()), (vec!["one", "three", "two"], 0, 0));
    assert_eq!(contract::text(&world.call, &*connect(), "two").await.as_deref(), Some("# two"));
    send(Method::PATCH, "/drive/v3/files/one", json!({"name": "renamed.md"})).await;
    send(Method::DELETE, "/drive/v3/files/two", json!({})).await;
    let (changed, _) = contract::read(&world.call, &connect, Some(&from)).await.unwrap();
    assert_eq!(changed.present.get("one").map(String::as_str), Some("renamed.md"), "{changed:?}");
    assert!(changed.gone.contains("two") && !changed.present.contains_key("three"), "{changed:?}");
    assert_eq!(contract::text(&world.call, &*connect(), "two").await, None);
}

#[tokio::test]
async fn the_reference_server_of_mcp_is_read() {
    let Some(base) = address("CAIRN_TEST_MCP_EVERYTHING", "a running server-everything") else { return };
    assert!(listed(ProviderKind::Mcp, json!({"url": base}), json!({})).await > 0);
}
