//! External embedders: they may be down, slow, or replaced by another one.

use crate::support::callers::{Anonymous, ApiToken};
use crate::support::commands::run_ok;
use crate::support::embedder::{EmbedderServer, wait_until_active};
use crate::support::http::{Http, id, items, text};
use crate::support::mcp;
use crate::support::mesh::Mesh;
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::{announce_skip, run_alone};
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::wait::eventually;

/// Shares no word with the text that it must find; to the endpoint they are synonyms.
const SYNONYM: &str = "marsupial";
const QUOKKA: &str = "The quokka smiles at everybody.\n";

#[test]
fn an_endpoint_that_is_down_leaves_the_words() {
    run_alone(async {
        let server = EmbedderServer::start();
        let environment = server.environment("first");
        let up = SingleProcess::start_with(&borrowed(&environment)).await;
        down_and_back(&up.token(), &server).await;
        assert!(!up.process().output().contains("embedder-s3cret"), "the key was logged");
    });
}

#[test]
fn an_endpoint_that_is_down_leaves_the_words_in_a_mesh() {
    run_alone(async {
        let server = EmbedderServer::start();
        // The mesh borrows its environment for 'static.
        let environment: Vec<(&'static str, &'static str)> = server
            .environment("first")
            .into_iter()
            .map(|(name, value)| (name, &*Box::leak(value.into_boxed_str())))
            .collect();
        let mesh = match Mesh::start_with(&environment).await {
            Ok(mesh) => mesh,
            Err(why) => return announce_skip(&why),
        };
        let token = ApiToken { http: Http::new(&mesh.base_url()), secret: mesh.owner().token.clone() };
        down_and_back(&token, &server).await;
        assert!(!mesh.output().contains("embedder-s3cret"), "the key was logged");
    });
}

async fn down_and_back(token: &ApiToken, server: &EmbedderServer) {
    wait_until_active(token, "first").await;
    let quokka = create(token, QUOKKA).await;
    wait_until_found(token, SYNONYM, &quokka).await;

    server.set_down(true);
    let coffee = create(token, "An espresso is drunk standing.\n").await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let answer =
            search(token, &coffee, json!({"query": "espresso standing", "strategy": strategy})).await;
        assert_eq!(items(&answer["results"])[0]["fileId"], coffee.file, "{strategy}: {answer}");
        let expected: &[&str] = if strategy == "keyword" { &[] } else { &["provider_unavailable"] };
        assert_eq!(codes(&answer), expected, "{strategy}: {answer}");
    }
    let searches = json!([{"type": "vec", "text": "espresso"}, {"type": "lex", "text": "standing"}]);
    let answer = search(token, &coffee, json!({"query": "espresso", "searches": searches})).await;
    assert_eq!(items(&answer["results"])[0]["fileId"], coffee.file, "{answer}");
    let by_mcp = mcp::call(token, "search_context", json!({"query": "espresso standing"})).await;
    assert!(by_mcp.to_string().contains("espresso"), "{by_mcp}");

    server.set_down(false);
    wait_until_found(token, "beverage", &coffee).await;
}

#[test]
fn another_embedder_takes_over_while_the_old_index_answers() {
    run_alone(async {
        let data = Scratch::new();
        let server = EmbedderServer::start();
        let (quokka, coffee) = {
            let mut up = SingleProcess::start_on(data.path(), &[]).await;
            let token = up.token();
            let (quokka, coffee) = (create(&token, QUOKKA).await, create(&token, "An espresso.\n").await);
            found_by_words(&token, &coffee, "espresso").await;
            assert!(up.stop().await.success());
            (quokka, coffee)
        };

        server.set_batches_stalled(true);
        let environment = server.environment("second");
        let mut up = SingleProcess::start_on(data.path(), &borrowed(&environment)).await;
        eventually("the endpoint is asked for the documents", async || (server.calls() > 1).then_some(()))
            .await;
        found_by_words(&up.token(), &coffee, "espresso").await;
        found_by_words(&up.token(), &quokka, "quokka").await;
        let (url, secret) = (up.base_url(), up.owner().token.as_str());
        let told = eventually("it is told how much is built", async || {
            let told = run_ok(&["models", "status", "--url", url, "--token", secret], &[]).await;
            told.contains(" % of it are there").then_some(told)
        })
        .await;
        assert!(told.contains("an index of openai-second is being built"), "{told}");
        let overview = mcp::call_json(&up.token(), "get_workspace_overview", json!({})).await;
        assert!(overview["indexing"]["nextEmbedderPercent"].as_u64().is_some_and(|built| built < 100));
        let during = create(&up.token(), "A puffin nests in a burrow.\n").await;
        found_by_words(&up.token(), &during, "puffin").await;
        // Killed halfway through.
        up.kill();
        drop(up);

        server.set_batches_stalled(false);
        let up = SingleProcess::start_on(data.path(), &borrowed(&environment)).await;
        wait_until_active(&up.token(), "second").await;
        wait_until_found(&up.token(), SYNONYM, &quokka).await;
        wait_until_found(&up.token(), "puffin burrow", &during).await;
        let generations = || {
            let entries = std::fs::read_dir(data.path().join("index")).unwrap();
            entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
        };
        eventually("the old index is removed", async || (generations() == 1).then_some(())).await;
    });
}

#[test]
fn an_embedder_that_can_never_be_is_told_at_the_start() {
    run_alone(async {
        for (embedder, told) in [
            ("word2vec", "CAIRN_EMBEDDER is"),
            ("openai:http://127.0.0.1:1/v1", "CAIRN_EMBEDDER_MODEL"),
            (
                "candle:/nowhere/at/all",
                if cfg!(feature = "transformer") { "/nowhere/at/all" } else { "`transformer`" },
            ),
            ("candle:owner/model", "CAIRN_ALLOW_DOWNLOADS"),
        ] {
            let data = Scratch::new();
            let mut process: Process = SingleProcess::launch(data.path(), &[("CAIRN_EMBEDDER", embedder)]);
            assert!(!process.exit().await.success(), "{embedder}");
            let output = process.stderr();
            assert!(output.contains(told), "{embedder}: {output}");
        }
    });
}

#[test]
fn an_endpoint_that_was_never_there_keeps_nobody_waiting() {
    run_alone(async {
        // Nothing listens there.
        let environment =
            [("CAIRN_EMBEDDER", "openai:http://127.0.0.1:1/v1"), ("CAIRN_EMBEDDER_MODEL", "none")];
        let up = SingleProcess::start_with(&environment).await;
        let quokka = create(&up.token(), QUOKKA).await;
        found_by_words(&up.token(), &quokka, "quokka").await;
        Anonymous { http: Http::new(up.base_url()) }.get("/readyz").await.expect(200);
    });
}

/// A file, and the change token of its creation.
pub(crate) struct Created {
    file: Value,
    change: String,
}

pub(crate) async fn create(token: &ApiToken, content: &str) -> Created {
    let body = json!({"name": "note.md", "content": content, "fileType": "markdown"});
    let reply = token.post("/api/v1/files").json(body).await.expect(201);
    Created { file: json!(id(&reply.json())), change: reply.change() }
}

async fn search(token: &ApiToken, after: &Created, query: Value) -> Value {
    let request = token.post("/api/v1/search_context").after(&after.change);
    request.header("x-cairn-wait-ms", "10000").json(query).await.expect(200).json()
}

pub(crate) async fn found_by_words(token: &ApiToken, created: &Created, query: &str) {
    let answer = search(token, created, json!({"query": query})).await;
    assert_eq!(items(&answer["results"])[0]["fileId"], created.file, "{answer}");
}

/// Waits until the file is the best result by meaning, and nothing is left to embed.
pub(crate) async fn wait_until_found(token: &ApiToken, query: &str, wanted: &Created) {
    eventually("a file is found by its meaning", async || {
        let answer = search(token, wanted, json!({"query": query, "strategy": "semantic"})).await;
        let is_best = items(&answer["results"]).first().is_some_and(|best| best["fileId"] == wanted.file);
        (is_best && codes(&answer).is_empty()).then_some(())
    })
    .await;
}

fn codes(answer: &Value) -> Vec<String> {
    items(&answer["coverage"]).iter().map(|note| text(note, "code")).collect()
}

fn borrowed<'a>(environment: &'a [(&'static str, String)]) -> Vec<(&'a str, &'a str)> {
    environment.iter().map(|(name, value)| (*name, value.as_str())).collect()
}
