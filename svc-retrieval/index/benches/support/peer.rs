//! The peer: tantivy with one field of words and stored text, as its own documentation sets it up.

use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value as _};
use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};
use tantivy::{Index, IndexReader, IndexWriter, TantivyDocument, schema::Field};

const WRITER_MEMORY: usize = 50_000_000;

/// An index of the same texts.
pub(crate) struct Peer {
    index: Index,
    writer: IndexWriter,
    reader: Option<IndexReader>,
    words: Field,
    text: Field,
    _folder: tempfile::TempDir,
}

impl Peer {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut schema = Schema::builder();
        let words = TextFieldIndexing::default()
            .set_tokenizer("english")
            .set_index_option(IndexRecordOption::WithFreqsAndPositions);
        let words = schema.add_text_field("words", TextOptions::default().set_indexing_options(words));
        let text = schema.add_text_field("text", STORED);
        let folder = tempfile::tempdir()?;
        let index = Index::create_in_dir(folder.path(), schema.build())?;
        let analyzer = TextAnalyzer::builder(SimpleTokenizer::default())
            .filter(RemoveLongFilter::limit(64))
            .filter(LowerCaser)
            .filter(StopWordFilter::new(Language::English).unwrap_or_else(|| StopWordFilter::remove([])))
            .filter(Stemmer::new(Language::English))
            .build();
        index.tokenizers().register("english", analyzer);
        let writer = index.writer_with_num_threads(1, WRITER_MEMORY)?;
        Ok(Self { index, writer, reader: None, words, text, _folder: folder })
    }

    pub(crate) fn add(&mut self, title: &str, headings: &[String], text: &str) -> anyhow::Result<()> {
        let mut document = TantivyDocument::new();
        document.add_text(self.words, format!("{title}\n{}\n{text}", headings.join("\n")));
        document.add_text(self.text, text);
        self.writer.add_document(document)?;
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> anyhow::Result<()> {
        self.writer.commit()?;
        self.reader = Some(self.index.reader()?);
        Ok(())
    }

    /// The stored texts of the best.
    pub(crate) fn page(&self, query: &str, limit: usize) -> anyhow::Result<Vec<String>> {
        let Some(reader) = &self.reader else { return Ok(Vec::new()) };
        let searcher = reader.searcher();
        let (query, _odd) = QueryParser::for_index(&self.index, vec![self.words]).parse_query_lenient(query);
        let best = searcher.search(&query, &TopDocs::with_limit(limit).order_by_score())?;
        let mut texts = Vec::with_capacity(best.len());
        for (_, address) in best {
            let document: TantivyDocument = searcher.doc(address)?;
            texts.extend(document.get_first(self.text).and_then(|text| text.as_str()).map(str::to_owned));
        }
        Ok(texts)
    }
}
