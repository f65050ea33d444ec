//! Allowed origins (contract, "Console API"; spec 5.10): the whole origin must match, and nothing else counts as one.

use crate::support::mcp;
use crate::support::prelude::*;

scenarios![nothing_but_the_own_origin_passes];

async fn nothing_but_the_own_origin_passes(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let own = deployment.base_url();
    let address = own.trim_start_matches("http://").to_owned();
    let host = address.split(':').next().unwrap_or_default().to_owned();
    let ping = mcp::message(1, "ping", &json!({}));
    for odd in [
        format!("https://{address}"),
        format!("http://{host}"),
        format!("http://{host}:1"),
        format!("{own}/"),
        format!("{own}/path"),
        format!("{own}?query"),
        format!("http://somebody@{address}"),
        format!("http://somebody:secret@{address}"),
        format!("http://{address}@evil.example"),
        format!("http://{address}.evil.example"),
        format!("{own} {own}"),
        address.clone(),
        "null".to_owned(),
    ] {
        let called = mcp::post(&workspace.token).header("origin", &odd).json(&ping).await;
        assert_eq!(called.status, 403, "{odd}: {}", called.text());
        called.expect_error(403, "ORIGIN_NOT_ALLOWED");
        let written = workspace.session.post("/api/workspaces").header("origin", &odd);
        written.json(json!({"name": "x"})).await.expect_error(403, "ORIGIN_NOT_ALLOWED");
    }
    mcp::post(&workspace.token).header("origin", &own).json(&ping).await.expect(200);
    let written = workspace.session.post("/api/workspaces").header("origin", &own);
    written.json(json!({"name": "made from here"})).await.expect(201);
}
