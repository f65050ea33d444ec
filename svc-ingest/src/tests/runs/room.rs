//! What the plan has no room for, and whose the credentials are.

use cairn_chassis::identity::Scope;

use super::*;
use crate::model::SourceStatus as Status;
use crate::sources::{Patch, Secret};
use crate::tests::workspace;

const MEGABYTE: usize = 1024 * 1024;

/// Of a plan with room for two documents and a megabyte.
fn small() -> Caller {
    Caller::of_test(workspace(1), Scope::All, "small")
}

fn large() -> Caller {
    Caller::of_test(workspace(1), Scope::All, "selfhosted")
}

#[tokio::test]
async fn what_the_plan_has_no_room_for_is_left_out_and_said() {
    for mut stand in listed().await {
        stand.caller = small();
        for name in ["a", "b", "c", "d"] {
            stand.shelf.put(name, name);
        }
        let id = stand.connect("much").await;
        stand.work().await;
        let run = stand.last(id).await;
        assert_eq!(run.state, SourceRunStatus::Failed, "{}", stand.engine());
        let counters = run.counters;
        assert_eq!((counters.listed, counters.created, counters.failed), (4, 2, 2), "{counters:?}");
        let said = run.error.unwrap();
        assert!(said.contains("documents: 2 of 2 are used"), "{said}");
        assert_eq!(stand.names(id).await, ["a", "b"]);
        let shown = stand.shown(id).await;
        assert_eq!(shown.status(stand.clock.now()), Status::Failed);
        assert!(shown.source.next_run_at > Some(stand.clock.now()), "nothing follows at once");
        stand.assert_sound("full").await;

        // What goes makes room, although the run that sees it has failed.
        stand.shelf.remove("a");
        assert_eq!(stand.sync(id).await.counters.removed, 1);
        let run = stand.sync(id).await;
        assert_eq!((run.state, run.counters.created), (SourceRunStatus::Failed, 1));
        assert_eq!(stand.names(id).await, ["b", "c"]);

        // A larger plan: whoever asks brings it along.
        stand.caller = large();
        let run = stand.sync(id).await;
        assert_eq!((run.state, run.counters.created, run.counters.unchanged), (COMPLETED, 1, 2));
        assert_eq!(stand.names(id).await, ["b", "c", "d"]);
        stand.assert_sound("larger").await;
    }
}

#[tokio::test]
async fn a_document_that_grew_beyond_the_plan_stays_what_it_was() {
    for mut stand in told().await {
        stand.caller = small();
        stand.shelf.put("a", "a");
        stand.shelf.put("b", &"b".repeat(MEGABYTE / 2));
        let id = stand.connect("grows").await;
        stand.work().await;
        assert_eq!(stand.last(id).await.state, COMPLETED);
        stand.shelf.put("a", &"a".repeat(MEGABYTE - 10));
        let run = stand.sync(id).await;
        assert_eq!((run.state, run.counters.failed), (SourceRunStatus::Failed, 1), "{}", stand.engine());
        assert!(run.error.unwrap().contains("storageBytes"));
        assert_eq!(stand.texts(id).await["a"], "a");
        let failed = stand
            .sources
            .list_documents(&stand.caller, None, Some("failed"), "", first_page())
            .await
            .unwrap();
        assert_eq!(failed.items.len(), 1);
        stand.assert_sound("grew").await;
        // The next run begins anew: what was left out may have been told as changed only once.
        stand.shelf.put("b", "b");
        stand.sync(id).await;
        stand.sync(id).await;
        let run = stand.last(id).await;
        assert_eq!(run.state, COMPLETED, "{run:?}");
        assert_eq!(stand.texts(id).await["a"].len(), MEGABYTE - 10);
        stand.assert_sound("shrunk").await;
    }
}

#[tokio::test]
async fn whose_credentials_they_are_is_asked_once() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("open").await;
        stand.work().await;
        assert_eq!(stand.shown(id).await.source.account, None, "nobody's");
        let asked = stand.last(id).await.counters.operations;
        let given = || Patch {
            credentials: Some(Secret(br#"{"token": "0123456789"}"#.to_vec())),
            ..Patch::default()
        };
        stand.sources.update(&stand.caller, &id.to_string(), given()).await.unwrap();
        stand.work().await;
        let shown = stand.shown(id).await;
        assert_eq!(shown.source.account.as_deref(), Some("reader@shelf.example"), "{}", stand.engine());
        let run = stand.sync(id).await;
        assert_eq!(run.counters.operations, asked - 1, "a listing: the text is known, and nobody asks again");
        stand.sources.update(&stand.caller, &id.to_string(), given()).await.unwrap();
        assert_eq!(stand.shown(id).await.source.account, None, "others may be of somebody else");
    }
}

#[tokio::test]
async fn a_catalog_that_is_to_be_indexed_has_pending_documents() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect_as("wiki", Some(SourceMode::Catalog)).await;
        stand.work().await;
        let statuses = async || {
            let listed =
                stand.sources.list_documents(&stand.caller, None, None, "", first_page()).await.unwrap();
            listed.items.into_iter().map(|item| item.status.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(statuses().await, ["catalog"]);
        let patch = Patch { mode: Some(Some(SourceMode::Indexed)), ..Patch::default() };
        stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap();
        assert_eq!(statuses().await, ["pending"], "{}", stand.engine());
        let pending = stand
            .sources
            .list_documents(&stand.caller, None, Some("pending"), "", first_page())
            .await
            .unwrap();
        assert_eq!((pending.items.len(), pending.total), (1, 1));
        stand.work().await;
        assert_eq!(statuses().await, ["indexing"]);
    }
}
