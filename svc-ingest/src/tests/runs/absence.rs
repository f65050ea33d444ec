//! What may be concluded from what a listing lacks.

use cairn_providers::{Changes, Deletions, Fault, Listing, Partial};

use super::*;

async fn shelf_of(stand: &Stand, count: usize) -> SourceId {
    for number in 0..count {
        stand.shelf.put(&format!("{number:03}"), &format!("text {number}"));
    }
    let id = stand.connect("shelf").await;
    stand.work().await;
    id
}

#[tokio::test]
async fn a_complete_listing_removes_what_it_lacks() {
    for stand in listed().await {
        let id = shelf_of(&stand, 30).await;
        for number in 0..5 {
            stand.shelf.remove(&format!("{number:03}"));
        }
        let run = stand.sync(id).await;
        assert_eq!((run.state, run.counters.removed), (COMPLETED, 5), "{}", stand.engine());
        assert_eq!(stand.names(id).await.len(), 25);
        stand.assert_sound("removed by absence").await;
    }
}

#[tokio::test]
async fn an_incomplete_listing_removes_nothing() {
    for stand in listed().await {
        let id = shelf_of(&stand, 30).await;
        for number in 0..5 {
            stand.shelf.remove(&format!("{number:03}"));
        }
        stand.shelf.set_partial(vec![Partial::everywhere("the provider ends early")]);
        let run = stand.sync(id).await;
        assert_eq!((run.state, run.complete, run.counters.removed), (WITH_WARNINGS, false, 0));
        assert_eq!(stand.names(id).await.len(), 30, "{}", stand.engine());
        // Only a part is in doubt: the rest is as it says.
        stand.shelf.set_partial(vec![Partial::below("00", "a folder is not readable")]);
        stand.shelf.remove("020");
        assert_eq!(stand.sync(id).await.counters.removed, 1);
        stand.shelf.set_partial(Vec::new());
        assert_eq!(stand.sync(id).await.counters.removed, 5);
        stand.assert_sound("partial listings").await;
    }
}

#[tokio::test]
async fn a_mass_removal_is_held_back_and_made_an_hour_later() {
    for stand in listed().await {
        let id = shelf_of(&stand, 60).await;
        for number in 0..40 {
            stand.shelf.remove(&format!("{number:03}"));
        }
        let run = stand.sync(id).await;
        assert_eq!((run.state, run.complete, run.counters.removed), (WITH_WARNINGS, true, 0));
        assert!(run.warnings.iter().any(|warning| warning.code == "mass_removal"), "{:?}", run.warnings);
        // Again within the hour changes nothing; what came back stays.
        stand.clock.advance(HOUR / 2);
        stand.shelf.put("000", "it is back");
        assert_eq!(stand.sync(id).await.counters.removed, 0);
        stand.clock.advance(HOUR);
        let later = stand.sync(id).await;
        assert_eq!((later.counters.removed, later.complete), (39, true), "{}", stand.engine());
        assert_eq!(stand.names(id).await.len(), 21);
        stand.assert_sound("held back, then made").await;
    }
}

#[tokio::test]
async fn an_empty_listing_is_held_back_however_small() {
    for stand in listed().await {
        let id = shelf_of(&stand, 3).await;
        for number in 0..3 {
            stand.shelf.remove(&format!("{number:03}"));
        }
        assert_eq!(stand.sync(id).await.counters.removed, 0);
        assert_eq!(stand.names(id).await.len(), 3);
        stand.clock.advance(HOUR * 2);
        stand.work().await;
        assert_eq!(stand.names(id).await.len(), 0, "{}", stand.engine());
    }
}

#[tokio::test]
async fn what_a_provider_says_is_gone_goes_at_once() {
    for stand in told().await {
        let id = shelf_of(&stand, 30).await;
        for number in 0..30 {
            stand.shelf.remove(&format!("{number:03}"));
        }
        let run = stand.sync(id).await;
        assert_eq!((run.counters.removed, run.warnings.len()), (30, 0), "{}", stand.engine());
        stand.assert_sound("all are gone").await;
    }
}

#[tokio::test]
async fn a_lost_place_begins_anew_and_removes_nothing_on_the_way() {
    for stand in told().await {
        let id = shelf_of(&stand, 30).await;
        stand.shelf.remove("000");
        stand.shelf.put("new", "text");
        stand.shelf.lose_positions();
        stand.sources.sync(&stand.caller, &id.to_string(), false).await.unwrap();
        let lost = stand.last(id).await;
        let run = stand.runner.claim(lost.clone()).await.unwrap().unwrap();
        stand.runner.perform(run, &CancellationToken::new()).await;
        assert_eq!(stand.last(id).await.state, SourceRunStatus::Failed);
        assert_eq!(stand.names(id).await.len(), 30, "nothing goes before a listing says so");
        stand.work().await;
        let full = stand.last(id).await;
        assert!(full.id > lost.id && full.kind.lists() && full.complete, "{}: {full:?}", stand.engine());
        assert_eq!(stand.names(id).await.len(), 30, "one came, one went");
        assert!(!stand.names(id).await.contains(&"000".to_owned()));
        stand.assert_sound("a lost place").await;
    }
}

#[tokio::test]
async fn places_that_are_lost_again_and_again_end() {
    for stand in told().await {
        let id = shelf_of(&stand, 3).await;
        stand.sources.sync(&stand.caller, &id.to_string(), true).await.unwrap();
        stand.shelf.fail_next(vec![Fault::PositionLost; 50]);
        stand.work().await;
        assert!(stand.shelf.requests().listed < 12, "{}", stand.engine());
        assert_eq!(stand.names(id).await.len(), 3);
    }
}

#[tokio::test]
async fn where_absence_proves_nothing_documents_are_asked_for() {
    for stand in stands(Listing::BestEffort, Changes::None, Deletions::ByProbe).await {
        let id = shelf_of(&stand, 12).await;
        stand.shelf.remove("003");
        // It is there, and the listing does not say so.
        stand.shelf.put_unlisted("004");
        let run = stand.sync_full(id).await;
        assert_eq!(run.counters.removed, 1, "{}", stand.engine());
        let names = stand.names(id).await;
        assert!(names.contains(&"004".to_owned()) && !names.contains(&"003".to_owned()));
        stand.assert_sound("probes").await;
    }
}

#[tokio::test]
async fn documents_that_no_listing_has_take_turns_in_being_asked_for() {
    const PROBES_OF_A_RUN: u32 = 200;
    for stand in stands(Listing::BestEffort, Changes::None, Deletions::ByProbe).await {
        stand.shelf.set_page_size(500);
        let id = shelf_of(&stand, 450).await;
        for number in 0..450 {
            stand.shelf.put_unlisted(&format!("{number:03}"));
        }
        // All are of the same age, and the order is that of their ids then: the last one's turn comes in the third run.
        let all = views(&stand.runner.context.db, stand.caller.workspace).await;
        let last = all.into_iter().max_by_key(|view| view.id.to_string()).unwrap();
        stand.shelf.remove(&last.external_id);
        let mut removed = Vec::new();
        for _ in 0..3 {
            let before = stand.shelf.requests().fetched;
            removed.push(stand.sync_full(id).await.counters.removed);
            assert_eq!(stand.shelf.requests().fetched - before, PROBES_OF_A_RUN, "{}", stand.engine());
        }
        assert_eq!(removed, [0, 0, 1], "{}", stand.engine());
        assert_eq!(stand.names(id).await.len(), 449);
        stand.assert_sound("probes take turns").await;
    }
}

#[tokio::test]
async fn a_listing_that_may_lack_things_must_lack_them_three_times() {
    for stand in stands(Listing::BestEffort, Changes::None, Deletions::FromListing).await {
        let id = shelf_of(&stand, 12).await;
        stand.shelf.remove("003");
        for _ in 0..2 {
            stand.sync_full(id).await;
            assert_eq!(stand.names(id).await.len(), 12);
        }
        stand.sync_full(id).await;
        assert_eq!(stand.names(id).await.len(), 11, "{}", stand.engine());
    }
}

#[tokio::test]
async fn a_fetch_that_finds_nothing_may_have_to_find_it_again() {
    for stand in told().await {
        let id = shelf_of(&stand, 12).await;
        stand.shelf.set_gone_after(Some(HOUR));
        stand.shelf.put_answering("003", cairn_providers::Fetched::Gone);
        stand.sync(id).await;
        assert_eq!(stand.names(id).await.len(), 12, "a bad day of a host is no deletion");
        stand.clock.advance(HOUR * 2);
        stand.shelf.put_answering("003", cairn_providers::Fetched::Gone);
        stand.work().await;
        stand.sync(id).await;
        assert_eq!(stand.names(id).await.len(), 11, "{}", stand.engine());
        stand.assert_sound("gone twice").await;
    }
}
