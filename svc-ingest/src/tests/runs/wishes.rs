//! What people want while a run is under way.

use cairn_providers::Fault;

use super::*;
use crate::model::{Source, Stage};
use crate::sources::{Patch, Secret};

/// Works in another process until its worker has asked the shelf, which keeps still until it is opened.
async fn held_at_the_shelf(stand: &Stand) -> tokio::task::JoinHandle<()> {
    stand.shelf.close();
    let runner = stand.other_process();
    let working = tokio::spawn(async move { work(&runner).await });
    while stand.shelf.requests().listed == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    working
}

async fn cancel(stand: &Stand, id: SourceId) {
    let run = stand.last(id).await.id.to_string();
    stand.sources.cancel_run(&stand.caller, &id.to_string(), &run).await.unwrap();
}

#[tokio::test]
async fn a_run_that_is_cancelled_while_it_reads_calls_no_document_unreadable() {
    for stand in listed().await {
        for number in 0..40 {
            stand.shelf.put(&format!("{number:02}"), "text");
        }
        let id = stand.connect("long").await;
        let working = held_at_the_shelf(&stand).await;
        cancel(&stand, id).await;
        stand.shelf.open();
        working.await.unwrap();
        let run = stand.last(id).await;
        assert_eq!((run.state, run.counters.failed), (SourceRunStatus::Cancelled, 0), "{}", stand.engine());
        let failed = Some("failed");
        let failed =
            stand.sources.list_documents(&stand.caller, None, failed, "", first_page()).await.unwrap();
        assert_eq!(failed.total, 0, "{}", stand.engine());
        let next = stand.sync(id).await;
        assert_eq!((next.state, stand.names(id).await.len()), (SourceRunStatus::Completed, 40));
        stand.assert_sound("cancelled while it read").await;
    }
}

#[tokio::test]
async fn who_cancels_does_not_wait_for_the_provider() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("busy").await;
        let working = held_at_the_shelf(&stand).await;
        stand.shelf.fail_next([Fault::Waiting { until: stand.clock.now().plus(HOUR) }]);
        cancel(&stand, id).await;
        stand.shelf.open();
        working.await.unwrap();
        assert_eq!(stand.last(id).await.state, SourceRunStatus::Cancelled, "{}", stand.engine());
        let (shown, now) = (stand.shown(id).await, stand.clock.now());
        assert_eq!(shown.waiting_until(now), Some(now.plus(HOUR)), "the connection keeps still all the same");
    }
}

#[tokio::test]
async fn credentials_that_are_given_while_a_run_is_refused_are_used() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("rotated").await;
        let working = held_at_the_shelf(&stand).await;
        let credentials = Some(Secret(br#"{"token": "new"}"#.to_vec()));
        let patch = Patch { credentials, ..Patch::default() };
        stand.clock.advance(Duration::from_millis(10));
        stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap();
        stand.shelf.fail_next([Fault::Credentials]);
        stand.shelf.open();
        working.await.unwrap();
        stand.work().await;
        let shown = stand.shown(id).await;
        assert!(!shown.source.needs_credentials && shown.source.error.is_none(), "{}", stand.engine());
        assert_eq!(stand.last(id).await.state, SourceRunStatus::Completed, "{}", stand.engine());
        assert_eq!(stand.names(id).await, ["a"]);
    }
}

#[tokio::test]
async fn a_source_that_is_resumed_is_read_though_its_worker_has_not_stopped_yet() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("resumed").await;
        let working = held_at_the_shelf(&stand).await;
        for paused in [true, false] {
            let patch = Patch { paused: Some(paused), ..Patch::default() };
            stand.clock.advance(Duration::from_millis(10));
            stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap();
        }
        stand.shelf.open();
        working.await.unwrap();
        stand.work().await;
        assert_eq!(stand.last(id).await.state, SourceRunStatus::Completed, "{}", stand.engine());
    }
}

#[tokio::test]
async fn a_listing_that_has_ended_is_not_gone_on_with() {
    for stand in told().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("ended").await;
        stand.work().await;
        let shown = stand.shown(id).await;
        let traits = stand.runner.provider(&shown.source).await.unwrap().traits();
        let source = Source { full_next: false, ..shown.source };
        let now = stand.clock.now();
        for (stage, goes_on) in [(Stage::Pages, true), (Stage::Probes, false), (Stage::Removal, false)] {
            let mut last = stand.last(id).await;
            assert!(last.kind.lists() && last.position.is_some());
            (last.state, last.stage, last.complete) = (SourceRunStatus::Cancelled, stage, false);
            let mut run = last.clone();
            run.listing = stand.runner.context.ids.next();
            let begun = run.listing;
            crate::runs::next::begin(&mut run, Some(&last), &source, &traits, now);
            assert_eq!(run.listing == last.listing, goes_on, "{stage:?}");
            assert_eq!(run.listing == begun, !goes_on, "{stage:?}");
        }
    }
}

#[tokio::test]
async fn sources_of_workspaces_that_are_gone_keep_nobody_waiting() {
    const SUSPEND: &str = "INSERT INTO workspace_states (workspace_id, revision, suspended, purged, changed_at) \
         VALUES ($1, 1, TRUE, FALSE, 0)";
    for stand in listed().await {
        stand.connect("left").await;
        let db = &stand.runner.context.db;
        let workspace = cairn_chassis::sql::Text(stand.caller.workspace);
        cairn_chassis::execute!(db.writer(), SUSPEND, workspace).unwrap();
        stand.clock.advance(HOUR * 24);
        let now = stand.clock.now();
        assert!(store::source_runs::claimable(db, now, 100).await.unwrap().is_empty(), "{}", stand.engine());
        assert!(store::sources::due(db, now, 100).await.unwrap().is_empty(), "{}", stand.engine());
    }
}

#[tokio::test]
async fn what_could_not_be_read_is_an_entry_of_the_catalog_all_the_same() {
    for stand in listed().await {
        stand.shelf.put("good", "text");
        stand.shelf.put_failing("bad", Fault::broken("it cannot be read"));
        stand.shelf.put_failing("shut", Fault::Forbidden);
        let id = stand.connect("mixed").await;
        stand.work().await;
        assert_eq!(stand.names(id).await, ["good"], "{}", stand.engine());
        let patch = Patch { mode: Some(Some(SourceMode::Catalog)), every: Some(None), ..Patch::default() };
        stand.clock.advance(Duration::from_millis(10));
        let updated = stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap();
        let usual = stand.runner.provider(&updated.source).await.unwrap().traits().every;
        assert_eq!(updated.source.every, usual, "null returns to what is usual");
        stand.work().await;
        assert_eq!(stand.names(id).await, ["bad", "good", "shut"], "{}", stand.engine());
        stand.assert_sound("a catalog").await;
    }
}

#[tokio::test]
async fn a_document_that_was_tried_again_is_counted_once() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        stand.shelf.put_failing("b", Fault::broken("it cannot be read"));
        let id = stand.connect("mended").await;
        stand.work().await;
        stand.shelf.mend("b", "b");
        stand.clock.advance(HOUR * 2);
        stand.work().await;
        let counters = stand.last(id).await.counters;
        let counted = (counters.listed, counters.fetched, counters.created, counters.unchanged);
        assert_eq!(counted, (2, 1, 1, 1), "{}", stand.engine());
    }
}
