//! Documents that failed, and people who do not want to wait until their time comes.

use cairn_providers::{Fault, Fetched};

use super::*;
use crate::Error;
use crate::indexing::Indexing;
use crate::model::{DocumentStatus, ListedDocument, Outcome};
use crate::sources::Patch;
use crate::tests::bound_to_folders;

async fn listed_as(stand: &Stand, status: &str) -> Vec<ListedDocument> {
    let page = stand.sources.list_documents(&stand.caller, None, Some(status), "", first_page()).await;
    page.unwrap().items
}

/// A shelf with good documents and one that fails, read once.
async fn with_a_failure(stand: &Stand, name: &str) -> SourceId {
    for good in ["a", "b", "c"] {
        stand.shelf.put(good, good);
    }
    stand.shelf.put_failing("bad", Fault::Unavailable);
    let id = stand.connect(name).await;
    stand.work().await;
    id
}

async fn retry(stand: &Stand, document: &ListedDocument) -> Result<ListedDocument, Error> {
    // Ids of runs sort by time.
    stand.clock.advance(Duration::from_millis(10));
    stand.sources.retry_document(&stand.caller, &document.id.to_string()).await
}

async fn runs(stand: &Stand, id: SourceId) -> u64 {
    stand.sources.list_runs(&stand.caller, &id.to_string(), first_page()).await.unwrap().total
}

#[tokio::test]
async fn a_document_that_failed_is_tried_again_at_once_and_once() {
    for stand in listed().await {
        stand.shelf.put_answering("film", Fetched::Unsupported("video/mp4".to_owned()));
        let id = with_a_failure(&stand, "mixed").await;
        let failed = listed_as(&stand, "failed").await;
        assert_eq!(failed.len(), 2, "{}", stand.engine());
        let before = stand.shelf.requests().fetched;
        stand.shelf.mend("bad", "good now");
        for document in failed.iter().chain(&failed) {
            let kept = retry(&stand, document).await.unwrap();
            assert_eq!(kept.status, DocumentStatus::Failed, "it keeps its error until then");
        }
        stand.work().await;
        assert_eq!(runs(&stand, id).await, 2, "{}", stand.engine());
        assert_eq!(stand.shelf.requests().fetched, before + 2, "what lasts is asked for as well");
        assert_eq!(stand.texts(id).await.get("bad").map(String::as_str), Some("good now"));
        let failed = listed_as(&stand, "failed").await;
        assert_eq!(failed.iter().map(|one| one.external_id.as_str()).collect::<Vec<_>>(), ["film"]);
        // What has not failed is left alone.
        for document in listed_as(&stand, "indexing").await {
            retry(&stand, &document).await.unwrap();
        }
        stand.work().await;
        assert_eq!(runs(&stand, id).await, 2, "{}", stand.engine());
        stand.assert_sound("tried again").await;
    }
}

#[tokio::test]
async fn a_run_that_is_under_way_is_followed_by_one_that_tries_again() {
    for stand in listed().await {
        let id = with_a_failure(&stand, "busy").await;
        let failed = listed_as(&stand, "failed").await;
        stand.clock.advance(Duration::from_millis(10));
        let queued = stand.sources.sync(&stand.caller, &id.to_string(), false).await.unwrap();
        let run = stand.runner.claim(queued).await.unwrap().unwrap();
        for _ in 0..2 {
            retry(&stand, &failed[0]).await.unwrap();
        }
        stand.runner.perform(run, &CancellationToken::new()).await;
        stand.work().await;
        assert_eq!(runs(&stand, id).await, 3, "{}", stand.engine());
        stand.assert_sound("followed").await;
    }
}

#[tokio::test]
async fn what_no_run_would_read_is_refused() {
    for stand in listed().await {
        let id = with_a_failure(&stand, "still").await;
        let failed = listed_as(&stand, "failed").await;
        let paused = Patch { paused: Some(true), ..Patch::default() };
        stand.sources.update(&stand.caller, &id.to_string(), paused).await.unwrap();
        let refused = retry(&stand, &failed[0]).await;
        assert!(matches!(refused, Err(Error::RunNotStartable(_))), "{}: {refused:?}", stand.engine());
        assert_eq!(runs(&stand, id).await, 1);
        let document = failed[0].id.to_string();
        let elsewhere = stand.sources.retry_document(&caller(2), &document).await;
        assert!(matches!(elsewhere, Err(Error::NoDocumentHere(_))), "{elsewhere:?}");
        let bound = stand.sources.retry_document(&bound_to_folders(1), &document).await;
        assert!(matches!(bound, Err(Error::BoundToFolders(_))), "{bound:?}");
        let odd = stand.sources.retry_document(&stand.caller, "no id").await;
        assert!(matches!(odd, Err(Error::NoDocumentHere(_))), "{odd:?}");
    }
}

#[tokio::test]
async fn a_text_that_could_not_be_indexed_is_told_to_the_feed_again() {
    for stand in listed().await {
        stand.shelf.put("a", "a");
        let id = stand.connect("whole").await;
        stand.work().await;
        let (db, workspace) = (&stand.runner.context.db, stand.caller.workspace);
        let view = views(db, workspace).await.pop().unwrap();
        let failure = Some("the text could not be cut".to_owned());
        let content_hash = view.content_hash.unwrap();
        let outcome = Outcome { id: view.id, content_hash, chunks: 0, failure };
        let indexing = Indexing::new(stand.runner.context.clone());
        indexing.acknowledge_of_sources(&workspace.to_string(), vec![outcome]).await.unwrap();
        let failed = listed_as(&stand, "failed").await;
        let told = stand.bench.told(0).await.len();
        for _ in 0..2 {
            let document = retry(&stand, &failed[0]).await.unwrap();
            assert_eq!(document.status, DocumentStatus::Indexing, "{}", stand.engine());
        }
        assert_eq!(stand.bench.told(0).await.len(), told + 1);
        assert_eq!(runs(&stand, id).await, 1, "nobody reads it again");
    }
}
