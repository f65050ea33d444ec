//! The files of a commit.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::pack::{Kind, Oid, Pack};
use crate::filter::Filter;
use crate::{Fault, ItemFault};

const MAX_FILES: usize = 1_000_000;
const MAX_DEPTH: usize = 256;
/// Bytes of the paths of all files of a commit and of the queued folders.
const MAX_PATH_BYTES: usize = 192 * 1024 * 1024;
/// Bytes of reconstructed trees: a tree at several paths counts for each of them.
const MAX_WORK: u64 = 16 * 1024 * 1024 * 1024;
const BROKEN: Fault = Fault::broken("the repository's commit cannot be read");

/// Fetched commits with their pack.
#[derive(Debug)]
pub(super) struct Snapshot {
    pack: Pack,
    commits: Vec<Commit>,
}

/// The files of one commit.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) id: Oid,
    pub(super) files: BTreeMap<String, Oid>,
    pub(super) faults: Vec<ItemFault>,
}

impl Snapshot {
    /// Reads a pack with these commits.
    pub(super) fn read(pack: Bytes, commits: &[Oid], within: &str, filter: &Filter) -> Result<Self, Fault> {
        Self::read_with(pack, commits, within, filter, MAX_WORK)
    }

    fn read_with(
        pack: Bytes,
        commits: &[Oid],
        within: &str,
        filter: &Filter,
        most_work: u64,
    ) -> Result<Self, Fault> {
        let pack = Pack::read(pack)?;
        let commits = commits
            .iter()
            .map(|id| commit(&pack, *id, within, filter, most_work))
            .collect::<Result<_, _>>()?;
        Ok(Self { pack, commits })
    }

    pub(super) fn commit(&self, id: &Oid) -> Option<&Commit> {
        self.commits.iter().find(|commit| commit.id == *id)
    }

    /// The bytes of a file; `None` if it was too large to unpack.
    pub(super) fn file(&self, id: &Oid) -> Result<Option<Vec<u8>>, Fault> {
        match self.pack.object(id) {
            Ok(Some((Kind::Blob, bytes))) => Ok(Some(bytes)),
            Ok(Some(_)) => Err(BROKEN),
            Ok(None) | Err(Fault::TooLarge(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

fn commit(pack: &Pack, id: Oid, within: &str, filter: &Filter, most_work: u64) -> Result<Commit, Fault> {
    let Some((Kind::Commit, text)) = pack.object(&id)? else { return Err(BROKEN) };
    let tree =
        text.strip_prefix(b"tree ").and_then(|text| super::wire::oid(text.get(..40)?)).ok_or(BROKEN)?;
    let mut commit = Commit { id, files: BTreeMap::new(), faults: Vec::new() };
    // The path of the current folder; a tree may occur at several paths, but not within itself.
    let mut waiting = vec![(String::new(), tree, 0)];
    let (mut seen, mut path_bytes) = (0_usize, 0_usize);
    let too_much = || Fault::broken("the repository has more files than are read of one");
    while let Some((folder, tree, depth)) = waiting.pop() {
        if pack.work() > most_work {
            return Err(too_much());
        }
        let Some((Kind::Tree, entries)) = pack.object(&tree)? else { return Err(BROKEN) };
        let mut rest = entries.as_slice();
        while !rest.is_empty() {
            seen += 1;
            if seen > MAX_FILES || depth > MAX_DEPTH {
                return Err(too_much());
            }
            let (mode, name, id) = entry(&mut rest)?;
            let Some(path) = path(&folder, name) else {
                commit.faults.push(ItemFault::unusable_id(&String::from_utf8_lossy(name)));
                continue;
            };
            path_bytes = path_bytes.saturating_add(path.len());
            if path_bytes > MAX_PATH_BYTES {
                return Err(too_much());
            }
            match mode {
                b"40000" | b"040000" if is_related(&path, within) && !filter.leaves_out_folder(&path) => {
                    waiting.push((path, id, depth + 1));
                }
                b"100644" | b"100755" | b"100664" if is_below(&path, within) && filter.takes(&path) => {
                    commit.files.insert(path, id);
                }
                // Symbolic links, submodules, and files that are not selected.
                _ => {}
            }
        }
    }
    Ok(commit)
}

/// One entry of a tree: `mode name\0id`.
fn entry<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8], Oid), Fault> {
    let space = rest.iter().position(|byte| *byte == b' ').ok_or(BROKEN)?;
    let (mode, behind) = rest.split_at_checked(space).ok_or(BROKEN)?;
    let behind = behind.get(1..).ok_or(BROKEN)?;
    let end = behind.iter().position(|byte| *byte == 0).ok_or(BROKEN)?;
    let (name, behind) = behind.split_at_checked(end).ok_or(BROKEN)?;
    let (id, behind) = behind.get(1..).and_then(|behind| behind.split_at_checked(20)).ok_or(BROKEN)?;
    *rest = behind;
    Ok((mode, name, id.try_into().map_err(|_| BROKEN)?))
}

/// The path of an entry, if its name is valid.
fn path(folder: &str, name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    if matches!(name, "" | "." | "..") || name.contains(['/', '\\']) {
        return None;
    }
    let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
    (path.len() <= crate::ExternalId::MAX_BYTES).then_some(path)
}

fn is_below(path: &str, within: &str) -> bool {
    within.is_empty() || path.strip_prefix(within).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether one folder is the other, or an ancestor or a descendant of it.
fn is_related(folder: &str, within: &str) -> bool {
    folder == within || is_below(folder, within) || is_below(within, folder)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use serde_json::json;
    use sha1::{Digest as _, Sha1};

    use super::*;
    use crate::filter::filter;

    /// Builds packs that git would never create.
    #[derive(Default)]
    struct Objects {
        count: u32,
        entries: Vec<u8>,
    }

    impl Objects {
        fn add(&mut self, kind: u8, name: &str, data: &[u8]) -> Oid {
            self.count += 1;
            let mut size = data.len();
            let mut byte = (kind << 4) | u8::try_from(size & 15).unwrap();
            size >>= 4;
            while size > 0 {
                self.entries.push(byte | 0x80);
                byte = u8::try_from(size & 0x7f).unwrap();
                size >>= 7;
            }
            self.entries.push(byte);
            let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
            packed.write_all(data).unwrap();
            self.entries.extend(packed.finish().unwrap());
            Sha1::new_with_prefix(format!("{name} {}\0", data.len())).chain_update(data).finalize().into()
        }

        fn tree(&mut self, entries: &[(&str, String, Oid)]) -> Oid {
            let mut data = Vec::new();
            for (mode, name, id) in entries {
                data.extend_from_slice(format!("{mode} {name}\0").as_bytes());
                data.extend_from_slice(id);
            }
            self.add(2, "tree", &data)
        }

        fn commit(&mut self, tree: Oid) -> Oid {
            let id = hex::encode(tree);
            self.add(1, "commit", format!("tree {id}\nauthor a <a@b.example> 0 +0000\n\nx\n").as_bytes())
        }

        fn pack(&self) -> Bytes {
            let mut pack = b"PACK\0\0\0\x02".to_vec();
            pack.extend_from_slice(&self.count.to_be_bytes());
            pack.extend_from_slice(&self.entries);
            let trailer = Sha1::digest(&pack);
            pack.extend_from_slice(&trailer);
            pack.into()
        }
    }

    /// One folder of 40 files, at that many paths.
    fn folders(places: usize) -> (Bytes, Oid) {
        let mut objects = Objects::default();
        let blob = objects.add(3, "blob", b"text");
        let files: Vec<_> = (0..40).map(|number| ("100644", format!("file-{number:02}.md"), blob)).collect();
        let folder = objects.tree(&files);
        let places: Vec<_> =
            (0..places).map(|number| ("40000", format!("folder-{number:04}"), folder)).collect();
        let root = objects.tree(&places);
        let commit = objects.commit(root);
        (objects.pack(), commit)
    }

    #[test]
    fn a_folder_that_is_in_many_places_is_work_for_each() {
        let (pack, id) = folders(100);
        assert!(pack.len() < 10_000, "little is sent");
        let everything = filter(&json!({})).unwrap();
        let read = |most| Snapshot::read_with(pack.clone(), &[id], "", &everything, most);
        let whole = read(MAX_WORK).unwrap();
        assert_eq!(whole.commit(&id).unwrap().files.len(), 4_000);
        let work = whole.pack.work();
        assert!(work > 100_000, "{work}");
        assert_eq!(read(work).map(|read| read.commits.len()), Ok(1));
        for most in [work / 2, work / 10, 0] {
            let Err(Fault::Broken(reason)) = read(most) else { panic!("{most} of {work} were enough") };
            assert!(reason.contains("more files"), "{reason}");
        }
        // Files that are not selected cause no work.
        let some = filter(&json!({ "exclude": ["folder-00*/"] })).unwrap();
        let few = Snapshot::read_with(pack, &[id], "folder-0003", &some, work / 10).unwrap();
        assert!(few.commit(&id).unwrap().files.is_empty());
    }
}
