//! What an ordinary life of a source looks like.

use cairn_proto::domain::{SourceMode, SourceRunKind};
use cairn_providers::{Changes, Deletions, Fault, Fetched, Listing};

use super::*;
use crate::Error;
use crate::model::SourceStatus as Status;
use crate::runs::{BudgetQueue, Charge};

#[tokio::test]
async fn a_first_run_reads_everything_and_an_unchanged_one_nothing() {
    for stand in listed().await {
        for number in 0..25 {
            stand.shelf.put(&format!("docs/{number:02}.md"), &format!("text {number}"));
        }
        let id = stand.connect("handbook").await;
        assert_eq!(stand.shown(id).await.status(stand.clock.now()), Status::Queued);
        stand.work().await;
        let run = stand.last(id).await;
        assert_eq!((run.state, run.complete, run.kind), (COMPLETED, true, SourceRunKind::Full));
        let counters = run.counters;
        assert_eq!((counters.listed, counters.created, counters.fetched), (25, 25, 25));
        // Three pages and the bodies.
        assert_eq!(counters.operations, 28, "{}", stand.engine());
        assert_eq!(stand.texts(id).await.get("docs/07.md").map(String::as_str), Some("text 7"));
        let shown = stand.shown(id).await;
        assert_eq!((shown.source.documents, shown.status(stand.clock.now())), (25, Status::Ready));
        assert!(shown.source.next_run_at.unwrap() > stand.clock.now());

        let again = stand.sync(id).await;
        assert_eq!((again.counters.unchanged, again.counters.fetched, again.counters.operations), (25, 0, 3));
        assert_eq!((again.counters.created, again.counters.updated), (0, 0));
        stand.assert_sound("after two runs").await;
    }
}

#[tokio::test]
async fn text_that_people_do_not_see_is_not_kept() {
    for stand in listed().await {
        stand.shelf.put("a.md", "Seen.\r\n<!-- IGNORE -->\r\nAl\u{202E}so.");
        let id = stand.connect("handbook").await;
        stand.work().await;
        assert_eq!(stand.texts(id).await.get("a.md").map(String::as_str), Some("Seen.\r\n\r\nAlso."));
    }
}

#[tokio::test]
async fn where_a_listing_knows_no_versions_each_document_is_asked_for_in_each_run() {
    for stand in listed().await {
        stand.shelf.hide_versions();
        for name in ["a", "b", "c"] {
            stand.shelf.put(name, name);
        }
        let id = stand.connect("pages").await;
        stand.work().await;
        for _ in 0..2 {
            let counters = stand.sync(id).await.counters;
            assert_eq!((counters.unchanged, counters.fetched, counters.operations), (3, 0, 4));
        }
        stand.shelf.put("b", "another text");
        stand.shelf.put_answering("c", Fetched::Unreadable("its site keeps it to itself".into()));
        let counters = stand.sync(id).await.counters;
        assert_eq!((counters.unchanged, counters.updated, counters.failed), (1, 1, 1), "{}", stand.engine());
        assert_eq!(stand.names(id).await, ["a", "b"]);
        stand.assert_sound("after a change").await;
    }
}

#[tokio::test]
async fn changes_are_counted_exactly() {
    for stand in told().await {
        for name in ["a", "b", "c"] {
            stand.shelf.put(name, name);
        }
        let id = stand.connect("notes").await;
        stand.work().await;
        stand.shelf.put("b", "another text");
        stand.shelf.put("d", "new");
        stand.shelf.remove("a");
        let run = stand.sync(id).await;
        assert_eq!(run.kind, SourceRunKind::Changes);
        let counters = run.counters;
        assert_eq!((counters.created, counters.updated, counters.removed), (1, 1, 1), "{}", stand.engine());
        assert_eq!(stand.names(id).await, ["b", "c", "d"]);
        // The same text under a new version is no change.
        stand.shelf.put("c", "c");
        let same = stand.sync(id).await.counters;
        assert_eq!((same.unchanged, same.updated, same.fetched), (1, 0, 1));
        stand.assert_sound("after changes").await;
    }
}

#[tokio::test]
async fn overlap_of_a_high_water_mark_is_unchanged() {
    let changes = Changes::HighWater { overlap: HOUR };
    for stand in stands(Listing::Exhaustive, changes, Deletions::FromListing).await {
        stand.shelf.put("a", "a");
        stand.shelf.put("b", "b");
        let id = stand.connect("issues").await;
        stand.work().await;
        stand.shelf.put("c", "c");
        let run = stand.sync(id).await;
        assert_eq!((run.counters.created, run.counters.unchanged, run.counters.updated), (1, 1, 0));
        // A deletion that no change tells is seen by a listing.
        stand.shelf.remove("a");
        stand.sync(id).await;
        assert_eq!(stand.names(id).await, ["a", "b", "c"]);
        stand.sync_full(id).await;
        assert_eq!(stand.names(id).await, ["b", "c"], "{}", stand.engine());
        stand.assert_sound("after a full run").await;
    }
}

#[tokio::test]
async fn what_changes_did_not_tell_a_verify_run_finds_in_time() {
    let changes = Changes::HighWater { overlap: HOUR };
    for stand in stands(Listing::Exhaustive, changes, Deletions::FromListing).await {
        stand.shelf.put("a", "a");
        stand.shelf.put("b", "b");
        stand.shelf.put("c", "c");
        let id = stand.connect("issues").await;
        stand.work().await;
        stand.shelf.remove("b");
        stand.clock.advance(HOUR * 2);
        stand.work().await;
        assert_eq!(stand.last(id).await.kind, SourceRunKind::Changes);
        stand.clock.advance(HOUR * 24 * 7);
        stand.work().await;
        assert_eq!(stand.last(id).await.kind, SourceRunKind::Verify);
        assert_eq!(stand.names(id).await, ["a", "c"], "{}", stand.engine());
    }
}

#[tokio::test]
async fn a_source_has_one_run_at_a_time() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("one").await;
        let text = id.to_string();
        for _ in 0..2 {
            let busy = stand.sources.sync(&stand.caller, &text, false).await;
            assert!(matches!(busy, Err(Error::RunBusy)), "{}", stand.engine());
        }
        let run = store::source_runs::last(&stand.runner.context.db, stand.caller.workspace, id).await;
        let run = run.unwrap().unwrap();
        let claims = futures_of_claims(&stand, &run).await;
        assert_eq!(claims, 1, "{}: of two processes one has it", stand.engine());
    }
}

async fn futures_of_claims(stand: &Stand, run: &Run) -> usize {
    let (one, other) = (stand.other_process(), stand.other_process());
    let (first, second) = tokio::join!(one.claim(run.clone()), other.claim(run.clone()));
    usize::from(first.unwrap().is_some()) + usize::from(second.unwrap().is_some())
}

#[tokio::test]
async fn two_sources_keep_documents_of_their_own() {
    for stand in listed().await {
        for number in 0..5 {
            stand.shelf.put(&number.to_string(), "the same text");
        }
        let (one, other) = (stand.connect("one").await, stand.connect("other").await);
        stand.work().await;
        assert_eq!(stand.names(one).await, stand.names(other).await);
        stand.sources.disconnect(&stand.caller, &one.to_string()).await.unwrap();
        assert_eq!(stand.names(one).await, Vec::<String>::new(), "hidden at once");
        crate::runs::removal::disconnected(&stand.runner.context).await.unwrap();
        assert_eq!(stand.names(other).await.len(), 5, "{}", stand.engine());
        assert_eq!(stand.texts(other).await.get("3").map(String::as_str), Some("the same text"));
        stand.assert_sound("one is disconnected").await;
    }
}

#[tokio::test]
async fn disconnecting_stops_a_run_that_is_under_way() {
    for stand in listed().await {
        for number in 0..30 {
            stand.shelf.put(&number.to_string(), "text");
        }
        let id = stand.connect("gone soon").await;
        stand.shelf.close();
        let runner = stand.other_process();
        let working = tokio::spawn(async move { work(&runner).await });
        while stand.shelf.requests().listed == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stand.sources.disconnect(&stand.caller, &id.to_string()).await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), working).await.expect("its worker stops").unwrap();
        let asked = stand.shelf.requests();
        stand.shelf.open();
        crate::runs::removal::disconnected(&stand.runner.context).await.unwrap();
        stand.work().await;
        assert_eq!(stand.shelf.requests(), asked, "{}: nobody asks any more", stand.engine());
        assert!(stand.sources.get(&stand.caller, &id.to_string()).await.is_err());
        stand.assert_sound("disconnected under way").await;
    }
}

#[tokio::test]
async fn a_cancelled_run_is_gone_on_with_by_the_next() {
    for stand in listed().await {
        for number in 0..40 {
            stand.shelf.put(&format!("{number:02}"), "text");
        }
        let until = stand.clock.now().plus(HOUR);
        stand.shelf.put_failing("25", Fault::Waiting { until });
        let id = stand.connect("long").await;
        // In the middle of a page it has to wait; then somebody cancels.
        stand.work().await;
        let run = stand.last(id).await;
        assert_eq!((run.state, stand.names(id).await.len()), (SourceRunStatus::Waiting, 25));
        stand.shelf.mend("25", "text");
        stand.clock.advance(HOUR * 2);
        let read = stand.shelf.requests().fetched;
        stand.sources.cancel_run(&stand.caller, &id.to_string(), &run.id.to_string()).await.unwrap();
        assert_eq!(stand.last(id).await.state, SourceRunStatus::Cancelled);
        let gone = stand.sources.cancel_run(&stand.caller, &id.to_string(), &run.id.to_string()).await;
        assert!(matches!(gone, Err(Error::RunNotStartable(_))));
        let next = stand.sync(id).await;
        assert_eq!(
            (next.state, next.listing, next.kind),
            (COMPLETED, run.id, run.kind),
            "{}",
            stand.engine()
        );
        assert_eq!(stand.names(id).await.len(), 40);
        assert!(stand.shelf.requests().fetched - read <= 40 - 25, "nothing that was there is read again");
        stand.assert_sound("cancelled and gone on with").await;
    }
}

#[tokio::test]
async fn a_paused_source_has_no_runs_and_resuming_queues_one() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let paused = Draft { paused: true, ..draft("later", None) };
        let id = stand.sources.connect(&stand.caller, paused).await.unwrap().source.id;
        stand.clock.advance(HOUR * 50);
        stand.work().await;
        assert_eq!(stand.shelf.requests().listed, 0);
        assert_eq!(stand.shown(id).await.status(stand.clock.now()), Status::Paused);
        let resume = crate::sources::Patch { paused: Some(false), ..Default::default() };
        stand.sources.update(&stand.caller, &id.to_string(), resume).await.unwrap();
        stand.work().await;
        assert_eq!(stand.names(id).await, ["a"], "{}", stand.engine());
        let pause = crate::sources::Patch { paused: Some(true), ..Default::default() };
        stand.sources.update(&stand.caller, &id.to_string(), pause).await.unwrap();
        stand.clock.advance(HOUR * 50);
        stand.work().await;
        assert_eq!(stand.shelf.requests().listed, 1);
        assert_eq!(stand.names(id).await, ["a"], "what is retained stays");
    }
}

#[tokio::test]
async fn a_catalog_reads_no_bodies_and_an_index_that_becomes_one_drops_them() {
    for stand in listed().await {
        for name in ["a", "b", "c"] {
            stand.shelf.put(name, "a body");
        }
        let id = stand.connect_as("names", Some(SourceMode::Catalog)).await;
        stand.work().await;
        assert_eq!(stand.shelf.requests().fetched, 0);
        assert_eq!(stand.texts(id).await.get("a").map(String::as_str), Some(""));
        let to = |mode| crate::sources::Patch { mode: Some(Some(mode)), ..Default::default() };
        stand.sources.update(&stand.caller, &id.to_string(), to(SourceMode::Indexed)).await.unwrap();
        stand.work().await;
        assert_eq!(stand.texts(id).await.get("a").map(String::as_str), Some("a body"));
        stand.sources.update(&stand.caller, &id.to_string(), to(SourceMode::Catalog)).await.unwrap();
        let (db, workspace) = (&stand.runner.context.db, stand.caller.workspace);
        let views = views(db, workspace).await;
        assert!(views.iter().all(|view| view.content_hash.is_none()), "{}", stand.engine());
        stand.work().await;
        stand.assert_sound("a catalog").await;
        stand.sources.update(&stand.caller, &id.to_string(), to(SourceMode::Live)).await.unwrap();
        assert_eq!(stand.names(id).await, Vec::<String>::new());
        crate::runs::removal::disconnected(&stand.runner.context).await.unwrap();
        stand.assert_sound("live").await;
    }
}

#[tokio::test]
async fn the_budget_of_live_calls_is_exact_for_all_processes() {
    for stand in listed().await {
        stand.shelf.put("a", "a body");
        let draft = Draft { daily_budget: Some(5), ..draft("live", Some(SourceMode::Live)) };
        let id = stand.sources.connect(&stand.caller, draft).await.unwrap().source.id.to_string();
        let mut asked = tokio::task::JoinSet::new();
        for _ in 0..12 {
            let runner = stand.other_process();
            let live = Live::new(runner.clone(), runner.extractor.clone(), 16 << 20);
            let sources = Sources::new(runner, live);
            let (caller, id) = (stand.caller.clone(), id.clone());
            asked.spawn(async move { sources.fetch(&caller, &id, "a").await });
        }
        let answers = asked.join_all().await;
        let served = answers.iter().filter(|answer| answer.is_ok()).count();
        let refused =
            answers.iter().filter(|answer| matches!(answer, Err(Error::BudgetUsedUp { .. }))).count();
        assert_eq!((served, refused), (5, 7), "{}: {answers:?}", stand.engine());
        stand.clock.advance(HOUR * 24);
        let fetched = stand.sources.fetch(&stand.caller, &id, "a").await.unwrap();
        assert_eq!((fetched.content.as_str(), fetched.is_live, fetched.remaining), ("a body", true, 4));
        assert_eq!(stand.names(id.parse().unwrap()).await, Vec::<String>::new(), "nothing is kept");
    }
}

#[tokio::test]
async fn waiting_is_of_the_whole_connection_and_goes_on_as_the_same_run() {
    for stand in listed().await {
        for number in 0..12 {
            stand.shelf.put(&format!("{number:02}"), "text");
        }
        let id = stand.connect("slow").await;
        let until = stand.clock.now().plus(Duration::from_secs(120));
        stand.shelf.fail_next([Fault::Waiting { until }]);
        stand.work().await;
        let run = stand.last(id).await;
        assert_eq!(
            (run.state, run.waiting_until),
            (SourceRunStatus::Waiting, Some(until)),
            "{}",
            stand.engine()
        );
        let shown = stand.shown(id).await;
        assert_eq!(shown.status(stand.clock.now()), Status::Waiting);
        let asked = stand.shelf.requests();
        // Another process knows it, and a question is refused without a request.
        work(&stand.other_process()).await;
        let runner = stand.other_process();
        let budget_queue = BudgetQueue::new(runner.context.db.clone(), Arc::clone(&runner.context.clock));
        let call = runner.call(&shown.source, Charge::Question { budget: 9, budget_queue });
        let refused = runner.provider(&shown.source).await.unwrap().check(&call).await;
        assert_eq!(refused, Err(Fault::Waiting { until }));
        assert_eq!(stand.shelf.requests(), asked);
        stand.clock.advance(Duration::from_secs(121));
        stand.work().await;
        let after = stand.last(id).await;
        assert_eq!((after.id, after.state), (run.id, COMPLETED));
        assert_eq!(after.counters.created, 12);
    }
}
