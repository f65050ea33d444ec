use cairn_chassis::doctor::{Finding, Report, mends, statements};
use cairn_chassis::on_db;

use super::*;
use crate::doctor::{self, checks};
use crate::files::FilePatch;

async fn examine(storage: &sql::Config) -> Result<Option<Vec<Finding>>, Error> {
    doctor::examine(storage, &AssetLocation::Memory, &SystemClock, &|_| {}).await
}

impl Bench {
    pub(super) async fn wrong(&self) -> Vec<Finding> {
        doctor::examine_open(&self.context.db, &|_| {}).await.unwrap()
    }

    /// Repairs the findings; returns whether something is lost.
    pub(super) async fn mend(&self) -> bool {
        let mut report = Report::default();
        doctor::mend_open(&self.context.db, None, &mut report, &|_| {}).await.unwrap();
        report.into_items().iter().any(|mended| mended.is_loss)
    }

    pub(super) async fn break_by(&self, sql: &'static str) {
        on_db!(self.context.db.writer(), |c| sqlx::query(sql).execute(c).await.map(|_| ())).unwrap();
    }

    /// One of every kind of item.
    async fn fill(&self) {
        let a = self.folder("a", None).await;
        let b = self.folder("b", Some(a.id)).await;
        let file = self.file("1", Some(b.id)).await;
        let patch = FilePatch { content: Some("again and ".repeat(1_000)), ..FilePatch::default() };
        self.files.update(&self.caller, &file.id.to_string(), patch).await.unwrap();
        let gone = self.folder("gone", None).await;
        self.file("2", Some(gone.id)).await;
        self.folders.delete(&self.caller, &gone.id.to_string()).await.unwrap();
        let alone = self.file("3", Some(b.id)).await;
        self.files.delete(&self.caller, &alone.id.to_string()).await.unwrap();
        let removed = self.file("4", None).await;
        self.files.delete(&self.caller, &removed.id.to_string()).await.unwrap();
        let kind = cairn_chassis::feed::Kind::File;
        self.trash().remove(&self.caller, kind, &removed.id.to_string()).await.unwrap();
    }
}

#[tokio::test]
async fn what_the_rules_made_is_sound() {
    for bench in benches().await {
        sql::prepare_all(&bench.context.db, &statements(&checks())).await.unwrap();
        let mut all = mends(&[checks().as_slice(), crate::assets::CHECKS].concat());
        all.extend([store::doctor::mends(), store::bodies::mends()].concat());
        sql::prepare_all(&bench.context.db, &all).await.unwrap();
        assert_eq!(bench.wrong().await, []);
        bench.fill().await;
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
        let found = examine(&bench.test.config).await.unwrap();
        assert_eq!(found, Some(Vec::new()));
    }
}

/// Each damage in its own database, since one could mask another.
#[tokio::test]
async fn every_damage_is_named() {
    let damages = [
        (
            "UPDATE folders SET deleted_at = 1 WHERE name = 'b'",
            "a live file stands in a live folder or the root",
        ),
        (
            "UPDATE folders SET deleted_at = 1 WHERE name = 'a'",
            "a live folder stands in a live folder or the root",
        ),
        ("UPDATE folders SET parent_id = id WHERE name = 'a'", "every folder has a way to the root"),
        ("UPDATE files SET name = 'a/b' WHERE name = '1'", "a name is one step of a path"),
        ("DELETE FROM trash WHERE kind = 1", "a trashed file carries its deletion"),
        ("UPDATE files SET deletion_id = NULL WHERE name = '3'", "a trashed file carries its deletion"),
        (
            "UPDATE folders SET deletion_id = NULL WHERE name = 'gone'",
            "a trashed folder carries its deletion",
        ),
        ("DELETE FROM feed_changes WHERE position = 2", "the feed has no gap and ends at its head"),
        ("UPDATE feed_heads SET position = position + 1", "the feed has no gap and ends at its head"),
        ("DELETE FROM feed_heads", "the feed has no gap and ends at its head"),
        ("UPDATE feed_changes SET op = 2 WHERE kind = 1", "the feed's last word on a file is true"),
        (
            "UPDATE feed_changes SET item_id = 'x' WHERE kind = 1 AND op = 1",
            "the feed's last word on a file is true",
        ),
        ("UPDATE feed_changes SET op = 1 WHERE kind = 2", "the feed's last word on a folder is true"),
        ("UPDATE workspace_usage SET files = files + 1", "what a workspace uses is what it keeps"),
        ("UPDATE workspace_usage SET bytes = bytes - 1", "what a workspace uses is what it keeps"),
        ("UPDATE files SET size_bytes = 1 WHERE name = '1'", "a file has a body of its size"),
        ("UPDATE file_versions SET size_bytes = 1", "a version has a file and a body of its size"),
        ("DELETE FROM file_versions WHERE version = 2", "a file's content is its newest version"),
        ("UPDATE file_versions SET version = 9 WHERE version = 2", "a file's content is its newest version"),
        (
            "UPDATE bodies SET data = CAST('other' AS BLOB) WHERE encoding = 0",
            "every body can be read and has its hash and size",
        ),
        (
            "UPDATE bodies SET data = CAST('other' AS BLOB) WHERE encoding = 1",
            "every body can be read and has its hash and size",
        ),
    ];
    for (damage, rule) in damages {
        for bench in benches().await {
            // The name of it on PostgreSQL.
            let damage = match bench.engine() {
                "postgres" if damage.contains("encoding = 0") => {
                    "UPDATE bodies SET data = 'other' WHERE encoding = 0"
                }
                "postgres" if damage.contains("encoding = 1") => {
                    "UPDATE bodies SET data = 'other' WHERE encoding = 1"
                }
                _ => damage,
            };
            bench.fill().await;
            bench.break_by(damage).await;
            let found = bench.wrong().await;
            let named = found.iter().any(|finding| finding.rule == rule);
            assert!(named, "{} {damage}: {found:?}", bench.engine());
            bench.mend().await;
            assert_eq!(bench.wrong().await, [], "{} {damage}", bench.engine());
            assert!(!bench.mend().await, "{} {damage}: mended once more", bench.engine());
        }
    }
}

#[tokio::test]
async fn a_text_that_is_lost_is_a_note_and_one_that_can_be_read_stays() {
    for bench in benches().await {
        let file = bench.file("1", None).await;
        let read = async || bench.files.get(&bench.caller, &file.id.to_string()).await;
        // One byte of a short text, which is stored uncompressed.
        let sql = match bench.engine() {
            "postgres" => "UPDATE bodies SET data = overlay(data placing 'X' from 1 for 1)",
            _ => "UPDATE bodies SET data = CAST('X' || SUBSTR(CAST(data AS TEXT), 2) AS BLOB)",
        };
        bench.break_by(sql).await;
        assert!(bench.mend().await, "it is told");
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
        let (kept, _) = read().await.unwrap();
        assert_ne!(kept.content_hash, file.content_hash);
        assert_eq!(kept.size_bytes, file.size_bytes);
        let head = bench.context.feed.head(bench.caller.workspace).await.unwrap();
        bench.break_by("UPDATE bodies SET size_bytes = size_bytes + 1").await;
        assert!(bench.mend().await, "it is told");
        assert_eq!(bench.wrong().await, [], "{}", bench.engine());
        let (_, text) = read().await.unwrap();
        assert!(text.contains("is lost"), "a note stands there: {text}");
        assert!(bench.context.feed.head(bench.caller.workspace).await.unwrap() > head, "indexes hear of it");
    }
}

#[tokio::test]
async fn a_file_whose_row_is_lost_comes_back_with_its_text() {
    for bench in benches().await {
        // Only on SQLite can its foreign keys be deferred until the commit.
        if bench.engine() == "postgres" {
            continue;
        }
        let file = bench.file("1", None).await;
        let read = async || bench.files.get(&bench.caller, &file.id.to_string()).await.unwrap();
        let (_, text) = read().await;
        let mut tx = cairn_chassis::doctor::begin(&bench.context.db).await.unwrap();
        let lose = "DELETE FROM files";
        on_db!(tx, |c| sqlx::query(lose).execute(c).await.map(|_| ())).unwrap();
        doctor::mend_in(&mut tx, None, &mut Report::default(), &|_| {}).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(bench.wrong().await, []);
        let (kept, again) = read().await;
        assert_eq!((kept.name, again), (format!("recovered-{}", file.id), text));
    }
}

#[tokio::test]
async fn a_storage_without_content_is_left_alone() {
    for test in engines().await {
        assert_eq!(examine(&test.config).await.unwrap(), None, "{}", test.engine);
        assert_eq!(examine(&test.config).await.unwrap(), None, "nothing was made");
    }
    let nowhere = sql::Config::sqlite("/nonexistent/content.db");
    assert_eq!(examine(&nowhere).await.unwrap(), None);
}
