//! How often the rule of the decisive match is right, measured on data at hand:
//!
//! ```sh
//! CAIRN_CATALOG=FOLDER [CAIRN_QUESTIONS=queries.jsonl] \
//!     cargo test -p cairn-retrieval --lib catalog::measured -- --ignored --nocapture
//! ```
//!
//! The folder is a tree of Markdown files, whose titles and descriptions are the questions, each with one right answer; or
//! a collection (`corpus.jsonl`, `queries.jsonl`, `qrels.tsv`). Other questions, which nothing of it answers, may be added.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cairn_index::embedded::{EmbeddedEngine, Index};
use cairn_index::{Batch, IndexedChunk, IndexedDocument};
use cairn_proto::document::v1::Document;
use cairn_proto::retrieval::v1::SearchContextRequest;
use serde_json::Value;

use super::*;

const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
const SOURCE: Uuid = Uuid::from_u128(900);
const LEADS: [f32; 4] = [1.0, 1.25, DECISIVE_LEAD, 2.0];
/// Of more questions of one kind, every so many.
const MAX_QUESTIONS: usize = 1_000;

/// A title, and where it stands.
struct Title {
    title: String,
    path: String,
}

/// A question and the titles that answer it, by their places.
type Question = (String, HashSet<usize>);

#[derive(Default)]
struct Data {
    titles: Vec<Title>,
    questions: BTreeMap<&'static str, Vec<Question>>,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs data: CAIRN_CATALOG names a folder"]
async fn the_rule_on_data_at_hand() {
    let folder = PathBuf::from(std::env::var("CAIRN_CATALOG").expect("CAIRN_CATALOG names a folder"));
    let mut data = match folder.join("corpus.jsonl").exists() {
        true => collection(&folder),
        false => tree(&folder),
    };
    if let Ok(file) = std::env::var("CAIRN_QUESTIONS") {
        let foreign = lines(Path::new(&file)).map(|line| (text(&line, "text"), HashSet::new()));
        data.questions.insert("that nothing answers", foreign.collect());
    }
    let index = tempfile::tempdir().unwrap();
    let engine = engine(index.path(), &data.titles).await;
    println!(
        "{} titles; right and wrong: of all questions, those for which a right body is read, or none",
        data.titles.len()
    );
    for (kind, questions) in &data.questions {
        let every = questions.len().div_ceil(MAX_QUESTIONS).max(1);
        let asked: Vec<&Question> = questions.iter().step_by(every).collect();
        for lead in LEADS {
            report(&engine, kind, &asked, lead).await;
        }
    }
}

async fn report(engine: &EmbeddedEngine, kind: &str, asked: &[&Question], lead: f32) {
    let (mut right, mut wrong, mut bodies) = (0, 0, 0);
    for (question, answers) in asked {
        let request = SearchContextRequest { query: question.clone(), ..SearchContextRequest::default() };
        let Ok(request) = SearchRequest::try_from(request) else { continue };
        let found = Found::by(engine, WORKSPACE, None, &request).await.unwrap();
        let decisive = found.decided(request.query.parsed.text(), lead).decisive;
        let is_right = |it: &Match| answers.iter().any(|place| it.document == id(*place));
        bodies += decisive.len();
        right += usize::from(decisive.iter().any(is_right));
        wrong += usize::from(!decisive.is_empty() && !decisive.iter().any(is_right));
    }
    let share = |count: usize| 100.0 * count as f64 / asked.len().max(1) as f64;
    println!(
        "{kind:>22}: {:5} questions, lead {lead:.2}: right {:5.1} %, wrong {:5.1} %, {bodies} bodies",
        asked.len(),
        share(right),
        share(wrong),
    );
}

fn id(place: usize) -> Uuid {
    Uuid::from_u128(place as u128 + 1)
}

async fn engine(folder: &Path, titles: &[Title]) -> EmbeddedEngine {
    let index = Arc::new(Index::open(folder, "none", 1).unwrap());
    let engine = EmbeddedEngine::new(index, EmbeddedEngine::permits());
    let entry = |(place, title): (usize, &Title)| {
        let (title, path) = (title.title.clone(), title.path.clone());
        let document = Document { title, path, ..Document::default() };
        let text = crate::entry::text(&document);
        let chunk = IndexedChunk {
            text,
            heading_path: Vec::new(),
            table_header: String::new(),
            start_line: 1,
            end_line: 1,
            embedding: vec![0.0],
            pieces: Vec::new(),
        };
        IndexedDocument {
            workspace: partition::of(WORKSPACE, true),
            document: id(place),
            container: Some(SOURCE),
            holder: None,
            kind: String::new(),
            title: cairn_index::chunk::stem(&document.title).to_owned(),
            path: String::new(),
            tags: Vec::new(),
            language: Language::English,
            content_hash: String::new(),
            updated_at: 0,
            chunks: vec![chunk],
        }
    };
    let documents = titles.iter().enumerate().map(entry).collect();
    engine.apply(Batch { documents, ..Batch::default() }).await.unwrap();
    engine
}

/// Titles of a collection, its questions, and what answers them.
fn collection(folder: &Path) -> Data {
    let mut data = Data::default();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines(&folder.join("corpus.jsonl")) {
        let title = text(&line, "title");
        places.insert(text(&line, "id"), data.titles.len());
        data.titles.push(Title { path: format!("/sources/Library/{title}"), title });
    }
    let mut answers: BTreeMap<String, HashSet<usize>> = BTreeMap::new();
    for line in fs_err::read_to_string(folder.join("qrels.tsv")).unwrap().lines() {
        let mut cells = line.split('\t');
        let (question, document) = (cells.next().unwrap(), cells.next().unwrap_or_default());
        let relevance = cells.next().and_then(|cell| cell.trim().parse::<i32>().ok()).unwrap_or(0);
        if let Some(place) = places.get(document).filter(|_| relevance > 0) {
            answers.entry(question.to_owned()).or_default().insert(*place);
        }
    }
    let asked = lines(&folder.join("queries.jsonl"))
        .map(|line| (text(&line, "text"), answers.remove(&text(&line, "id")).unwrap_or_default()));
    data.questions.insert("of the collection", asked.collect());
    data.questions.insert("that are titles", titles_as_questions(&data.titles));
    data
}

/// A tree of Markdown files with `title:` and `description:` above the text, or a heading in place of a title.
fn tree(folder: &Path) -> Data {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let mut data = Data::default();
    let mut described = Vec::new();
    for file in files {
        let content = fs_err::read_to_string(&file).unwrap_or_default();
        let named = |key: &str| {
            let line = content.lines().take(20).find_map(|line| line.strip_prefix(key));
            line.map(|value| value.trim().trim_matches('"').to_owned())
        };
        let heading = || content.lines().find_map(|line| line.strip_prefix("# ")).map(str::to_owned);
        let Some(title) = named("title:").or_else(heading) else { continue };
        described.extend(named("description:").map(|text| (text, HashSet::from([data.titles.len()]))));
        let below = file.strip_prefix(folder).unwrap().display().to_string();
        data.titles.push(Title { title, path: format!("/sources/Docs/{below}") });
    }
    data.questions.insert("that are titles", titles_as_questions(&data.titles));
    data.questions.insert("that are descriptions", described);
    data
}

/// What has the same title answers, too.
fn titles_as_questions(titles: &[Title]) -> Vec<Question> {
    let mut same: BTreeMap<&str, HashSet<usize>> = BTreeMap::new();
    for (place, title) in titles.iter().enumerate() {
        same.entry(&title.title).or_default().insert(place);
    }
    same.into_iter().map(|(title, places)| (title.to_owned(), places)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

fn lines(file: &Path) -> impl Iterator<Item = Value> + use<> {
    let content = fs_err::read_to_string(file).unwrap();
    content.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>().into_iter()
}

fn text(line: &Value, field: &str) -> String {
    line.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}
