//! Pack files of git: all objects of a shallow fetch, by id.
//!
//! The format is `gitformat-pack`. A pack is untrusted: counts, sizes and delta chains are bounded, and exceeding a bound is an error.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use flate2::bufread::ZlibDecoder;
use sha1::{Digest as _, Sha1};

use crate::{Fault, MAX_BODY_BYTES};

/// The id of an object.
pub(super) type Oid = [u8; 20];

const HEADER_BYTES: usize = 12;
const TRAILER_BYTES: usize = 20;
/// An entry takes at least its header and an empty zlib stream.
const MIN_ENTRY_BYTES: usize = 9;
/// Bytes of all objects, uncompressed, including deltas and their results.
const MAX_UNPACKED: u64 = 2 * 1024 * 1024 * 1024;
/// Bytes of the objects of one delta chain, uncompressed.
const MAX_HELD: usize = 256 * 1024 * 1024;
/// The limit of git itself.
const MAX_CHAIN: usize = 4_096;

const TOO_LARGE: Fault = Fault::broken("the repository is larger than what is read");
const BROKEN: Fault = Fault::broken("the server's pack of the repository is damaged");

/// The type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Commit,
    Tree,
    Blob,
    Tag,
}

#[derive(Debug, Clone, Copy)]
enum Stored {
    Whole(Kind),
    /// A delta against the entry at that offset.
    Offset(usize),
    /// A delta against the object with that id.
    Id(Oid),
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    stored: Stored,
    /// The uncompressed size of what is stored: for a delta, of its instructions.
    size: u64,
    /// The offset of its zlib stream.
    data: usize,
}

/// An indexed pack.
#[derive(Debug)]
pub(super) struct Pack {
    bytes: Bytes,
    slots: Vec<Slot>,
    by_place: HashMap<usize, usize>,
    by_id: HashMap<Oid, usize>,
    /// Bytes that were reconstructed so far.
    work: AtomicU64,
}

impl Pack {
    /// Parses a pack and computes the id of every object, except those that are too large for memory.
    pub(super) fn read(bytes: Bytes) -> Result<Self, Fault> {
        Self::read_within(bytes, MAX_UNPACKED)
    }

    fn read_within(bytes: Bytes, most_unpacked: u64) -> Result<Self, Fault> {
        let mut pack = Self {
            bytes,
            slots: Vec::new(),
            by_place: HashMap::new(),
            by_id: HashMap::new(),
            work: AtomicU64::new(0),
        };
        let unpacked = pack.scan(most_unpacked)?;
        pack.resolve(unpacked, most_unpacked)?;
        Ok(pack)
    }

    /// Bytes that were reconstructed so far: a few entries can cause much repeated work.
    pub(super) fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    /// An object; `None` if the pack lacks it.
    pub(super) fn object(&self, id: &Oid) -> Result<Option<(Kind, Vec<u8>)>, Fault> {
        let Some(mut index) = self.by_id.get(id).copied() else { return Ok(None) };
        let mut deltas: Vec<Vec<u8>> = Vec::new();
        let mut held = 0_usize;
        loop {
            let slot = self.slots.get(index).ok_or(BROKEN)?;
            let data = self.unpacked(slot)?;
            self.worked(data.len());
            held = held.saturating_add(data.len());
            if held > MAX_HELD {
                return Err(BROKEN);
            }
            index = match slot.stored {
                Stored::Whole(kind) => {
                    let apply = |base: Vec<u8>, delta: Vec<u8>| {
                        let whole = apply(&base, &delta)?;
                        self.worked(whole.len());
                        Ok(whole)
                    };
                    let whole = deltas.into_iter().rev().try_fold(data, apply)?;
                    return Ok(Some((kind, whole)));
                }
                Stored::Offset(place) => *self.by_place.get(&place).ok_or(BROKEN)?,
                Stored::Id(id) => *self.by_id.get(&id).ok_or(BROKEN)?,
            };
            deltas.push(data);
            if deltas.len() > MAX_CHAIN {
                return Err(BROKEN);
            }
        }
    }

    fn worked(&self, bytes: usize) {
        self.work.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Scans the entries; returns their total uncompressed size.
    fn scan(&mut self, most_unpacked: u64) -> Result<u64, Fault> {
        let end = self.bytes.len().checked_sub(TRAILER_BYTES).ok_or(BROKEN)?;
        let (body, trailer) = self.bytes.split_at_checked(end).ok_or(BROKEN)?;
        if Sha1::digest(body).as_slice() != trailer || body.get(..8) != Some(b"PACK\0\0\0\x02".as_slice()) {
            return Err(BROKEN);
        }
        let count = body.get(8..HEADER_BYTES).and_then(|count| count.try_into().ok()).map(u32::from_be_bytes);
        let count = usize::try_from(count.ok_or(BROKEN)?).map_err(|_| BROKEN)?;
        if count > end / MIN_ENTRY_BYTES {
            return Err(BROKEN);
        }
        self.slots.reserve(count);
        let (mut place, mut total) = (HEADER_BYTES, 0_u64);
        for index in 0..count {
            let slot = slot(body, place)?;
            total = total.saturating_add(slot.size);
            if total > most_unpacked {
                return Err(TOO_LARGE);
            }
            let packed = body.get(slot.data..).ok_or(BROKEN)?;
            let mut decoder = ZlibDecoder::new(packed);
            let mut id = Hasher::begin(slot.stored, slot.size);
            let mut limited = (&mut decoder).take(slot.size.saturating_add(1));
            let unpacked = std::io::copy(&mut limited, &mut id).map_err(|_| BROKEN)?;
            if unpacked != slot.size {
                return Err(BROKEN);
            }
            if let Some(id) = id.finish() {
                self.by_id.insert(id, index);
            }
            self.by_place.insert(place, index);
            self.slots.push(slot);
            place = slot.data + (packed.len() - decoder.into_inner().len());
        }
        if place == end { Ok(total) } else { Err(BROKEN) }
    }

    /// Resolves deltas depth first from their bases, so that only the current chain is in memory.
    fn resolve(&mut self, unpacked: u64, most_unpacked: u64) -> Result<(), Fault> {
        // A short delta can expand to a large object.
        let mut total = unpacked;
        let mut on_place: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut on_id: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (index, slot) in self.slots.iter().enumerate() {
            match slot.stored {
                Stored::Whole(_) => {}
                Stored::Offset(place) => {
                    on_place.entry(*self.by_place.get(&place).ok_or(BROKEN)?).or_default().push(index);
                }
                Stored::Id(id) => on_id.entry(id).or_default().push(index),
            }
        }
        let wholes: Vec<(usize, Oid)> = self.by_id.iter().map(|(id, index)| (*index, *id)).collect();
        for (index, id) in wholes {
            let mut waiting = |index: usize, id: &Oid| {
                let mut all = on_place.remove(&index).unwrap_or_default();
                all.extend(on_id.remove(id).unwrap_or_default());
                all
            };
            let children = waiting(index, &id);
            let slot = *self.slots.get(index).ok_or(BROKEN)?;
            let Stored::Whole(kind) = slot.stored else { continue };
            if children.is_empty() || slot.size > MAX_BODY_BYTES as u64 {
                continue;
            }
            let mut chain = vec![(self.unpacked(&slot)?, children)];
            while let Some((base, children)) = chain.last_mut() {
                let Some(child) = children.pop() else {
                    chain.pop();
                    continue;
                };
                let slot = self.slots.get(child).ok_or(BROKEN)?;
                if slot.size > MAX_BODY_BYTES as u64 {
                    continue;
                }
                let delta = self.unpacked(slot)?;
                let target = target_size(&delta)?;
                if target > MAX_BODY_BYTES {
                    continue;
                }
                total = total.saturating_add(target as u64);
                if total > most_unpacked {
                    return Err(TOO_LARGE);
                }
                let whole = apply(base, &delta)?;
                let id = hash(kind, &whole);
                self.by_id.insert(id, child);
                let held: usize = chain.iter().map(|(data, _)| data.len()).sum();
                if chain.len() >= MAX_CHAIN || held.saturating_add(whole.len()) > MAX_HELD {
                    return Err(BROKEN);
                }
                let children = waiting(child, &id);
                if !children.is_empty() {
                    chain.push((whole, children));
                }
            }
        }
        Ok(())
    }

    fn unpacked(&self, slot: &Slot) -> Result<Vec<u8>, Fault> {
        let size = usize::try_from(slot.size).map_err(|_| BROKEN)?;
        if size > MAX_BODY_BYTES {
            return Err(Fault::TooLarge(slot.size));
        }
        let packed = self.bytes.get(slot.data..).ok_or(BROKEN)?;
        let mut data = Vec::with_capacity(size);
        ZlibDecoder::new(packed).take(slot.size).read_to_end(&mut data).map_err(|_| BROKEN)?;
        if data.len() == size { Ok(data) } else { Err(BROKEN) }
    }
}

/// Parses the entry header at that offset.
fn slot(pack: &[u8], place: usize) -> Result<Slot, Fault> {
    let mut data = place;
    let mut next = || {
        let byte = pack.get(data).copied().ok_or(BROKEN);
        data += 1;
        byte
    };
    let mut byte = next()?;
    let kind = (byte >> 4) & 7;
    let (mut size, mut shift) = (u64::from(byte & 15), 4_u32);
    while byte & 0x80 != 0 {
        byte = next()?;
        let more = u64::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 57).ok_or(BROKEN)?;
        size |= more;
        shift += 7;
    }
    let stored = match kind {
        1 => Stored::Whole(Kind::Commit),
        2 => Stored::Whole(Kind::Tree),
        3 => Stored::Whole(Kind::Blob),
        4 => Stored::Whole(Kind::Tag),
        6 => {
            let mut byte = next()?;
            let mut back = usize::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = next()?;
                back = back.checked_add(1).and_then(|back| back.checked_mul(128)).ok_or(BROKEN)?;
                back |= usize::from(byte & 0x7f);
            }
            let base = place.checked_sub(back).filter(|_| back > 0).ok_or(BROKEN)?;
            Stored::Offset(base)
        }
        7 => {
            let id = pack.get(data..data + TRAILER_BYTES).and_then(|id| id.try_into().ok()).ok_or(BROKEN)?;
            data += TRAILER_BYTES;
            Stored::Id(id)
        }
        _ => return Err(BROKEN),
    };
    Ok(Slot { stored, size, data })
}

/// Hashes a whole object while it is decompressed.
enum Hasher {
    Of(Box<Sha1>),
    Nothing,
}

impl Hasher {
    fn begin(stored: Stored, size: u64) -> Self {
        match stored {
            Stored::Whole(kind) => Self::Of(Box::new(hasher(kind, size))),
            Stored::Offset(_) | Stored::Id(_) => Self::Nothing,
        }
    }

    fn finish(self) -> Option<Oid> {
        match self {
            Self::Of(hasher) => Some(hasher.finalize().into()),
            Self::Nothing => None,
        }
    }
}

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Self::Of(hasher) = self {
            hasher.update(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn hasher(kind: Kind, size: u64) -> Sha1 {
    let name = match kind {
        Kind::Commit => "commit",
        Kind::Tree => "tree",
        Kind::Blob => "blob",
        Kind::Tag => "tag",
    };
    Sha1::new_with_prefix(format!("{name} {size}\0"))
}

fn hash(kind: Kind, whole: &[u8]) -> Oid {
    let mut hasher = hasher(kind, u64::try_from(whole.len()).unwrap_or(u64::MAX));
    hasher.update(whole);
    hasher.finalize().into()
}

/// Reads the instructions of a delta.
struct Instructions<'a>(&'a [u8]);

impl<'a> Instructions<'a> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.0.split_first().ok_or(BROKEN)?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(BROKEN)?;
        self.0 = rest;
        Ok(taken)
    }

    fn size(&mut self) -> Result<usize, Fault> {
        let (mut size, mut shift) = (0_usize, 0_u32);
        loop {
            let byte = self.byte()?;
            size |= usize::from(byte & 0x7f).checked_shl(shift).filter(|_| shift < 57).ok_or(BROKEN)?;
            if byte & 0x80 == 0 {
                return Ok(size);
            }
            shift += 7;
        }
    }

    /// A number of which only the nonzero bytes are stored, as indicated by `bits`.
    fn sparse(&mut self, bits: u8, most: u32) -> Result<usize, Fault> {
        let mut number = 0;
        for index in 0..most {
            if bits & (1 << index) != 0 {
                number |= usize::from(self.byte()?) << (8 * index);
            }
        }
        Ok(number)
    }
}

fn target_size(delta: &[u8]) -> Result<usize, Fault> {
    let mut instructions = Instructions(delta);
    instructions.size()?;
    instructions.size()
}

/// Applies a delta to its base.
fn apply(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, Fault> {
    const MAX_COPY_BYTES: usize = 0x1_0000;
    let mut instructions = Instructions(delta);
    let (from, to) = (instructions.size()?, instructions.size()?);
    if from != base.len() || to > MAX_BODY_BYTES {
        return Err(BROKEN);
    }
    let mut whole = Vec::with_capacity(to);
    while !instructions.0.is_empty() {
        let byte = instructions.byte()?;
        let piece = if byte & 0x80 != 0 {
            let offset = instructions.sparse(byte & 0x0f, 4)?;
            let size = match instructions.sparse((byte >> 4) & 7, 3)? {
                0 => MAX_COPY_BYTES,
                size => size,
            };
            base.get(offset..offset.saturating_add(size)).ok_or(BROKEN)?
        } else if byte != 0 {
            instructions.take(usize::from(byte))?
        } else {
            return Err(BROKEN);
        };
        if whole.len().saturating_add(piece.len()) > to {
            return Err(BROKEN);
        }
        whole.extend_from_slice(piece);
    }
    if whole.len() == to { Ok(whole) } else { Err(BROKEN) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn git(folder: &std::path::Path, arguments: &[&str]) -> Option<Vec<u8>> {
        let mut command = Command::new("git");
        command.current_dir(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder).args(arguments);
        let output = command.output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(output.stdout)
    }

    /// A pack with delta chains, created by git, and its contents.
    fn real_pack() -> Option<(Bytes, String)> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        git(at, &["init", "-q"])?;
        let lines: Vec<String> = (0..2_000).map(|number| format!("line {number} of a long text\n")).collect();
        for round in 0..30 {
            let mut changed = lines.clone();
            changed[round * 50] = format!("changed in round {round}\n");
            std::fs::write(at.join("long.txt"), changed.concat()).unwrap();
            std::fs::write(at.join(format!("small-{round}.txt")), format!("{round}")).unwrap();
            git(at, &["add", "."])?;
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"];
            git(at, &[&identity[..], &["commit", "-q", "-m", "round"]].concat())?;
        }
        git(at, &["repack", "-adfq", "--depth=20"])?;
        let mut packs =
            std::fs::read_dir(at.join(".git/objects/pack")).unwrap().map(|entry| entry.unwrap().path());
        let pack = packs.find(|path| path.extension().is_some_and(|ending| ending == "pack")).unwrap();
        let listed = git(at, &["cat-file", "--batch-check", "--batch-all-objects"])?;
        Some((std::fs::read(pack).unwrap().into(), String::from_utf8(listed).unwrap()))
    }

    #[test]
    fn a_pack_of_git_is_read_whole() {
        let Some((bytes, listed)) = real_pack() else {
            eprintln!("skipped: git is not installed");
            return;
        };
        let pack = Pack::read(bytes).unwrap();
        assert!(
            pack.slots.iter().any(|slot| !matches!(slot.stored, Stored::Whole(_))),
            "there are differences"
        );
        assert_eq!(pack.by_id.len(), listed.lines().count());
        for line in listed.lines() {
            let (id, size) = (line.split(' ').next().unwrap(), line.rsplit(' ').next().unwrap());
            let id: Oid = hex::decode(id).unwrap().try_into().unwrap();
            let (kind, data) = pack.object(&id).unwrap().unwrap();
            assert_eq!(data.len().to_string(), size);
            assert_eq!(hash(kind, &data), id);
        }
        assert_eq!(pack.object(&[7; 20]), Ok(None));
        assert!(pack.work() > 0);
    }

    #[test]
    fn what_differences_make_counts_as_unpacked() {
        let Some((bytes, listed)) = real_pack() else {
            eprintln!("skipped: git is not installed");
            return;
        };
        let made: u64 =
            listed.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        let stored: u64 = Pack::read(bytes.clone()).unwrap().slots.iter().map(|slot| slot.size).sum();
        assert!(stored < made / 2, "most of it is differences");
        assert!(Pack::read_within(bytes.clone(), made + stored).is_ok());
        assert_eq!(Pack::read_within(bytes, made / 2).map(drop), Err(TOO_LARGE));
    }

    #[test]
    fn a_damaged_pack_is_an_error() {
        let Some((bytes, _)) = real_pack() else {
            eprintln!("skipped: git is not installed");
            return;
        };
        let end = bytes.len() - TRAILER_BYTES;
        for place in (0..end).step_by(61) {
            let mut odd = bytes[..end].to_vec();
            odd[place] ^= 0x55;
            let trailer = Sha1::digest(&odd);
            odd.extend_from_slice(&trailer);
            // The checksum is valid, as a malicious server would send it. The damage may still yield a valid pack of other objects.
            drop(Pack::read(odd.into()));
        }
        assert!(Pack::read(bytes.slice(..end)).is_err());
        assert!(Pack::read(Bytes::new()).is_err());
    }

    proptest! {
        #[test]
        fn no_difference_does_harm(base in proptest::collection::vec(any::<u8>(), 0..300),
                                   delta in proptest::collection::vec(any::<u8>(), 0..100)) {
            drop(apply(&base, &delta));
            let mut sized = vec![u8::try_from(base.len() % 128).unwrap(), 100];
            sized.extend(&delta);
            drop(apply(&base[..base.len() % 128], &sized));
        }

        #[test]
        fn no_head_does_harm(bytes in proptest::collection::vec(any::<u8>(), 0..60), place in 0_usize..60) {
            drop(slot(&bytes, place));
        }
    }
}
