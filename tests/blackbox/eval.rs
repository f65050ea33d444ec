//! `cairn eval`: measures collections in a temporary service, and golden questions on a running one.

use std::path::Path;

use crate::support::http::{items, text};
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;

/// Whether the command succeeded, its stdout and its stderr.
async fn eval(arguments: &[&str]) -> (bool, String, String) {
    let all: Vec<String> = ["eval"].iter().chain(arguments).map(|text| (*text).to_owned()).collect();
    let mut process = Process::start("cairn eval", &all, &[]);
    let status = process.exit().await;
    (status.success(), process.stdout(), process.stderr())
}

fn json_of(outcome: &(bool, String, String)) -> Value {
    assert!(outcome.0, "{}{}", outcome.1, outcome.2);
    serde_json::from_str(&outcome.1).unwrap()
}

fn write_collection(folder: &Path) {
    let corpus = "{\"id\": \"1\", \"title\": \"Penguins\", \"text\": \"Birds of the south that swim.\"}\n\
                  {\"id\": \"2\", \"title\": \"Granite\", \"text\": \"A hard rock of the mountains.\"}\n\
                  {\"id\": \"3\", \"text\": \"def total(numbers):\\n    return sum(numbers)\"}\n";
    let queries = "{\"id\": \"birds\", \"text\": \"penguins\"}\n{\"id\": \"code\", \"text\": \"sum numbers\"}\n\
                   {\"id\": \"lost\", \"text\": \"xylophone\"}\n{\"id\": \"unjudged\", \"text\": \"rock\"}\n";
    let qrels = "birds\t1\t2\ncode\t3\t1\nlost\t2\t1\n";
    for (name, text) in [("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels.tsv", qrels)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn a_collection_is_measured_in_a_temporary_service() {
    run_alone(async {
        let scratch = Scratch::new();
        write_collection(scratch.path());
        let collection = scratch.path().display().to_string();
        let kept = scratch.path().join("kept.json").display().to_string();
        let run = json_of(&eval(&[&collection, "--strategies", "keyword", "--json", "--save", &kept]).await);

        let keyword = &run["strategies"]["keyword"];
        assert_eq!(
            keyword["questions"].as_object().unwrap().len(),
            3,
            "a query without judgements measures nothing"
        );
        assert_eq!(keyword["questions"]["birds"]["ndcg@10"], json!(1.0));
        assert_eq!(keyword["questions"]["code"]["mrr"], json!(1.0));
        assert_eq!(keyword["questions"]["lost"]["recall@50"], json!(0.0));
        let mean = keyword["figures"]["recall@10"].as_f64().unwrap();
        assert!((mean - 2.0 / 3.0).abs() < 1e-9, "{mean}");

        let (succeeded, stdout, stderr) =
            eval(&[&collection, "--strategies", "keyword", "--against", &kept]).await;
        assert!(succeeded && stdout.contains("recall@50"), "{stdout}{stderr}");
        assert!(stdout.contains("keyword: better 0, worse 0, the same 3"), "{stdout}");
    });
}

#[test]
fn golden_questions_are_asked_of_a_running_service() {
    run_alone(async {
        let scratch = Scratch::new();
        let up = SingleProcess::start_on(scratch.path(), &[]).await;
        let folder =
            up.token().post("/api/v1/folders").json(json!({"name": "guide"})).await.expect(201).json();
        let content = "# Lamps\n\nTurn the lamp with the brass key.\n";
        let golden = "{\"question\": \"brass lamp key\", \"expect\": [\"/guide/lamps.md:3\"]}\n\
                      {\"question\": \"xylophone\", \"expect\": [\"guide/lamps.md\"]}\n";
        for (name, kind, content) in [("lamps.md", "markdown", content), ("golden.jsonl", "text", golden)] {
            let body = json!({"name": name, "content": content, "fileType": kind, "folderId": folder["id"]});
            up.token().post("/api/v1/files").json(body).await.expect(201);
        }
        eventually("the lamp is found", async || {
            let body = json!({"query": "brass lamp", "strategy": "keyword"});
            let answer = up.token().post("/api/v1/search_context").json(body).await.expect(200).json();
            items(&answer["results"])
                .iter()
                .any(|result| text(&result["citation"], "path").ends_with("lamps.md"))
                .then_some(())
        })
        .await;

        let to_service = ["--url", up.base_url(), "--token", &up.owner().token, "--json"];
        let source = ["workspace:/guide/golden.jsonl", "--strategies", "keyword"];
        let run = json_of(&eval(&[source.as_slice(), &to_service].concat()).await);
        let questions = &run["strategies"]["keyword"]["questions"];
        assert_eq!(questions["brass lamp key"]["recall@10"], json!(1.0));
        assert_eq!(questions["xylophone"]["recall@10"], json!(0.0));

        let missing = ["workspace:/guide/missing.jsonl"];
        let (succeeded, _, stderr) = eval(&[missing.as_slice(), &to_service].concat()).await;
        assert!(!succeeded && stderr.contains("the workspace has no file `guide/missing.jsonl`"), "{stderr}");
    });
}

#[test]
fn golden_questions_can_bring_their_documents() {
    run_alone(async {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.path().join("docs/deep")).unwrap();
        std::fs::write(scratch.path().join("docs/deep/lamps.md"), "# Lamps\n\nThe brass key.\n").unwrap();
        let golden = scratch.path().join("golden.jsonl");
        std::fs::write(&golden, "{\"question\": \"brass\", \"expect\": [\"/deep/lamps.md\"]}\n").unwrap();
        let (golden, documents) =
            (golden.display().to_string(), scratch.path().join("docs").display().to_string());
        let run = json_of(&eval(&[&golden, "--documents", &documents, "--json"]).await);
        assert_eq!(run["strategies"]["keyword"]["figures"]["mrr"], json!(1.0));
        assert_eq!(run["strategies"].as_object().unwrap().len(), 3);
    });
}

#[test]
fn what_cannot_be_measured_is_said() {
    run_alone(async {
        let scratch = Scratch::new();
        let golden = scratch.path().join("golden.jsonl").display().to_string();
        let (succeeded, _, stderr) = eval(&[&golden]).await;
        assert!(!succeeded && stderr.contains("--documents"), "{stderr}");
        let empty = scratch.path().display().to_string();
        let (succeeded, _, stderr) = eval(&[&empty]).await;
        assert!(!succeeded && stderr.contains("corpus.jsonl"), "{stderr}");
    });
}
