//! What a provider does wrong, and what becomes of it.

use cairn_providers::{Fault, Fetched};

use super::*;
use crate::model::SourceStatus as Status;
use crate::sources::{Patch, Secret};

#[tokio::test]
async fn wrong_credentials_stop_a_source_until_there_are_new_ones() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("locked").await;
        stand.work().await;
        stand.shelf.fail_next(vec![Fault::Credentials; 100]);
        let failed = stand.sync(id).await;
        assert_eq!(failed.state, SourceRunStatus::Failed);
        stand.clock.advance(HOUR * 24 * 40);
        stand.work().await;
        let shown = stand.shown(id).await;
        assert_eq!(shown.status(stand.clock.now()), Status::NeedsCredentials, "{}", stand.engine());
        assert!(shown.source.error.is_some());
        assert_eq!(stand.last(id).await.id, failed.id, "nobody tries again");
        assert_eq!(stand.names(id).await, ["a"], "nothing is removed");
        let good = Secret(br#"{"token": "a good secret"}"#.to_vec());
        let patch = Patch { credentials: Some(good), ..Patch::default() };
        stand.shelf.fail_next(Vec::new());
        stand.shelf.forget_faults();
        let patched = stand.sources.update(&stand.caller, &id.to_string(), patch).await.unwrap();
        assert_eq!(patched.source.credential_hint.as_deref(), Some("cret"));
        stand.work().await;
        assert_eq!(stand.last(id).await.state, COMPLETED);
        assert_eq!(stand.shown(id).await.status(stand.clock.now()), Status::Ready);
    }
}

#[tokio::test]
async fn a_document_that_fails_is_tried_again_in_its_time_and_harms_no_other() {
    for stand in listed().await {
        for name in ["a", "b", "c"] {
            stand.shelf.put(name, name);
        }
        stand.shelf.put_failing("bad", Fault::Unavailable);
        let id = stand.connect("mixed").await;
        stand.work().await;
        let run = stand.last(id).await;
        assert_eq!((run.state, run.counters.created, run.counters.failed), (WITH_WARNINGS, 3, 1));
        let listed = stand
            .sources
            .list_documents(&stand.caller, None, Some("failed"), "", first_page())
            .await
            .unwrap();
        assert_eq!(listed.items.len(), 1);
        assert!(listed.items[0].error.is_some());
        // Its time has not come: nobody asks.
        let before = stand.shelf.requests().fetched;
        stand.sync(id).await;
        assert_eq!(stand.shelf.requests().fetched, before, "{}", stand.engine());
        stand.clock.advance(Duration::from_secs(61));
        stand.sync(id).await;
        assert_eq!(stand.shelf.requests().fetched, before + 1);
        // The second pause is ten minutes.
        stand.clock.advance(Duration::from_secs(61));
        stand.sync(id).await;
        assert_eq!(stand.shelf.requests().fetched, before + 1);
        stand.clock.advance(Duration::from_secs(600));
        stand.shelf.mend("bad", "good now");
        let mended = stand.sync(id).await;
        assert_eq!((mended.state, mended.counters.created), (COMPLETED, 1));
        assert_eq!(stand.texts(id).await.get("bad").map(String::as_str), Some("good now"));
        stand.assert_sound("mended").await;
    }
}

#[tokio::test]
async fn an_address_that_leads_nowhere_removes_no_document() {
    for stand in listed().await {
        for name in ["a", "b", "c"] {
            stand.shelf.put(name, name);
        }
        let id = stand.connect("moved").await;
        stand.work().await;
        stand.shelf.put_failing("b", Fault::Gone);
        let run = stand.sync(id).await;
        assert_eq!((run.counters.removed, run.counters.failed), (0, 1), "{}", stand.engine());
        let failed = stand
            .sources
            .list_documents(&stand.caller, None, Some("failed"), "", first_page())
            .await
            .unwrap();
        assert_eq!(failed.items.len(), 1, "it is tried again");
        stand.shelf.put("b", "b");
        stand.sync(id).await;
        assert_eq!(stand.names(id).await, ["a", "b", "c"]);
        stand.assert_sound("moved").await;
    }
}

#[tokio::test]
async fn what_cannot_be_read_says_why_and_is_not_tried_before_it_changes() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        stand.shelf.put_answering("large", Fetched::TooLarge(999));
        stand.shelf.put_answering("film", Fetched::Unsupported("video/mp4".to_owned()));
        stand.shelf.put_unreadable("odd", "it cannot be read");
        let id = stand.connect("files").await;
        stand.work().await;
        assert_eq!(stand.last(id).await.counters.failed, 3);
        let failed = stand
            .sources
            .list_documents(&stand.caller, None, Some("failed"), "", first_page())
            .await
            .unwrap();
        assert!(failed.items.iter().all(|item| item.error.as_ref().is_some_and(|error| error.len() > 10)));
        let asked = stand.shelf.requests().fetched;
        for _ in 0..3 {
            stand.clock.advance(HOUR * 48);
            stand.work().await;
        }
        assert_eq!(stand.shelf.requests().fetched, asked, "{}", stand.engine());
        stand.shelf.put("large", "small now");
        stand.clock.advance(HOUR * 2);
        stand.work().await;
        assert_eq!(stand.names(id).await, ["a", "large"]);
        // A text that is no more is not shown in place of what cannot be read.
        stand.shelf.put_answering("a", Fetched::TooLarge(999));
        stand.clock.advance(HOUR * 2);
        stand.work().await;
        assert_eq!(stand.names(id).await, ["large"]);
        stand.assert_sound("unreadable").await;
    }
}

#[tokio::test]
async fn what_is_forbidden_is_hidden_at_once_and_its_text_goes_a_week_later() {
    for stand in listed().await {
        for name in ["a", "b", "c"] {
            stand.shelf.put(name, name);
        }
        let id = stand.connect("private").await;
        stand.work().await;
        stand.shelf.put_failing("b", Fault::Forbidden);
        stand.sync(id).await;
        assert_eq!(stand.names(id).await, ["a", "c"], "{}", stand.engine());
        stand.assert_sound("hidden").await;
        // Access again brings it back.
        stand.shelf.put("b", "b");
        stand.sync(id).await;
        assert_eq!(stand.names(id).await, ["a", "b", "c"]);
        stand.shelf.put_failing("b", Fault::Forbidden);
        stand.sync(id).await;
        stand.clock.advance(HOUR * 24 * 8);
        crate::runs::removal::sweep(&stand.runner.context).await;
        stand.assert_sound("its text is gone").await;
        let hash = cairn_chassis::bodies::content_hash("b");
        let (db, workspace) = (&stand.runner.context.db, stand.caller.workspace);
        let kept = store::bodies::get_many(db, workspace, &[hash.as_str()]).await.unwrap();
        assert!(kept.is_empty());
    }
}

#[tokio::test]
async fn a_provider_that_is_down_is_asked_a_few_times_and_nothing_is_lost() {
    for stand in listed().await {
        for name in ["a", "b"] {
            stand.shelf.put(name, name);
        }
        let id = stand.connect("down").await;
        stand.work().await;
        stand.shelf.fail_next(vec![Fault::Unavailable; 100]);
        stand.sync(id).await;
        for _ in 0..5 {
            stand.clock.advance(Duration::from_secs(20));
            stand.work().await;
        }
        let failed = stand.last(id).await;
        assert_eq!(
            (failed.state, stand.shelf.requests().listed),
            (SourceRunStatus::Failed, 5),
            "{}",
            stand.engine()
        );
        assert_eq!(stand.shown(id).await.status(stand.clock.now()), Status::Failed);
        assert_eq!(stand.names(id).await, ["a", "b"]);
        stand.shelf.forget_faults();
        stand.clock.advance(HOUR * 3);
        stand.work().await;
        assert_eq!(stand.shown(id).await.status(stand.clock.now()), Status::Ready);
    }
}

#[tokio::test]
async fn a_listing_that_does_not_go_on_ends_and_removes_nothing() {
    for stand in listed().await {
        for name in ["a", "b"] {
            stand.shelf.put(name, name);
        }
        let id = stand.connect("endless").await;
        stand.work().await;
        stand.shelf.never_go_on();
        stand.shelf.remove("b");
        let failed = stand.sync(id).await;
        assert_eq!(failed.state, SourceRunStatus::Failed, "{}", stand.engine());
        assert!(stand.shelf.requests().listed < 10);
        assert_eq!(stand.names(id).await, ["a", "b"]);
        stand.assert_sound("endless").await;
    }
}

#[tokio::test]
async fn many_failures_in_a_row_end_a_run() {
    for stand in listed().await {
        for number in 0..40 {
            stand.shelf.put_failing(&format!("{number:02}"), Fault::Unavailable);
        }
        let id = stand.connect("broken").await;
        stand.work().await;
        let run = stand.last(id).await;
        assert_eq!((run.state, run.counters.failed), (SourceRunStatus::Failed, 11), "{}", stand.engine());
        assert_eq!(stand.shelf.requests().fetched, 11);
        stand.assert_sound("stopped").await;
    }
}
