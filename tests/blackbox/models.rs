//! `cairn models`: models are added from a folder and from a hub, tried, used, and removed.

use std::fs;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::path::Path;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::embedders::{create, found_by_words, wait_until_found};
use crate::support::callers::ApiToken;
use crate::support::commands::{run_err, run_ok};
use crate::support::mcp;
use crate::support::model::{self, DIMENSIONS, FILES, POSITIONS};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// The arguments of `cairn models` for a data folder.
fn on<'a>(data: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    ["models"].iter().chain(arguments).copied().chain(["--data", data]).collect()
}

async fn json_of(data: &str, arguments: &[&str]) -> Value {
    let output = run_ok(&on(data, &[arguments, &["--json"]].concat()), &[]).await;
    serde_json::from_str(&output).unwrap()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The embedder whose vectors searches use.
async fn embedder(token: &ApiToken) -> String {
    let overview = mcp::call_json(token, "get_workspace_overview", json!({})).await;
    overview["indexing"]["embedder"].as_str().unwrap_or_default().to_owned()
}

/// Waits until searches use the vectors of that embedder, and no other index is being built.
async fn wait_for_embedder(token: &ApiToken, beginning: &str) {
    eventually("the index of the embedder answers", async || {
        let indexing = mcp::call_json(token, "get_workspace_overview", json!({})).await["indexing"].clone();
        let is_meant = indexing["embedder"].as_str().is_some_and(|name| name.starts_with(beginning));
        (is_meant && indexing.get("nextEmbedder").is_none()).then_some(())
    })
    .await;
}

#[test]
fn a_model_of_a_folder_is_added_used_and_removed() {
    run_alone(async {
        let (data, source) = (Scratch::new(), Scratch::new());
        let tiny = source.path().join("tiny");
        model::write(&tiny);
        let (at, tiny) = (shown(data.path()), shown(&tiny));
        let (quokka, coffee) = {
            let mut up = SingleProcess::start_on(data.path(), &[]).await;
            let quokka = create(&up.token(), "quokka smiles quokka smiles\n").await;
            let coffee = create(&up.token(), "espresso coffee espresso coffee\n").await;
            found_by_words(&up.token(), &coffee, "espresso").await;
            assert!(up.stop().await.success());
            (quokka, coffee)
        };

        assert_eq!(json_of(&at, &["list"]).await, json!([]));
        let added = json_of(&at, &["add", &tiny]).await;
        assert_eq!((&added["name"], &added["dimensions"]), (&json!("tiny"), &json!(DIMENSIONS)));
        assert_eq!(added["window"], json!(POSITIONS));
        assert_eq!((&added["queryPrefix"], &added["passagePrefix"]), (&json!(""), &json!("")));
        let again = run_err(&on(&at, &["add", &tiny]), &[]).await;
        assert!(again.contains("there is a model tiny already"), "{again}");
        assert!(run_ok(&on(&at, &["check", "tiny"]), &[]).await.starts_with("OK: tiny"));
        assert_eq!(json_of(&at, &["list"]).await[0]["isInUse"], json!(false));

        let mut up = SingleProcess::start_on(data.path(), &[("CAIRN_EMBEDDER", "candle:tiny")]).await;
        wait_for_embedder(&up.token(), "candle-tiny-32-").await;
        wait_until_found(&up.token(), "marsupial", &quokka).await;
        wait_until_found(&up.token(), "beverage", &coffee).await;
        assert_eq!(json_of(&at, &["list"]).await[0]["isInUse"], json!(true));
        let in_use = run_err(&on(&at, &["remove", "tiny"]), &[]).await;
        assert!(in_use.contains("the index is made with tiny"), "{in_use}");
        assert!(up.stop().await.success());

        let up = SingleProcess::start_on(data.path(), &[]).await;
        wait_for_embedder(&up.token(), "static-").await;
        run_ok(&on(&at, &["remove", "tiny"]), &[]).await;
        assert_eq!(json_of(&at, &["list"]).await, json!([]));
    });
}

#[test]
fn other_prefixes_are_another_embedder_and_searches_find_with_them() {
    run_alone(async {
        let (data, source) = (Scratch::new(), Scratch::new());
        let tiny = source.path().join("tiny");
        model::write(&tiny);
        let (at, tiny) = (shown(data.path()), shown(&tiny));
        let prompts = json!({"prompts": {"query": "recipe: ", "passage": "server: "}}).to_string();
        fs::write(source.path().join("tiny/config_sentence_transformers.json"), prompts).unwrap();
        let prefixes = |model: &Value| (model["queryPrefix"].clone(), model["passagePrefix"].clone());

        let published = json_of(&at, &["add", &tiny]).await;
        assert_eq!(prefixes(&published), (json!("recipe: "), json!("server: ")));
        run_ok(&on(&at, &["remove", "tiny"]), &[]).await;
        let output = run_err(&on(&at, &["add", &tiny, "--query-prefix", &"apple ".repeat(40)]), &[]).await;
        assert!(output.contains("a prefix takes 40 of the 62 tokens"), "{output}");
        run_ok(&on(&at, &["add", &tiny, "--query-prefix", "apple ", "--passage-prefix", ""]), &[]).await;
        assert_eq!(prefixes(&json_of(&at, &["list"]).await[0]), (json!("apple "), json!("")));
        let list = run_ok(&on(&at, &["list"]), &[]).await;
        assert!(list.contains(", \"apple \" before queries"), "{list}");

        let name = {
            let mut up = SingleProcess::start_on(data.path(), &[("CAIRN_EMBEDDER", "candle:tiny")]).await;
            let quokka = create(&up.token(), "quokka smiles quokka smiles\n").await;
            wait_for_embedder(&up.token(), "candle-tiny-32-").await;
            wait_until_found(&up.token(), "marsupial", &quokka).await;
            let name = embedder(&up.token()).await;
            assert!(name.ends_with("-prefixed"), "{name}");
            assert!(up.stop().await.success());
            name
        };
        run_ok(&on(&at, &["remove", "tiny", "--force"]), &[]).await;
        run_ok(&on(&at, &["add", &tiny]), &[]).await;
        let up = SingleProcess::start_on(data.path(), &[("CAIRN_EMBEDDER", "candle:tiny")]).await;
        eventually("the index of the other prefixes answers", async || {
            (embedder(&up.token()).await != name).then_some(())
        })
        .await;
        wait_for_embedder(&up.token(), "candle-tiny-32-").await;
    });
}

#[test]
fn what_is_no_model_is_refused_with_a_reason_and_leaves_nothing() {
    run_alone(async {
        let (data, source) = (Scratch::new(), Scratch::new());
        let tiny = source.path().join("tiny");
        let (at, from) = (shown(data.path()), shown(&tiny));
        model::write(&tiny);
        let config = fs::read_to_string(tiny.join("config.json")).unwrap();
        let weights = fs::read(tiny.join("model.safetensors")).unwrap();

        fs::write(tiny.join("config.json"), config.replace("\"bert\"", "\"llama\"")).unwrap();
        let output = run_err(&on(&at, &["add", &from]), &[]).await;
        assert!(output.contains("the family llama"), "{output}");
        fs::write(tiny.join("config.json"), &config).unwrap();

        fs::write(tiny.join("model.safetensors"), &weights[..weights.len() / 2]).unwrap();
        let output = run_err(&on(&at, &["add", &from]), &[]).await;
        assert!(output.contains("cannot be used"), "{output}");
        fs::remove_file(tiny.join("model.safetensors")).unwrap();
        let output = run_err(&on(&at, &["add", &from]), &[]).await;
        assert!(output.contains("has no model.safetensors"), "{output}");
        fs::write(tiny.join("model.safetensors"), &weights).unwrap();
        let output = run_err(&on(&at, &["add", &from, "--sha256", &"0".repeat(64)]), &[]).await;
        assert!(output.contains("SHA-256"), "{output}");
        let output = run_err(&on(&at, &["add", &shown(&source.path().join("nowhere"))]), &[]).await;
        assert!(output.contains("there is no folder"), "{output}");

        assert_eq!(json_of(&at, &["list"]).await, json!([]));
        run_ok(&on(&at, &["add", &from, "--name", "other"]), &[]).await;
        fs::write(data.path().join("embedder/models/other/tokenizer.json"), "{}").unwrap();
        let output = run_err(&on(&at, &["check", "other"]), &[]).await;
        assert!(output.contains("tokenizer.json changed"), "{output}");
    });
}

#[test]
fn a_model_of_a_hub_is_fetched_through_the_guard() {
    run_alone(async {
        let (data, source) = (Scratch::new(), Scratch::new());
        model::write(source.path());
        let (at, hub) = (shown(data.path()), hub(source.path()));
        let add = ["add", "owner/tiny", "--model-hub", hub.as_str()];
        let output = run_err(&on(&at, &add), &[]).await;
        assert!(output.contains("does not lead to a public host"), "{output}");
        let inside = [("CAIRN_OUTBOUND_ALLOW", "127.0.0.0/8")];
        let other = ["add", "owner/other", "--model-hub", hub.as_str()];
        let output = run_err(&on(&at, &other), &inside).await;
        assert!(output.contains("config.json: the host answers with the status 404"), "{output}");
        run_ok(&on(&at, &add), &inside).await;
        run_ok(&on(&at, &["check", "owner/tiny"]), &[]).await;

        // The model is already local, so no outbound access is needed.
        let up = SingleProcess::start_on(data.path(), &[("CAIRN_EMBEDDER", "candle:owner/tiny")]).await;
        wait_for_embedder(&up.token(), "candle-owner--tiny-32-").await;
    });
}

/// A hub that serves the files of that folder as `owner/tiny`.
fn hub(folder: &Path) -> String {
    let mut router = Router::new();
    for file in FILES {
        let content = fs::read(folder.join(file)).unwrap();
        let place = format!("/owner/tiny/resolve/main/{file}");
        router = router.route(&place, get(move || async move { content }));
    }
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let listener = TcpListener::from_std(listener).unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
