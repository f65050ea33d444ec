//! Every constant of the search engine on Qdrant, with its reason.

use std::time::Duration;

/// Raised whenever what a point holds or a collection's settings change: it is part of the collection's name, so that
/// two versions of Cairn never share one.
pub(super) const LAYOUT: u32 = 4;

/// The first server that counts over given points how rare a word is: major and minor version.
pub(super) const MIN_SERVER_VERSION: (u32, u32) = (1, 19);

/// How long one call may take, and how long a connection. A search waits for both at most.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How often a connection is asked whether anybody is still at its other end, and how long it may take to answer; then another one
/// is made. A machine that goes away closes no connection, and the kernel would believe in it for a quarter of an hour.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
pub(super) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Words whose chunks are counted at the same time.
pub(super) const COUNT_CONCURRENCY: usize = 16;

/// Bytes of points that are sent in one call, about: Qdrant writes a call to its log at once, and its own limit of a
/// request is 32 MiB over REST.
pub(super) const BYTES_PER_CALL: usize = 4 << 20;

/// Documents whose debris one deletion names. Each is two conditions of the filter.
pub(super) const DOCUMENTS_PER_CLEANUP: usize = 100;

/// Points that a page of a scroll holds.
pub(super) const PAGE: u32 = 256;

/// Chunks that tell the words which a beginning may stand for. What more would tell is rare.
pub(super) const COMPLETION_CHUNKS: u32 = 256;

/// Letters of a word that are indexed as its beginnings, at most. What is longer is found by these, and looked at here.
pub(super) const MAX_PREFIX_CHARS: u64 = 12;

/// BM25's usual constants, those of the embedded index.
pub(super) const K1: f32 = 1.2;
pub(super) const B: f32 = 0.75;

/// Words that a chunk usually has, with its headings and the names in it. Of what our chunker makes of cranfield,
/// package READMEs, our own docs, cacm and cosqa the means are 164, 121, 154, 104 and 48. An error of a half changes no
/// weight by more than a third, and those of one collection alike.
pub(super) const AVERAGE_LENGTH: f32 = 120.0;

/// How long the languages of a workspace are believed; what this process applies is known at once.
pub(super) const LANGUAGE_CACHE_TTL: Duration = Duration::from_secs(30);

/// Most languages that are asked for: all that there are.
pub(super) const MOST_LANGUAGES: u64 = 32;

/// Edges of a vector in the graph of its workspace, and candidates at its building. There is no graph over all
/// workspaces (`m` = 0), since no search crosses them.
pub(super) const GRAPH_EDGES: u64 = 16;
pub(super) const GRAPH_CANDIDATES: u64 = 128;

/// Candidates that a search keeps while it walks the graph.
pub(super) const SEARCH_CANDIDATES: u64 = 256;

/// Results of the quantised pass for each one asked for; their exact cosines then decide.
pub(super) const OVERSAMPLING: f64 = 2.0;

/// Results beyond the limit that are asked for, so that equal scores at the limit are ordered by us and not by the
/// engine, whose order of them changes with every rebuild.
pub(super) const TIES: usize = 16;

/// The most results that are looked at to find where a run of equal scores at the limit ends.
pub(super) const MOST_TIES: usize = 1_024;
