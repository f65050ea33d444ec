//! The built-in embedder: one fixed vector for each token, summed over the text and normalised.
//!
//! The rows come from `model/make_static.py`; `model/README.md` tells how they are made.

use std::sync::OnceLock;

use async_trait::async_trait;
use half::f16;
use safetensors::{Dtype, SafeTensors};

use super::vector::normalise;
use super::vocabulary::Vocabulary;
use super::{Embedder, Error, ImmediateEmbedder, TextKind, word_piece};

const MODEL: &[u8] = include_bytes!("../model/static-256-i8.safetensors");
const VOCABULARY: &str = include_str!("../model/vocab.txt");

/// Bytes of one f16.
const SCALE_BYTES: usize = 2;

/// The static embedder whose rows are part of the binary.
///
/// Opening it reads a header of a few hundred bytes; the rows stay in the binary's read-only pages, and the
/// vocabulary's table (about 240 KiB) is built at the first text.
pub struct StaticRows {
    name: String,
    dimensions: usize,
    /// `i8`, row after row.
    rows: &'static [u8],
    /// Little-endian `f16`, one for each row. Read as bytes, because nothing aligns an included file.
    scales: &'static [u8],
    vocabulary: OnceLock<Vocabulary>,
}

impl StaticRows {
    /// Opens the built-in model.
    ///
    /// # Errors
    /// [`Error::Model`] if the file in the binary is not an `emb` I8 `[rows, dimensions]` with a `scale` F16
    /// `[rows]` and a name.
    pub fn open() -> Result<Self, Error> {
        Self::read(MODEL)
    }

    fn read(file: &'static [u8]) -> Result<Self, Error> {
        let (_, metadata) = SafeTensors::read_metadata(file).map_err(unreadable)?;
        let name = metadata.metadata().as_ref().and_then(|entries| entries.get("name"));
        let name = name.ok_or_else(|| unreadable("no name in the metadata"))?.clone();

        let tensors = SafeTensors::deserialize(file).map_err(unreadable)?;
        let rows = tensors.tensor("emb").map_err(unreadable)?;
        let scales = tensors.tensor("scale").map_err(unreadable)?;
        if rows.dtype() != Dtype::I8 || scales.dtype() != Dtype::F16 {
            return Err(unreadable("rows are to be I8 and scales F16"));
        }
        match (rows.shape(), scales.shape()) {
            (&[row_count, dimensions], &[scale_count]) if row_count == scale_count => Ok(Self {
                name,
                dimensions,
                rows: rows.data(),
                scales: scales.data(),
                vocabulary: OnceLock::new(),
            }),
            _ => Err(unreadable("rows and scales do not fit together")),
        }
    }

    /// The vector of one text, of length 1. A text without any token that has a row (empty, only stop words,
    /// only a script the model does not cover) gets the zero vector, whose cosine with anything is 0.
    pub fn embed_text(&self, text: &str) -> Vec<f32> {
        let mut sum = vec![0.0; self.dimensions];
        self.for_each_piece(text, |row| self.add(row, 1.0, &mut sum));
        normalise(&mut sum);
        sum
    }

    /// Numbers in a row.
    pub(super) const fn width(&self) -> usize {
        self.dimensions
    }

    /// Calls `visit` with each token of the text that has a row, in order.
    pub(super) fn for_each_piece(&self, text: &str, visit: impl FnMut(u16)) {
        let vocabulary = self.vocabulary.get_or_init(|| Vocabulary::new(VOCABULARY));
        word_piece::for_each_row(vocabulary, text, visit);
    }

    /// Whether a row is not zero, as those of stop words are.
    pub(super) fn is_informative(&self, row: u16) -> bool {
        self.scale(row) > 0.0 && self.codes(row).iter().any(|code| *code != 0)
    }

    /// The codes of all rows, one after the other.
    pub(super) const fn all_codes(&self) -> &[u8] {
        self.rows
    }

    /// The codes of a row; empty out of range.
    pub(super) fn codes(&self, row: u16) -> &[u8] {
        let row = usize::from(row);
        self.rows.get(row * self.dimensions..(row + 1) * self.dimensions).unwrap_or_default()
    }

    /// The scale of a row's codes.
    pub(super) fn scale(&self, row: u16) -> f32 {
        let row = usize::from(row);
        match self.scales.get(row * SCALE_BYTES..(row + 1) * SCALE_BYTES) {
            Some(&[low, high]) => f16::from_le_bytes([low, high]).to_f32(),
            _ => 0.0,
        }
    }

    pub(super) fn add(&self, row: u16, weight: f32, sum: &mut [f32]) {
        let scale = self.scale(row) * weight;
        for (total, value) in sum.iter_mut().zip(self.codes(row)) {
            *total += scale * f32::from(value.cast_signed());
        }
    }
}

#[async_trait]
impl Embedder for StaticRows {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn immediate(&self) -> Option<&dyn ImmediateEmbedder> {
        Some(self)
    }

    fn rows(&self) -> Option<&StaticRows> {
        Some(self)
    }

    async fn embed(&self, _: TextKind, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        Ok(self.embed_now(texts))
    }
}

impl ImmediateEmbedder for StaticRows {
    fn embed_now(&self, texts: &[&str]) -> Vec<Vec<f32>> {
        texts.iter().map(|text| self.embed_text(text)).collect()
    }

    fn rows(&self) -> Option<&StaticRows> {
        Some(self)
    }
}

cairn_chassis::debug_fields!(StaticRows { name, dimensions });

fn unreadable(reason: impl ToString) -> Error {
    Error::Model { reason: reason.to_string() }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::contract;

    static EMBEDDER: LazyLock<StaticRows> = LazyLock::new(|| StaticRows::open().unwrap());

    fn is_unit_or_zero(vector: &[f32]) -> bool {
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        norm == 0.0 || (norm - 1.0).abs() < 1e-4
    }

    #[tokio::test]
    async fn meets_the_contract() {
        contract::check(&*EMBEDDER).await;
    }

    #[test]
    fn every_row_has_a_token_and_every_token_a_row() {
        assert_eq!(VOCABULARY.split('\n').count() * SCALE_BYTES, EMBEDDER.scales.len());
        assert_eq!(EMBEDDER.rows.len() / EMBEDDER.dimensions * SCALE_BYTES, EMBEDDER.scales.len());
    }

    #[test]
    fn the_name_carries_the_digest_of_the_rows() {
        assert!(EMBEDDER.name().starts_with("static-minilm-l6-v2-256-"), "{}", EMBEDDER.name());
    }

    #[test]
    fn a_text_without_a_known_token_is_the_zero_vector() {
        for text in ["", " \n", "the of and", "!?", "量子", "🎉", &"x".repeat(101)] {
            assert!(EMBEDDER.embed_text(text).iter().all(|value| *value == 0.0), "{text:?}");
        }
    }

    #[test]
    fn a_file_of_another_shape_is_an_error() {
        let error = StaticRows::read(b"not a model").unwrap_err();
        assert!(matches!(error, Error::Model { .. }));
    }

    proptest! {
        #[test]
        fn any_text_embeds_to_unit_length_or_zero(text in any::<String>()) {
            prop_assert!(is_unit_or_zero(&EMBEDDER.embed_text(&text)));
        }

        #[test]
        fn any_words_embed_to_unit_length_or_zero(text in "[a-zA-Zéß ,.'\u{301}\u{ad}漢₂-]{0,300}") {
            prop_assert!(is_unit_or_zero(&EMBEDDER.embed_text(&text)));
        }
    }
}
