//! The frontier of a crawl: the seen pages, and the queue of those to visit.

use std::collections::{HashSet, VecDeque};
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{Fault, Position};

const SHAPE: u16 = 1;
/// Bytes of a page's fingerprint: collisions among 50 000 pages are unlikely.
const MARK: usize = 6;
/// Bytes of a decompressed position.
const MAX_UNPACKED: u64 = 16 * 1024 * 1024;

type Mark = [u8; MARK];

/// A crawl in progress.
#[derive(Debug, Clone, Default)]
pub(super) struct Frontier {
    /// Fingerprints of seen pages, including redirect targets and canonical URLs.
    seen: HashSet<Mark>,
    /// The queue of pages to visit, with their depth, in the order of discovery.
    queue: VecDeque<(u32, Url)>,
    visited: u32,
    /// The number of pages that could not be read, whose links are unknown.
    pub(super) unread: u32,
    /// Whether pages were dropped at the limit.
    pub(super) is_cut: bool,
}

/// A frontier in a position. Of a large one, only the counts are stored: its crawl can only continue in the same process.
#[derive(Serialize, Deserialize)]
struct At {
    visited: u32,
    unread: u32,
    is_cut: bool,
    packed: Option<String>,
}

impl Frontier {
    /// A crawl from a start page.
    pub(super) fn of(start: Url) -> Self {
        let mut frontier = Self::default();
        frontier.mark_seen(&start);
        frontier.queue.push_back((0, start));
        frontier
    }

    /// The next page to visit, and its depth.
    pub(super) fn next(&self) -> Option<(u32, Url)> {
        self.queue.front().cloned()
    }

    /// Whether no page was visited yet.
    pub(super) const fn is_at_start(&self) -> bool {
        self.visited == 0
    }

    /// Removes the next page from the queue.
    pub(super) fn pop(&mut self) {
        self.visited += u32::from(self.queue.pop_front().is_some());
    }

    /// Marks a page as seen; returns whether it is new.
    pub(super) fn mark_seen(&mut self, url: &Url) -> bool {
        self.seen.insert(mark(url))
    }

    pub(super) fn has_seen(&self, url: &Url) -> bool {
        self.seen.contains(&mark(url))
    }

    /// Queues a page, up to the limit.
    pub(super) fn add(&mut self, depth: u32, url: Url, most_pages: u32) {
        let planned = usize::try_from(self.visited).unwrap_or(usize::MAX).saturating_add(self.queue.len());
        if planned >= usize::try_from(most_pages).unwrap_or(usize::MAX) {
            self.is_cut = true;
        } else if self.mark_seen(&url) {
            self.queue.push_back((depth, url));
        }
    }

    /// The position of the crawl.
    pub(super) fn position(&self) -> Result<Position, Fault> {
        let Self { visited, unread, is_cut, .. } = *self;
        let packed = Position::new(SHAPE, &At { visited, unread, is_cut, packed: self.packed() });
        packed.or_else(|_| Position::new(SHAPE, &At { visited, unread, is_cut, packed: None }))
    }

    /// Restores a crawl from a position; `here` is the crawl of this process.
    pub(super) fn at(position: &Position, here: Option<&Self>) -> Result<Self, Fault> {
        let at: At = position.read(SHAPE)?;
        if let Some(here) = here.filter(|here| here.visited == at.visited && here.unread == at.unread) {
            return Ok(here.clone());
        }
        let frontier = at.packed.as_deref().and_then(Self::unpacked).ok_or(Fault::PositionLost)?;
        Ok(Self { visited: at.visited, unread: at.unread, is_cut: at.is_cut, ..frontier })
    }

    /// Fingerprints of the visited pages, a line feed, and a line for each queued page.
    fn packed(&self) -> Option<String> {
        let ahead: HashSet<Mark> = self.queue.iter().map(|(_, url)| mark(url)).collect();
        let mut behind: Vec<&Mark> = self.seen.iter().filter(|mark| !ahead.contains(*mark)).collect();
        behind.sort();
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
        packer.write_all(&u32::try_from(behind.len()).ok()?.to_le_bytes()).ok()?;
        for mark in behind {
            packer.write_all(mark).ok()?;
        }
        for (depth, url) in &self.queue {
            writeln!(packer, "{depth} {url}").ok()?;
        }
        Some(STANDARD_NO_PAD.encode(packer.finish().ok()?))
    }

    fn unpacked(packed: &str) -> Option<Self> {
        let packed = STANDARD_NO_PAD.decode(packed).ok()?;
        let mut unpacked = Vec::new();
        DeflateDecoder::new(packed.as_slice()).take(MAX_UNPACKED).read_to_end(&mut unpacked).ok()?;
        let (count, rest) = unpacked.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(MARK)?;
        let (behind, ahead) = rest.split_at_checked(length)?;
        let mut frontier = Self::default();
        frontier.seen.extend(behind.as_chunks::<MARK>().0);
        for line in std::str::from_utf8(ahead).ok()?.lines() {
            let (depth, url) = line.split_once(' ')?;
            let url = Url::parse(url).ok()?;
            frontier.mark_seen(&url);
            frontier.queue.push_back((depth.parse().ok()?, url));
        }
        Some(frontier)
    }
}

fn mark(url: &Url) -> Mark {
    let mut mark = Mark::default();
    let hash = blake3::hash(url.as_str().as_bytes());
    mark.iter_mut().zip(hash.as_bytes()).for_each(|(to, from)| *to = *from);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(number: u32) -> Url {
        Url::parse(&format!("https://example.com/docs/page-{number}")).unwrap()
    }

    fn frontier(pages: u32, visited: u32) -> Frontier {
        let mut frontier = Frontier::of(url(0));
        (1..pages).for_each(|number| frontier.add(1, url(number), u32::MAX));
        (0..visited).for_each(|_| frontier.pop());
        frontier
    }

    #[test]
    fn another_process_goes_on_where_one_stopped() {
        let mut before = frontier(200, 150);
        before.unread = 3;
        let position = before.position().unwrap();
        let mut after = Frontier::at(&position, None).unwrap();
        assert_eq!((after.visited, after.unread, after.is_cut), (150, 3, false));
        assert_eq!(after.queue, before.queue);
        assert!((0..200).all(|number| after.has_seen(&url(number))) && !after.has_seen(&url(200)));
        after.add(2, url(7), u32::MAX);
        assert_eq!(after.queue.len(), 50, "what was visited is not visited again");
    }

    #[test]
    fn a_large_crawl_goes_on_in_its_process_alone() {
        let before = frontier(20_000, 10_000);
        let position = before.position().unwrap();
        assert_eq!(Frontier::at(&position, Some(&before)).unwrap().queue, before.queue);
        assert_eq!(Frontier::at(&position, None).unwrap_err(), Fault::PositionLost);
        assert_eq!(Frontier::at(&position, Some(&frontier(10, 5))).unwrap_err(), Fault::PositionLost);
    }

    #[test]
    fn a_crawl_has_a_bound() {
        let mut frontier = Frontier::of(url(0));
        (1..10).for_each(|number| frontier.add(1, url(number), 5));
        assert_eq!((frontier.queue.len(), frontier.is_cut), (5, true));
    }

    #[test]
    fn odd_positions_are_lost() {
        for packed in ["", "!", "AAAA", &STANDARD_NO_PAD.encode([0xff; 40])] {
            let at = At { visited: 1, unread: 0, is_cut: false, packed: Some(packed.to_owned()) };
            let position = Position::new(SHAPE, &at).unwrap();
            assert_eq!(Frontier::at(&position, None).unwrap_err(), Fault::PositionLost, "{packed}");
        }
    }
}
