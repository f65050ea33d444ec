//! Documents of sources in memories, and the remains of a disconnected source (outside.md: "Memories", "Disconnect",
//! "Crash").

use crate::doctor::assert_sound;
use crate::sources::owner_of;
use crate::support::browse::output;
use crate::support::http::{each, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::sources::{SourceFolder, connect, connect_as};

scenarios![a_document_of_a_source_is_in_a_memory_as_long_as_it_is_there];

const NOTE: &str = "# Otters\n\nThey float.\n";

async fn a_document_of_a_source_is_in_a_memory_as_long_as_it_is_there(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = SourceFolder::new(deployment);
    folder.put("otters.md", NOTE);
    let source = connect(&workspace, folder.draft("Notes")).await;
    source.run().await;
    let document = each(&source.documents().await, "id")[0].to_owned();
    let with = |document: &str| {
        let member = json!({"kind": "source_document", "sourceDocumentId": document});
        workspace.token.post("/api/v1/memories").json(json!({"name": "M", "members": [member]}))
    };
    let unknown = with(&uuid::Uuid::from_u128(7).to_string()).await;
    assert!(matches!(unknown.status, 400 | 404), "{}", unknown.text());
    let memory = with(&document).await.expect(201).json();
    let path = format!("/api/v1/memories/{}", text(&memory, "slug"));
    let resolved = async || workspace.token.get(&path).await.expect(200).json();
    let codes = async |wanted: &str| {
        let coverage = resolved().await["coverage"].clone();
        (each(&coverage, "code") == [wanted]).then_some(())
    };
    let shown = resolved().await;
    let entry = &shown["members"][0]["entries"][0];
    assert_eq!((text(entry, "content"), &shown["coverage"]), (NOTE.to_owned(), &json!([])), "{shown}");
    let citation = &entry["citation"];
    assert!(text(citation, "url").ends_with(&format!("/documents/{document}")), "{citation}");
    assert_eq!((&citation["kind"], &citation["sourceId"]), (&json!("source_document"), &json!(source.id)));
    let stranger = deployment.workspace().await;
    stranger.token.get(&path).await.expect_error(404, "NOT_FOUND");

    source.change(json!({"mode": "catalog"})).await.expect(200);
    eventually("only its name is kept", async || codes("catalog_only").await).await;
    assert!(!resolved().await.to_string().contains("float"));
    source.session.delete(&source.path("")).await.expect(204);
    eventually("it is gone", async || codes("target_deleted").await).await;
}

/// A disconnected source is removed, even when the process was killed at that moment.
#[test]
fn a_disconnect_survives_kill_nine() {
    run_alone(async {
        let (data, root) = (Scratch::new(), Scratch::new());
        let environment = [("CAIRN_SOURCE_ROOTS", root.path().to_str().unwrap())];
        let folder = SourceFolder::below(root.path());
        for number in 0..300 {
            folder.put(&format!("{number}.md"), format!("Gnu number {number}."));
        }
        let mut up = SingleProcess::start_on(data.path(), &environment).await;
        let owner = owner_of(&up).await;
        let workspaces = owner.get("/api/workspaces").await.expect(200).json();
        let workspace = each(&workspaces, "id")[0].to_owned();
        let source = connect_as(&owner, &workspace, folder.draft("Gnus")).await;
        assert_eq!(text(&source.run().await, "status"), "completed");
        let found = async |up: &SingleProcess| {
            let body = json!({"query": "Gnu number", "mode": "fast"});
            let answer = up.token().post("/api/v1/search_context").json(body).await.expect(200);
            answer.text().contains("Gnu number")
        };
        eventually("it is found", async || found(&up).await.then_some(())).await;
        source.session.delete(&source.path("")).await.expect(204);
        up.kill();
        drop(up);
        assert_sound(data.path()).await;

        let up = SingleProcess::start_on(data.path(), &environment).await;
        let token = up.token();
        assert_eq!(token.get("/api/v1/sources").await.expect(200).json(), json!([]));
        assert!(!output(&token, "find /sources").await.contains("Gnus"));
        eventually("nothing of it is found or counted", async || {
            let used = token.get("/api/v1/workspace").await.expect(200).json()["documents"]["used"].clone();
            (used == 0 && !found(&up).await).then_some(())
        })
        .await;
        drop(up);
        assert_sound(data.path()).await;
    });
}
