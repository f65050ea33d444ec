//! Syncs, imports and their rollbacks whose process is killed at random moments: the outcome equals that of an
//! undisturbed process (issue "What it must reach").
//!
//! `CAIRN_TEST_KILLS` sets the minimum number of kills, `CAIRN_TEST_SEED` the seed; a failed test prints its seed.

use std::collections::BTreeMap;
use std::time::Instant;

use cairn_chassis::entropy::{Entropy as _, OsEntropy};

use crate::deletion::sign_in;
use crate::doctor::assert_sound;
use crate::imports::{archive, preview};
use crate::support::callers::Session;
use crate::support::http::{Http, id, items, text};
use crate::support::prelude::*;
use crate::support::runner::run_alone;
use crate::support::scratch::Scratch;
use crate::support::single::SingleProcess;
use crate::support::wait::eventually;
use crate::support::workspace::read_file;

/// For the CI gate; the issue requires fifty.
const KILLS: u64 = 6;
const DOCUMENTS: usize = 120;
const PAGES: usize = 60;
const ROWS: usize = 40;
const PICTURES: usize = 5;
const UUID_LENGTH: usize = 36;

#[test]
fn runs_that_are_killed_end_as_those_that_are_not() {
    run_alone(async {
        let wanted = number_of("CAIRN_TEST_KILLS").unwrap_or(KILLS);
        let seed = number_of("CAIRN_TEST_SEED").unwrap_or_else(random_seed);
        println!("CAIRN_TEST_SEED={seed}");
        let mut numbers = Rng(seed);
        let (mut left_alone, mut disturbed) = (Stage::open().await, Stage::open().await);
        let (mut kills, mut in_time) = (0, 0);
        for cycle in 0.. {
            for act in operations(cycle) {
                left_alone.begin(&act).await;
                let begun = Instant::now();
                let expected = left_alone.outcome().await;
                let usual = begun.elapsed();

                disturbed.begin(&act).await;
                for _ in 0..=numbers.below(2) {
                    let share = u32::try_from(numbers.below(1_000)).unwrap();
                    tokio::time::sleep(usual * share / 1_000).await;
                    in_time += u64::from(is_busy(&disturbed.run().await));
                    disturbed.kill().await;
                    kills += 1;
                }
                let found = disturbed.outcome().await;
                assert_eq!(found, expected, "cycle {cycle}, {act:?}: the runs end differently");
                let (there, wanted) = (disturbed.snapshot().await, left_alone.snapshot().await);
                assert_eq!(there, wanted, "cycle {cycle}, {act:?}: the workspaces differ");
            }
            disturbed.up.kill();
            assert_sound(disturbed.data.path()).await;
            if kills >= wanted {
                break;
            }
            disturbed.restart().await;
        }
        println!("{kills} kills, {in_time} of them before the run was over");
    });
}

/// An operation on the workspace.
enum Operation {
    Sync(Value),
    Import(Vec<u8>),
    /// Rolls back the last run.
    RollBack,
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Sync(_) => "Sync",
            Self::Import(_) => "Import",
            Self::RollBack => "RollBack",
        })
    }
}

/// Every kind of run: on an empty workspace, on the results of an earlier one, and rolled back.
fn operations(cycle: usize) -> Vec<Operation> {
    let (first, second) = (2 * cycle, 2 * cycle + 1);
    vec![
        Operation::Sync(manifest(first)),
        Operation::Sync(manifest(second)),
        Operation::RollBack,
        Operation::Import(export(first)),
        Operation::Import(export(second)),
        Operation::RollBack,
    ]
}

/// A manifest in which a ninth of the documents is missing and a third differs from round to round.
fn manifest(round: usize) -> Value {
    let kept = (0..DOCUMENTS).filter(|number| !(number + round).is_multiple_of(9));
    let documents: Vec<Value> = kept
        .map(|number| {
            let said = if number % 3 == round % 3 { format!("in round {round}") } else { "as ever".into() };
            json!({"path": format!("d{}/f{number}.md", number % 7), "content": format!("# F{number}\n\n{said}\n")})
        })
        .collect();
    json!({"manifest": {"name": "docs", "documents": documents}, "prune": true})
}

/// Pages with links and pictures, and two databases with a relation between them.
fn export(round: usize) -> Vec<u8> {
    let hex = |kind: usize, number: usize| format!("{kind:08x}{number:024x}");
    let (tasks, people) = (hex(9, 1), hex(9, 2));
    let mut entries: Vec<(String, Vec<u8>)> = Vec::new();
    for number in (0..PAGES).filter(|number| !(number + round).is_multiple_of(11)) {
        let next = (number + 1) % PAGES;
        let said = if number % 3 == round % 3 { format!("in round {round}") } else { "as ever".into() };
        let page = format!(
            "# Page {number}\n\n{said} #tag{}\n\n[next](Page%20{next}%20{}.md)\n\n![picture](pictures/{}.png)\n",
            number % 4,
            hex(1, next),
            number % PICTURES,
        );
        entries.push((format!("Page {number} {}.md", hex(1, number)), page.into_bytes()));
    }
    for number in 0..PICTURES {
        entries.push((format!("pictures/{number}.png"), format!("\u{89}PNG {number}").into_bytes()));
    }
    let (mut rows, mut persons) = ("Task,State,Points,Who\n".to_owned(), "Name,Age\n".to_owned());
    for number in 0..ROWS {
        let (state, who) = (["Open", "Done"][(number + round) % 2], number % 5);
        let person = format!("P{who} (People%20{people}/P{who}%20{}.md)", hex(3, who));
        rows.push_str(&format!("T{number},{state},{},{person}\n", number + round));
        let page =
            format!("# T{number}\n\nState: {state}\nPoints: {}\n\nWhat T{number} is.\n", number + round);
        if number % 2 == 0 {
            entries.push((format!("Tasks {tasks}/T{number} {}.md", hex(2, number)), page.into_bytes()));
        }
    }
    for number in 0..5 {
        persons.push_str(&format!("P{number},{}\n", 30 + number));
        let page = format!("# P{number}\n\nAge: {}\n\nWho P{number} is.\n", 30 + number);
        entries.push((format!("People {people}/P{number} {}.md", hex(3, number)), page.into_bytes()));
    }
    entries.push((format!("Tasks {tasks}_all.csv"), rows.into_bytes()));
    entries.push((format!("People {people}_all.csv"), persons.into_bytes()));
    let entries: Vec<(&str, &[u8])> =
        entries.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    archive(&entries)
}

/// A deployment of its own, with the current run.
struct Stage {
    data: Scratch,
    up: SingleProcess,
    session: Session,
    workspace: String,
    run: String,
    is_import: bool,
}

impl Stage {
    async fn open() -> Self {
        let data = Scratch::new();
        let up = SingleProcess::start_on(data.path(), &[]).await;
        let session = sign_in(up.base_url(), up.owner()).await;
        let workspace = text(&session.get("/api/workspaces").await.expect(200).json()[0], "id");
        Self { data, up, session, workspace, run: String::new(), is_import: false }
    }

    async fn kill(&mut self) {
        self.up.kill();
        self.restart().await;
    }

    async fn restart(&mut self) {
        self.up = SingleProcess::start_on(self.data.path(), &[]).await;
        self.session.http = Http::new(self.up.base_url());
    }

    /// Starts the operation; everything before it is deterministic.
    async fn begin(&mut self, act: &Operation) {
        let token = self.up.token();
        match act {
            Operation::Sync(manifest) => {
                self.is_import = false;
                self.run = id(&token.post("/api/v1/sync/preview").json(manifest).await.expect(201).json());
                token.post(&format!("/api/v1/sync/{}/start", self.run)).await.expect(202);
            }
            Operation::Import(file) => {
                self.is_import = true;
                let previewed = preview(&self.session, &self.workspace, "notion_zip", file).await;
                self.run = id(&previewed.expect(201).json());
                self.session.post(&format!("/api/import/{}/start", self.run)).await.expect(202);
            }
            Operation::RollBack => {
                let path = match self.is_import {
                    true => format!("/api/import/{}/rollback", self.run),
                    false => format!("/api/workspaces/{}/sync/{}/rollback", self.workspace, self.run),
                };
                self.session.post(&path).await.expect(202);
            }
        }
    }

    async fn run(&self) -> Value {
        match self.is_import {
            true => self.session.get(&format!("/api/import/{}", self.run)).await.expect(200).json(),
            false => self.up.token().get(&format!("/api/v1/sync/{}", self.run)).await.expect(200).json(),
        }
    }

    /// The report of the run once it has finished, without ids and times.
    async fn outcome(&self) -> Value {
        let run = eventually("the run is over", async || {
            let run = self.run().await;
            (!is_busy(&run)).then_some(run)
        })
        .await;
        let told = |list: &Value, fields: &[&str]| {
            let mut lines: Vec<String> = items(list)
                .iter()
                .map(|item| fields.iter().map(|field| item[field].to_string()).collect::<Vec<_>>().join(" "))
                .collect();
            lines.sort();
            lines
        };
        json!({
            "status": run["status"], "error": run["error"], "counters": run["counters"],
            "results": told(&run["results"], &["path", "action"]),
            "warnings": told(&run["warnings"], &["path", "code"]),
        })
    }

    /// Everything in the workspace, with ids replaced by names.
    async fn snapshot(&self) -> Vec<String> {
        let token = self.up.token();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        let mut lines = Vec::new();
        let list = async |path: &str| token.get(path).await.expect(200).json();
        for asset in items(&list("/api/v1/assets").await) {
            names.insert(id(asset), format!("asset {}", asset["name"]));
            lines.push(format!("asset {} {}", asset["name"], asset["sizeBytes"]));
        }
        for folder in items(&list("/api/v1/folders").await) {
            lines.push(format!("folder {}", folder["path"]));
        }
        for file in items(&list("/api/v1/files").await) {
            names.insert(id(file), format!("file {}", file["path"]));
            let found = read_file(&token, &id(file)).await;
            lines.push(format!("file {} {} {}", found["path"], found["tags"], found["content"]));
        }
        for database in items(&list("/api/v1/databases").await) {
            let path = format!("/api/v1/databases/{}", id(database));
            names.insert(id(database), format!("database {}", database["name"]));
            let found = list(&path).await;
            for property in items(&found["properties"]) {
                names.insert(id(property), format!("property {}", property["name"]));
                let options = property["config"]["options"].as_array().into_iter().flatten();
                let options: Vec<String> = options.map(|option| text(option, "name")).collect();
                let (name, kind) = (&property["name"], &property["type"]);
                lines.push(format!("{} {name} {kind} {}", found["name"], options.join(", ")));
            }
            for record in items(&list(&format!("{path}/records?limit=200")).await["records"]) {
                names.insert(id(record), format!("record {}", record["title"]));
                let (values, body) = (&record["values"], &record["contentFileId"]);
                // Keys are ids, so their order has no meaning.
                let mut cells: Vec<String> =
                    values.as_object().unwrap().iter().map(|(key, value)| format!("{key}={value}")).collect();
                cells.sort_by_key(|cell| named(cell, &names));
                lines.push(format!("{} {} {body} {}", found["name"], record["title"], cells.join(" ")));
            }
        }
        let mut lines: Vec<String> = lines.iter().map(|line| named(line, &names)).collect();
        lines.sort();
        lines
    }
}

fn is_busy(run: &Value) -> bool {
    matches!(text(run, "status").as_str(), "queued" | "running")
}

/// The text with each known id replaced by its name.
fn named(text: &str, names: &BTreeMap<String, String>) -> String {
    let is_of_id = |char: char| char.is_ascii_hexdigit() || char == '-';
    let mut shown = String::new();
    for piece in text.split_inclusive(|char| !is_of_id(char)) {
        let word = piece.trim_end_matches(|char| !is_of_id(char));
        match names.get(word).filter(|_| word.len() == UUID_LENGTH) {
            Some(name) => shown.push_str(&format!("<{name}>{}", &piece[word.len()..])),
            None => shown.push_str(piece),
        }
    }
    shown
}

/// The number in an environment variable.
fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

fn random_seed() -> u64 {
    let mut bytes = [0; 8];
    OsEntropy.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// A seeded random number generator (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
