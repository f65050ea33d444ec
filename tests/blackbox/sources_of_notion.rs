//! Pages of a provider whose search is incomplete, and which is queried during requests (outside.md: "Deletions", "Live
//! and catalog", "Rate limits").

use crate::support::browse::output;
use crate::support::http::{each, id, items, text};
use crate::support::notion::{Notion, TOKEN};
use crate::support::prelude::*;
use crate::support::process::Process;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::sources::{Source, connect, connect_as, counters};

scenarios![
    pages_below_pages_come_change_and_go,
    a_live_source_is_asked_and_left_alone_when_it_wants_to_be,
    a_document_that_cannot_be_asked_for_says_why,
];

async fn pages_below_pages_come_change_and_go(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let notion = Notion::start();
    notion.write("handbook", None, "Handbook", "All that we know.");
    notion.write("animals", Some("handbook"), "Animals", "A wombat digs at night.");
    notion.write("plants", Some("animals"), "Plants", "Moss is patient.");
    // Edit times have a resolution of minutes, so an incremental run overlaps with the previous one.
    for number in 0..5 {
        notion.write(&format!("filler{number}"), None, "Filler", "Nothing.");
    }
    let source = connect(&workspace, notion.draft("Wiki", "indexed")).await;
    let run = source.run().await;
    assert_eq!((text(&run, "status"), counters(&run)), ("completed".into(), [8, 8, 0, 8, 0, 0, 0]), "{run}");
    assert_eq!(run["counters"]["operations"].as_u64(), Some(notion.requests()), "{run}");
    assert_eq!(source.get().await["account"], "Acme");
    let found = async |query: &str| {
        let body = json!({"query": query, "sourceIds": [source.id], "mode": "fast"});
        let answer = workspace.token.post("/api/v1/search_context").json(body).await.expect(200).json();
        items(&answer["results"]).iter().map(|result| text(&result["citation"], "url")).collect::<Vec<_>>()
    };
    let animals = "https://notion.example/animals".to_owned();
    eventually("the page is found", async || found("wombat").await.contains(&animals).then_some(())).await;

    notion.write("animals", Some("handbook"), "Animals", "A wombat digs at night. A quokka smiles.");
    let run = source.sync().await;
    assert_eq!(text(&run, "kind"), "changes");
    // A nested page is found when its parent changed, or when a full run walks the whole tree.
    let full =
        source.session.post(&source.path("/sync")).json(json!({"full": true})).await.expect(202).json();
    assert!(matches!(text(&full, "kind").as_str(), "full" | "verify"), "{full}");
    let run = source.finished(&id(&full)).await;
    assert_eq!(
        (run["counters"]["removed"].as_u64(), text(&run, "status")),
        (Some(0), "completed".into()),
        "{run}"
    );
    eventually("the new text is found", async || found("quokka").await.contains(&animals).then_some(()))
        .await;

    let cat = output(&workspace.token, "cat /sources/Wiki/Animals.md").await;
    assert!(cat.contains("quokka"), "{cat}");

    notion.trash("animals");
    let run = source.sync().await;
    assert_eq!(counters(&run)[5], 1, "{run}");
    eventually("the page is gone", async || (!found("quokka").await.contains(&animals)).then_some(())).await;
    let gone = format!("/api/v1/sources/{}/documents/animals", source.id);
    workspace.token.get(&gone).await.expect_error(404, "NOT_FOUND");
    // Its child stays: the provider has not reported it as deleted.
    let kept = format!("/api/v1/sources/{}/documents/plants", source.id);
    assert_eq!(
        workspace.token.get(&kept).await.expect(200).json()["citation"]["url"],
        "https://notion.example/plants"
    );
}

async fn a_live_source_is_asked_and_left_alone_when_it_wants_to_be(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let notion = Notion::start();
    notion.write("roadmap", None, "Roadmap", "# Spring\n\nThe axolotl ships in May.\n");
    let source = connect(&workspace, notion.draft("Live", "live")).await;
    assert_eq!(notion.requests(), 0, "nothing is read before somebody asks");
    let search = async |mode: &str| {
        let body = json!({"query": "Roadmap", "sourceIds": [source.id], "mode": mode});
        workspace.token.post("/api/v1/search_context").json(body).await.expect(200).json()
    };
    for mode in ["fast", "balanced"] {
        assert_eq!(search(mode).await["results"], json!([]));
    }
    assert_eq!(notion.requests(), 0, "neither asks a live source");
    let answer = search("fresh").await;
    let result = &answer["results"][0];
    assert_eq!(
        (&result["citation"]["syncMode"], text(&result["citation"], "url")),
        (&json!("live"), "https://notion.example/roadmap".into())
    );
    assert!(text(result, "content").contains("axolotl"), "{answer}");
    assert_eq!(each(&answer["coverage"], "code"), ["live_fetch"], "{answer}");
    let asked = notion.requests();
    assert_eq!(asked, 3, "the search, the page, its text");
    let shown = source.get().await;
    assert_eq!((&shown["status"], &shown["budget"]["used"]), (&json!("ready"), &json!(asked)), "{shown}");
    assert_eq!(source.documents().await, json!([]), "nothing of it is kept");

    notion.rate_limit_next(600);
    for _ in 0..2 {
        let answer = search("fresh").await;
        assert_eq!(answer["results"], json!([]), "{answer}");
        assert_eq!(each(&answer["coverage"], "code"), ["provider_unavailable"], "{answer}");
        assert!(!answer.to_string().contains(TOKEN));
    }
    assert_eq!(notion.requests(), asked + 1, "it is left alone");
    let shown = source.wait_for_status("waiting").await;
    assert!(shown["waitingUntil"].is_string(), "{shown}");
}

async fn a_document_that_cannot_be_asked_for_says_why(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let notion = Notion::start();
    notion.write("roadmap", None, "Roadmap", "The axolotl ships in May.");
    let with_budget = async |name: &str, budget: u32| {
        let mut draft = notion.draft(name, "live");
        draft["dailyBudget"] = budget.into();
        connect(&workspace, draft).await
    };
    let (poor, rich) = (with_budget("Poor", 0).await, with_budget("Rich", 10).await);
    let fetch = async |source: &Source| {
        workspace.token.get(&format!("/api/v1/sources/{}/documents/roadmap", source.id)).await
    };
    let refused = fetch(&poor).await;
    assert!(refused.header("retry-after").is_some(), "{}", refused.text());
    refused.expect_error(429, "RATE_LIMITED");
    let body = json!({"query": "Roadmap", "sourceIds": [poor.id], "mode": "fresh"});
    let answer = workspace.token.post("/api/v1/search_context").json(body).await.expect(200).json();
    assert_eq!(each(&answer["coverage"], "code"), ["provider_budget_exhausted"], "{answer}");
    assert_eq!(notion.requests(), 0, "nothing was sent");

    let read = fetch(&rich).await.expect(200).json();
    assert!(text(&read, "content").contains("axolotl") && read["origin"] == "live", "{read}");
    assert_eq!(text(&read["citation"], "url"), "https://notion.example/roadmap");
    notion.rate_limit_next(600);
    for _ in 0..2 {
        let refused = fetch(&rich).await;
        assert!(refused.header("retry-after").is_some(), "{}", refused.text());
        assert!(!refused.expect_error(503, "UNAVAILABLE").to_string().contains(TOKEN));
    }
    let used = rich.get().await["budget"]["used"].as_u64();
    assert_eq!(used, Some(notion.requests()), "what was sent, and no more");
}

/// The output of an operator command, and whether it succeeded.
async fn command(arguments: &[&str], data: &str) -> (bool, String) {
    let all = [&["sources"], arguments, &["--data", data]].concat();
    let arguments: Vec<String> = all.into_iter().map(str::to_owned).collect();
    let mut process = Process::start("cairn sources", &arguments, &[]);
    let status = process.exit().await;
    let printed = format!("{}{}", process.stdout(), process.stderr());
    assert!(!printed.contains(TOKEN), "{printed}");
    (status.success(), printed)
}

#[test]
fn operators_see_check_and_run_sources() {
    run_alone(async {
        let (folder, notion) = (Scratch::new(), Notion::start());
        notion.write("handbook", None, "Handbook", "All that we know.");
        let up = SingleProcess::start_on(folder.path(), &[("CAIRN_OUTBOUND_ALLOW", "127.0.0.1/32")]).await;
        let session = crate::sources::owner_of(&up).await;
        let workspaces = session.get("/api/workspaces").await.expect(200).json();
        let workspace = each(&workspaces, "id")[0].to_owned();
        let kept = connect_as(&session, &workspace, notion.draft("Kept", "indexed")).await;
        let live = connect_as(&session, &workspace, notion.draft("Live", "live")).await;
        let first = kept.run().await;
        let data = folder.path().display().to_string();

        let (is_good, listed) = command(&["list"], &data).await;
        assert!(is_good && listed.lines().count() == 2, "{listed}");
        for (source, name) in [(&kept, "Kept"), (&live, "Live")] {
            let line = listed.lines().find(|line| line.contains(&source.id)).unwrap();
            assert!(line.contains("notion") && line.contains("ready") && line.ends_with(name), "{line}");
        }
        let (is_good, printed) =
            command(&["check", &kept.id, "--outbound-allow", "127.0.0.1/32"], &data).await;
        assert!(is_good && printed.starts_with("OK: ") && printed.contains("(as Acme)"), "{printed}");
        let (is_good, printed) = command(&["check", &kept.id], &data).await;
        assert!(!is_good, "an address inside: {printed}");

        notion.write("news", None, "News", "Something new.");
        let (is_good, printed) = command(&["sync", &kept.id, "--full"], &data).await;
        assert!(is_good, "{printed}");
        let run = eventually("it is read again", async || {
            let run = kept.run().await;
            (run["id"] != first["id"]).then_some(run)
        })
        .await;
        assert_eq!((counters(&run)[3], text(&run, "status")), (1, "completed".into()), "{run}");

        let asked = notion.requests();
        let (is_good, printed) = command(&["sync", &live.id], &data).await;
        assert!(!is_good && printed.contains("live"), "{printed}");
        for arguments in [["sync", &workspace], ["check", &workspace]] {
            let (is_good, printed) = command(&arguments, &data).await;
            assert!(!is_good && printed.contains("no such source"), "{printed}");
        }
        assert_eq!((notion.requests(), live.documents().await), (asked, json!([])));
    });
}
