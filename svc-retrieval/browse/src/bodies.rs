//! A cache of the bodies of files, for scripts: content-addressed, bounded in bytes, and filled in batches with read-ahead.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use cairn_chassis::call::Call;
use cairn_proto::feed::v1::Kind;
use cairn_shell::tree::Unreadable;
use futures::future::BoxFuture;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::trigrams::{Filters, TrigramFilter};
use crate::error::Error;

/// The overhead of an entry, in bytes.
const ENTRY_BYTES: u64 = 96;
/// Few enough that one shard has room for the largest body.
const SHARDS: usize = 8;
/// Bytes of a batch, which is one call: large enough to amortize the call, small enough for the message limit and for the memory
/// of a script.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_BODIES: usize = 256;
/// The largest body on the fast path: read, printed and hashed within microseconds.
const FAST_PATH_BYTES: usize = 64 * 1024;

/// The content hash of a body: equal keys, equal bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl Key {
    /// The key of a body.
    #[cfg(test)]
    pub(crate) fn of(body: &[u8]) -> Self {
        Self(*blake3::hash(body).as_bytes())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl Hash for Key {
    /// A key is a hash already, so its first 8 bytes are used.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (start, _) = self.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
        state.write_u64(u64::from_le_bytes(*start));
    }
}

/// Hashes keys, which are hashes already, to their first bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyHash;

/// Holds the one number that a [`Key`] writes.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(u64);

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher::default()
    }
}

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// A reference to a body at its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyRef {
    /// Which body.
    pub(crate) key: Key,
    /// Its length.
    pub(crate) size: u64,
    /// The kind of the document that it belongs to.
    pub(crate) kind: Kind,
    /// The id of that document.
    pub(crate) id: Uuid,
}

/// Fetches bodies from their owner.
pub(crate) trait BodyFetcher: fmt::Debug + Send + Sync {
    /// The bodies that still exist, in any order. The answer may be cut at the end to keep it small; the rest is requested
    /// again.
    fn fetch<'a>(
        &'a self,
        call: &'a Call,
        wanted: &'a [BodyRef],
    ) -> BoxFuture<'a, Result<Vec<(Key, Bytes)>, Error>>;
}

/// Limits of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of bodies.
    pub bodies: u64,
    /// Bytes of the filters by which a search for a text leaves bodies out.
    pub filters: u64,
    /// Bytes of trees.
    pub trees: u64,
}

impl Memory {
    /// Divides a budget: three fifths for bodies, one for filters (which cover far more bodies than fit), one for trees.
    pub const fn of(bytes: u64) -> Self {
        let fifth = bytes / 5;
        Self { bodies: fifth * 3, filters: fifth, trees: fifth }
    }
}

impl Default for Memory {
    /// Room for some workspaces of usual size.
    fn default() -> Self {
        Self::of(320 << 20)
    }
}

/// The cache of bodies of this process; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    caches: Arc<Caches>,
}

#[derive(Debug)]
struct Caches {
    bodies: Cache<Key, Bytes, ByteWeighter, KeyHash>,
    filters: Filters,
}

/// Weighs a body by its length.
#[derive(Debug, Clone)]
struct ByteWeighter;

impl Weighter<Key, Bytes> for ByteWeighter {
    fn weight(&self, _: &Key, body: &Bytes) -> u64 {
        ENTRY_BYTES + u64::try_from(body.len()).unwrap_or(u64::MAX)
    }
}

impl Bodies {
    /// Empty caches.
    pub(crate) fn new(memory: Memory) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(usize::try_from(memory.bodies / 8_192).unwrap_or(usize::MAX))
            .weight_capacity(memory.bodies)
            .shards(SHARDS)
            .build();
        let bodies = match options {
            Ok(options) => Cache::with_options(options, ByteWeighter, KeyHash, DefaultLifecycle::default()),
            // Unreachable: the builder fails only without these capacities.
            Err(_) => Cache::with(0, memory.bodies, ByteWeighter, KeyHash, DefaultLifecycle::default()),
        };
        Self { caches: Arc::new(Caches { bodies, filters: Filters::new(memory.filters) }) }
    }

    fn get(&self, key: &Key) -> Option<Bytes> {
        self.caches.bodies.get(key)
    }

    fn has(&self, key: &Key) -> bool {
        self.caches.bodies.peek(key).is_some()
    }

    /// Inserts a body. It is copied, since it may be a slice of a whole message, which it would keep alive.
    fn insert(&self, key: Key, body: &Bytes) -> Bytes {
        let body = Bytes::copy_from_slice(body);
        self.caches.filters.note(key, &body);
        self.caches.bodies.insert(key, body.clone());
        body
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.caches.bodies.weight()
    }
}

/// Reads bodies for one script: on a blocking thread, or, in memory-only mode, on an async one.
#[derive(Debug)]
pub(crate) struct Reader {
    bodies: Bodies,
    source: Source,
    read_ahead: Mutex<ReadAhead>,
    /// In this mode, only small cached bodies are read.
    memory_only: AtomicBool,
    /// Whether another body was requested in memory-only mode.
    missed: AtomicBool,
}

/// Where a reader fetches bodies that are not cached.
#[derive(Debug, Clone)]
struct Source {
    holder: Arc<dyn BodyFetcher>,
    call: Call,
    cancelled: CancellationToken,
    runtime: Handle,
}

/// A fetch in flight; aborted when it is dropped.
type FetchTask = AbortOnDropHandle<Result<Vec<(Key, Bytes)>, Error>>;

/// The read-ahead of a script.
#[derive(Debug, Default)]
struct ReadAhead {
    /// Announced and not requested yet.
    announced: VecDeque<BodyRef>,
    /// Fetched and not read yet.
    unread: HashMap<Key, Bytes, KeyHash>,
    in_flight: Option<(HashSet<Key, KeyHash>, FetchTask)>,
}

impl Reader {
    /// A reader that fetches from `holder` on behalf of `call`, until it is cancelled.
    pub(crate) fn new(
        bodies: Bodies,
        holder: Arc<dyn BodyFetcher>,
        call: Call,
        cancelled: CancellationToken,
        runtime: Handle,
    ) -> Self {
        let source = Source { holder, call, cancelled, runtime };
        let (memory_only, missed) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { bodies, source, read_ahead: Mutex::default(), memory_only, missed }
    }

    /// Switches memory-only mode on or off, and resets [`Self::missed`].
    pub(super) fn read_from_memory_only(&self, only: bool) {
        self.memory_only.store(only, Ordering::Relaxed);
        self.missed.store(false, Ordering::Relaxed);
    }

    /// Whether a body was requested in memory-only mode that is not in memory.
    pub(super) fn missed(&self) -> bool {
        self.missed.load(Ordering::Relaxed)
    }

    /// Announces the order in which bodies will be read; replaces an earlier announcement.
    pub(crate) fn announce(&self, bodies: impl IntoIterator<Item = BodyRef>) {
        let mut read_ahead = self.read_ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *read_ahead = ReadAhead { announced: bodies.into_iter().collect(), ..ReadAhead::default() };
    }

    /// A body.
    ///
    /// # Errors
    /// When it no longer exists, or its owner does not answer.
    pub(crate) fn read(&self, wanted: &BodyRef) -> Result<Bytes, Unreadable> {
        let memory_only = self.memory_only.load(Ordering::Relaxed);
        match self.bodies.get(&wanted.key) {
            Some(body) if !memory_only || body.len() <= FAST_PATH_BYTES => Ok(body),
            _ if memory_only => {
                self.missed.store(true, Ordering::Relaxed);
                Err(Unreadable::Unavailable)
            }
            _ => self.fetched(wanted),
        }
    }

    /// A filter for bodies that have at least one of these texts, whatever the case of their ASCII letters.
    pub(crate) fn text_filter(&self, texts: &[Vec<u8>]) -> TrigramFilter {
        self.bodies.caches.filters.text_filter(texts)
    }

    fn fetched(&self, wanted: &BodyRef) -> Result<Bytes, Unreadable> {
        let mut read_ahead = self.read_ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = read_ahead.unread.remove(&wanted.key) {
            return Ok(body);
        }
        let asked = read_ahead.in_flight.take_if(|(keys, _)| keys.contains(&wanted.key));
        let answer = match asked {
            Some((_, fetching)) => fetching,
            None => self.source.fetch(read_ahead.batch(wanted, &self.bodies)),
        };
        let next = read_ahead.next_batch(&self.bodies);
        if read_ahead.in_flight.is_none() && !next.is_empty() {
            let keys = next.iter().map(|held| held.key).collect();
            read_ahead.in_flight = Some((keys, self.source.fetch(next)));
        }
        self.receive(&mut read_ahead, answer)?;
        if let Some(body) = read_ahead.unread.remove(&wanted.key) {
            return Ok(body);
        }
        // The answer was cut before this body; requested alone it is not.
        self.receive(&mut read_ahead, self.source.fetch(vec![*wanted]))?;
        read_ahead.unread.remove(&wanted.key).ok_or(Unreadable::Gone)
    }

    fn receive(&self, read_ahead: &mut ReadAhead, answer: FetchTask) -> Result<(), Unreadable> {
        let fetched = self.source.wait(answer)?;
        // Bodies of an earlier batch that were skipped are in the cache, or fetched again.
        read_ahead.unread.clear();
        read_ahead.unread.extend(fetched.iter().map(|(key, body)| (*key, self.bodies.insert(*key, body))));
        Ok(())
    }
}

impl Source {
    fn fetch(&self, wanted: Vec<BodyRef>) -> FetchTask {
        let source = self.clone();
        let task = self.runtime.spawn(async move { source.holder.fetch(&source.call, &wanted).await });
        AbortOnDropHandle::new(task)
    }

    fn wait(&self, answer: FetchTask) -> Result<Vec<(Key, Bytes)>, Unreadable> {
        let answered = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.cancelled.cancelled() => None,
                answered = tokio::time::timeout(self.call.remaining(), answer) => answered.ok(),
            }
        });
        match answered {
            Some(Ok(Ok(fetched))) => Ok(fetched),
            Some(Ok(Err(error))) => {
                tracing::debug!(%error, "bodies cannot be fetched");
                Err(if error.is_refusal() { Unreadable::Gone } else { Unreadable::Unavailable })
            }
            Some(Err(_)) | None => Err(Unreadable::Unavailable),
        }
    }
}

impl ReadAhead {
    /// The batch to fetch with this body: those that are read after it.
    fn batch(&mut self, wanted: &BodyRef, bodies: &Bodies) -> Vec<BodyRef> {
        let mut batch = vec![*wanted];
        if let Some(place) = self.announced.iter().position(|held| held.key == wanted.key) {
            self.announced.drain(..=place);
            self.fill(&mut batch, bodies);
        }
        batch
    }

    /// The next batch to prefetch.
    fn next_batch(&mut self, bodies: &Bodies) -> Vec<BodyRef> {
        let mut batch = Vec::new();
        if self.in_flight.is_none() {
            self.fill(&mut batch, bodies);
        }
        batch
    }

    fn fill(&mut self, batch: &mut Vec<BodyRef>, bodies: &Bodies) {
        let mut size: u64 = batch.iter().map(|held| held.size).sum();
        while let Some(next) = self.announced.front() {
            let is_known = bodies.has(&next.key) || batch.iter().any(|held| held.key == next.key);
            let is_full = batch.len() >= BATCH_BODIES || size + next.size > BATCH_BYTES;
            // A body larger than a batch is fetched alone, when it is read.
            if !is_known && is_full && !(batch.is_empty() && next.size > BATCH_BYTES) {
                return;
            }
            let Some(next) = self.announced.pop_front() else { return };
            if !is_known && next.size <= BATCH_BYTES {
                size += next.size;
                batch.push(next);
            }
        }
    }
}

#[cfg(test)]
mod tests;
