//! Reads a test collection: documents, queries, and relevance judgements.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use fs_err as fs;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::judgement::{Expected, Question};

/// A document of a collection.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    pub(super) id: String,
    #[serde(default)]
    pub(super) title: String,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
struct Query {
    id: String,
    text: String,
}

/// A collection; its questions refer to documents by their ids in it.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) documents: Vec<Document>,
    pub(super) questions: Vec<Question>,
}

impl Collection {
    /// Reads the folder. Queries without a relevant document are skipped, as they measure nothing.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let documents: Vec<Document> = lines(&folder.join("corpus.jsonl"))?;
        let queries: Vec<Query> = lines(&folder.join("queries.jsonl"))?;
        let mut judgements = judgements(&folder.join("qrels.tsv"))?;
        let mut questions = Vec::with_capacity(queries.len());
        for query in queries {
            if let Some(expected) = judgements.remove(&query.id) {
                questions.push(Question { id: query.id, text: query.text, expected });
            }
        }
        ensure!(!documents.is_empty(), "{} has no documents in corpus.jsonl", folder.display());
        ensure!(!questions.is_empty(), "no query of {} has a judgement in qrels.tsv", folder.display());
        Ok(Self { documents, questions })
    }
}

impl Document {
    /// The name, the type and the content of the file for the document.
    pub(super) fn file(&self) -> (String, &'static str, String) {
        // A document without a title may be code, in which `#` is not a heading.
        if self.title.trim().is_empty() {
            return (format!("{}.txt", file_stem(&self.id)), "text", self.text.clone());
        }
        let content = format!("# {}\n\n{}\n", self.title.trim(), self.text);
        (format!("{}.md", file_stem(&self.id)), "markdown", content)
    }
}

/// The id, escaped for use in a file name.
fn file_stem(id: &str) -> String {
    id.chars().map(|character| if character.is_alphanumeric() { character } else { '-' }).collect()
}

/// Parses the lines of a JSONL file.
pub(super) fn lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    parse_lines(&fs::read_to_string(path)?, &path.display().to_string())
}

/// Parses the lines of a text; errors call it `name`.
pub(super) fn parse_lines<T: DeserializeOwned>(text: &str, name: &str) -> anyhow::Result<Vec<T>> {
    let lines = (1_usize..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| serde_json::from_str(line).with_context(|| format!("{name}, line {number}")))
        .collect()
}

/// The judgements by query: `query document gain`, or the four columns of TREC, of which the second is unused.
fn judgements(path: &Path) -> anyhow::Result<HashMap<String, Vec<Expected>>> {
    let text = fs::read_to_string(path)?;
    let mut judgements: HashMap<String, Vec<Expected>> = HashMap::new();
    for (number, line) in (1_usize..).zip(text.lines()) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let (query, document, gain) = match columns.as_slice() {
            [] => continue,
            [query, document, gain] | [query, _, document, gain] => (*query, *document, *gain),
            _ => bail!("{}, line {number}: not a query, a document and a gain", path.display()),
        };
        let Ok(gain) = gain.parse::<f64>() else {
            // The header line.
            ensure!(number == 1, "{}, line {number}: `{gain}` is no number", path.display());
            continue;
        };
        if gain > 0.0 {
            let expected = Expected { document: document.to_owned(), lines: None, gain };
            judgements.entry(query.to_owned()).or_default().push(expected);
        }
    }
    Ok(judgements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(corpus: &str, queries: &str, qrels: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("corpus.jsonl", corpus), ("queries.jsonl", queries), ("qrels.tsv", qrels)] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    const CORPUS: &str =
        "{\"id\": \"a/1\", \"title\": \"T\", \"text\": \"x\"}\n\n{\"id\": \"b\", \"text\": \"# y\"}\n";
    const QUERIES: &str = "{\"id\": \"q1\", \"text\": \"one\"}\n{\"id\": \"q2\", \"text\": \"two\"}\n";

    #[test]
    fn reads_documents_queries_and_judgements() {
        let folder = folder(CORPUS, QUERIES, "query\tdocument\tgain\nq1\tb\t2\nq1\ta/1\t0\n");
        let read = Collection::read(folder.path()).unwrap();
        let files: Vec<_> = read.documents.iter().map(Document::file).collect();
        assert_eq!(files[0], ("a-1.md".to_owned(), "markdown", "# T\n\nx\n".to_owned()));
        assert_eq!(files[1], ("b.txt".to_owned(), "text", "# y".to_owned()));
        let [question] = read.questions.as_slice() else { panic!("{:?}", read.questions) };
        assert_eq!((question.id.as_str(), question.text.as_str()), ("q1", "one"));
        assert_eq!(question.expected, [Expected { document: "b".to_owned(), lines: None, gain: 2.0 }]);
    }

    #[test]
    fn reads_the_four_columns_of_trec() {
        let folder = folder(CORPUS, QUERIES, "q2 0 b 1\n");
        assert_eq!(Collection::read(folder.path()).unwrap().questions[0].id, "q2");
    }

    #[test]
    fn says_which_line_is_wrong() {
        let wrong = |corpus, qrels| {
            let folder = folder(corpus, QUERIES, qrels);
            format!("{:#}", Collection::read(folder.path()).unwrap_err())
        };
        assert!(
            wrong("{\"id\": \"a\", \"text\": \"x\"}\n{\n", "q1\tb\t1\n").contains("corpus.jsonl, line 2")
        );
        assert!(wrong(CORPUS, "q1\tb\t1\nq1\tb\tmany\n").contains("line 2: `many` is no number"));
        assert!(wrong(CORPUS, "q1\tb\n").contains("line 1: not a query"));
        assert!(wrong(CORPUS, "q9\tb\t1\n").contains("has a judgement"));
    }
}
