//! Every constant of ranking and of answers, each with its reason.

use std::time::Duration;

/// Hits that each list of one query gives to the fusion: the depth at which the weights were measured.
pub(crate) const CANDIDATES_PER_LIST: usize = 100;

/// The words' share of a fused score; the meaning has the rest. The best of the shares measured for weak and
/// strong embedders alike.
pub const WORD_WEIGHT: f32 = 0.5;

/// Chunks that a second look orders anew: of 50 the mean of ten development sets was .0003 higher, of 20 .002 lower.
pub(super) const LOOKED_AT: usize = 30;

/// The weights of a second look beside the words', which have what is left: .24. They matter little: of 120 sets of weights
/// around them the worst gained .008 nDCG@10 in the mean of ten development sets where these gain .022, and chosen on nine
/// sets for the tenth they gain .021. Step by step, each set left out once: the question half by rarity +.008, with
/// feedback +.015, with late interaction +.017, with headings +.021.
pub(super) const MEANING_WEIGHT: f32 = 0.24;
/// Of late interaction.
pub(super) const PIECES_WEIGHT: f32 = 0.28;
/// Of what stands in the title and the headings.
pub(super) const HEADINGS_WEIGHT: f32 = 0.05;
/// Of how near a chunk is to the three best.
pub(super) const FEEDBACK_WEIGHT: f32 = 0.19;

/// Pieces of a question that are compared one by one, the rarest: twelve do the same, eight lose .0015.
pub(super) const PIECES_COMPARED: usize = 16;

/// Chunks that say where the answer is: two do nearly the same, five and ten lose .005.
pub(super) const FEEDBACK_CHUNKS: usize = 3;

/// What the most frequent piece counts in what a question means, so that a question of frequent pieces still means something.
pub(super) const LEAST_RARITY: f32 = 0.02;

/// What each neighbour of a line adds to it where lines are chosen that answer: .536 F1 on passages with marked answers, .528
/// without.
pub(super) const NEIGHBOUR_SHARE: f32 = 0.15;

/// The share of the best line's score from which on the next two are marked, too. F1 .53 with .9, .49 with .6; .50 where always
/// one is marked, .40 where always three are.
pub(super) const MARKED_SHARE: f32 = 0.8;

/// The share of the best line's score by words from which on a line is looked at for its meaning, too.
pub(super) const CANDIDATE_SHARE: f32 = 0.5;

/// Lines of a passage that are looked at for their meaning at most: the more, the more text is cut into pieces and compared.
pub(super) const MOST_CANDIDATES: usize = 4;

/// Places that are marked in a result at most (contract).
pub(super) const MOST_HIGHLIGHTS: usize = 3;

/// Sentences of fewer characters are marked with the next one: headings, rows of tables, lines of code.
pub(super) const SHORT_SENTENCE: usize = 40;

/// Folders and databases of a workspace whose names searches read; those beyond are found by what stands in them.
pub(super) const MOST_NAMES: usize = 50_000;

/// The constant of reciprocal-rank fusion, as published: large, so that no single list decides alone.
pub(crate) const RRF_K: f32 = 60.0;

/// Weight of the original query's list among those of its sub-queries (spec 4.4: double).
pub(crate) const ORIGINAL_WEIGHT: f32 = 2.0;

/// Weight of a sub-query's list.
pub(crate) const SUB_QUERY_WEIGHT: f32 = 1.0;

/// What a document that is very old loses of its score to one of today. Between neighbours among the first ten results
/// lie 2 to 4 % of the score in the median (Cranfield .023, CACM .020, ADI .039), so that even the greatest difference in
/// age moves a result by about one place; documents of one age keep their order whatever it is.
pub(super) const AGE_WEIGHT: f64 = 0.02;

/// After so many days half of [`AGE_WEIGHT`] is lost: about the time in which notes and plans of a team go stale. A week
/// makes a difference of a thousandth then, which is enough between equals.
pub(super) const AGE_HALF_LIFE_DAYS: f64 = 90.0;

/// Words in a run when texts are compared: two say too little of the order, and one changed word changes this many runs.
pub(super) const SHINGLE_WORDS: usize = 3;

/// Texts of fewer words are never the same: of 3 204 titles and abstracts (CACM), collapsing those without an abstract lost
/// .003 nDCG@10, since different articles are called alike, and saved next to no room.
pub(super) const FEWEST_COMPARED_WORDS: usize = 25;

/// Shared runs from which on two texts are the same but for details. One changed word of a chunk of 200 leaves .97, a
/// changed sentence of fifteen words .84; a template filled in differently is below it.
pub(super) const SAME_TEXT_SHARE: f64 = 0.9;

/// Copies of a text that a result names; more of them make the answer longer and no better.
pub(super) const MOST_COPIES_NAMED: usize = 10;

/// Neighbours are merged up to this many bytes: about a thousand tokens, two to three chunks of the usual size. More in
/// one piece would leave no room for other documents in an answer of ordinary size.
pub(super) const MAX_MERGED_BYTES: usize = 4 * 1024;

/// Confirmed chunks beyond the page's size that the first round looks at, for those that merge, collapse, fail to be
/// confirmed or lose their place to a younger one.
pub(super) const SPARE_CHUNKS: usize = 12;

/// Most chunks that are read and confirmed in one round: owners confirm up to a thousand documents at once.
pub(super) const MOST_CHUNKS_A_ROUND: usize = 100;

/// With o200k documentation and code have 3.7 to 4.2 bytes a token, English abstracts 5.3 to 5.8, short turns with dates 2.9
/// (docs/EVALUATION.md); the `evidence` bench holds what a budget is exceeded by.
pub(super) const BYTES_PER_TOKEN: usize = 4;

/// Chunks that a reranker reads, or a page's worth where that is more: a cross-encoder takes about 10 ms for each on a
/// CPU, and what the words and the meaning both place lower is seldom right.
pub(super) const RERANKED_CHUNKS: usize = 30;

/// A reranker's share of a score. Rerankers are known to lose right answers that the words and the meaning agree on, so
/// neither side overrules the other; the operator's own questions tell whether it helps (`cairn eval`).
pub(super) const RERANK_WEIGHT: f64 = 0.5;

/// Most bytes of one chunk that a reranker reads: models cut at 512 tokens or charge for more.
pub(super) const MAX_RERANKED_BYTES: usize = 4 * 1024;

/// Passages of a known file that look for neighbours: a file of more is represented by passages at even distances, so
/// that a book costs no more than sixteen searches.
pub(super) const RELATED_PASSAGES: usize = 16;

/// Neighbours that each passage looks for: three times what a page of twenty files holds, since several chunks of one
/// file and records come among them.
pub(super) const RELATED_NEIGHBOURS: usize = 60;

/// Documents whose vectors are compared with those of the known file.
pub(super) const RELATED_DOCUMENTS: usize = 80;

/// Chunks of one of them that are compared: the best pair that the searches found counts besides.
pub(super) const RELATED_COMPARED: usize = 256;

/// Documents near a file that are read and confirmed in one round.
pub(super) const RELATED_CONFIRMED_AT_ONCE: usize = 30;

/// Entries of catalogs that are looked at for a question: more of them say only that it names nothing.
pub(super) const MOST_MATCHES: usize = 20;

/// Addresses, and keys, of a question that are looked up in catalogs.
pub(super) const MOST_NAMED: usize = 3;

/// Bodies that a search reads of catalogs: as many as the contract with svc-ingest allows at once.
pub(super) const MOST_BODIES: usize = 3;

/// How many times the score of the next entry of a catalog the best one must have (docs/SEARCH.md has the figures).
pub(super) const DECISIVE_LEAD: f32 = 1.5;

/// How long a search waits for providers: svc-ingest gives each two seconds, and answers soon after.
pub(super) const PROVIDERS_PATIENCE: Duration = Duration::from_secs(3);

/// When providers must have answered since the search began, whatever else took its time: it is answered within 4.5 s.
pub(super) const PROVIDERS_ANSWERED_BY: Duration = Duration::from_secs(4);

/// Bytes of texts from providers that one search cuts and ranks: a second of one core at the very most.
pub(super) const MOST_LIVE_BYTES: usize = 4 << 20;

/// Files that have changed since a moment, of which one search cuts and ranks what they were, within [`MOST_LIVE_BYTES`]: each costs
/// some microseconds besides its bytes.
pub(super) const MOST_PAST_FILES: usize = 1_000;

/// Passages of one text from a provider that have a place in the answer's lists. A long text would fill them, since all of
/// it is about what was asked for.
pub(super) const PASSAGES_OF_A_LIVE_TEXT: usize = 3;
