//! Every constant of the index and of the embedded vectors, each with its reason.

/// Raised whenever a field, the word analysis, how documents are cut or the stored form changes; an index of another version
/// is wiped and rebuilt from the feeds.
pub(super) const SCHEMA_VERSION: u32 = 5;

/// Bytes of the indexing thread's buffer: the smallest that tantivy accepts. A larger one only helps
/// batches of many thousands of chunks, and costs resident memory for good.
pub(super) const WRITER_MEMORY: usize = 15_000_000;

/// Batches that stay in memory until they are committed together. Each is a segment that a search visits, for about
/// 10 µs; a commit takes as long as twenty batches in memory.
pub(super) const RECENT_BATCHES: usize = 16;

/// Rows above which a batch is committed at once, with all that is in memory: the commit is then a small part of the work,
/// and memory stays bounded.
pub(super) const RECENT_ROWS: usize = 256;

/// Bytes of the buffer that makes a segment in memory; it decides the size of a hash table that is cleared for each.
pub(super) const RECENT_WRITER_MEMORY: usize = 1_000_000;

/// Rows of a segment that are gone since the last commit, up to which it is looked up for BM25 which words they hold;
/// above, a share is taken off, since looking would cost more than the search.
pub(super) const COUNTED_ROWS: usize = 1_024;

/// Corpora whose statistics a segment and a state of the index keep: workspaces, and scopes of tokens.
pub(super) const CORPUS_CACHE_CAPACITY: usize = 32;

/// Words whose frequencies in one corpus a segment keeps that several corpora share.
pub(super) const SEGMENT_FREQUENCY_CACHE_CAPACITY: usize = 512;

/// Words whose frequencies in one corpus a state of the index keeps, at about a hundred bytes each.
pub(super) const FREQUENCY_CACHE_CAPACITY: usize = 8_192;

/// A workspace that has at least one in so many rows of a segment is searched through the best of the whole segment.
pub(super) const TESTED_SHARE: u32 = 4;

/// Calls of `maintain` in a row in which a workspace is neither searched by meaning nor written to, after which its vectors are
/// given back: five minutes, as it is called.
pub(super) const IDLE_ROUNDS: u32 = 60;

/// The same without a write to any, after which the writer is closed: its threads and its queue of 2.5 MB, and the files that
/// were merged away since the last commit. The next commit opens another one.
pub(super) const WRITER_IDLE_ROUNDS: u32 = 12;

/// Bytes of a block of stored chunks. To read one chunk is to decompress a block: with tantivy's 16 KiB that was more than
/// half the time of a page of ten.
pub(super) const STORE_BLOCK: usize = 4_096;

/// Decompressed blocks of stored chunks that each segment keeps; a page of results needs a few.
pub(super) const STORE_CACHE_BLOCKS: usize = 4;

/// Segments of one size class that are merged into one. Lower means fewer segments a query has to visit (each costs it
/// two look-ups a word), higher means that a chunk is rewritten less often.
pub(super) const MERGE_AT: usize = 4;

/// Chunks below which all segments are of the same, smallest size class: a commit of one document is a
/// segment of a few chunks, and a few of those still merge in a few milliseconds.
pub(super) const MERGE_SMALLEST: u32 = 64;

/// Size classes are this many binary orders apart (2 = a factor of four = `MERGE_AT`), so that each
/// chunk is rewritten about once per class. The default (0.75 above 10 000 chunks) would rewrite up to
/// 10 000 chunks at every eighth commit.
pub(super) const MERGE_CLASS_WIDTH: f64 = 2.0;

/// Share of replaced or deleted chunks above which a segment is rewritten without waiting for others.
pub(super) const MERGE_DELETED_SHARE: f32 = 0.4;

/// Threads that merge: one, because the machine may have two cores and serves searches on them.
pub(super) const MERGE_THREADS: usize = 1;

/// Places up to which two words are near each other. Five beat one, three and eight (nDCG@10 of words and meaning fused
/// .4544, .4492, .4521, .4524 as the mean of three collections; .4473 without).
pub(super) const NEAR: u32 = 5;

/// What being near counts beside the words themselves: a third of a word's weight. Half did the same, the full weight
/// cost words alone .003.
pub(super) const NEAR_WEIGHT: f32 = 0.3;

/// Words that the last word of a search may stand for where it is only begun: the most frequent ones.
pub(super) const MOST_BEGUN: usize = 32;

/// Words of what is searched with that beginning, in one segment, that are looked at; two letters may begin thousands.
pub(super) const MOST_BEGUN_SEEN: usize = 2_000;

/// Words of a segment with that beginning that are looked at at all: of many tenants' words few may be one's own.
pub(super) const MOST_BEGUN_PASSED: usize = 50_000;

/// Plain words beside which a quoted phrase is still a demand. Requiring the quotes of sentences cost .05 to
/// .08 nDCG@10 on cacm, whose queries quote in passing; people who demand a phrase add few words to it.
pub(super) const MOST_WORDS_BESIDE_A_PHRASE: usize = 6;

/// As deep as a search by meaning goes when exclusions take what it finds: a thousandth of a second more for each of the
/// two steps there, where the answer would be empty without them.
pub(crate) const MOST_CANDIDATES: usize = 1_600;

/// Rows that the quantised pass keeps for each result asked for; the exact scores then decide. Codes of one byte err so
/// little that of the hundred nearest .9999 are among the best two hundred (codes of half a byte: .9996).
pub(crate) const RESCORED_PER_RESULT: usize = 2;

/// Fewest rows that the first pass keeps, so that a search for few results loses none to rounding.
pub(crate) const MIN_RESCORED: usize = 64;

/// Rows from which a search by meaning looks at the signs first. Below, the codes of all rows are read in less than 0.2 ms.
pub(crate) const SIGNS_FROM_ROWS: usize = 8_192;

/// One in so many rows passes the look at the signs. On 29 000 passages of documentation with the built-in embedder, of the
/// ten nearest .999 are among a thirty-second and 1.000 among a sixteenth (of the hundred nearest .987 and .997).
pub(crate) const SIGNS_KEPT: usize = 32;

/// At least so many rows pass for each result asked for.
pub(crate) const SIGNS_KEPT_PER_RESULT: usize = 16;

/// The middle of the vectors is taken anew, and all signs with it, when there are so many times as many rows. By then it
/// may have moved; to do it more often would cost more than the writing itself.
pub(crate) const SIGNS_REBUILD_FACTOR: usize = 8;

/// Rows by which the bound of the first look is told: the number that passes then errs by about an eighth.
pub(crate) const SIGNS_SAMPLE: usize = 2_048;
