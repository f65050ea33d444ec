//! The providers against servers that others wrote: emulators of the services, and the reference server of MCP. They are
//! asked when one runs and its address is given; see CONTRIBUTING.md.

use serde_json::{Value, json};

use crate::contract::{self, Caller};
use crate::{Fetched, Item, ProviderKind};

/// What was read of a counterpart.
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

/// The address in a variable, else a word about what is left out.
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
}

#[tokio::test]
async fn the_reference_server_of_mcp_is_read() {
    let Some(base) = address("CAIRN_TEST_MCP_EVERYTHING", "a running server-everything") else { return };
    assert!(listed(ProviderKind::Mcp, json!({"url": base}), json!({})).await > 0);
}
