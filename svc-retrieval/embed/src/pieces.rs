//! The word pieces of the built-in embedder, and their cosines: a second look compares a few texts piece by piece (late
//! interaction), where their vectors are only sums of all pieces.

mod cosines;

pub use self::cosines::QueryRows;
use self::cosines::{Rows, cosines_of, dot};
use super::static_rows::StaticRows;

/// Cosines of the pieces of a question with the pieces of texts.
#[derive(Debug, Default)]
pub struct Affinity {
    questions: usize,
    /// For each piece of the texts, in their order, one cosine for each piece of the question; negative ones are 0.
    cosines: Vec<f32>,
}

impl Affinity {
    /// The cosines of the piece of the texts at a place with every piece of the question.
    pub fn of(&self, place: usize) -> &[f32] {
        self.cosines.get(place * self.questions..(place + 1) * self.questions).unwrap_or_default()
    }
}

impl StaticRows {
    /// The informative pieces of a text (their rows are not zero), in order, with repeats.
    pub fn pieces(&self, text: &str) -> Vec<u16> {
        let mut pieces = Vec::new();
        self.for_each_piece(text, |piece| {
            if self.is_informative(piece) {
                pieces.push(piece);
            }
        });
        pieces
    }

    /// As [`StaticRows::embed_text`], and the distinct pieces of the text in ascending order.
    pub fn embed_with_pieces(&self, text: &str) -> (Vec<f32>, Vec<u16>) {
        let pieces = self.pieces(text);
        let vector = self.direction(pieces.iter().map(|piece| (*piece, 1.0)));
        (vector, distinct(pieces))
    }

    /// The direction of weighted pieces: of length 1, or zero where nothing is left.
    pub fn direction(&self, weighted: impl Iterator<Item = (u16, f32)>) -> Vec<f32> {
        let mut sum = vec![0.0; self.width()];
        for (piece, weight) in weighted {
            self.add(piece, weight, &mut sum);
        }
        super::vector::normalise(&mut sum);
        sum
    }

    /// The norm of a piece's row: its importance, since rows of common pieces were scaled down.
    pub fn weight(&self, piece: u16) -> f32 {
        let codes = self.codes(piece);
        self.scale(piece) * (dot(codes, codes) as f32).sqrt()
    }

    /// The share of a text's letters and digits in words with a known piece, 0 to 1: about 1 for Latin script, about 0 for other
    /// scripts. 0 for a text without any.
    pub fn coverage(&self, text: &str) -> f32 {
        let (mut known, mut all) = (0, 0);
        for word in text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
        {
            let letters = word.chars().count();
            let mut is_known = false;
            self.for_each_piece(word, |_| is_known = true);
            all += letters;
            known += if is_known { letters } else { 0 };
        }
        if all == 0 { 0.0 } else { known as f32 / all as f32 }
    }

    /// Prepares the pieces of a question for comparisons.
    pub fn query_rows(&self, question: &[u16]) -> QueryRows {
        QueryRows::new(question, self.to_compare())
    }

    /// The cosines of each of the texts' pieces with each of the question's.
    pub fn affinity(&self, question: &QueryRows, pieces: &[u16]) -> Affinity {
        let mut cosines = Vec::with_capacity(question.count() * pieces.len());
        cosines_of(question, pieces, self.to_compare(), &mut cosines);
        Affinity { questions: question.count(), cosines }
    }

    fn to_compare(&self) -> Rows<'_> {
        Rows { codes: self.all_codes(), width: self.width() }
    }
}

/// Sorts and deduplicates.
pub fn distinct(mut pieces: Vec<u16>) -> Vec<u16> {
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

/// The union of the pieces of several texts. A bitmap is several times as fast as sorting, and gives the rank of a piece in O(1).
#[derive(Debug)]
pub struct Union {
    pieces: Vec<u16>,
    /// A bit for each piece, 64 in a word.
    held: Vec<u64>,
    /// For each word the number of pieces in the words before it (rank directory).
    before: Vec<usize>,
}

impl Union {
    /// The pieces of these texts.
    pub fn of<'a>(texts: impl Iterator<Item = &'a [u16]>) -> Self {
        let mut held = vec![0_u64; (usize::from(u16::MAX) + 1) / WORD];
        for piece in texts.flatten() {
            if let Some(word) = held.get_mut(usize::from(*piece) / WORD) {
                *word |= 1 << (usize::from(*piece) % WORD);
            }
        }
        let (mut pieces, mut before) = (Vec::new(), Vec::with_capacity(held.len()));
        for (first, word) in (0..).step_by(WORD).zip(&held) {
            before.push(pieces.len());
            let mut word = *word;
            while word != 0 {
                pieces.extend(u16::try_from(first + word.trailing_zeros()));
                word &= word - 1;
            }
        }
        Self { pieces, held, before }
    }

    /// All of them, in ascending order.
    pub fn pieces(&self) -> &[u16] {
        &self.pieces
    }

    /// The rank of a piece in the union; `None` for one that no text has.
    pub fn place(&self, piece: u16) -> Option<usize> {
        let (word, bit) = (usize::from(piece) / WORD, 1_u64 << (usize::from(piece) % WORD));
        let held = self.held.get(word)?;
        let earlier = (held & (bit - 1)).count_ones() as usize;
        (held & bit != 0).then_some(self.before.get(word)? + earlier)
    }
}

/// Bits of a word of the bitmap.
const WORD: usize = u64::BITS as usize;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::contract::cosine;

    static ROWS: LazyLock<StaticRows> = LazyLock::new(|| StaticRows::open().unwrap());

    fn one(word: &str) -> u16 {
        let pieces = ROWS.pieces(word);
        assert_eq!(pieces.len(), 1, "{word}");
        pieces[0]
    }

    #[test]
    fn words_that_say_nothing_are_no_pieces() {
        assert!(ROWS.pieces("the of and").is_empty());
        assert_eq!(ROWS.pieces("the key of keys and key"), [one("key"), one("keys"), one("key")]);
        assert_eq!(distinct(ROWS.pieces("key lock key")).len(), 2);
    }

    #[test]
    fn pieces_of_several_texts_are_told_once() {
        let texts: [&[u16]; 4] = [&[3, 64, 65_535], &[], &[0, 3], &[63, 64]];
        let union = Union::of(texts.into_iter());
        assert_eq!(union.pieces(), [0, 3, 63, 64, 65_535]);
        let places: Vec<Option<usize>> =
            [0, 1, 3, 63, 64, 65, 65_535].map(|piece| union.place(piece)).to_vec();
        assert_eq!(places, [Some(0), None, Some(1), Some(2), Some(3), None, Some(4)]);
    }

    #[test]
    fn related_pieces_are_near() {
        let (question, pieces) =
            ([one("doctor"), one("payment")], [one("physician"), one("doctor"), one("galaxy")]);
        let affinity = ROWS.affinity(&ROWS.query_rows(&question), &pieces);
        let [of_physician, of_doctor, of_galaxy] = [0, 1, 2].map(|place| affinity.of(place));
        assert!(of_physician[0] > 0.4 && of_physician[0] > of_galaxy[0], "{affinity:?}");
        assert!((of_doctor[0] - 1.0).abs() < 1e-5 && of_doctor[1] < 0.5, "{affinity:?}");
        assert!(affinity.of(3).is_empty());
        // It is the cosine of the rows.
        let rows = [one("doctor"), one("physician")].map(|piece| ROWS.direction([(piece, 1.0)].into_iter()));
        assert!((cosine(&rows[0], &rows[1]) - of_physician[0]).abs() < 1e-4);
    }

    #[test]
    fn what_is_rare_in_general_weighs_more() {
        assert!(ROWS.weight(one("doctor")) > ROWS.weight(one("new")));
        assert!(ROWS.weight(u16::MAX) == 0.0, "what is no piece weighs nothing");
    }

    #[test]
    fn scripts_without_rows_are_not_covered() {
        for (text, expected) in [
            ("how do I rotate keys?", 1.0),
            ("Wie drehe ich Schlüssel?", 1.0),
            ("как сменить ключ", 0.0),
            ("検索拡張", 0.0),
            ("", 0.0),
            ("?!", 0.0),
            ("abc абв", 0.5),
        ] {
            assert!((ROWS.coverage(text) - expected).abs() < 1e-6, "{text}: {}", ROWS.coverage(text));
        }
    }

    proptest! {
        #[test]
        fn a_text_is_embedded_alike_with_its_pieces(text in "[a-zA-Zéß ,.'漢-]{0,200}") {
            let (vector, pieces) = ROWS.embed_with_pieces(&text);
            let plain = ROWS.embed_text(&text);
            prop_assert!(vector.iter().zip(&plain).all(|(one, other)| (one - other).abs() < 1e-6));
            prop_assert!(pieces.is_sorted_by(|one, other| one < other));
        }
    }
}
