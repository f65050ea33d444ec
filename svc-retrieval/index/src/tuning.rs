//! The constants of the index and of the embedded vectors, with their reasons.

/// Raised whenever a field, text analysis, chunking or the stored format changes; an index of another version is wiped and rebuilt from
/// the feeds.
pub(super) const SCHEMA_VERSION: u32 = 5;

/// Bytes of the indexing thread's buffer: tantivy's minimum. A larger one only helps batches of many thousands of chunks, and stays
/// resident.
pub(super) const WRITER_MEMORY: usize = 15_000_000;

/// Batches that stay in memory until they are committed together. Each is a segment, which costs a search about 10 µs; a commit takes
/// as long as twenty in-memory batches.
pub(super) const RECENT_BATCHES: usize = 16;

/// Pending rows above which a batch is committed at once: the commit is then a small part of the work, and memory stays bounded.
pub(super) const RECENT_ROWS: usize = 256;

/// Bytes of the buffer for building an in-memory segment; it determines the size of a hash table that is cleared for each.
pub(super) const RECENT_WRITER_MEMORY: usize = 1_000_000;

/// Up to this many deleted rows of a segment are counted exactly for BM25; above, their share is estimated, since counting would cost
/// more than the search.
pub(super) const COUNTED_ROWS: usize = 1_024;

/// Corpora whose statistics a segment and a view cache: workspaces, and scopes of tokens.
pub(super) const CORPUS_CACHE_CAPACITY: usize = 32;

/// Terms whose frequencies in one corpus are cached by a segment that contains several corpora.
pub(super) const SEGMENT_FREQUENCY_CACHE_CAPACITY: usize = 512;

/// Terms whose frequencies in one corpus are cached by a view, at about a hundred bytes each.
pub(super) const FREQUENCY_CACHE_CAPACITY: usize = 8_192;

/// If a workspace has at least `1 / TESTED_SHARE` of a segment's rows, rows are filtered after scoring.
pub(super) const TESTED_SHARE: u32 = 4;

/// Consecutive calls of `maintain` without a semantic search or write, after which the vectors of a workspace are evicted: about five
/// minutes.
pub(super) const IDLE_ROUNDS: u32 = 60;

/// Consecutive calls of `maintain` without any write, after which the writer is closed: this frees its threads, its queue of 2.5 MB,
/// and files that were merged since the last commit. The next commit opens another writer.
pub(super) const WRITER_IDLE_ROUNDS: u32 = 12;

/// Bytes of a block of stored chunks. Reading one chunk decompresses a block: with tantivy's default of 16 KiB that was more than half
/// of the time of a page of ten.
pub(super) const STORE_BLOCK: usize = 4_096;

/// Cached decompressed blocks of stored chunks per segment; a page of results needs a few.
pub(super) const STORE_CACHE_BLOCKS: usize = 4;

/// Segments of one size class that are merged into one. A lower number means fewer segments per query (each costs two lookups per
/// word), a higher one less write amplification.
pub(super) const MERGE_AT: usize = 4;

/// Segments with fewer chunks are all in the smallest size class: a commit of one document is a segment of a few chunks, and merging
/// some of those takes only milliseconds.
pub(super) const MERGE_SMALLEST: u32 = 64;

/// The binary logarithm of the ratio of adjacent size classes (2 = a factor of four = `MERGE_AT`), so that each chunk is rewritten about
/// once per class. The default (0.75 above 10 000 chunks) would rewrite up to 10 000 chunks at every eighth commit.
pub(super) const MERGE_CLASS_WIDTH: f64 = 2.0;

/// Share of replaced or deleted chunks above which a segment is rewritten without waiting for others.
pub(super) const MERGE_DELETED_SHARE: f32 = 0.4;

/// Merge threads: one, since the machine may have only two cores, which also serve searches.
pub(super) const MERGE_THREADS: usize = 1;

/// The maximum distance of words that are near each other. Five beat one, three and eight (nDCG@10 of the fused ranking .4544, .4492,
/// .4521, .4524, averaged over three collections; .4473 without the bonus).
pub(super) const NEAR: u32 = 5;

/// The weight of proximity relative to the words themselves. A half performed equally; the full weight cost lexical search .003.
pub(super) const NEAR_WEIGHT: f32 = 0.3;

/// The maximum number of completions of the last word of a search: the most frequent ones.
pub(super) const MAX_COMPLETIONS: usize = 32;

/// The maximum number of terms of the corpus with the prefix that are considered per segment; two letters may match thousands.
pub(super) const MAX_COMPLETION_CANDIDATES: usize = 2_000;

/// The maximum number of terms of a segment with the prefix that are visited: few of them may belong to the corpus.
pub(super) const MAX_PREFIX_TERMS_VISITED: usize = 50_000;

/// The maximum number of plain words beside which a quoted phrase is still required. Requiring quotes within long sentences cost .05 to
/// .08 nDCG@10 on cacm, whose queries quote in passing; users who require a phrase add few words to it.
pub(super) const MAX_WORDS_BESIDE_A_PHRASE: usize = 6;

/// The maximum depth of a semantic search when exclusions remove its results: each of the two steps up to it takes a millisecond more,
/// where the result would be empty otherwise.
pub(crate) const MAX_CANDIDATES: usize = 1_600;

/// Rows of the quantised pass per requested result, which are then rescored exactly. With one-byte codes, .9999 of the hundred nearest
/// are among the best two hundred (four-bit codes: .9996).
pub(crate) const RESCORED_PER_RESULT: usize = 2;

/// The minimum number of rescored rows, so that a search with a small limit loses no result to quantisation.
pub(crate) const MIN_RESCORED: usize = 64;

/// Rows from which a semantic search uses signs. Below, the codes of all rows are scored in less than 0.2 ms.
pub(crate) const SIGNS_FROM_ROWS: usize = 8_192;

/// One in this many rows passes the sign pass. On 29 000 passages of documentation with the built-in embedder, recall of the ten nearest
/// is .999 with a thirty-second and 1.000 with a sixteenth of the rows (of the hundred nearest .987 and .997).
pub(crate) const SIGNS_KEPT: usize = 32;

/// The minimum number of rows that pass the sign pass per requested result.
pub(crate) const SIGNS_KEPT_PER_RESULT: usize = 16;

/// The growth factor of rows after which the centre and all signs are recomputed, since the centre may have moved. Doing it more often
/// would cost more than the writes themselves.
pub(crate) const SIGNS_REBUILD_FACTOR: usize = 8;

/// The sample size for the threshold of the sign pass: the number of rows that pass is then off by about an eighth.
pub(crate) const SIGNS_SAMPLE: usize = 2_048;
