//! Taking runs back.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::execute;
use cairn_chassis::sql::Text;

use super::*;

#[tokio::test]
async fn a_rollback_takes_back_what_nobody_touched() {
    for bench in benches().await {
        bench.sync(draft(&[("a", "1"), ("b", "1"), ("d/c", "1"), ("d/e", "1")])).await;
        let before = bench.tree().await;
        let done = bench.sync(pruning(&[("a", "2"), ("b", "2"), ("n/new", "1"), ("n/edited", "1")])).await;
        assert_eq!(counted(done.run.counters), [2, 2, 0, 0, 2], "{}", bench.engine);
        bench.edit("/b", "edited").await;
        bench.edit("/n/edited", "edited").await;
        let back = bench.roll_back(&done).await;
        assert_eq!(back.run.state, RunStatus::RolledBack);
        let mut expected = before;
        expected.insert("/b".into(), vec!["edited".into()]);
        expected.insert("/n/edited".into(), vec!["edited".into()]);
        assert_eq!(bench.tree().await, expected);
        let mut kept = codes(&back);
        kept.sort_unstable();
        assert_eq!(kept, [("b", "edited_since_sync"), ("n", "not_empty"), ("n/edited", "edited_since_sync")]);
        let again = bench.syncs.roll_back(&bench.caller, &done.run.id.to_string()).await;
        assert_eq!(reason(again), Reason::RunNotRevertible);
        // The next sync compares with what is there now.
        let next =
            bench.preview(draft(&[("a", "1"), ("d/c", "1"), ("d/e", "1"), ("n/new", "1")])).await.unwrap();
        assert_eq!(counted(next.run.would), [1, 0, 3, 0, 0]);
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn an_untouched_first_sync_leaves_nothing_behind() {
    for bench in benches().await {
        let done = bench.sync(draft(&[("a/b/c", "1"), ("a/d", "1"), ("e", "1")])).await;
        let back = bench.roll_back(&done).await;
        assert_eq!((back.run.state, back.warnings.len()), (RunStatus::RolledBack, 0), "{}", bench.engine);
        assert_eq!(bench.tree().await, tree(&[]));
        assert_eq!(bench.folder_paths().await, Vec::<String>::new());
        let again = bench.sync(draft(&[("a/b/c", "1"), ("a/d", "1"), ("e", "1")])).await;
        assert_eq!(counted(again.run.counters), [3, 0, 0, 0, 0]);
    }
}

#[tokio::test]
async fn what_a_later_run_changed_stays() {
    for bench in benches().await {
        let first = bench.sync(draft(&[("a", "1"), ("b", "1")])).await;
        bench.sync(draft(&[("a", "2"), ("b", "1")])).await;
        let back = bench.roll_back(&first).await;
        assert_eq!(codes(&back), [("a", "edited_since_sync")], "{}", bench.engine);
        assert_eq!(bench.tree().await, tree(&[("/a", "2")]));
    }
}

#[tokio::test]
async fn an_adopted_content_comes_back_too() {
    for bench in benches().await {
        bench.sync(draft(&[("a", "1")])).await;
        bench.edit("/a", "2").await;
        let file_id = bench.file("/a").await.id;
        let update_mask = Some(FieldMask { paths: vec!["tags".into()] });
        let tags = vec!["x".into()];
        let tag = content::UpdateFileRequest { file_id, tags, update_mask, ..Default::default() };
        bench.files().update_file(bench.request(tag)).await.unwrap();
        bench.sync(draft(&[("a", "2")])).await;
        let done = bench.sync(draft(&[("a", "3")])).await;
        assert_eq!(counted(done.run.counters), [0, 1, 0, 0, 0], "{}", bench.engine);
        bench.roll_back(&done).await;
        assert_eq!(bench.tree().await, tree(&[("/a", "2")]));
    }
}

#[tokio::test]
async fn only_what_is_completed_and_not_old_goes_back() {
    for bench in benches().await {
        let ready = bench.preview(draft(&[("a", "1")])).await.unwrap();
        let refused = bench.syncs.roll_back(&bench.caller, &ready.run.id.to_string()).await;
        assert_eq!(reason(refused), Reason::RunNotRevertible, "{}", bench.engine);
        let done = bench.sync(draft(&[("a", "1")])).await;
        let db = &bench.service.context().db;
        let over = Timestamp::from_micros(1);
        const AGE: &str = "UPDATE sync_runs SET rollback_until = $2 WHERE id = $1";
        execute!(db.writer(), AGE, Text(done.run.id), over).unwrap();
        let refused = bench.syncs.roll_back(&bench.caller, &done.run.id.to_string()).await;
        assert_eq!(reason(refused), Reason::RunNotRevertible);
    }
}
