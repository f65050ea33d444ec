//! The console's pages about directory syncs: preview, starting, cancelling, rolling back and deleting a run;
//! permissions.

use crate::support::http::{each, id, items};
use crate::support::people::join;
use crate::support::prelude::*;
use crate::support::tables::{FORM, location, page, send};
use crate::support::wait::eventually;

scenarios![
    a_run_is_looked_at_started_taken_back_and_deleted_by_forms,
    what_a_sync_says_of_documents_is_text,
    roles_sync_as_far_as_they_may,
    people_read_start_cancel_and_delete_runs_by_the_api,
];

const NOTHING: &str = "0199c0de-0000-7000-8000-00000000ffff";

async fn preview(workspace: &Workspace, name: &str, documents: &[(&str, &str)], prune: bool) -> String {
    let document = |(path, content): &(&str, &str)| json!({"path": path, "content": content});
    let documents: Vec<Value> = documents.iter().map(document).collect();
    let body = json!({"manifest": {"name": name, "documents": documents}, "prune": prune});
    id(&workspace.token.post("/api/v1/sync/preview").json(body).await.expect(201).json())
}

/// The page of a run once it contains that text.
async fn wait_for_text(workspace: &Workspace, path: &str, told: &str) -> String {
    eventually(told, async || {
        let shown = page(workspace, path).await;
        shown.contains(told).then_some(shown)
    })
    .await
}

async fn paths(workspace: &Workspace) -> Vec<String> {
    let files = workspace.token.get("/api/v1/files").await.expect(200).json();
    let mut paths: Vec<String> = each(&files, "path").into_iter().map(str::to_owned).collect();
    paths.sort();
    paths
}

async fn a_run_is_looked_at_started_taken_back_and_deleted_by_forms(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = format!("/w/{}/sync", workspace.id);
    assert!(page(&workspace, &list).await.contains("cairn sync DIR"));
    let first =
        preview(&workspace, "docs", &[("a.md", "# A"), ("b.md", "# B"), ("c.json", "{")], false).await;
    let path = format!("{list}/{first}");
    let ready = page(&workspace, &path).await;
    for part in [
        "Nothing is written until it is started.",
        "Would create",
        "a.md",
        "c.json",
        ">Start</button>",
        ">Cancel</button>",
    ] {
        assert!(ready.contains(part), "{part}: {ready}");
    }
    assert!(page(&workspace, &format!("{path}?show=warnings")).await.contains("c.json"));
    assert!(page(&workspace, &format!("{path}?show=updated")).await.contains("Nothing is in this list."));
    assert_eq!(location(&send(&workspace, &format!("{path}/start"), &[]).await.expect(303)), path);
    let done = wait_for_text(&workspace, &path, "Completed with warnings").await;
    assert!(done.contains(">Roll back</button>") && done.contains("href=\"/file/"), "{done}");
    assert_eq!(paths(&workspace).await, ["/a.md", "/b.md", "/c.json"]);
    let again = send(&workspace, &format!("{path}/start"), &[]).await.expect(409).text();
    assert!(again.contains("cannot be started"), "{again}");

    let second = format!("{list}/{}", preview(&workspace, "docs", &[("a.md", "# A, again")], true).await);
    let ready = page(&workspace, &second).await;
    assert!(ready.contains("Would update") && ready.contains("would go to trash"), "{ready}");
    let prunable = page(&workspace, &format!("{second}?show=prune")).await;
    assert!(prunable.contains("b.md") && prunable.contains("c.json"), "{prunable}");
    send(&workspace, &format!("{second}/start"), &[]).await.expect(303);
    let done = wait_for_text(&workspace, &second, "All of it was done.").await;
    assert!(done.contains("Moved to trash"), "{done}");
    assert_eq!(paths(&workspace).await, ["/a.md"]);
    send(&workspace, &format!("{second}/rollback"), &[]).await.expect(303);
    wait_for_text(&workspace, &second, "What it did was taken back.").await;
    assert_eq!(paths(&workspace).await, ["/a.md", "/b.md", "/c.json"]);
    send(&workspace, &format!("{second}/rollback"), &[]).await.expect(409);
    send(&workspace, &format!("{second}/cancel"), &[]).await.expect(409);

    preview(&workspace, "other", &[("x.md", "x")], false).await;
    let of_docs = page(&workspace, &format!("{list}?name=docs")).await;
    assert!(of_docs.contains(&second) && !of_docs.contains("<bdi>other</bdi>"), "{of_docs}");
    assert_eq!(location(&send(&workspace, &format!("{path}/delete"), &[]).await.expect(303)), list);
    workspace.session.get(&path).await.expect(404);
    assert_eq!(paths(&workspace).await.len(), 3, "what it wrote stays");
    for odd in ["show=odd", "from=odd", "from=99999999999999999999", "show=%00&from=%ff", "name=%00"] {
        let reply = workspace.session.get(&format!("{second}?{odd}")).await;
        assert!(reply.status < 500, "{odd}: {}", reply.text());
        let reply = workspace.session.get(&format!("{list}?{odd}")).await;
        assert!(reply.status < 500, "{odd}: {}", reply.text());
    }
    for path in ["x", NOTHING] {
        workspace.session.get(&format!("{list}/{path}")).await.expect(404);
    }
}

async fn what_a_sync_says_of_documents_is_text(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let hostile = "<script>alert(1)</script>\u{202e}{{' onload=x.json";
    let run = preview(&workspace, "<b>docs</b>&", &[(hostile, "{")], false).await;
    let path = format!("/w/{}/sync/{run}", workspace.id);
    for query in ["", "?show=warnings", "?show=created"] {
        let shown = page(&workspace, &format!("{path}{query}")).await;
        assert!(!shown.contains("<script>alert") && !shown.contains("<b>docs"), "{shown}");
        assert!(shown.contains("&lt;script&gt;alert(1)"), "{shown}");
    }
    let list = page(&workspace, &format!("/w/{}/sync", workspace.id)).await;
    assert!(list.contains("&lt;b&gt;docs&lt;/b&gt;&amp;") && list.contains("?name=%3Cb%3Edocs"), "{list}");
}

async fn roles_sync_as_far_as_they_may(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let list = format!("/w/{}/sync", workspace.id);
    let path = format!("{list}/{}", preview(&workspace, "docs", &[("a.md", "# A")], false).await);
    let seat = async |role: &str| join(&workspace, role).await.seat(&workspace);
    let viewer = seat("viewer").await;
    let shown = page(&viewer, &path).await;
    for hidden in [">Start</button>", ">Cancel</button>", ">Delete</button>"] {
        assert!(!shown.contains(hidden), "{hidden}: {shown}");
    }
    for verb in ["start", "cancel", "rollback", "delete"] {
        send(&viewer, &format!("{path}/{verb}"), &[]).await.expect(403);
    }
    let contributor = seat("contributor").await;
    send(&contributor, &format!("{path}/start"), &[]).await.expect(303);
    let done = wait_for_text(&contributor, &path, "All of it was done.").await;
    assert!(!done.contains(">Roll back</button>") && done.contains(">Delete</button>"), "{done}");
    send(&contributor, &format!("{path}/rollback"), &[]).await.expect(403);
    assert!(page(&seat("editor").await, &path).await.contains(">Roll back</button>"));
    let stranger = join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&path).await.expect(404);
    stranger.post(&format!("{path}/delete")).body(FORM, "").await.expect(404);
    let foreign = workspace.session.post(&format!("{path}/delete")).header("sec-fetch-site", "cross-site");
    foreign.body(FORM, "").await.expect(403);
    let other = deployment.workspace().await;
    let theirs = preview(&other, "docs", &[], false).await;
    workspace.session.get(&format!("{list}/{theirs}")).await.expect(404);
}

async fn people_read_start_cancel_and_delete_runs_by_the_api(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let session = &workspace.session;
    let base = format!("/api/workspaces/{}/sync", workspace.id);
    let path = format!("{base}/{}", preview(&workspace, "docs", &[("a.md", "# A")], false).await);
    let run = session.get(&path).await.expect(200).json();
    assert_eq!(run["changes"], json!([{"path": "a.md", "action": "created"}]), "{run}");
    assert!(!run["by"]["name"].as_str().unwrap().is_empty(), "{run}");
    let cancelled = session.post(&format!("{path}/cancel")).await.expect(202).json();
    assert_eq!(cancelled["status"], "cancelled");
    session.post(&format!("{path}/cancel")).await.expect_error(409, "RUN_NOT_CANCELLABLE");
    session.post(&format!("{path}/start")).await.expect(202);
    eventually("the run is over", async || {
        let run = session.get(&path).await.expect(200).json();
        (run["status"] == "completed").then_some(())
    })
    .await;
    preview(&workspace, "other", &[], false).await;
    let listed = session.get(&format!("{base}?name=docs")).await.expect(200).json();
    assert_eq!(each(&listed, "name"), ["docs"]);
    assert_eq!(items(&session.get(&base).await.expect(200).json()).len(), 2);
    let viewer = join(&workspace, "viewer").await.session;
    viewer.get(&path).await.expect(200);
    for verb in ["start", "cancel"] {
        viewer.post(&format!("{path}/{verb}")).await.expect_error(403, "FORBIDDEN");
    }
    viewer.delete(&path).await.expect_error(403, "FORBIDDEN");
    let stranger = join(&deployment.workspace().await, "owner").await.session;
    stranger.get(&path).await.expect_error(404, "NOT_FOUND");
    session.delete(&path).await.expect(204);
    session.get(&path).await.expect_error(404, "NOT_FOUND");
}
