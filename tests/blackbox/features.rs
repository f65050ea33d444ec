//! A binary that was built without some features: how it rejects configuration that needs them, and what still works.
//! `CAIRN_TEST_BINARY` names such a binary; this build has all of them.

use crate::support::callers::ApiToken;
use crate::support::commands;
use crate::support::http::{id, items};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// A feature, and a configuration that needs it.
const FEATURES: [(&str, (&str, &str)); 4] = [
    ("qdrant", ("CAIRN_QDRANT_URL", "http://127.0.0.1:1")),
    ("redis", ("CAIRN_REDIS_URL", "redis://127.0.0.1:1")),
    ("s3", ("CAIRN_ASSETS", "s3://assets")),
    ("transformer", ("CAIRN_EMBEDDER", "candle:/models/any")),
];

#[test]
fn what_needs_a_feature_that_is_left_out_ends_the_start_and_says_so() {
    run_alone(async {
        let told: Value = serde_json::from_str(&commands::run_ok(&["version", "--json"], &[]).await).unwrap();
        let is_in = |feature: &str| items(&told["features"]).iter().any(|name| name == feature);
        for (feature, needs) in FEATURES.into_iter().filter(|(feature, _)| !is_in(feature)) {
            let data = Scratch::new();
            let mut process = SingleProcess::launch(data.path(), &[needs]);
            assert!(!process.exit().await.success(), "{feature}");
            let output = process.stderr();
            assert!(output.contains(&format!("without the feature `{feature}`")), "{feature}: {output}");
        }
    });
}

#[test]
fn whatever_is_left_out_files_are_kept_found_and_read() {
    run_alone(async {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[]).await;
        let token: ApiToken = up.token();
        let body = json!({"name": "note.md", "content": "The pangolin digs.\n", "fileType": "markdown"});
        let created = token.post("/api/v1/files").json(body).await.expect(201);
        let search = token.post("/api/v1/search_context").after(&created.change());
        let found =
            search.header("x-cairn-wait-ms", "10000").json(json!({"query": "pangolin"})).await.expect(200);
        assert_eq!(items(&found.json()["results"])[0]["fileId"], json!(id(&created.json())));
        let script = json!({"script": "grep -r pangolin /files"});
        let run = token.post("/api/v1/vfs/exec").json(script).await.expect(200);
        assert!(run.json()["output"].as_str().unwrap().contains("The pangolin digs."), "{:?}", run.json());
    });
}
