//! The constants of ranking and of responses, with their reasons.

use std::time::Duration;

/// Hits per list that are fused: the depth at which the weights were tuned.
pub(crate) const CANDIDATES_PER_LIST: usize = 100;

/// The weight of lexical scores in a fused score; the rest is that of cosines. It was the best weight for weak and for strong embedders.
pub const WORD_WEIGHT: f32 = 0.5;

/// Chunks that the second look reranks: with 50, the mean nDCG@10 of ten development sets was .0003 higher, with 20 .002 lower.
pub(super) const SECOND_LOOK_CHUNKS: usize = 30;

/// The weights of the second look; words have the rest, .24. The exact values matter little: of 120 nearby sets of weights, the worst
/// gained .008 nDCG@10 in the mean of ten development sets, where these gain .022 (.021 with cross-validation, one set left out at a
/// time). Cumulative gains, cross-validated: query vector half weighted by idf +.008, with feedback +.015, with late interaction +.017,
/// with headings +.021.
pub(super) const MEANING_WEIGHT: f32 = 0.24;
/// The weight of late interaction.
pub(super) const PIECES_WEIGHT: f32 = 0.28;
/// The weight of words in the title and the headings.
pub(super) const HEADINGS_WEIGHT: f32 = 0.05;
/// The weight of the cosine with the three best chunks.
pub(super) const FEEDBACK_WEIGHT: f32 = 0.19;

/// The rarest pieces of a question that late interaction compares: with twelve there is no difference, with eight a loss of .0015.
pub(super) const PIECES_COMPARED: usize = 16;

/// Chunks that pseudo-relevance feedback uses: two perform nearly the same, five and ten lose .005.
pub(super) const FEEDBACK_CHUNKS: usize = 3;

/// The minimum weight of a piece in the query vector, so that a question of frequent pieces still has one.
pub(super) const MIN_PIECE_WEIGHT: f32 = 0.02;

/// The share of each neighbour's score that is added to a sentence's own for highlights: .536 F1 on annotated passages, .528 without.
pub(super) const NEIGHBOUR_SHARE: f32 = 0.15;

/// The minimum score of further highlights relative to the best one. F1 .53 with .9, .49 with .6; .50 with always one highlight, .40
/// with always three.
pub(super) const MARKED_SHARE: f32 = 0.8;

/// The minimum lexical score, relative to the best one, of sentences that are also scored by meaning.
pub(super) const CANDIDATE_SHARE: f32 = 0.5;

/// The maximum number of sentences of a passage that are scored by meaning, which costs tokenization and comparison.
pub(super) const MAX_CANDIDATES: usize = 4;

/// The maximum number of highlights of a result (contract).
pub(super) const MAX_HIGHLIGHTS: usize = 3;

/// Sentences with fewer characters are joined with the next one: headings, rows of tables, lines of code.
pub(super) const SHORT_SENTENCE: usize = 40;

/// The maximum number of folders and databases whose names are searched.
pub(super) const MAX_NAMES: usize = 50_000;

/// The published constant of reciprocal rank fusion: large, so that no single list dominates.
pub(crate) const RRF_K: f32 = 60.0;

/// The weight of the original query's list relative to sub-queries (spec 4.4: double).
pub(crate) const ORIGINAL_WEIGHT: f32 = 2.0;

/// The weight of a sub-query's list.
pub(crate) const SUB_QUERY_WEIGHT: f32 = 1.0;

/// The share of its score that a very old document loses. Adjacent results among the first ten differ by 2 to 4 % of the score in the
/// median (Cranfield .023, CACM .020, ADI .039), so even the largest difference in age moves a result by about one rank. Documents of
/// the same age keep their order.
pub(super) const AGE_WEIGHT: f64 = 0.02;

/// The age in days at which half of [`AGE_WEIGHT`] is lost: about when notes and plans of a team become stale. A week then makes a
/// difference of a thousandth, which is enough to break ties.
pub(super) const AGE_HALF_LIFE_DAYS: f64 = 90.0;

/// Words per shingle of near-duplicate detection: two capture too little of the word order, and a changed word changes this many shingles.
pub(super) const SHINGLE_WORDS: usize = 3;

/// Texts with fewer words are never duplicates: of 3 204 titles and abstracts (CACM), collapsing those without an abstract lost .003
/// nDCG@10, since different articles have similar titles, and saved little space.
pub(super) const MIN_COMPARED_WORDS: usize = 25;

/// The minimum share of common shingles of near-duplicates. One changed word in a chunk of 200 leaves .97, a changed sentence of fifteen
/// words .84; differently filled templates are below the threshold.
pub(super) const SAME_TEXT_SHARE: f64 = 0.9;

/// The maximum number of duplicates that a result lists.
pub(super) const MAX_COPIES_NAMED: usize = 10;

/// The maximum bytes of merged adjacent chunks: about a thousand tokens, two to three chunks of the usual size. Larger results would leave
/// no room for other documents in a response of the usual size.
pub(super) const MAX_MERGED_BYTES: usize = 4 * 1024;

/// Additional chunks that the first round reads beyond the page size, since some are merged, collapsed, not confirmed or ranked below a
/// younger one.
pub(super) const SPARE_CHUNKS: usize = 12;

/// The maximum number of chunks that are read and confirmed in one round; owners confirm up to a thousand documents per call.
pub(super) const MAX_CHUNKS_PER_ROUND: usize = 100;

/// The estimated bytes per token. With o200k, documentation and code have 3.7 to 4.2, English abstracts 5.3 to 5.8, short chat turns with
/// dates 2.9 (docs/EVALUATION.md); the `evidence` bench checks by how much budgets are exceeded.
pub(super) const BYTES_PER_TOKEN: usize = 4;

/// Chunks that a reranker scores, or the page size if that is larger: a cross-encoder takes about 10 ms per chunk on a CPU, and chunks
/// that both lists rank lower are seldom relevant.
pub(super) const RERANKED_CHUNKS: usize = 30;

/// The weight of a reranker in the score. Rerankers are known to demote relevant results on which words and meaning agree, so neither
/// overrules the other; operators can measure the effect with their own questions (`cairn eval`).
pub(super) const RERANK_WEIGHT: f64 = 0.5;

/// The maximum bytes of a chunk that are sent to a reranker: models truncate at 512 tokens, or charge for more.
pub(super) const MAX_RERANKED_BYTES: usize = 4 * 1024;

/// Passages of a file whose neighbours are searched: a longer file is represented by evenly spaced passages, so that a book costs no more
/// than sixteen searches.
pub(super) const RELATED_PASSAGES: usize = 16;

/// Neighbours per passage: three times a page of twenty files, since several chunks may belong to one file, and some to records.
pub(super) const RELATED_NEIGHBOURS: usize = 60;

/// Documents whose vectors are compared with those of the file.
pub(super) const RELATED_DOCUMENTS: usize = 80;

/// Compared chunks per document, in addition to the best pair that the searches found.
pub(super) const RELATED_COMPARED: usize = 256;

/// Related documents that are read and confirmed in one round.
pub(super) const RELATED_CONFIRMED_PER_ROUND: usize = 30;

/// The maximum number of catalog entries that are compared with a question: if there are more, the question names none of them.
pub(super) const MAX_MATCHES: usize = 20;

/// The maximum number of URLs, and of keys, of a question that are looked up in catalogs.
pub(super) const MAX_NAMED: usize = 3;

/// The maximum number of bodies of catalog entries that a search fetches: the limit per call of svc-ingest.
pub(super) const MAX_BODIES: usize = 3;

/// The minimum ratio of the scores of the best and the second best catalog entry for a decisive match (figures: docs/SEARCH.md).
pub(super) const DECISIVE_LEAD: f32 = 1.5;

/// The timeout of the call to providers: svc-ingest gives each of them two seconds, and responds soon after.
pub(super) const PROVIDERS_TIMEOUT: Duration = Duration::from_secs(3);

/// The deadline of providers since the start of the search, which must respond within 4.5 s.
pub(super) const PROVIDERS_DEADLINE: Duration = Duration::from_secs(4);

/// The maximum bytes of texts from providers that one search cuts and ranks: at most a second of one core.
pub(super) const MAX_LIVE_BYTES: usize = 4 << 20;

/// The maximum number of past versions of changed files that one search cuts and ranks, within [`MAX_LIVE_BYTES`]: each costs some
/// microseconds in addition to its bytes.
pub(super) const MAX_PAST_FILES: usize = 1_000;

/// The maximum number of passages per text from a provider in the ranked lists. A long text would fill them, since all of it is on topic.
pub(super) const MAX_PASSAGES_PER_LIVE_TEXT: usize = 3;
