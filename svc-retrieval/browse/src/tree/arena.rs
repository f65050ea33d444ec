//! The nodes of a tree, in pieces that are shared copy-on-write.
//!
//! A tree in use by scripts is immutable: the next version is a clone that costs as much as its differences.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use cairn_shell::tree::Node;
use uuid::Uuid;

/// Slots of a piece: few enough that copying one costs microseconds.
const PIECE: usize = 128;
/// Pieces of the index by id.
const SHARDS: usize = 256;

/// A list with copy-on-write pieces.
#[derive(Debug, Clone)]
pub(super) struct Pieces<T> {
    pieces: Vec<Arc<Vec<T>>>,
    length: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { pieces: Vec::new(), length: 0 }
    }
}

impl<T: Clone> Pieces<T> {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    /// Mutable access; a shared piece is copied first.
    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        Arc::make_mut(self.pieces.get_mut(place / PIECE)?).get_mut(place % PIECE)
    }

    pub(super) fn push(&mut self, item: T) {
        match self.pieces.last_mut().filter(|piece| piece.len() < PIECE) {
            Some(piece) => Arc::make_mut(piece).push(item),
            None => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(item);
                self.pieces.push(Arc::new(piece));
            }
        }
        self.length += 1;
    }
}

/// Ids end with random bytes, so these serve as the hash.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IdHash;

/// Folds the bytes of an id.
#[derive(Debug, Default)]
pub(super) struct IdHasher(u64);

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher::default()
    }
}

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
}

/// The nodes by id.
#[derive(Debug, Clone)]
pub(super) struct Index {
    shards: Vec<Arc<HashMap<Uuid, Node, IdHash>>>,
}

impl Default for Index {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| Arc::default()).collect() }
    }
}

impl Index {
    fn shard(id: Uuid) -> usize {
        id.as_bytes().last().map_or(0, |byte| usize::from(*byte)) % SHARDS
    }

    pub(super) fn get(&self, id: Uuid) -> Option<Node> {
        self.shards.get(Self::shard(id))?.get(&id).copied()
    }

    pub(super) fn insert(&mut self, id: Uuid, node: Node) {
        if let Some(shard) = self.shards.get_mut(Self::shard(id)) {
            Arc::make_mut(shard).insert(id, node);
        }
    }

    pub(super) fn remove(&mut self, id: Uuid) {
        if let Some(shard) = self.shards.get_mut(Self::shard(id)) {
            Arc::make_mut(shard).remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_not_changed_with_the_other() {
        let mut first = Pieces::default();
        (0..300).for_each(|number| first.push(number));
        let mut second = first.clone();
        *second.get_mut(200).unwrap() = -1;
        second.push(300);
        assert_eq!((first.get(200), first.len(), first.get(300)), (Some(&200), 300, None));
        assert_eq!((second.get(200), second.len(), second.get(300)), (Some(&-1), 301, Some(&300)));
    }

    #[test]
    fn ids_are_found_until_they_go() {
        let mut index = Index::default();
        let ids: Vec<Uuid> = (0..1_000).map(Uuid::from_u128).collect();
        for (number, id) in (0..).zip(&ids) {
            index.insert(*id, Node(number));
        }
        let before = index.clone();
        index.remove(ids[7]);
        assert_eq!(
            (before.get(ids[7]), index.get(ids[7]), index.get(ids[8])),
            (Some(Node(7)), None, Some(Node(8)))
        );
    }
}
