//! Every constant of the index and of the embedded vectors, each with its reason.

/// Raised whenever a field, the word analysis or the stored form changes; an index of another version
/// is wiped and rebuilt from the feeds.
pub(super) const SCHEMA_VERSION: u32 = 1;

/// Bytes of the indexing thread's buffer: the smallest that tantivy accepts. A larger one only helps
/// batches of many thousands of chunks, and costs resident memory for good.
pub(super) const WRITER_MEMORY: usize = 15_000_000;

/// Decompressed blocks of stored chunks that each segment keeps. Blocks are about 16 KiB and a busy index
/// has some twenty segments, so the default of 100 could hold 32 MiB; a page of results needs a few.
pub(super) const STORE_CACHE_BLOCKS: usize = 4;

/// Segments of one size class that are merged into one. Lower means fewer segments a query has to visit,
/// higher means that a chunk is rewritten less often.
pub(super) const MERGE_AT: usize = 8;

/// Chunks below which all segments are of the same, smallest size class: a commit of one document is a
/// segment of a few chunks, and eight of those still merge in a few milliseconds.
pub(super) const MERGE_SMALLEST: u32 = 64;

/// Size classes are this many binary orders apart (3 = a factor of eight = `MERGE_AT`), so that each
/// chunk is rewritten about once per class. The default (0.75 above 10 000 chunks) would rewrite up to
/// 10 000 chunks at every eighth commit.
pub(super) const MERGE_CLASS_WIDTH: f64 = 3.0;

/// Share of replaced or deleted chunks above which a segment is rewritten without waiting for others.
pub(super) const MERGE_DELETED_SHARE: f32 = 0.4;

/// Threads that merge: one, because the machine may have two cores and serves searches on them.
pub(super) const MERGE_THREADS: usize = 1;

/// Longest word that is indexed, in bytes; longer ones are encoded data rather than words.
pub(super) const LONGEST_WORD: usize = 64;

/// Most words of a query that are looked up. A pasted page would otherwise visit thousands of lists.
pub(super) const MOST_QUERY_WORDS: usize = 128;

/// Plain words beside which a quoted phrase is still a demand. Requiring the quotes of sentences cost .05 to
/// .08 nDCG@10 on cacm, whose queries quote in passing; people who demand a phrase add few words to it.
pub(super) const MOST_WORDS_BESIDE_A_PHRASE: usize = 6;

/// Rows that the first, quantised pass keeps for each result asked for; the exact scores then decide.
pub(crate) const RESCORED_PER_RESULT: usize = 4;

/// Fewest rows that the first pass keeps, so that a search for few results loses none to rounding.
pub(crate) const FEWEST_RESCORED: usize = 64;
