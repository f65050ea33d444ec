//! `cairn mcp`: the real binary as a bridge from stdio to `/mcp`.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use crate::support::http::items;
use crate::support::mcp::{MODERN, with_modern_meta};
use crate::support::prelude::*;

scenarios![
    both_eras_pass_the_bridge,
    many_requests_and_batches_are_answered,
    all_that_is_under_way_is_answered_after_the_end,
    what_http_refuses_becomes_an_error_with_the_id,
];

/// A running bridge, and its output.
struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Bridge {
    fn start(url: &str, token: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cairn"))
            .arg("mcp")
            .env("CAIRN_URL", url)
            .env("CAIRN_TOKEN", token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                // The receiver is dropped when the test has ended.
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { input: child.stdin.take(), child, lines }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    }

    /// The next line; `None` at the end of the output.
    async fn line(&self) -> Option<Value> {
        let line = eventually("the bridge answers", async || match self.lines.try_recv() {
            Ok(line) => Some(Some(line)),
            Err(TryRecvError::Disconnected) => Some(None),
            Err(TryRecvError::Empty) => None,
        });
        let line = line.await?;
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }

    async fn answer(&self) -> Value {
        self.line().await.unwrap_or_else(|| panic!("the bridge has ended"))
    }

    /// Closes its stdin.
    fn close(&mut self) {
        self.input = None;
    }

    /// The exit status and the log.
    async fn end(&mut self) -> (ExitStatus, String) {
        self.close();
        let status = eventually("the bridge ends", async || self.child.try_wait().unwrap()).await;
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (status, log)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // An error means that it has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn both_eras_pass_the_bridge(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut bridge = Bridge::start(&deployment.base_url(), &workspace.token.secret);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    bridge.request(1, "initialize", hello);
    let opened = bridge.answer().await;
    assert_eq!((&opened["id"], &opened["result"]["protocolVersion"]), (&json!(1), &json!("2025-06-18")));
    bridge.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    bridge.request(2, "tools/list", json!({}));
    let listed = bridge.answer().await;
    assert_eq!(
        (&listed["id"], items(&listed["result"]["tools"]).len()),
        (&json!(2), 28),
        "no answer between"
    );
    bridge.request(
        3,
        "tools/call",
        json!({"name": "create_file", "arguments": {"name": "ü.md", "content": "a\nb", "fileType": "text"}}),
    );
    let made = bridge.answer().await;
    assert_eq!(made["result"]["structuredContent"]["name"], "ü.md", "{made}");

    bridge.request(4, "server/discover", with_modern_meta(json!({})));
    let found = bridge.answer().await;
    assert!(items(&found["result"]["supportedVersions"]).contains(&json!(MODERN)), "{found}");
    let call = json!({"name": "list_files", "arguments": {}});
    bridge.request(5, "tools/call", with_modern_meta(call));
    let listed = bridge.answer().await;
    assert_eq!(listed["result"]["structuredContent"]["total"], json!(1), "{listed}");
    bridge.request(6, "tools/call", with_modern_meta(json!({"name": "nö such", "arguments": {}})));
    assert_eq!(bridge.answer().await["error"]["code"], json!(-32602), "the name passes the headers");
    let (status, log) = bridge.end().await;
    assert!(status.success() && log.is_empty(), "{status} {log}");
}

async fn many_requests_and_batches_are_answered(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut bridge = Bridge::start(&deployment.base_url(), &workspace.token.secret);
    for id in 0..50 {
        let call = json!({"name": "search_files", "arguments": {"query": format!("q{id}")}});
        bridge.request(id, "tools/call", call);
    }
    let mut answered: BTreeMap<u64, bool> = BTreeMap::new();
    for _ in 0..50 {
        let answer = bridge.answer().await;
        answered.insert(answer["id"].as_u64().unwrap(), answer["result"]["isError"] == json!(false));
    }
    assert!(answered.len() == 50 && answered.values().all(|is_good| *is_good), "{answered:?}");
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": "b", "method": "tools/list"},
    ]);
    bridge.send(&batch.to_string());
    let answers = bridge.answer().await;
    let ids: Vec<&Value> = items(&answers).iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!("a"), &json!("b")]);
}

async fn all_that_is_under_way_is_answered_after_the_end(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut bridge = Bridge::start(&deployment.base_url(), &workspace.token.secret);
    for id in 0..5 {
        bridge.request(id, "tools/call", json!({"name": "get_workspace_overview", "arguments": {}}));
    }
    bridge.close();
    let mut ids = Vec::new();
    while let Some(answer) = bridge.line().await {
        ids.push(answer["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert!(bridge.end().await.0.success());
}

async fn what_http_refuses_becomes_an_error_with_the_id(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut bridge = Bridge::start(&deployment.base_url(), &workspace.token.secret);
    bridge.send("{\"jsonrpc\": \"2.0\", \"id\": 1,");
    let odd = bridge.answer().await;
    assert_eq!((&odd["id"], &odd["error"]["code"]), (&Value::Null, &json!(-32700)));
    bridge.request(2, "no/such", json!({}));
    assert_eq!(bridge.answer().await["error"]["code"], json!(-32601));
    assert!(bridge.end().await.0.success());

    let secret = format!("{}x", workspace.token.secret);
    let mut refused = Bridge::start(&deployment.base_url(), &secret);
    refused.request(7, "tools/list", json!({}));
    let answer = refused.answer().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(401)), "{answer}");
    refused.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let (status, log) = refused.end().await;
    assert!(status.success() && log.contains("a notification was not taken"), "{status} {log}");
    assert!(!log.contains(&secret) && !answer.to_string().contains(&secret));

    // Nothing listens there.
    let mut away = Bridge::start("http://[::1]:1", &workspace.token.secret);
    away.send(&json!([{"jsonrpc": "2.0", "id": 8, "method": "ping"}, {"jsonrpc": "2.0", "id": 9, "method": "ping"}]).to_string());
    let answers = away.answer().await;
    for (answer, id) in items(&answers).iter().zip([8, 9]) {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(503)), "{answer}");
    }
    assert!(away.end().await.0.success());
}
