//! Searches over documents that are not retained (spec 4.4; outside.md: "Live and catalog", "Not retained").

use crate::sources::owner_of;
use crate::support::browse::output;
use crate::support::http::{each, text};
use crate::support::notion::Notion;
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::{Scratch, files_below};
use crate::support::single::SingleProcess;
use crate::support::sources::{Source, SourceFolder, connect, connect_as};

scenarios![a_catalog_is_read_where_a_title_is_meant];

const PLAN: &str =
    "# Zanzibar\n\nThe rollout of zanzibar begins in May.\n\n# Money\n\nNobody knows the budget.\n";

async fn catalog(deployment: &Deployment, workspace: &Workspace) -> Source {
    let folder = SourceFolder::new(deployment);
    folder.put("plans/Zanzibar rollout.md", PLAN);
    folder.put("plans/Mobile rollout.md", "Later.");
    folder.put("notes/Heron.md", "A heron stands still.");
    let mut draft = folder.draft("Shelf");
    draft["mode"] = "catalog".into();
    let source = connect(workspace, draft).await;
    source.run().await;
    source
}

async fn a_catalog_is_read_where_a_title_is_meant(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let source = catalog(deployment, &workspace).await;
    let token = &workspace.token;
    let search = async |query: &str, mode: &str| {
        let body = json!({"query": query, "mode": mode});
        token.post("/api/v1/search_context").json(body).await.expect(200).json()
    };
    eventually("the titles are indexed", async || {
        let answer = search("heron", "balanced").await;
        (answer["coverage"] != json!([])).then_some(())
    })
    .await;

    let answer = search("zanzibar rollout", "balanced").await;
    let citation = &answer["results"][0]["citation"];
    assert_eq!((&citation["syncMode"], &citation["kind"]), (&json!("live"), &json!("source_document")));
    assert_eq!(citation["externalId"], json!("plans/Zanzibar rollout.md"));
    assert_eq!(answer["results"][0]["source"]["id"], json!(source.id));
    let lines: Vec<&str> = PLAN.lines().collect();
    let place = |field: &str| usize::try_from(citation[field].as_u64().unwrap()).unwrap();
    let cited = lines[place("startLine") - 1..place("endLine")].join("\n");
    assert_eq!(answer["results"][0]["content"], json!(cited));
    assert_eq!(each(&answer["coverage"], "code"), ["live_fetch", "catalog_match_not_fetched"]);
    assert_eq!(each(&answer["coverage"], "sourceId"), [&source.id, &source.id]);

    for (query, mode) in [("zanzibar rollout", "fast"), ("budget", "balanced"), ("rollout", "balanced")] {
        assert_eq!(search(query, mode).await["results"], json!([]), "{query} in {mode}");
    }
    let listed = output(token, "find /sources/Shelf -type f").await;
    assert!(listed.lines().any(|line| line == "/sources/Shelf/notes/Heron.md"), "{listed}");
    assert_eq!(output(token, "cat /sources/Shelf/notes/Heron.md").await, "", "an entry has no text");
    let query = format!("/api/v1/sources/{}/query", source.id);
    let answer = token.post(&query).json(json!({"query": "rollout", "limit": 20})).await.expect(200).json();
    let results = answer["results"].as_array().unwrap();
    for title in ["plans/Zanzibar rollout.md", "plans/Mobile rollout.md"] {
        assert!(results.iter().any(|result| result["citation"]["externalId"] == title), "{title}: {answer}");
    }
    assert_eq!(answer["providerOperations"], json!({"used": 0, "remainingToday": 500}));
    let unknown = json!({"query": "rollout", "colour": "red"});
    token.post(&query).json(unknown).await.expect_error(400, "VALIDATION_ERROR");
}

/// Content fetched during a request is in no storage, index or log, even at debug level.
#[test]
fn what_is_not_retained_is_nowhere() {
    const WORDS: [&str; 2] = ["zqpangolinsecret", "zqaardvarksecret"];
    run_alone(async {
        let (data, root, notion) = (Scratch::new(), Scratch::new(), Notion::start());
        let environment = [
            ("CAIRN_LOG", "debug"),
            ("CAIRN_OUTBOUND_ALLOW", "127.0.0.1/32"),
            ("CAIRN_SOURCE_ROOTS", root.path().to_str().unwrap()),
        ];
        let mut up = SingleProcess::start_on(data.path(), &environment).await;
        let (owner, token) = (owner_of(&up).await, up.token());
        let workspaces = owner.get("/api/workspaces").await.expect(200).json();
        let workspace = each(&workspaces, "id")[0].to_owned();
        let folder = SourceFolder::below(root.path());
        folder.put("Zanzibar.md", format!("# Zanzibar\n\nNobody keeps {}.\n", WORDS[0]));
        let mut draft = folder.draft("Shelf");
        draft["mode"] = "catalog".into();
        let catalog = connect_as(&owner, &workspace, draft).await;
        catalog.run().await;
        notion.write("roadmap", None, "Roadmap", &format!("Nobody keeps {}.", WORDS[1]));
        let live = connect_as(&owner, &workspace, notion.draft("Live", "live")).await;

        for (source, document, question, word) in
            [(&catalog, "Zanzibar.md", "zanzibar", WORDS[0]), (&live, "roadmap", "Roadmap", WORDS[1])]
        {
            let path = format!("/api/v1/sources/{}/documents/{document}", source.id);
            let read = token.get(&path).await.expect(200).json();
            assert!(text(&read, "content").contains(word) && read["origin"] == "live", "{read}");
            let query = format!("/api/v1/sources/{}/query", source.id);
            let found = eventually("its text is read", async || {
                let answer = token.post(&query).json(json!({"query": question})).await.expect(200).text();
                answer.contains(word).then_some(answer)
            });
            found.await;
            let body = json!({"query": word, "sourceIds": [source.id], "mode": "fast"});
            let kept = token.post("/api/v1/search_context").json(body).await.expect(200).json();
            assert_eq!(kept["results"], json!([]));
        }
        assert!(up.stop().await.success());
        let mut message = files_below(data.path());
        message.push(("the log".to_owned(), up.process().output().into_bytes()));
        // The query itself is in no log or storage, either.
        for word in WORDS {
            for (place, bytes) in &message {
                let is_there = bytes.windows(word.len()).any(|part| part == word.as_bytes());
                assert!(!is_there, "{word} is in {place}");
            }
        }
    });
}
