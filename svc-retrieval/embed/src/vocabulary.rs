//! From a word piece to its row.

/// Marks a slot without a row.
const EMPTY: u16 = u16::MAX;

/// Twice as many slots as a vocabulary of 30 000 needs, so that a miss ends after a probe or two.
const SLOTS: usize = 1 << 16;

const CONTINUATION: &str = "##";

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
            let free = probe(piece, continuation).find(|&slot| slots.get(slot) == Some(&EMPTY));
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
        let longest = rest.len().min(self.longest_piece);
        (1..=longest).rev().find_map(|length| {
            let piece = rest.get(..length)?;
            self.row(piece, continuation).map(|row| (row, length))
        })
    }

    fn row(&self, piece: &str, continuation: bool) -> Option<u16> {
        for slot in probe(piece, continuation) {
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

/// The slots a piece may be in, most likely first.
fn probe(piece: &str, continuation: bool) -> impl Iterator<Item = usize> {
    // FNV-1a: short keys of a fixed set need speed, not resistance.
    let seed = 0x811c_9dc5 ^ u32::from(continuation);
    let hash = piece.bytes().fold(seed, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
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
