//! From a word piece to its row.

/// Marks a slot without a row.
const EMPTY: u16 = u16::MAX;

/// Twice as many slots as a vocabulary of 30 000 needs, so that a miss ends after a probe or two.
const SLOTS: usize = 1 << 16;

const CONTINUATION: &str = "##";

/// Bytes of the longest piece that is looked for; those of the vocabulary are shorter.
const MAX_BYTES: usize = 64;

/// The pieces of a vocabulary, each with its row.
///
/// An open-addressing table of row numbers over the vocabulary's own text takes 240 KiB, where a `HashMap` of
/// string slices would take 800: it stays resident as long as the process.
pub(crate) struct Vocabulary {
    text: &'static str,
    /// Where each token starts in the text, and at the end where one more would.
    starts: Box<[u32]>,
    slots: Box<[u16]>,
    longest_piece: usize,
}

impl Vocabulary {
    /// Reads a vocabulary of one token a line; the line number is the row. Holds at most 65 535 tokens.
    pub(crate) fn new(text: &'static str) -> Self {
        let mut starts = vec![0];
        let mut slots = vec![EMPTY; SLOTS];
        let mut longest_piece = 0;
        let mut end = 0;
        for (row, token) in (0..EMPTY).zip(text.split('\n')) {
            end += token.len() + 1;
            starts.push(u32::try_from(end).unwrap_or(u32::MAX));
            let (piece, continuation) = split_token(token);
            longest_piece = longest_piece.max(piece.len());
            let hash = piece.bytes().fold(seed(continuation), hashed);
            let free = slots_of(hash).find(|&slot| slots.get(slot) == Some(&EMPTY));
            if let Some(slot) = free.and_then(|slot| slots.get_mut(slot)) {
                *slot = row;
            }
        }
        Self { text, starts: starts.into(), slots: slots.into(), longest_piece }
    }

    /// The token of a row.
    pub(crate) fn token(&self, row: u16) -> Option<&'static str> {
        let row = usize::from(row);
        let start = *self.starts.get(row)? as usize;
        let next = *self.starts.get(row + 1)? as usize;
        self.text.get(start..next - 1)
    }

    /// The longest piece that `rest` starts with: its row and its length in bytes. `continuation` tells whether
    /// the piece stands inside a word.
    pub(crate) fn longest_prefix(&self, rest: &str, continuation: bool) -> Option<(u16, usize)> {
        // The hash of each beginning is a step on the way to that of the next one.
        let mut hashes = [0; MAX_BYTES];
        let mut hash = seed(continuation);
        let beginnings = rest.len().min(self.longest_piece).min(MAX_BYTES);
        for (place, byte) in hashes.iter_mut().zip(rest.bytes()).take(beginnings) {
            hash = hashed(hash, byte);
            *place = hash;
        }
        let hashes = hashes.iter().enumerate().take(beginnings);
        hashes.rev().find_map(|(place, hash)| {
            let piece = rest.get(..=place)?;
            self.row(piece, continuation, *hash).map(|row| (row, piece.len()))
        })
    }

    fn row(&self, piece: &str, continuation: bool, hash: u32) -> Option<u16> {
        for slot in slots_of(hash) {
            let row = *self.slots.get(slot)?;
            if row == EMPTY {
                return None;
            }
            if self.token(row).map(split_token) == Some((piece, continuation)) {
                return Some(row);
            }
        }
        None
    }
}

/// The piece of a token, and whether it continues a word.
fn split_token(token: &str) -> (&str, bool) {
    match token.strip_prefix(CONTINUATION) {
        Some(piece) if !piece.is_empty() => (piece, true),
        _ => (token, false),
    }
}

// FNV-1a: short keys of a fixed set need speed, not resistance.
fn seed(continuation: bool) -> u32 {
    0x811c_9dc5 ^ u32::from(continuation)
}

fn hashed(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

/// The slots that a piece of that hash may be in, most likely first.
fn slots_of(hash: u32) -> impl Iterator<Item = usize> {
    let first = (hash ^ (hash >> 16)) as usize;
    (0..SLOTS).map(move |step| (first + step) % SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_longest_piece_at_its_place_in_the_word() {
        let vocabulary = Vocabulary::new("un\nunder\n##stand\n##un\né");
        assert_eq!(vocabulary.longest_prefix("understand", false), Some((1, 5)));
        assert_eq!(vocabulary.longest_prefix("stand", false), None);
        assert_eq!(vocabulary.longest_prefix("stand", true), Some((2, 5)));
        assert_eq!(vocabulary.longest_prefix("under", true), Some((3, 2)));
        assert_eq!(vocabulary.longest_prefix("été", false), Some((4, 2)));
        assert_eq!(vocabulary.longest_prefix("", false), None);
        assert_eq!(vocabulary.token(2), Some("##stand"));
        assert_eq!(vocabulary.token(5), None);
    }
}
