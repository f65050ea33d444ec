//! The constants of the engine on Qdrant, with their reasons.

use std::time::Duration;

/// Raised on incompatible changes of points or collection settings: it is part of the collection's name, so that incompatible versions
/// of Cairn never share one.
pub(super) const LAYOUT: u32 = 4;

/// The first server version that computes idf over a given corpus: major and minor.
pub(super) const MIN_SERVER_VERSION: (u32, u32) = (1, 19);

/// Timeouts of a call and of connecting; a search waits at most for both.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(10);
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Interval and timeout of HTTP/2 keep-alive pings: a machine that disappears does not close its connections, and the kernel would
/// retransmit for a quarter of an hour.
pub(super) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
pub(super) const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Concurrent count calls.
pub(super) const COUNT_CONCURRENCY: usize = 16;

/// Approximate bytes of points per call: Qdrant writes a call to its WAL at once, and limits REST requests to 32 MiB.
pub(super) const BYTES_PER_CALL: usize = 4 << 20;

/// Documents per deletion of stale chunks. Each adds two conditions to the filter.
pub(super) const DOCUMENTS_PER_CLEANUP: usize = 100;

/// Points per page of a scroll.
pub(super) const PAGE: u32 = 256;

/// Chunks that completions are sampled from; more would only add rare words.
pub(super) const COMPLETION_CHUNKS: u32 = 256;

/// The longest indexed prefix of a word. Longer prefixes are matched by this one, and then checked here.
pub(super) const MAX_PREFIX_CHARS: u64 = 12;

/// The parameters of BM25, as in the embedded index.
pub(super) const K1: f32 = 1.2;
pub(super) const B: f32 = 0.75;

/// The assumed average number of tokens per chunk, including headings and names. Chunks of cranfield, package READMEs, our own docs,
/// cacm and cosqa have means of 164, 121, 154, 104 and 48. An error of a half changes no weight by more than a third, and those of
/// one collection alike.
pub(super) const AVERAGE_LENGTH: f32 = 120.0;

/// How long fetched languages of a workspace are cached; those that this process writes are added at once.
pub(super) const LANGUAGE_CACHE_TTL: Duration = Duration::from_secs(30);

/// The limit of a language facet: more than there are languages.
pub(super) const MAX_LANGUAGES: u64 = 32;

/// HNSW parameters `payload_m` and `ef_construct` of the graph of a workspace. There is no graph over all workspaces (`m` = 0), since
/// no search crosses them.
pub(super) const GRAPH_EDGES: u64 = 16;
pub(super) const GRAPH_CANDIDATES: u64 = 128;

/// HNSW parameter `ef` of a search.
pub(super) const SEARCH_CANDIDATES: u64 = 256;

/// Results of the quantised pass per requested one; they are rescored exactly.
pub(super) const OVERSAMPLING: f64 = 2.0;

/// Additional results beyond the limit, so that ties at the limit are broken by us and not by Qdrant, whose order of ties changes with
/// every rebuild.
pub(super) const TIES: usize = 16;

/// The maximum number of results that are requested to resolve ties at the limit.
pub(super) const MAX_TIES: usize = 1_024;
