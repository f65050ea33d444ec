//! Older and newer binaries on one database, in both orders.

use super::*;

const EXPANDS: Migration = Migration {
    name: "0002_notes",
    sqlite: "-- expand: a column that nobody must fill\nALTER TABLE counters ADD COLUMN note TEXT",
    postgres: "-- expand: a column that nobody must fill\nALTER TABLE counters ADD COLUMN note TEXT",
};
const CONTRACTS: Migration = Migration {
    name: "0003_no_time",
    sqlite: "-- contract\nALTER TABLE counters DROP COLUMN at",
    postgres: "-- contract\nALTER TABLE counters DROP COLUMN at",
};
const UNSAID: Migration = Migration {
    name: "0004_unsaid",
    sqlite: "CREATE TABLE more (id TEXT)",
    postgres: "CREATE TABLE more (id TEXT)",
};
const NOTE: &str = "INSERT INTO counters (id, n, at, note) VALUES ($1, $2, 0, 'x')";
/// How the table of migrations was before steps were recorded.
const WITHOUT_STEPS: &str = "ALTER TABLE migrations DROP COLUMN step";
const WITHOUT_VERSIONS: &str = "ALTER TABLE migrations DROP COLUMN version";

async fn value(db: &Db, id: &str) -> i64 {
    on_db!(db, |c| sqlx::query_scalar(READ).bind(id).fetch_one(c).await).unwrap()
}

async fn run(db: &Db, statement: &'static str) {
    on_db!(db.writer(), |c| sqlx::query(statement).execute(c).await.map(|_| ())).unwrap();
}

#[tokio::test]
async fn migrations_run_once_and_are_not_changed() {
    for test in engines().await {
        let opens = (0..4).map(|_| test.open("counting", &[COUNTERS]));
        for opened in futures::future::join_all(opens).await {
            opened.unwrap();
        }
        let changed = Migration { sqlite: "SELECT 1", postgres: "SELECT 1", ..COUNTERS };
        let refusal = test.open("counting", &[changed]).await.unwrap_err().to_string();
        assert!(refusal.contains("changed"), "{refusal}");
        if test.engine == "postgres" {
            // Another service in the same database has tables of the same names.
            test.open("other", &[COUNTERS]).await.unwrap();
        }
    }
}

/// The word may be added to a text that was applied without it.
#[tokio::test]
async fn the_first_line_is_no_part_of_what_was_applied() {
    const SAID: Migration = Migration {
        sqlite: "-- expand\nCREATE TABLE more (id TEXT)",
        postgres: "-- expand: a table\nCREATE TABLE more (id TEXT)",
        ..UNSAID
    };
    for test in engines().await {
        test.open("counting", &[UNSAID]).await.unwrap();
        test.open("counting", &[SAID]).await.unwrap();
    }
}

#[tokio::test]
async fn an_older_binary_goes_on_where_a_newer_one_expanded() {
    for test in engines().await {
        let (old, new): (&[Migration], &[Migration]) = (&[COUNTERS], &[COUNTERS, EXPANDS]);
        let before = test.open("counting", old).await.unwrap();
        insert(&before, "of the old", 1).await.unwrap();
        // The upgrade: the new one migrates while the old one runs.
        let upgraded = test.open("counting", new).await.unwrap();
        on_db!(upgraded.writer(), |c| sqlx::query(NOTE)
            .bind("of the new")
            .bind(2_i64)
            .execute(c)
            .await
            .map(|_| ()))
        .unwrap();
        insert(&before, "meanwhile", 3).await.unwrap();
        // One that restarts, or is added by an autoscaler, and the way back.
        let again = test.open("counting", old).await.unwrap();
        insert(&again, "after the way back", 4).await.unwrap();
        assert_eq!((value(&again, "of the new").await, value(&upgraded, "meanwhile").await), (2, 3));
        assert!(Db::open_existing(&test.config, "counting", old).await.unwrap().is_some(), "{}", test.engine);
        // And forth.
        let forth = test.open("counting", new).await.unwrap();
        assert_eq!(value(&forth, "after the way back").await, 4, "{}", test.engine);
    }
}

#[tokio::test]
async fn an_older_binary_is_refused_where_a_newer_one_contracted() {
    for test in engines().await {
        let (old, new): (&[Migration], &[Migration]) =
            (&[COUNTERS, EXPANDS], &[COUNTERS, EXPANDS, CONTRACTS]);
        test.open("counting", old).await.unwrap();
        test.open("counting", new).await.unwrap();
        let refused = [
            test.open("counting", old).await.unwrap_err().to_string(),
            Db::open_existing(&test.config, "counting", old).await.unwrap_err().to_string(),
        ];
        for refusal in refused {
            for said in ["counting", "0003_no_time", "newer", env!("CARGO_PKG_VERSION"), "backup"] {
                assert!(refusal.contains(said), "{}: {said}: {refusal}", test.engine);
            }
        }
        test.open("counting", new).await.unwrap();
        let status = MigrationStatus::of(&test.config, "counting", new).await.unwrap().unwrap();
        assert_eq!(status.oldest_that_may_write(new).as_deref(), Some("0003_no_time"));
        assert_eq!((status.applied.len(), status.refusal("counting")), (3, None));
    }
}

#[tokio::test]
async fn what_says_no_step_and_what_is_of_another_line_is_refused() {
    for test in engines().await {
        test.open("counting", &[COUNTERS, UNSAID]).await.unwrap();
        let refusal = test.open("counting", &[COUNTERS]).await.unwrap_err().to_string();
        assert!(refusal.contains("0004_unsaid"), "{refusal}");
    }
    for test in engines().await {
        test.open("counting", &[COUNTERS, EXPANDS]).await.unwrap();
        let refusal = test.open("counting", &[COUNTERS, UNSAID]).await.unwrap_err().to_string();
        assert!(refusal.contains("0002_notes") && refusal.contains("lacks"), "{refusal}");
    }
}

/// Databases of before have no steps in their table: they are taken on, and get them with the next migration.
#[tokio::test]
async fn a_table_without_steps_is_taken_on() {
    for test in engines().await {
        let db = test.open("counting", &[COUNTERS, EXPANDS]).await.unwrap();
        run(&db, WITHOUT_STEPS).await;
        run(&db, WITHOUT_VERSIONS).await;
        test.open("counting", &[COUNTERS, EXPANDS]).await.unwrap();
        let unsure = test.open("counting", &[COUNTERS]).await.unwrap_err().to_string();
        assert!(unsure.contains("0002_notes"), "{unsure}");
        test.open("counting", &[COUNTERS, EXPANDS, CONTRACTS]).await.unwrap();
        let status =
            MigrationStatus::of(&test.config, "counting", &[COUNTERS, EXPANDS]).await.unwrap().unwrap();
        let newer = status.newer.first().unwrap();
        assert_eq!((newer.name.as_str(), newer.step), ("0003_no_time", Step::Contract), "{}", test.engine);
    }
}

#[tokio::test]
async fn how_tables_stand_is_told_and_nothing_written() {
    for test in engines().await {
        assert_eq!(MigrationStatus::of(&test.config, "counting", &[COUNTERS]).await.unwrap(), None);
        test.open("counting", &[COUNTERS]).await.unwrap();
        for _ in 0..2 {
            let status =
                MigrationStatus::of(&test.config, "counting", &[COUNTERS, EXPANDS]).await.unwrap().unwrap();
            assert_eq!(status.applied, [COUNTERS.name]);
            assert_eq!(status.missing, [EXPANDS], "{}", test.engine);
            assert_eq!(status.refusal("counting"), None);
        }
    }
}

#[test]
fn a_migration_that_does_not_say_its_step_is_found() {
    assert_eq!((EXPANDS.fault(), CONTRACTS.fault()), (None, None));
    assert!(UNSAID.fault().unwrap().contains("0004_unsaid"));
    let torn = Migration { postgres: CONTRACTS.postgres, ..EXPANDS };
    assert!(torn.fault().unwrap().contains("different") && torn.step() == Step::Contract);
    let lies = Migration {
        name: "0005_lies",
        sqlite: "-- expand\nDROP TABLE counters",
        postgres: "-- expand\nDROP TABLE counters",
    };
    assert!(lies.fault().unwrap().contains("DROP TABLE"));
}
