//! The bodies of files as scripts read them: kept by what they are, within a bound of bytes, and fetched from their
//! holder in batches.

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

/// What an entry takes beside its bytes.
const ENTRY_BYTES: u64 = 96;
/// So few that a share of the bound holds the largest body.
const SHARDS: usize = 8;
/// A batch is fetched in one call: large enough that calls cost little, small enough for the message limit and for what
/// a script keeps in hand.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_BODIES: usize = 256;
/// A body that is read, printed and hashed within microseconds.
const FAST_PATH_BYTES: usize = 64 * 1024;

/// Names a body: what has the same key has the same bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(pub(crate) [u8; 32]);

impl Key {
    /// The key of a body by itself.
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
    /// It is a hash itself, so its beginning will do.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (start, _) = self.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
        state.write_u64(u64::from_le_bytes(*start));
    }
}

/// Hashes keys, which are hashes, to themselves.
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

/// A body that its owner holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// Which body.
    pub(crate) key: Key,
    /// Its length.
    pub(crate) size: u64,
    /// Whose body it is.
    pub(crate) kind: Kind,
    /// The id of that.
    pub(crate) id: Uuid,
}

/// Where bodies are fetched.
pub(crate) trait Holder: fmt::Debug + Send + Sync {
    /// The bodies that are still there, in any order. It may leave out the last ones to keep its answer small; what it
    /// leaves out is asked for again.
    fn fetch<'a>(
        &'a self,
        call: &'a Call,
        wanted: &'a [Held],
    ) -> BoxFuture<'a, Result<Vec<(Key, Bytes)>, Error>>;
}

/// How much is kept in memory.
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
    /// So many bytes in all: three fifths for bodies, one for filters, which reach as far again, one for trees.
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

/// The bodies of this process; cheap to clone. All of it can be fetched again.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    kept: Arc<Kept>,
}

#[derive(Debug)]
struct Kept {
    bodies: Cache<Key, Bytes, ByLength, KeyHash>,
    filters: Filters,
}

/// What a body takes.
#[derive(Debug, Clone)]
struct ByLength;

impl Weighter<Key, Bytes> for ByLength {
    fn weight(&self, _: &Key, body: &Bytes) -> u64 {
        ENTRY_BYTES + u64::try_from(body.len()).unwrap_or(u64::MAX)
    }
}

impl Bodies {
    /// Nothing yet.
    pub(crate) fn new(memory: Memory) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(usize::try_from(memory.bodies / 8_192).unwrap_or(usize::MAX))
            .weight_capacity(memory.bodies)
            .shards(SHARDS)
            .build();
        let bodies = match options {
            Ok(options) => Cache::with_options(options, ByLength, KeyHash, DefaultLifecycle::default()),
            // The builder wants both capacities, and has them.
            Err(_) => Cache::with(0, memory.bodies, ByLength, KeyHash, DefaultLifecycle::default()),
        };
        Self { kept: Arc::new(Kept { bodies, filters: Filters::new(memory.filters) }) }
    }

    fn get(&self, key: &Key) -> Option<Bytes> {
        self.kept.bodies.get(key)
    }

    fn has(&self, key: &Key) -> bool {
        self.kept.bodies.peek(key).is_some()
    }

    /// Keeps a body. What is given may be a piece of a whole message, which would stay in memory with it: so it is
    /// copied.
    fn keep(&self, key: Key, body: &Bytes) -> Bytes {
        let body = Bytes::copy_from_slice(body);
        self.kept.filters.note(key, &body);
        self.kept.bodies.insert(key, body.clone());
        body
    }

    #[cfg(test)]
    fn bytes(&self) -> u64 {
        self.kept.bodies.weight()
    }
}

/// Reads bodies for one script, from a thread that may block, or at first from one that may not.
#[derive(Debug)]
pub(crate) struct Reader {
    bodies: Bodies,
    source: Source,
    ahead: Mutex<Ahead>,
    /// While it is on, only small bodies that are kept are read.
    memory_only: AtomicBool,
    /// Whether another body was wanted while it was on.
    lacked: AtomicBool,
}

/// Where a reader gets what is not kept.
#[derive(Debug, Clone)]
struct Source {
    holder: Arc<dyn Holder>,
    call: Call,
    cancelled: CancellationToken,
    runtime: Handle,
}

/// Ends when nobody waits for it any more.
type Fetching = AbortOnDropHandle<Result<Vec<(Key, Bytes)>, Error>>;

/// What a script is about to read.
#[derive(Debug, Default)]
struct Ahead {
    /// Announced and not asked for yet.
    announced: VecDeque<Held>,
    /// Fetched and not read yet.
    in_hand: HashMap<Key, Bytes, KeyHash>,
    under_way: Option<(HashSet<Key, KeyHash>, Fetching)>,
}

impl Reader {
    /// A reader that asks `holder` in the name of `call`, until it is cancelled.
    pub(crate) fn new(
        bodies: Bodies,
        holder: Arc<dyn Holder>,
        call: Call,
        cancelled: CancellationToken,
        runtime: Handle,
    ) -> Self {
        let source = Source { holder, call, cancelled, runtime };
        let (memory_only, lacked) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { bodies, source, ahead: Mutex::default(), memory_only, lacked }
    }

    /// From now on reads nothing that takes time, or everything. Nothing is lacked yet.
    pub(super) fn read_from_memory_only(&self, only: bool) {
        self.memory_only.store(only, Ordering::Relaxed);
        self.lacked.store(false, Ordering::Relaxed);
    }

    /// Whether a body was wanted and not read, since it would have taken time.
    pub(super) fn lacked(&self) -> bool {
        self.lacked.load(Ordering::Relaxed)
    }

    /// Tells in which order bodies are about to be read; what was announced before is forgotten.
    pub(crate) fn announce(&self, bodies: impl IntoIterator<Item = Held>) {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = Ahead { announced: bodies.into_iter().collect(), ..Ahead::default() };
    }

    /// A body.
    ///
    /// # Errors
    /// When it is gone, or its holder does not answer.
    pub(crate) fn read(&self, wanted: &Held) -> Result<Bytes, Unreadable> {
        let memory_only = self.memory_only.load(Ordering::Relaxed);
        match self.bodies.get(&wanted.key) {
            Some(body) if !memory_only || body.len() <= FAST_PATH_BYTES => Ok(body),
            _ if memory_only => {
                self.lacked.store(true, Ordering::Relaxed);
                Err(Unreadable::Unavailable)
            }
            _ => self.fetched(wanted),
        }
    }

    /// A filter for bodies that have at least one of these texts, whatever the case of their ASCII letters.
    pub(crate) fn text_filter(&self, texts: &[Vec<u8>]) -> TrigramFilter {
        self.bodies.kept.filters.text_filter(texts)
    }

    fn fetched(&self, wanted: &Held) -> Result<Bytes, Unreadable> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(body) = ahead.in_hand.remove(&wanted.key) {
            return Ok(body);
        }
        let asked = ahead.under_way.take_if(|(keys, _)| keys.contains(&wanted.key));
        let answer = match asked {
            Some((_, fetching)) => fetching,
            None => self.source.fetch(ahead.batch(wanted, &self.bodies)),
        };
        let next = ahead.next_batch(&self.bodies);
        if ahead.under_way.is_none() && !next.is_empty() {
            let keys = next.iter().map(|held| held.key).collect();
            ahead.under_way = Some((keys, self.source.fetch(next)));
        }
        self.take_in(&mut ahead, answer)?;
        if let Some(body) = ahead.in_hand.remove(&wanted.key) {
            return Ok(body);
        }
        // The tail of an answer may be cut: alone it is not.
        self.take_in(&mut ahead, self.source.fetch(vec![*wanted]))?;
        ahead.in_hand.remove(&wanted.key).ok_or(Unreadable::Gone)
    }

    fn take_in(&self, ahead: &mut Ahead, answer: Fetching) -> Result<(), Unreadable> {
        let fetched = self.source.wait(answer)?;
        // What an earlier batch left in hand was not read in its turn, and is kept or fetched again.
        ahead.in_hand.clear();
        ahead.in_hand.extend(fetched.iter().map(|(key, body)| (*key, self.bodies.keep(*key, body))));
        Ok(())
    }
}

impl Source {
    fn fetch(&self, wanted: Vec<Held>) -> Fetching {
        let source = self.clone();
        let task = self.runtime.spawn(async move { source.holder.fetch(&source.call, &wanted).await });
        AbortOnDropHandle::new(task)
    }

    fn wait(&self, answer: Fetching) -> Result<Vec<(Key, Bytes)>, Unreadable> {
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

impl Ahead {
    /// What to ask for together with this body: what is read after it.
    fn batch(&mut self, wanted: &Held, bodies: &Bodies) -> Vec<Held> {
        let mut batch = vec![*wanted];
        if let Some(place) = self.announced.iter().position(|held| held.key == wanted.key) {
            self.announced.drain(..=place);
            self.fill(&mut batch, bodies);
        }
        batch
    }

    /// What to ask for beforehand.
    fn next_batch(&mut self, bodies: &Bodies) -> Vec<Held> {
        let mut batch = Vec::new();
        if self.under_way.is_none() {
            self.fill(&mut batch, bodies);
        }
        batch
    }

    fn fill(&mut self, batch: &mut Vec<Held>, bodies: &Bodies) {
        let mut size: u64 = batch.iter().map(|held| held.size).sum();
        while let Some(next) = self.announced.front() {
            let is_known = bodies.has(&next.key) || batch.iter().any(|held| held.key == next.key);
            let is_full = batch.len() >= BATCH_BODIES || size + next.size > BATCH_BYTES;
            // A body beyond every batch is fetched alone, when it is read.
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
