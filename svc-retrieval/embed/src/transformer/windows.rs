//! Cuts texts into the windows that a model reads at once.

use tokenizers::Tokenizer;

use super::{failed, unusable};
use crate::{Error, Prefixes, TextKind};

/// Windows of one text that are embedded; the rest of it is ignored. A chunk is at most 8 KiB, which usually fits.
const MAX_WINDOWS: usize = 16;

/// A part of a text that the model reads at once: the begin token, the prefix, tokens of the text, the end token.
pub(super) struct Window {
    /// The position of the text among those that are embedded.
    pub(super) text: usize,
    pub(super) tokens: Vec<u32>,
}

/// Tokenizes texts and cuts them into windows.
pub(super) struct Windows {
    tokenizer: Tokenizer,
    /// Tokens of a window, including prefix, begin and end.
    length: usize,
    /// The special tokens before every text.
    begin: Vec<u32>,
    /// The special tokens after it.
    end: Vec<u32>,
    query: Prefix,
    passage: Prefix,
}

/// A prefix and its tokens.
struct Prefix {
    text: String,
    tokens: Vec<u32>,
}

impl Prefix {
    /// Refuses a prefix that takes more than half of a window: little of the text would be left.
    fn new(text: &str, tokenizer: &Tokenizer, room: usize) -> Result<Self, Error> {
        // Without trailing whitespace, which some tokenizers merge into a following word, but else turn into a token.
        let encoded = tokenizer.encode_fast(text.trim_end(), false).map_err(unusable)?;
        let tokens = encoded.get_ids().to_vec();
        if tokens.len() > room / 2 {
            let count = tokens.len();
            return Err(unusable(format!(
                "a prefix takes {count} of the {room} tokens that the model reads at once"
            )));
        }
        Ok(Self { text: text.to_owned(), tokens })
    }
}

impl Windows {
    /// Windows of at most `length` tokens.
    ///
    /// # Errors
    /// [`Error::Model`] when the tokenizer fails, or a prefix takes too much of a window.
    pub(super) fn new(tokenizer: Tokenizer, length: usize, prefixes: &Prefixes) -> Result<Self, Error> {
        // The special tokens around an empty text are those around every text: half before, half after.
        let special = tokenizer.encode_fast("", true).map_err(unusable)?;
        let (begin, end) = special.get_ids().split_at(special.get_ids().len() / 2);
        let room = length.saturating_sub(special.get_ids().len());
        let query = Prefix::new(&prefixes.query, &tokenizer, room)?;
        let passage = Prefix::new(&prefixes.passage, &tokenizer, room)?;
        let (begin, end) = (begin.to_vec(), end.to_vec());
        Ok(Self { tokenizer, length, begin, end, query, passage })
    }

    /// Tokens of a window.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The windows of the texts, each with the prefix of its kind; a text without tokens has none.
    pub(super) fn cut(&self, kind: TextKind, texts: &[String]) -> Result<Vec<Window>, Error> {
        let prefix = match kind {
            TextKind::Query => &self.query,
            TextKind::Passage => &self.passage,
        };
        let taken = self.begin.len() + prefix.tokens.len() + self.end.len();
        let room = self.length.saturating_sub(taken).max(1);
        let mut windows = Vec::new();
        for (text, content) in texts.iter().enumerate() {
            let tokens = self.tokens_behind(prefix, content)?;
            let parts = tokens.chunks(room).take(MAX_WINDOWS);
            windows.extend(parts.map(|part| Window { text, tokens: self.framed(prefix, part) }));
        }
        Ok(windows)
    }

    fn framed(&self, prefix: &Prefix, part: &[u32]) -> Vec<u32> {
        [self.begin.as_slice(), prefix.tokens.as_slice(), part, self.end.as_slice()].concat()
    }

    /// The tokens of a text in the context of the prefix, without those of the prefix.
    fn tokens_behind(&self, prefix: &Prefix, text: &str) -> Result<Vec<u32>, Error> {
        if prefix.tokens.is_empty() {
            return self.tokens(text);
        }
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        let together = self.tokens(&format!("{}{text}", prefix.text))?;
        match together.strip_prefix(prefix.tokens.as_slice()) {
            Some(tokens) => Ok(tokens.to_vec()),
            // The end of the prefix has merged with the text's beginning.
            None => self.tokens(text),
        }
    }

    fn tokens(&self, text: &str) -> Result<Vec<u32>, Error> {
        let encoded = self.tokenizer.encode_fast(text, false).map_err(failed)?;
        Ok(encoded.get_ids().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::tokenizer_file;
    use super::super::tokenizer;
    use super::*;

    const BEGIN: u32 = 2;
    const END: u32 = 3;

    fn windows(length: usize, query: &str, passage: &str) -> Result<Windows, Error> {
        let tokenizer = tokenizer(tokenizer_file().to_string().as_bytes()).unwrap();
        let prefixes = Prefixes { query: query.to_owned(), passage: passage.to_owned() };
        Windows::new(tokenizer, length, &prefixes)
    }

    fn tokens(windows: &Windows, kind: TextKind, text: &str) -> Vec<Vec<u32>> {
        windows.cut(kind, &[text.to_owned()]).unwrap().into_iter().map(|window| window.tokens).collect()
    }

    #[test]
    fn a_prefix_is_tokenized_together_with_its_text() {
        let plain = windows(16, "", "").unwrap();
        let prefixed = windows(16, "how to: ", "the ").unwrap();
        for (kind, prefix) in [(TextKind::Query, "how to: "), (TextKind::Passage, "the ")] {
            let expected = tokens(&plain, kind, &format!("{prefix}restart"));
            assert_eq!(tokens(&prefixed, kind, "restart"), expected);
            assert!(tokens(&prefixed, kind, " \n").is_empty());
        }
    }

    #[test]
    fn a_prefix_that_leaves_too_little_room_is_refused() {
        assert!(windows(8, "how to the", "").is_ok());
        let refusal = windows(8, "", "how to the a").err().unwrap().to_string();
        assert!(refusal.contains("4 of the 6 tokens"), "{refusal}");
    }

    proptest! {
        #[test]
        fn windows_hold_all_tokens_within_their_length(words in 0_usize..100, length in 9_usize..20) {
            let windows = windows(length, "how to the", "").unwrap();
            let text = "read file ".repeat(words);
            let passage = tokens(&windows, TextKind::Passage, &text);
            let query = tokens(&windows, TextKind::Query, &text);
            for window in passage.iter().chain(&query) {
                prop_assert!(window.len() <= length && window.len() > 2);
                prop_assert!(window[0] == BEGIN && window[window.len() - 1] == END);
            }
            let inner = |window: &Vec<u32>, begin: usize| window[begin..window.len() - 1].to_vec();
            let all: Vec<u32> = passage.iter().flat_map(|window| inner(window, 1)).collect();
            prop_assert_eq!(all.len(), (2 * words).min(MAX_WINDOWS * (length - 2)));
            // Three tokens are the prefix's.
            let of_query: Vec<u32> = query.iter().flat_map(|window| inner(window, 4)).collect();
            let shared = of_query.len().min(all.len());
            prop_assert_eq!(&of_query[..shared], &all[..shared]);
            prop_assert_eq!(of_query.len(), (2 * words).min(MAX_WINDOWS * (length - 5)));
        }
    }
}
