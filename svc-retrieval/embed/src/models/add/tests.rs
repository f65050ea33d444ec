//! Of a model that is made here, from a folder and from a hub.

use axum::Router;
use axum::body::Bytes;
use axum::routing::get;
use cairn_chassis::outbound::Network;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::*;
use crate::Prefixes;
use crate::transformer::tests::model;

fn name(text: &str) -> ModelName {
    ModelName::parse(text).unwrap()
}

fn models() -> (TempDir, Models) {
    let root = tempfile::tempdir().unwrap();
    let models = Models::new(root.path().join("models"));
    (root, models)
}

fn add(models: &Models, source: &Path) -> Result<TriedModel, ModelError> {
    models.add_folder(&name("tiny"), source, &AddOptions::default(), &mut |_| ())
}

/// Says why, and leaves nothing.
#[track_caller]
fn refused(models: &Models, source: &Path) -> String {
    let reason = add(models, source).unwrap_err().to_string();
    assert!(models.list().unwrap().is_empty());
    assert!(models.find(&name("tiny")).is_none());
    reason
}

#[test]
fn a_folder_is_copied_tried_and_checked_again() {
    let ((_root, models), source) = (models(), model());
    let mut last = None;
    let mut told = |progress: Progress<'_>| last = Some((progress.bytes, progress.whole));
    let options = AddOptions { query_prefix: Some("how to ".to_owned()), ..AddOptions::default() };
    let tried = models.add_folder(&name("tiny"), source.path(), &options, &mut told).unwrap();
    assert_eq!((tried.dimensions, tried.window), (32, 64));
    assert!(last.is_some_and(|(bytes, whole)| whole == Some(bytes)));
    assert_eq!(models.check(&name("tiny")).unwrap(), tried);
    assert!(matches!(add(&models, source.path()), Err(ModelError::Exists { .. })));

    let prefixes = models.list().unwrap()[0].prefixes.clone().unwrap();
    assert_eq!((prefixes.query.as_str(), prefixes.passage.as_str()), ("how to ", ""));

    let folder = models.find(&name("tiny")).unwrap();
    fs_err::write(folder.join("tokenizer.json"), "{}").unwrap();
    assert!(models.check(&name("tiny")).unwrap_err().to_string().contains("tokenizer.json changed"));
    models.remove(&name("tiny")).unwrap();
    assert!(matches!(models.check(&name("tiny")), Err(ModelError::Absent { .. })));
}

#[test]
fn what_is_no_model_that_runs_here_is_refused_and_leaves_nothing() {
    let ((_root, models), source) = (models(), model());
    let path = |file: &str| source.path().join(file);
    let (config, weights) = (
        fs_err::read_to_string(path("config.json")).unwrap(),
        fs_err::read(path("model.safetensors")).unwrap(),
    );

    fs_err::write(path("config.json"), config.replace("\"bert\"", "\"llama\"")).unwrap();
    assert!(refused(&models, source.path()).contains("the family llama"));
    fs_err::write(path("config.json"), config.replace("\"hidden_size\":32", "\"hidden_size\":64")).unwrap();
    assert!(refused(&models, source.path()).contains("cannot be used"));
    fs_err::write(path("config.json"), &config).unwrap();

    fs_err::write(path("model.safetensors"), &weights[..weights.len() / 2]).unwrap();
    assert!(refused(&models, source.path()).contains("cannot be used"));
    // All numbers are zero, so every text has the same vector.
    let header = usize::try_from(u64::from_le_bytes(weights[..8].try_into().unwrap())).unwrap() + 8;
    let mut zeros = weights.clone();
    zeros[header..].fill(0);
    fs_err::write(path("model.safetensors"), &zeros).unwrap();
    assert!(refused(&models, source.path()).contains("vector"));

    fs_err::remove_file(path("model.safetensors")).unwrap();
    assert!(refused(&models, source.path()).contains("has no model.safetensors"));
    fs_err::write(path("pytorch_model.bin"), b"").unwrap();
    assert!(refused(&models, source.path()).contains("save_pretrained"));
    assert!(refused(&models, Path::new("/nowhere")).contains("has no config.json"));

    fs_err::write(path("model.safetensors"), &weights).unwrap();
    add(&models, source.path()).unwrap();
}

#[test]
fn a_model_gets_the_prefixes_of_its_publisher_or_of_its_family() {
    let ((_root, models), source) = (models(), model());
    let prefixes = |folder: &str| {
        let to = name(folder);
        models.add_folder(&to, source.path(), &AddOptions::default(), &mut |_| ()).unwrap();
        let found = Prefixes::of_folder(&models.folder_of(&to)).unwrap();
        (found.query, found.passage)
    };
    let pair = |query: &str, passage: &str| (query.to_owned(), passage.to_owned());
    assert_eq!(prefixes("tiny"), pair("", ""));
    assert_eq!(prefixes("e5-tiny"), pair("query: ", "passage: "));
    let prompts = "{\"prompts\": {\"query\": \"read \"}}";
    fs_err::write(source.path().join("config_sentence_transformers.json"), prompts).unwrap();
    assert_eq!(prefixes("e5-mini"), pair("read ", ""));
    // As it stands in the folder of a model that was added by an earlier version.
    fs_err::remove_file(models.folder_of(&name("e5-tiny")).join("prefixes.json")).unwrap();
    assert!(Prefixes::of_folder(&models.folder_of(&name("e5-tiny"))).unwrap().are_empty());
}

#[test]
fn other_weights_than_the_wanted_ones_are_refused() {
    let ((_root, models), source) = (models(), model());
    let with = |sha256: String| AddOptions { sha256: Some(sha256), ..AddOptions::default() };
    let other = with("0".repeat(64));
    let added = models.add_folder(&name("tiny"), source.path(), &other, &mut |_| ());
    let found = match added {
        Err(ModelError::OtherWeights { found, .. }) => found,
        other => panic!("{other:?}"),
    };
    let wanted = with(found.to_ascii_uppercase());
    models.add_folder(&name("tiny"), source.path(), &wanted, &mut |_| ()).unwrap();
}

/// A hub with these files of `owner/tiny`.
async fn hub(source: &Path, files: &[&str]) -> String {
    let mut router = Router::new();
    for file in files {
        let content = Bytes::from(fs_err::read(source.join(file)).unwrap());
        let place = format!("/owner/tiny/resolve/main/{file}");
        router = router.route(&place, get(move || async move { content }));
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn fetch(models: &Models, hub: String) -> Result<TriedModel, ModelError> {
    let wanted = FetchedModel {
        hub,
        name: "owner/tiny".to_owned(),
        models: models.folder.clone(),
        allowed: Vec::new(),
    };
    let guard = Guard::new(&["127.0.0.0/8".parse::<Network>().unwrap()]).unwrap();
    models.add_fetched(&wanted, &guard, &AddOptions::default(), &mut |_| ()).await
}

#[tokio::test]
async fn a_model_of_a_hub_is_fetched_and_tried() {
    let ((_root, models), source) = (models(), model());
    let missing = fetch(&models, hub(source.path(), &["config.json", "tokenizer.json"]).await).await;
    assert!(
        missing.unwrap_err().to_string().contains("model.safetensors: the host answers with the status 404")
    );
    assert!(models.list().unwrap().is_empty());

    let all = hub(source.path(), &["config.json", "tokenizer.json", "model.safetensors"]).await;
    assert_eq!(fetch(&models, all).await.unwrap().dimensions, 32);
    assert_eq!(models.list().unwrap()[0].name, "owner/tiny");
    models.check(&name("owner/tiny")).unwrap();
}

#[tokio::test]
async fn what_does_not_run_here_is_refused_before_its_weights_are_fetched() {
    let ((_root, models), source) = (models(), model());
    fs_err::write(source.path().join("config.json"), "{\"model_type\": \"llama\"}").unwrap();
    // Nothing but the configuration is there to be fetched.
    let refused = fetch(&models, hub(source.path(), &["config.json"]).await).await;
    assert!(refused.unwrap_err().to_string().contains("the family llama"));
}
