//! The memory of a model's activations, and the batch sizes that keep it within a limit.

use std::num::NonZeroUsize;

use candle_transformers::models::bert::Config;

/// Bytes of a number: models run in `f32`.
const NUMBER_BYTES: usize = size_of::<f32>();

/// Numbers for each pair of tokens and each head that are in memory at the worst moment of attention, which is in the softmax: the
/// scaled scores, the masked ones, their distances from the greatest, the exponentials of these, and the result. Counted in the
/// code of candle 0.11, whose tensors live until the function returns.
const SCORES: usize = 5;
/// Rows of the hidden size for each token at that moment: the layer's input, queries, keys and values, each of these three once
/// more in the order of the heads, and two that come and go.
const ATTENTION_ROWS: usize = 9;
/// Rows of the inner size for each token in the feed-forward part: before and after the bias, or the activation.
const INNER_ROWS: usize = 2;
/// Rows of the hidden size beside these: the input of the layer, that of the part, and its result before and after the bias.
const FEED_FORWARD_ROWS: usize = 4;

/// Limits of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Windows. More save little on a CPU, and padding is computed, too.
    pub(super) windows: usize,
    /// Bytes of activations.
    pub(super) bytes: usize,
    /// Tokens of one window: what models of the family are trained for. A longer one takes memory by the square of its length,
    /// and a passage of 250 words has about 330.
    pub(super) tokens: usize,
    /// Threads for passages.
    pub(super) threads: usize,
}

impl Limits {
    /// The defaults. A batch of passages and a question may go through at the same time, each within `bytes`; that leaves
    /// 42 MiB of the 250 MiB beyond the model that indexing may take to texts, tokens, vectors, and what the allocator keeps.
    /// The bytes are counted and the others reasoned; none was chosen by a measurement yet. `transformer::measured` measures what
    /// other numbers would give (docs/EVALUATION.md, "Transformers").
    pub(super) fn of_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        // A large import leaves a core to every other request.
        Self { windows: 16, bytes: 104 << 20, tokens: 512, threads: cores.saturating_sub(1).max(1) }
    }
}

/// The dimensions of a model that its activations depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Footprint {
    heads: usize,
    hidden: usize,
    inner: usize,
}

impl Footprint {
    pub(super) const fn of(config: &Config) -> Self {
        Self {
            heads: config.num_attention_heads,
            hidden: config.hidden_size,
            inner: config.intermediate_size,
        }
    }

    /// Peak bytes of activations for a batch of `windows` windows of `longest` tokens.
    pub(super) const fn bytes(self, windows: usize, longest: usize) -> usize {
        let tokens = windows.saturating_mul(longest);
        let pairs = tokens.saturating_mul(longest);
        let scores = pairs.saturating_mul(SCORES).saturating_mul(self.heads);
        let beside = tokens.saturating_mul(ATTENTION_ROWS).saturating_mul(self.hidden);
        let attention = scores.saturating_add(beside);
        let a_token = INNER_ROWS
            .saturating_mul(self.inner)
            .saturating_add(FEED_FORWARD_ROWS.saturating_mul(self.hidden));
        let feed_forward = tokens.saturating_mul(a_token);
        let most = if attention > feed_forward { attention } else { feed_forward };
        most.saturating_mul(NUMBER_BYTES)
    }

    /// The longest window, of at most `trained_for` tokens, that fits alone.
    pub(super) fn longest(self, limits: Limits, trained_for: usize) -> usize {
        let wanted = trained_for.min(limits.tokens);
        (1..=wanted).rev().find(|length| self.bytes(1, *length) <= limits.bytes).unwrap_or(1)
    }

    /// How many of the first windows fit into one batch, at least one; `lengths` ascend.
    pub(super) fn together(self, limits: Limits, lengths: impl Iterator<Item = usize>) -> usize {
        let fitting = lengths
            .zip(1..=limits.windows)
            .take_while(|(longest, count)| self.bytes(*count, *longest) <= limits.bytes)
            .count();
        fitting.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Heads, hidden and inner size of the models that the family is known for.
    const SMALL: Footprint = Footprint { heads: 12, hidden: 384, inner: 1_536 };
    const LARGE: Footprint = Footprint { heads: 16, hidden: 1_024, inner: 4_096 };

    fn limits() -> Limits {
        Limits { threads: 1, ..Limits::of_this_machine() }
    }

    #[test]
    fn long_windows_go_through_alone_and_short_ones_together() {
        let together = |length: usize| SMALL.together(limits(), std::iter::repeat_n(length, 100));
        assert_eq!([1, 128, 256, 512].map(together), [16, 16, 5, 1]);
    }

    #[test]
    fn what_goes_through_stays_within_the_bytes_whatever_the_model() {
        let huge = Footprint { heads: 64, hidden: 8_192, inner: 32_768 };
        for footprint in [SMALL, LARGE, huge] {
            for trained_for in [8, 512, 8_192, usize::MAX] {
                let longest = footprint.longest(limits(), trained_for);
                assert!(footprint.bytes(1, longest) <= limits().bytes, "{footprint:?} {trained_for}");
                let count = footprint.together(limits(), std::iter::repeat_n(longest, 100));
                assert!(footprint.bytes(count, longest) <= limits().bytes, "{footprint:?} {trained_for}");
            }
        }
    }

    #[test]
    fn published_models_read_what_they_are_trained_for() {
        for footprint in [SMALL, LARGE] {
            assert_eq!(footprint.longest(limits(), 512), 512);
            assert_eq!(footprint.longest(limits(), 256), 256);
        }
    }

    #[test]
    fn two_that_go_through_at_once_leave_room_for_the_rest() {
        assert!(2 * limits().bytes <= 208 << 20);
    }
}
