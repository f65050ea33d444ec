//! What runs do, and what they leave alone.

use super::*;
use crate::model::Kind;

#[tokio::test]
async fn a_preview_writes_nothing_and_a_run_makes_the_tree() {
    for bench in benches().await {
        let documents = [("guide.md", "# Guide"), ("a/b/deep.txt", "deep"), ("a/data.json", "{}")];
        let previewed = bench.preview(draft(&documents)).await.unwrap();
        assert_eq!(previewed.run.state, RunStatus::Ready);
        assert_eq!(counted(previewed.run.would), [3, 0, 0, 0, 0], "{}", bench.engine);
        assert_eq!(previewed.changes.len(), 3);
        assert_eq!(bench.get(&previewed).await.changes, previewed.changes);
        assert_eq!(bench.tree().await, tree(&[]));
        let done = bench.sync(draft(&documents)).await;
        assert_eq!(done.run.state, RunStatus::Completed);
        assert_eq!(counted(done.run.counters), [3, 0, 0, 0, 0]);
        assert_eq!((done.run.total, done.run.counters.processed), (3, 3));
        assert_eq!(done.changes, [], "a start plans anew");
        assert_eq!(
            bench.tree().await,
            tree(&[("/guide.md", "# Guide"), ("/a/b/deep.txt", "deep"), ("/a/data.json", "{}")])
        );
        assert_eq!(
            actions(&done),
            [("a/b/deep.txt", "created"), ("a/data.json", "created"), ("guide.md", "created")]
        );
        let file = bench.file("/guide.md").await;
        assert_eq!(done.results[2].file.unwrap().to_string(), file.id);
        assert_eq!(file.file_type(), content::FileType::Markdown);

        let again = bench.sync(draft(&documents)).await;
        assert_eq!((again.run.state, counted(again.run.counters)), (RunStatus::Completed, [0, 0, 3, 0, 0]));
        assert_eq!(bench.file("/guide.md").await.version, 1);
        assert_eq!(again.run.bytes, 0, "unchanged documents cost a hash");
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn changes_arrive_and_edits_stay() {
    for bench in benches().await {
        bench
            .sync(draft(&[("same", "1"), ("mine", "1"), ("theirs", "1"), ("both", "1"), ("gone", "1")]))
            .await;
        bench.edit("/theirs", "edited").await;
        bench.edit("/both", "edited").await;
        bench.trash("/gone").await;
        let next =
            [("same", "1"), ("mine", "2"), ("theirs", "1"), ("both", "2"), ("gone", "2"), ("new", "1")];
        let done = bench.sync(draft(&next)).await;
        assert_eq!(done.run.state, RunStatus::CompletedWithWarnings);
        assert_eq!(counted(done.run.counters), [1, 1, 2, 2, 0], "{}", bench.engine);
        assert_eq!(codes(&done), [("both", "edited_in_service"), ("gone", "deleted_in_service")]);
        let expected =
            [("/same", "1"), ("/mine", "2"), ("/theirs", "edited"), ("/both", "edited"), ("/new", "1")];
        assert_eq!(bench.tree().await, tree(&expected));
        // Bringing both to the same content ends the conflict.
        bench.edit("/both", "2").await;
        let mended = bench.sync(draft(&[("both", "2")])).await;
        assert_eq!(counted(mended.run.counters), [0, 0, 1, 0, 0]);
        let followed = bench.sync(draft(&[("both", "3")])).await;
        assert_eq!(counted(followed.run.counters), [0, 1, 0, 0, 0]);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_others_wrote_is_never_touched() {
    for bench in benches().await {
        bench.create("a", "a person's", None).await;
        bench.sync(Draft { name: "other".into(), ..draft(&[("a", "another sync's")]) }).await;
        bench.sync(draft(&[("a", "1"), ("d/x", "1")])).await;
        let done = bench.sync(pruning(&[])).await;
        assert_eq!(counted(done.run.counters), [0, 0, 0, 0, 2], "{}", bench.engine);
        let left = bench.tree().await;
        assert_eq!(left["/a"], ["a person's", "another sync's"]);
        assert_eq!(left.len(), 1);
        assert_eq!(bench.folder_paths().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_folder_of_that_name_is_used_and_not_pruned() {
    for bench in benches().await {
        let make = content::CreateFolderRequest { name: "docs".into(), parent_id: None };
        let folder = bench.folders().create_folder(bench.request(make)).await.unwrap().into_inner();
        bench.create("theirs", "x", folder.folder.map(|folder| folder.id)).await;
        bench.sync(draft(&[("docs/ours", "1"), ("docs/sub/x", "1")])).await;
        assert_eq!(bench.folder_paths().await, ["/docs", "/docs/sub"], "{}", bench.engine);
        let previewed = bench.preview(draft(&[])).await.unwrap();
        let prunable: Vec<_> =
            previewed.would_prune.iter().map(|item| (item.kind, item.path.as_str())).collect();
        assert_eq!(
            prunable,
            [(Kind::File, "docs/ours"), (Kind::File, "docs/sub/x"), (Kind::Folder, "docs/sub")]
        );
        bench.sync(pruning(&[])).await;
        assert_eq!(bench.tree().await, tree(&[("/docs/theirs", "x")]));
        assert_eq!(bench.folder_paths().await, ["/docs"]);
    }
}

#[tokio::test]
async fn policies_skip_and_duplicate() {
    for bench in benches().await {
        bench.sync(draft(&[("d/note.md", "1")])).await;
        let skip = Draft { policy: ConflictPolicy::Skip, ..draft(&[("d/note.md", "2"), ("new", "1")]) };
        assert_eq!(counted(bench.sync(skip).await.run.counters), [1, 0, 1, 0, 0], "{}", bench.engine);
        bench.edit("/d/note.md", "edited").await;
        let beside = Draft { policy: ConflictPolicy::Duplicate, ..draft(&[("d/note.md", "2")]) };
        let done = bench.sync(beside).await;
        assert_eq!(counted(done.run.counters), [1, 0, 0, 0, 0]);
        let left = bench.tree().await;
        assert_eq!((&left["/d/note.md"][0], &left["/d/note (2).md"][0]), (&"edited".into(), &"2".into()));
        bench.sync(draft(&[("d/note.md", "3")])).await;
        assert_eq!(bench.tree().await["/d/note (2).md"], ["3"], "which is the synced one from then on");
    }
}

#[tokio::test]
async fn edited_files_are_not_pruned_and_total_is_what_is_done() {
    for bench in benches().await {
        bench.sync(draft(&[("keep", "1"), ("drop", "1"), ("edited", "1")])).await;
        bench.edit("/edited", "2").await;
        let done = bench.sync(pruning(&[("keep", "1")])).await;
        assert_eq!(counted(done.run.counters), [0, 0, 1, 1, 1], "{}", bench.engine);
        assert_eq!((done.run.total, done.run.counters.processed), (3, 3));
        assert_eq!(bench.tree().await, tree(&[("/keep", "1"), ("/edited", "2")]));
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_start_plans_anew() {
    for bench in benches().await {
        bench.sync(draft(&[("a", "1"), ("b", "1")])).await;
        let first = bench.preview(draft(&[("a", "2"), ("b", "1")])).await.unwrap();
        let second = bench.preview(draft(&[("a", "3"), ("b", "3")])).await.unwrap();
        bench.start(&second).await.unwrap();
        let busy = bench.start(&first).await;
        assert_eq!(reason(busy), Reason::RunBusy, "two runs of one sync never run at once");
        bench.work().await;
        bench.start(&first).await.unwrap();
        bench.edit("/a", "edited").await;
        bench.work().await;
        let done = bench.get(&first).await;
        assert_eq!(codes(&done), [("a", "edited_in_service"), ("b", "preview_outdated")], "{}", bench.engine);
        assert_eq!(bench.tree().await, tree(&[("/a", "edited"), ("/b", "3")]));
    }
}

#[tokio::test]
async fn a_directory_goes_where_it_is_sent() {
    for bench in benches().await {
        let make = content::CreateFolderRequest { name: "in".into(), parent_id: None };
        let made = bench.folders().create_folder(bench.request(make)).await.unwrap().into_inner();
        let folder = made.folder.map(|folder| folder.id);
        let into = |documents| Draft { folder: folder.clone(), ..draft(documents) };
        bench.sync(into(&[("x/y", "1")])).await;
        assert_eq!(bench.tree().await, tree(&[("/in/x/y", "1")]), "{}", bench.engine);
        let deep = format!("{}x", "a/".repeat(100));
        let refused = bench.preview(into(&[(&deep, "")])).await;
        assert!(matches!(refused, Err(Error::Invalid(wrong)) if wrong[0].path == "folderId"));
        let nowhere = Draft { folder: Some(Uuid::from_u128(9).to_string()), ..draft(&[]) };
        assert_eq!(reason(bench.preview(nowhere).await), Reason::NotFound);
        let odd = Draft { folder: Some("x".into()), ..draft(&[]) };
        assert_eq!(reason(bench.preview(odd).await), Reason::ValidationError);
    }
}

#[tokio::test]
async fn both_spellings_of_a_path_are_one_between_runs() {
    for bench in benches().await {
        bench.sync(draft(&[("cafe\u{301}.md", "1")])).await;
        let done = bench.sync(draft(&[("caf\u{e9}.md", "1")])).await;
        assert_eq!(counted(done.run.counters), [0, 0, 1, 0, 0], "{}", bench.engine);
    }
}

#[tokio::test]
async fn deleting_runs_forgets_no_file() {
    for bench in benches().await {
        let done = bench.sync(draft(&[("a", "1")])).await;
        let id = done.run.id.to_string();
        bench.syncs.delete(&bench.caller, &id).await.unwrap();
        assert_eq!(reason(bench.syncs.get(&bench.caller, &id).await), Reason::NotFound);
        assert_eq!(reason(bench.syncs.roll_back(&bench.caller, &id).await), Reason::NotFound);
        let next = bench.preview(draft(&[("a", "1")])).await.unwrap();
        assert_eq!(counted(next.run.would), [0, 0, 1, 0, 0], "{}", bench.engine);
        bench.start(&next).await.unwrap();
        let busy = bench.syncs.delete(&bench.caller, &next.run.id.to_string()).await;
        assert_eq!(reason(busy), Reason::RunBusy);
        bench.work().await;
        assert_eq!(reason(bench.start(&next).await), Reason::RunNotStartable);
        let stranger = Caller { workspace: WorkspaceId(Uuid::from_u128(2)), ..bench.caller.clone() };
        let foreign = bench.syncs.get(&stranger, &next.run.id.to_string()).await;
        assert_eq!(reason(foreign), Reason::NotFound);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_cancelled_run_starts_again() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1")])).await.unwrap();
        let id = previewed.run.id.to_string();
        bench.start(&previewed).await.unwrap();
        let cancelled = bench.syncs.cancel(&bench.caller, &id).await.unwrap();
        assert_eq!(cancelled.run.state, RunStatus::Cancelled, "{}", bench.engine);
        bench.work().await;
        assert_eq!(bench.tree().await, tree(&[]));
        bench.start(&previewed).await.unwrap();
        bench.work().await;
        assert_eq!(bench.get(&previewed).await.run.state, RunStatus::Completed);
        assert_eq!(bench.tree().await, tree(&[("/a", "1")]));
        assert_eq!(reason(bench.syncs.cancel(&bench.caller, &id).await), Reason::RunNotCancellable);
    }
}

#[tokio::test]
async fn runs_are_listed_newest_first() {
    for bench in benches().await {
        let mut ids = Vec::new();
        for number in 0..5 {
            let name = format!("sync {number}");
            ids.insert(0, bench.preview(Draft { name, ..draft(&[]) }).await.unwrap().run.id);
        }
        let mut found = Vec::new();
        let mut token = String::new();
        loop {
            let page = bench.syncs.list(&bench.caller, "", 2, &token).await.unwrap();
            assert_eq!(page.total, 5);
            found.extend(page.runs.iter().map(|run| run.id));
            token = page.next;
            if token.is_empty() {
                break;
            }
        }
        ids.sort();
        ids.reverse();
        assert_eq!(found, ids, "{}", bench.engine);
        assert_eq!(reason(bench.syncs.list(&bench.caller, "", 0, "odd").await), Reason::ValidationError);
    }
}
