//! Workspaces that go for good.

use cairn_chassis::lifecycle::Purge as _;
use cairn_chassis::testing::tables_left;

use super::*;

#[tokio::test]
async fn nothing_of_a_removed_workspace_is_left() {
    for bench in benches().await {
        let done = bench.sync(draft(&[("a", "1"), ("b/c", "2")])).await;
        bench.preview(draft(&[("a", "2")])).await.unwrap();
        let rows = store::removal::rows(bench.service.context().db.clone());
        while !rows.purge(workspace()).await.unwrap() {}
        let gone = bench.syncs.get(&bench.caller, &done.run.id.to_string()).await;
        assert_eq!(reason(gone), Reason::NotFound, "{}", bench.engine);
        let names: Vec<&str> = store::removal::TABLES.iter().map(|table| table.name).collect();
        let kept = tables_left(&bench.service.context().db, &names).await.unwrap();
        assert_eq!(
            kept,
            ["workspace_states"].map(String::from)[..kept.len()],
            "which outlives the workspace"
        );
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}

#[tokio::test]
async fn runs_of_a_suspended_workspace_wait() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1")])).await.unwrap();
        bench.start(&previewed).await.unwrap();
        let context = bench.service.context();
        context.suspensions.set(workspace(), true, 1).await.unwrap();
        let shutdown = CancellationToken::new();
        let running = tokio::time::timeout(
            std::time::Duration::from_millis(300),
            bench.service.runner().run(shutdown.clone()),
        );
        assert!(running.await.is_err());
        assert_eq!(bench.get(&previewed).await.run.state, RunStatus::Queued, "{}", bench.engine);
    }
}

#[tokio::test]
async fn runs_of_suspended_workspaces_keep_nobody_waiting() {
    for bench in benches().await {
        let previewed = bench.preview(draft(&[("a", "1")])).await.unwrap();
        bench.start(&previewed).await.unwrap();
        let (db, now) = (&bench.service.context().db, bench.service.context().clock.now());
        assert_eq!(store::runs::claimable(db, now, 1).await.unwrap().len(), 1, "{}", bench.engine);
        bench.service.context().suspensions.set(workspace(), true, 1).await.unwrap();
        assert!(store::runs::claimable(db, now, 1).await.unwrap().is_empty(), "{}", bench.engine);
    }
}
