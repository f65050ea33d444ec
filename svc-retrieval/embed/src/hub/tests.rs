//! Against a server that sends on, as hubs do.

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use cairn_chassis::outbound::Network;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;
use crate::record::RECORD_FILE;

async fn hub(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn model(hub: String, models: &Path) -> FetchedModel {
    FetchedModel { hub, name: "owner/tiny".to_owned(), models: models.to_owned(), allowed: Vec::new() }
}

fn loopback() -> Guard {
    Guard::new(&["127.0.0.0/8".parse::<Network>().unwrap()]).unwrap()
}

fn files() -> Router {
    Router::new()
        .route("/owner/tiny/resolve/main/config.json", get(async || "{}"))
        .route("/owner/tiny/resolve/main/tokenizer.json", get(async || "{\"a\": 1}"))
        .route("/owner/tiny/resolve/main/model.safetensors", get(async || Redirect::temporary("/stored")))
        .route("/stored", get(async || "weights"))
}

#[tokio::test]
async fn a_model_is_fetched_once_with_a_record_of_what_came() {
    let models = tempfile::tempdir().unwrap();
    let wanted = model(hub(files()).await, models.path());
    let folder = wanted.fetch(&loopback()).await.unwrap();
    assert_eq!(folder, models.path().join("owner--tiny"));
    assert_eq!(fs_err::read_to_string(folder.join("model.safetensors")).unwrap(), "weights");
    assert!(!folder.join("sentence_bert_config.json").exists());
    let record: Value = serde_json::from_slice(&fs_err::read(folder.join(RECORD_FILE)).unwrap()).unwrap();
    let weights = &record.as_array().unwrap()[2];
    assert_eq!(weights["bytes"], 7);
    assert_eq!(weights["sha256"], "9a129038d9a00aed0cf6a7ea059ca50a813449061ab87848cf1a13eafdf33b2c");
    // Nothing listens there: it is not asked for again.
    let known = FetchedModel { hub: "http://127.0.0.1:1".to_owned(), ..wanted };
    assert_eq!(known.fetch(&loopback()).await.unwrap(), folder);
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_no_model() {
    let models = tempfile::tempdir().unwrap();
    let partial = Router::new().route("/owner/tiny/resolve/main/config.json", get(async || "{}"));
    let wanted = model(hub(partial).await, models.path());
    assert!(matches!(wanted.fetch(&loopback()).await.unwrap_err(), Error::Unavailable { .. }));
    assert!(!wanted.folder().exists());
    // The next attempt begins anew.
    let wanted = FetchedModel { hub: hub(files()).await, ..wanted };
    wanted.fetch(&loopback()).await.unwrap();
}

#[tokio::test]
async fn a_model_with_malformed_prompts_is_not_fetched_again() {
    let models = tempfile::tempdir().unwrap();
    let prompts = "/owner/tiny/resolve/main/config_sentence_transformers.json";
    let wanted = model(hub(files().route(prompts, get(async || "["))).await, models.path());
    let folder = wanted.fetch(&loopback()).await.unwrap();
    assert!(matches!(Prefixes::of_folder(&folder), Err(Error::Model { .. })));
    let known = FetchedModel { hub: "http://127.0.0.1:1".to_owned(), ..wanted };
    assert_eq!(known.fetch(&loopback()).await.unwrap(), folder);
}

#[tokio::test]
async fn a_hub_inside_is_not_asked_unless_it_is_allowed() {
    let models = tempfile::tempdir().unwrap();
    let wanted = model(hub(files()).await, models.path());
    assert!(wanted.fetch(&Guard::new(&[]).unwrap()).await.is_err());
}

#[test]
fn a_name_is_no_path() {
    assert!(FetchedModel::is_name("sentence-transformers/all-MiniLM-L6-v2"));
    for path in ["", "model", "/models/tiny", "./tiny", "../tiny", "a/b/c", "a/", "a/..", "~/tiny", "a b/c"] {
        assert!(!FetchedModel::is_name(path), "{path:?}");
    }
}
