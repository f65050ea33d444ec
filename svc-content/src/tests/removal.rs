use cairn_chassis::on_db;
use cairn_chassis::testing::tables_left;
use sqlx::AssertSqlSafe;

use super::asset_rules::Attachments;
use super::memory_rules::of_file;
use super::*;
use crate::removal::Removal;
use crate::store::removal::TABLES;

/// Rows that are deleted with their object, and the state of the removal itself.
const APART: [&str; 2] = ["asset_objects", "workspace_states"];

impl Bench {
    async fn rows_of(&self, table: &str, caller: &Caller) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table} WHERE workspace_id = $1"));
        let workspace = caller.workspace.to_string();
        on_db!(self.context.db, |c| sqlx::query_scalar(sql).bind(&workspace).fetch_one(c).await).unwrap()
    }

    /// One of every kind of item, in the workspace of the bench.
    async fn fill_with_all_kinds(&self, attachments: &Attachments) {
        let outer = self.folder("outer", None).await;
        let inner = self.folder("inner", Some(outer.id)).await;
        let file = self.file("a.md", Some(inner.id)).await;
        let change = files::FilePatch { content: Some("changed".into()), ..files::FilePatch::default() };
        self.files.update(&self.caller, &file.id.to_string(), change).await.unwrap();
        self.memory("M", vec![of_file(file.id)]).await;
        let trashed = self.file("b.md", None).await;
        self.files.delete(&self.caller, &trashed.id.to_string()).await.unwrap();
        attachments.upload(&self.caller, "a.png", b"bytes").await;
        attachments.upload(&self.caller, "b.png", b"other bytes").await;
    }
}

#[tokio::test]
async fn everything_of_a_workspace_goes_and_nothing_of_another() {
    for mut bench in benches().await {
        let attachments = Attachments::new(&bench).await;
        let (gone, stays) = (caller(1), caller(2));
        for owner in [&stays, &gone] {
            bench.caller = owner.clone();
            bench.fill_with_all_kinds(&attachments).await;
        }
        let tables: Vec<&str> = TABLES.iter().map(|table| table.name).chain(["asset_objects"]).collect();
        let mut before = Vec::new();
        for table in &tables {
            before.push(bench.rows_of(table, &stays).await);
        }
        let removal = Removal::new(bench.context.clone(), attachments.store.clone());
        let mut calls = 1;
        while !removal.remove(gone.workspace).await.unwrap() {
            calls += 1;
        }
        assert!(calls < 10, "{calls}");
        for (table, before) in tables.iter().zip(before) {
            assert_eq!(bench.rows_of(table, &gone).await, 0, "{}: {table}", bench.engine());
            assert_eq!(bench.rows_of(table, &stays).await, before, "{}: {table}", bench.engine());
        }
        assert_eq!(attachments.objects().await, 2, "{}: those of the other", bench.engine());
        assert!(removal.remove(gone.workspace).await.unwrap(), "once more does no harm");
        assert_eq!(bench.names(&stays, None).await, ["a.md"]);
    }
}

#[tokio::test]
async fn nothing_is_public_in_a_suspended_workspace() {
    for bench in benches().await {
        let draft = crate::memories::MemoryDraft { name: "M".into(), is_public: true, ..Default::default() };
        let memory = bench.memories().create(&bench.caller, draft).await.unwrap().item;
        let (id, workspace) = (memory.id.to_string(), bench.caller.workspace);
        bench.memories().resolve_public(&id, None).await.unwrap();
        bench.context.suspensions.set(workspace, true, 1).await.unwrap();
        assert_not_found(bench.memories().resolve_public(&id, None).await, "memory");
        let named = bench.memories().resolve_public("m", Some(&workspace.to_string())).await;
        assert_not_found(named, "memory");
        bench.context.suspensions.set(workspace, false, 2).await.unwrap();
        bench.memories().resolve_public(&id, None).await.unwrap();
    }
}

/// A new table with a workspace id needs an entry in `store::removal`.
#[tokio::test]
async fn every_table_of_workspaces_is_emptied() {
    let emptied: Vec<&str> = TABLES.iter().map(|table| table.name).chain(APART).collect();
    for bench in benches().await {
        let left = tables_left(&bench.context.db, &emptied).await.unwrap();
        assert!(left.is_empty(), "a deleted workspace leaves rows in {left:?}");
    }
}
