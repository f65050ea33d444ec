//! Read-your-writes for agents: the next search finds a write without a token from the agent (consistency token,
//! contract).

use crate::support::callers::ApiToken;
use crate::support::http::{each, id, items};
use crate::support::mcp::{self, call_json, legacy, message, modern, post};
use crate::support::prelude::*;

scenarios![
    what_was_just_written_is_found,
    what_was_just_changed_and_deleted_is_found_as_it_is,
    a_write_and_a_search_of_one_batch_agree,
];

const ROUNDS: u32 = 12;

async fn what_was_just_written_is_found(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for round in 0..ROUNDS {
        let word = format!("zw{round}q7k");
        call_json(&token, "create_file", file(&format!("n{round}.md"), &word)).await;
        assert_eq!(found(&token, &word).await.len(), 1, "round {round}");
    }
}

async fn what_was_just_changed_and_deleted_is_found_as_it_is(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    let made = id(&call_json(&token, "create_file", file("a.md", "zebrafinch")).await);
    for round in 0..ROUNDS {
        let (old, new) = (format!("zv{round}q7k"), format!("zv{}q7k", round + 1));
        call_json(&token, "update_file", json!({"id": made, "content": new})).await;
        assert_eq!(found(&token, &new).await, [made.as_str()], "round {round}");
        assert!(found(&token, &old).await.is_empty(), "round {round}: what was replaced is still found");
    }
    call_json(&token, "delete_file", json!({"id": made})).await;
    assert!(found(&token, &format!("zv{ROUNDS}q7k")).await.is_empty());
}

async fn a_write_and_a_search_of_one_batch_agree(deployment: &Deployment) {
    let token = deployment.workspace().await.token;
    for round in 0..ROUNDS {
        let word = format!("zb{round}q7k");
        let write = json!({"name": "create_file", "arguments": file(&format!("b{round}.md"), &word)});
        let batch = json!([message(1, "tools/call", &write), message(2, "tools/call", &search(&word))]);
        let answers = post(&token).json(batch).await.expect(200).json();
        let answer = items(&answers).iter().find(|answer| answer["id"] == json!(2)).unwrap();
        if let Some(files) = complete(&answer["result"]) {
            assert_eq!(files.len(), 1, "round {round}: {answer}");
        }
    }
}

fn file(name: &str, word: &str) -> Value {
    json!({"name": name, "content": format!("It says {word}.\n"), "fileType": "markdown"})
}

fn search(word: &str) -> Value {
    json!({"name": "search_context", "arguments": {"query": format!("\"{word}\""), "strategy": "keyword"}})
}

/// The files that both eras find at once. Retried when the answer itself reports that the index was too slow: speed is
/// not under test here.
async fn found(token: &ApiToken, word: &str) -> Vec<String> {
    let by_handshake = eventually("the index keeps up", async || {
        complete(&mcp::result(legacy(token, "tools/call", search(word)).await))
    });
    let by_handshake = by_handshake.await;
    let stateless = eventually("the index keeps up", async || {
        complete(&mcp::result(modern(token, "tools/call", search(word)).await))
    });
    assert_eq!(stateless.await, by_handshake);
    by_handshake
}

fn complete(result: &Value) -> Option<Vec<String>> {
    let answer = &result["structuredContent"];
    let is_behind = each(&answer["coverage"], "code").contains(&"index_behind");
    let files = || each(&answer["results"], "fileId").into_iter().map(ToOwned::to_owned).collect();
    (!is_behind).then(files)
}
