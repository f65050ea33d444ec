//! Measures the gain of the second look on local test collections:
//!
//! ```sh
//! CAIRN_COLLECTION=FOLDER[:FOLDER…] \
//!     cargo test -p cairn-retrieval --lib second_look::measured -- --ignored --nocapture
//! ```
//!
//! Each folder is a collection in the format of `cairn eval` (docs/EVALUATION.md). Its documents are cut and indexed like in the service,
//! and each query runs with and without a second look, on the embedded engine and on one that stores neither pieces nor counts.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use cairn_embed::Embedder as _;
use cairn_index::chunk::{self, Format};
use cairn_index::embedded::{EmbeddedEngine, Index};
use cairn_index::vectors::UnitVector;
use cairn_index::words::{Languages, detect};
use cairn_index::{
    Batch, Candidates, Counts, Cursors, EmbeddedChunk, Engine, Error, IndexedChunk, IndexedDocument,
    InspectRequest, Query, QuestionWords,
};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::retrieval::v1::SearchContextRequest;
use serde_json::Value;
use uuid::Uuid;

use super::*;
use crate::search::rank::{self, QueryVectors, Ranker, Within};
use crate::search::request::SearchRequest;

const WORKSPACE: WorkspaceId = WorkspaceId(Uuid::from_u128(1));

struct Collection {
    documents: Vec<IndexedDocument>,
    /// Each query with the gains of its relevant documents.
    queries: Vec<(String, HashMap<Uuid, f64>)>,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs data: CAIRN_COLLECTION names folders"]
async fn a_second_look_on_data_at_hand() {
    let folders = std::env::var("CAIRN_COLLECTION").expect("CAIRN_COLLECTION names folders");
    let rows = StaticRows::open().unwrap();
    for folder in folders.split(':').map(PathBuf::from) {
        let collection = Collection::read(&folder, &rows);
        let place = tempfile::tempdir().unwrap();
        let index = Arc::new(Index::open(place.path(), rows.name(), rows.dimensions()).unwrap());
        let engine = EmbeddedEngine::new(index, EmbeddedEngine::permits());
        for documents in collection.documents.chunks(500) {
            engine.apply(Batch { documents: documents.to_vec(), ..Batch::default() }).await.unwrap();
        }
        let plain = Uncounting(engine.clone());
        let ways: [(&str, &dyn Engine, Option<&StaticRows>); 3] = [
            ("once", &engine, None),
            ("twice", &engine, Some(&rows)),
            ("twice, uncounted", &plain, Some(&rows)),
        ];
        let mut figures = Vec::new();
        for (name, engine, of_rows) in ways {
            let ranker = Ranker { engine, rows: of_rows, word_weight: 0.5 };
            figures.push(format!("{name} {:.4}", collection.ndcg(ranker, &rows).await));
        }
        println!(
            "{}: {} queries, nDCG@10: {}",
            folder.display(),
            collection.queries.len(),
            figures.join(", ")
        );
    }
}

impl Collection {
    fn read(folder: &Path, rows: &StaticRows) -> Self {
        let mut places = HashMap::new();
        let mut documents = Vec::new();
        for line in lines(&folder.join("corpus.jsonl")) {
            let id = Uuid::from_u128(documents.len() as u128 + 1);
            places.insert(text(&line, "id"), id);
            documents.push(document(id, &line, rows));
        }
        let mut gains: HashMap<String, HashMap<Uuid, f64>> = HashMap::new();
        for line in fs_err::read_to_string(folder.join("qrels.tsv")).unwrap().lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let [query, document, gain] = cells.as_slice() else { continue };
            let (Some(id), Ok(gain)) = (places.get(*document), gain.trim().parse::<f64>()) else { continue };
            gains.entry((*query).to_owned()).or_default().insert(*id, gain);
        }
        let asked = lines(&folder.join("queries.jsonl"));
        let queries = asked.filter_map(|line| Some((text(&line, "text"), gains.remove(&text(&line, "id"))?)));
        Self { queries: queries.collect(), documents }
    }

    async fn ndcg(&self, ranker: Ranker<'_>, rows: &StaticRows) -> f64 {
        let mut sum = 0.0;
        for (question, gains) in &self.queries {
            let asked = SearchContextRequest { query: question.clone(), ..SearchContextRequest::default() };
            let Ok(request) = SearchRequest::try_from(asked) else { continue };
            let vector = rows.embed_text(request.query.parsed.text());
            let vectors = QueryVectors::of(vector);
            let ranking = rank::rank(ranker, WORKSPACE, Within::default(), &request, vectors).await.unwrap();
            let mut seen = HashSet::new();
            let documents = ranking.hits.iter().map(|hit| hit.chunk.document).filter(|id| seen.insert(*id));
            let found = documents.take(10).map(|id| gains.get(&id).copied().unwrap_or_default());
            let mut best: Vec<f64> = gains.values().copied().collect();
            best.sort_by(|one, other| other.total_cmp(one));
            let ideal = discounted(best.into_iter().take(10));
            sum += if ideal > 0.0 { discounted(found) / ideal } else { 0.0 };
        }
        sum / self.queries.len() as f64
    }
}

fn discounted(gains: impl Iterator<Item = f64>) -> f64 {
    gains.enumerate().map(|(place, gain)| gain / (place as f64 + 2.0).log2()).sum()
}

/// The file of a workspace that `cairn eval` would create for it.
fn document(id: Uuid, line: &Value, rows: &StaticRows) -> IndexedDocument {
    let (title, body) = (text(line, "title"), text(line, "text"));
    let named: String = text(line, "id").chars().map(|c| if c == '/' { '-' } else { c }).collect();
    let (name, format, content) = match title.is_empty() {
        true => (format!("{named}.txt"), Format::Text, body),
        false => (format!("{named}.md"), Format::Markdown, format!("# {title}\n\n{body}\n")),
    };
    let chunks = chunk::split(format, &content).into_iter().map(|chunk| {
        let (embedding, pieces) = rows.embed_with_pieces(&chunk::index_text(&name, &chunk));
        IndexedChunk {
            text: format!("{}{}", chunk.text, chunk.gap.as_deref().unwrap_or_default()),
            heading_path: chunk.heading_path,
            table_header: chunk.table_header,
            start_line: chunk.start_line,
            end_line: chunk.end_line,
            embedding,
            pieces,
        }
    });
    IndexedDocument {
        workspace: WORKSPACE.0,
        document: id,
        container: None,
        holder: None,
        kind: "file".to_owned(),
        title: chunk::stem(&name).to_owned(),
        path: format!("/{name}"),
        tags: Vec::new(),
        language: detect(&content),
        content_hash: String::new(),
        updated_at: 0,
        chunks: chunks.collect(),
    }
}

fn lines(file: &Path) -> impl Iterator<Item = Value> + use<> {
    let content = fs_err::read_to_string(file).unwrap();
    content.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>().into_iter()
}

fn text(line: &Value, field: &str) -> String {
    line.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// An engine without pieces and counts.
#[derive(Debug)]
struct Uncounting(EmbeddedEngine);

#[async_trait]
impl Engine for Uncounting {
    async fn inspect(&self, request: InspectRequest) -> Result<Inspection, Error> {
        let words = QuestionWords::uncounted(&request.question, Languages::default());
        let mut inspection = self.0.inspect(request).await?;
        for composed in inspection.composed.values_mut() {
            composed.pieces = Box::default();
        }
        Ok(Inspection { piece_counts: None, words, ..inspection })
    }

    async fn inspect_with_drafts(
        &self,
        request: InspectRequest,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Inspection, Error> {
        self.0.inspect_with_drafts(request, documents).await
    }

    async fn apply(&self, batch: Batch) -> Result<(), Error> {
        self.0.apply(batch).await
    }

    async fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.0.forget(workspace).await
    }

    fn cursor(&self, feed: &str, workspace: Uuid) -> u64 {
        self.0.cursor(feed, workspace)
    }

    fn cursors(&self) -> Cursors {
        self.0.cursors()
    }

    async fn candidates(&self, query: Query) -> Result<Vec<Candidates>, Error> {
        self.0.candidates(query).await
    }

    async fn candidates_with_drafts(
        &self,
        query: Query,
        documents: Arc<Vec<IndexedDocument>>,
    ) -> Result<Vec<Candidates>, Error> {
        self.0.candidates_with_drafts(query, documents).await
    }

    async fn chunks(&self, workspace: Uuid, ids: Vec<ChunkId>) -> Result<Vec<StoredChunk>, Error> {
        self.0.chunks(workspace, ids).await
    }

    async fn embedded(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<EmbeddedChunk>>, Error> {
        self.0.embedded(workspace, documents).await
    }

    async fn vectors(
        &self,
        workspace: Uuid,
        documents: Vec<Uuid>,
    ) -> Result<HashMap<Uuid, Vec<(u32, UnitVector)>>, Error> {
        self.0.vectors(workspace, documents).await
    }

    async fn counts(&self, workspace: Uuid) -> Result<Counts, Error> {
        self.0.counts(workspace).await
    }
}
