//! Repositories out of inputs: a fuzzer finds instructions by itself, and no hash.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use sha1::{Digest as _, Sha1};

use crate::parts;

type Oid = [u8; 20];

/// More objects are no other repository.
const MAX_OBJECTS: usize = 32;
/// The most bytes of a packet, without its length and its channel.
const MAX_PACKET: usize = 60_000;

const COMMIT: u8 = 1;
const TREE: u8 = 2;
const BLOB: u8 = 3;
const BY_PLACE: u8 = 6;
const BY_ID: u8 = 7;

/// A repository of one commit, as a server of git's protocol answers for it.
#[derive(Debug)]
pub struct Repository {
    head: Oid,
    pack: Vec<u8>,
}

/// The repository of an input whose parts lines of `%%%%` divide. The first part stands in the commit's tree behind the files;
/// each of the others is an object: its first byte says whether it is a file, or a difference to the object that the second byte
/// names, by its place or by its id.
pub fn repository(input: &[u8]) -> Repository {
    let mut pack = Pack::default();
    let mut parts = parts::divided(input);
    let behind = parts.next().unwrap_or_default();
    let mut tree = Vec::new();
    for (number, part) in parts.take(MAX_OBJECTS).enumerate() {
        let Some(file) = pack.add_part(part) else { continue };
        tree.extend(format!("100644 f{number}.md\0").as_bytes());
        tree.extend(file);
    }
    tree.extend(behind);
    let tree = pack.add(TREE, &[], &tree, Some("tree"));
    let commit =
        format!("tree {}\nauthor a <a@b> 0 +0000\ncommitter a <a@b> 1700000000 +0000\n\nm\n", hex(&tree));
    let head = pack.add(COMMIT, &[], commit.as_bytes(), Some("commit"));
    Repository { head, pack: pack.finish() }
}

impl Repository {
    /// The type and the bytes of an answer.
    pub fn answer(&self, path: &str, body: &[u8]) -> (&'static str, Vec<u8>) {
        if path.ends_with("/info/refs") {
            let lines = ["version 2\n", "ls-refs\n", "fetch=shallow\n", "object-format=sha1\n"];
            let answer = lines.iter().flat_map(|line| packet(line.as_bytes())).chain(*b"0000").collect();
            return ("application/x-git-upload-pack-advertisement", answer);
        }
        let kind = "application/x-git-upload-pack-result";
        if body.windows(7).any(|window| window == b"ls-refs") {
            let line = format!("{} HEAD symref-target:refs/heads/main\n", hex(&self.head));
            return (kind, [packet(line.as_bytes()), b"0000".to_vec()].concat());
        }
        let mut answer = packet(b"packfile\n");
        for chunk in self.pack.chunks(MAX_PACKET) {
            answer.extend(packet(&[&[1_u8][..], chunk].concat()));
        }
        answer.extend(b"0000");
        (kind, answer)
    }
}

/// A pack as it is put together.
#[derive(Default)]
struct Pack {
    bytes: Vec<u8>,
    /// Where each object begins, and its id where it is known.
    objects: Vec<(usize, Oid)>,
}

impl Pack {
    /// Adds what a part says; tells the id of a file.
    fn add_part(&mut self, part: &[u8]) -> Option<Oid> {
        let [kind, base, rest @ ..] = part else { return None };
        let based = self.objects.len().checked_sub(1).map(|last| usize::from(*base) % (last + 1));
        match (kind % 3, based.and_then(|based| self.objects.get(based)).copied()) {
            (1, Some((place, _))) => {
                let back = self.bytes.len() - place;
                self.add(BY_PLACE, &offset(back), rest, None);
                None
            }
            (2, Some((_, id))) => {
                self.add(BY_ID, &id, rest, None);
                None
            }
            _ => Some(self.add(BLOB, &[], rest, Some("blob"))),
        }
    }

    /// Adds an object; its id is that of its content, where that is an object of such a name.
    fn add(&mut self, kind: u8, base: &[u8], content: &[u8], name: Option<&str>) -> Oid {
        let id: Oid = match name {
            Some(name) => Sha1::new_with_prefix(format!("{name} {}\0", content.len()))
                .chain_update(content)
                .finalize()
                .into(),
            None => Oid::default(),
        };
        self.objects.push((self.bytes.len(), id));
        self.bytes.extend(head(kind, content.len()));
        self.bytes.extend(base);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::none());
        zlib.write_all(content).expect("memory takes it");
        self.bytes.extend(zlib.finish().expect("memory takes it"));
        id
    }

    fn finish(self) -> Vec<u8> {
        let count = u32::try_from(self.objects.len()).unwrap_or(u32::MAX);
        let mut pack = [&b"PACK\0\0\0\x02"[..], &count.to_be_bytes()[..], &self.bytes[..]].concat();
        let trailer = Sha1::digest(&pack);
        pack.extend_from_slice(&trailer);
        pack
    }
}

/// The head of an object: three bits of its kind, and its size in groups of seven bits behind the first four.
fn head(kind: u8, size: usize) -> Vec<u8> {
    let low = |size: usize, bits: u32| u8::try_from(size & ((1 << bits) - 1)).unwrap_or_default();
    let mut bytes = Vec::new();
    let (mut byte, mut size_left) = ((kind << 4) | low(size, 4), size >> 4);
    while size_left > 0 {
        bytes.push(byte | 0x80);
        byte = low(size_left, 7);
        size_left >>= 7;
    }
    bytes.push(byte);
    bytes
}

/// How far back a base is, as `gitformat-pack` writes it.
fn offset(back: usize) -> Vec<u8> {
    let low = |number: usize| u8::try_from(number & 0x7f).unwrap_or_default();
    let mut bytes = vec![low(back)];
    let mut left = back >> 7;
    while left > 0 {
        left -= 1;
        bytes.push(0x80 | low(left));
        left >>= 7;
    }
    bytes.reverse();
    bytes
}

fn packet(data: &[u8]) -> Vec<u8> {
    [format!("{:04x}", data.len() + 4).as_bytes(), data].concat()
}

fn hex(id: &Oid) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
