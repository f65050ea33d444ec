//! Workspaces that go for good.

use cairn_chassis::lifecycle::Purge as _;
use cairn_chassis::testing::tables_left;

use super::*;

#[tokio::test]
async fn nothing_of_a_removed_workspace_is_left() {
    for bench in benches().await {
        for key in ["a", "b"] {
            bench.take(key, key, key).await.unwrap();
        }
        let stays = bench.ingests.text(&caller(2), text("a", "A", "stays")).await.unwrap();
        let rows = store::removal::rows(bench.context.db.clone());
        while !rows.purge(workspace(1)).await.unwrap() {}
        assert_eq!(bench.context.feed.head(workspace(1)).await.unwrap(), 0, "{}", bench.test.engine);
        let account = bench.accounts.get(&bench.caller).await.unwrap();
        assert_eq!((account.documents, account.bytes), (0, 0));
        assert!(bench.ingests.get(&caller(2), &stays.document.id.to_string()).await.is_ok());
        let names: Vec<&str> = store::removal::TABLES.iter().map(|table| table.name).collect();
        let kept = tables_left(&bench.context.db, &names).await.unwrap();
        assert_eq!(
            kept,
            ["workspace_states"].map(String::from)[..kept.len()],
            "which outlives the workspace"
        );
        assert_eq!(bench.faults().await, Vec::<String>::new());
    }
}
