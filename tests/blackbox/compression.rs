//! Compressed responses (contract, "Reading and writing, completed").

use crate::support::mcp;
use crate::support::prelude::*;

scenarios![large_json_is_compressed_when_the_caller_wants, what_holds_secrets_is_not_compressed];

const OPENAPI: &str = "/api/docs/openapi.json";

async fn large_json_is_compressed_when_the_caller_wants(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let text = "the same line again and again\n".repeat(200);
    let file = workspace.file_id("long.md", None, &text).await;
    let path = format!("/api/v1/files/{file}");
    let plain = workspace.token.get(&path).await.expect(200);
    assert_eq!(plain.header("content-encoding"), None);
    for wanted in ["zstd", "zstd, gzip;q=0.5", "br;q=0.1, zstd"] {
        let reply = workspace.token.get(&path).header("accept-encoding", wanted).await.expect(200);
        assert_eq!(reply.header("content-encoding"), Some("zstd"), "{wanted}");
        assert!(reply.header("vary").is_some_and(|vary| vary.contains("accept-encoding")), "{reply:?}");
        assert!(reply.body.len() * 2 < plain.body.len(), "{} of {}", reply.body.len(), plain.body.len());
        assert_eq!(zstd::decode_all(&*reply.body).unwrap(), &*plain.body);
        assert_eq!(reply.header("etag"), plain.header("etag"));
    }
    let squeezed = workspace.token.get(&path).header("accept-encoding", "gzip, deflate").await.expect(200);
    assert_eq!(squeezed.header("content-encoding"), Some("gzip"));
    assert!(squeezed.body.starts_with(&[0x1f, 0x8b]) && squeezed.body.len() * 2 < plain.body.len());
    for unwanted in ["identity", "gzip;q=0", "unheard-of"] {
        let reply = workspace.token.get(&path).header("accept-encoding", unwanted).await.expect(200);
        assert_eq!((reply.header("content-encoding"), &reply.body), (None, &plain.body), "{unwanted}");
    }
    for (path, is_large) in [("/api/v1/workspace", false), (OPENAPI, true)] {
        let reply = workspace.token.get(path).header("accept-encoding", "zstd").await.expect(200);
        assert_eq!(reply.header("content-encoding").is_some(), is_large, "{path}");
    }
    let raw = workspace.token.get(&format!("{path}/raw")).header("accept-encoding", "zstd").await.expect(200);
    assert_eq!((raw.header("content-encoding"), raw.text()), (None, text), "JSON only");
    let tools = mcp::post(&workspace.token).header("accept-encoding", "zstd");
    let tools = tools.json(mcp::message(1, "tools/list", &json!({}))).await.expect(200);
    assert_eq!(tools.header("content-encoding"), Some("zstd"));
}

async fn what_holds_secrets_is_not_compressed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let path = format!("/api/workspaces/{}/tokens", workspace.id);
    let long = "n".repeat(100);
    for _ in 0..10 {
        workspace.session.post(&path).json(json!({"name": long, "permissions": ["read"]})).await.expect(201);
    }
    for path in [path.as_str(), "/api/session"] {
        let reply = workspace.session.get(path).header("accept-encoding", "zstd, gzip").await.expect(200);
        assert_eq!(reply.header("content-encoding"), None, "{path}");
    }
}
