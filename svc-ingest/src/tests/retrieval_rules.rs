//! What retrieval reads, confirms, selects and tells.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::Kind;

use super::*;
use crate::documents::Narrowing;
use crate::model::{DocumentRef, IngestStatus, Ingested, Outcome};

fn reference(document: &Ingested) -> DocumentRef {
    DocumentRef { kind: Some(Kind::Ingested), id: document.id.to_string() }
}

fn outcome(document: &Ingested, failure: Option<&str>) -> Outcome {
    Outcome {
        id: document.id,
        content_hash: document.text.clone().unwrap().hash,
        chunks: 3,
        failure: failure.map(str::to_owned),
    }
}

#[tokio::test]
async fn a_document_is_read_confirmed_and_selected() {
    for bench in benches().await {
        let occurred_at = Some(Timestamp::from_seconds(1_700_000_000));
        let mut sent = text("a", "Plan", "# Plan");
        sent.draft.occurred_at = occurred_at;
        sent.draft.url = Some("https://wiki.example/plan".into());
        let plan = bench.ingests.text(&bench.caller, sent).await.unwrap().document;
        let note = bench.take("b", "Note", "text").await.unwrap().document;
        let refs = [
            reference(&note),
            reference(&plan),
            reference(&note),
            DocumentRef { kind: Some(Kind::File), id: plan.id.to_string() },
            DocumentRef { kind: None, id: "x".into() },
        ];
        let workspace = bench.caller.workspace.to_string();
        let read = bench.documents.read(&workspace, &refs).await.unwrap();
        assert_eq!(read.read, refs.len());
        let texts: Vec<_> =
            read.documents.iter().map(|(document, text)| (document.id, text.as_str())).collect();
        assert_eq!(texts, [(note.id, "text"), (plan.id, "# Plan")]);

        let confirmed = bench.documents.confirm(&bench.caller, &refs).await.unwrap();
        assert_eq!(confirmed.iter().map(|one| one.id).collect::<Vec<_>>(), [note.id, plan.id]);
        assert_eq!(confirmed[1].path, "/sources/ingested/Plan.md");
        assert_eq!(Some(confirmed[1].updated_at), occurred_at, "what it says was so then");
        for nobody in [bound_to_folders(1), caller(2)] {
            assert!(bench.documents.confirm(&nobody, &refs).await.unwrap().is_empty());
        }

        let select = |narrowing: Narrowing| {
            let (documents, caller) = (bench.documents.clone(), bench.caller.clone());
            async move { documents.select(&caller, &narrowing).await.unwrap().len() }
        };
        let before = Some(Timestamp::from_seconds(1_700_000_001));
        assert_eq!(select(Narrowing::default()).await, 2);
        assert_eq!(select(Narrowing { updated_before: before, ..Narrowing::default() }).await, 1);
        assert_eq!(select(Narrowing { updated_after: before, ..Narrowing::default() }).await, 1);
        assert_eq!(select(Narrowing { kinds: vec![Kind::Ingested], ..Narrowing::default() }).await, 2);
        assert_eq!(select(Narrowing { kinds: vec![Kind::File], ..Narrowing::default() }).await, 0);
        assert_eq!(select(Narrowing { names_place: true, ..Narrowing::default() }).await, 0);
        assert_eq!(select(Narrowing { source_ids: vec!["x".into()], ..Narrowing::default() }).await, 0);
        let bound = bench.documents.select(&bound_to_folders(1), &Narrowing::default()).await.unwrap();
        assert!(bound.is_empty());
    }
}

#[tokio::test]
async fn a_document_is_what_retrieval_says_of_it() {
    for bench in benches().await {
        let [one, two, three] = [
            bench.take("a", "A", "one").await.unwrap().document,
            bench.take("b", "B", "two").await.unwrap().document,
            bench.take("c", "C", "three").await.unwrap().document,
        ];
        let workspace = bench.caller.workspace.to_string();
        let stale = Outcome { content_hash: "blake3:other".into(), ..outcome(&three, None) };
        let told = vec![outcome(&one, None), outcome(&two, Some("no words")), stale];
        bench.indexing.acknowledge(&workspace, told.clone()).await.unwrap();
        let head = bench.context.feed.head(bench.caller.workspace).await.unwrap();
        let get = |document: &Ingested| {
            let (ingests, caller, id) =
                (bench.ingests.clone(), bench.caller.clone(), document.id.to_string());
            async move { ingests.get(&caller, &id).await.unwrap() }
        };
        let indexed = get(&one).await;
        assert_eq!((indexed.status, indexed.indexed.unwrap().chunks), (IngestStatus::Indexed, 3));
        let failed = get(&two).await;
        assert_eq!((failed.status, failed.error.as_deref()), (IngestStatus::Failed, Some("no words")));
        assert_eq!(get(&three).await, three, "of another text nothing is said");
        bench.indexing.acknowledge(&workspace, told).await.unwrap();
        assert_eq!(get(&one).await, indexed, "told twice is told once");
        bench.indexing.acknowledge(&workspace, vec![outcome(&two, None)]).await.unwrap();
        assert_eq!((get(&two).await.status, get(&two).await.error), (IngestStatus::Indexed, None));
        assert_eq!(
            bench.context.feed.head(bench.caller.workspace).await.unwrap(),
            head,
            "which is no change"
        );
        assert_eq!(bench.faults().await, Vec::<String>::new(), "{}", bench.test.engine);
    }
}

#[tokio::test]
async fn a_tree_is_drawn_up_and_kept_current() {
    for bench in benches().await {
        let workspace = bench.caller.workspace.to_string();
        let one = bench.take("a", "A", "one").await.unwrap().document;
        let page = bench.trees.list(&workspace, "").await.unwrap();
        assert_eq!((page.documents.len(), page.next.as_str(), page.position), (1, "", 1));
        let two = bench.take("b", "B", "two").await.unwrap().document;
        bench.ingests.delete(&bench.caller, &one.id.to_string()).await.unwrap();
        let changes = bench.trees.changes(&workspace, page.position).await.unwrap();
        assert_eq!((changes.position, changes.head), (3, 3));
        assert_eq!(changes.documents.iter().map(|one| one.id).collect::<Vec<_>>(), [two.id]);
        assert_eq!(changes.gone, [(Kind::Ingested, one.id)]);
        let none = bench.trees.changes(&workspace, 3).await.unwrap();
        assert_eq!((none.position, none.documents.len(), none.gone.len()), (3, 0, 0));
        let hashes = ["blake3:none".to_owned(), changes.documents[0].content_hash.clone()];
        let texts = bench.trees.texts(&workspace, &hashes).await.unwrap();
        assert_eq!((texts.found, texts.read), (vec![(1, "two".to_owned())], 2));
    }
}
