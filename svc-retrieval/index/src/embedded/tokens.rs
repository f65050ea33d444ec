//! Passes tokens to tantivy, which expects a text and a tokenizer.
//!
//! Tokens are encoded as one text. The separator before a token encodes its position increment: a line feed for 1, a space for 0, a
//! form feed and a number for larger ones.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::words;

/// The name under which [`TokenListTokenizer`] is registered.
pub(super) const TOKEN_LIST: &str = "listed";

const NEXT: char = '\n';
const SAME: char = ' ';
const SKIP: char = '\u{c}';

/// Encodes tokens as a text.
pub(super) fn encode(tokens: &[words::Token]) -> String {
    let mut text = String::new();
    let mut last: Option<u32> = None;
    for token in tokens {
        match last.map(|last| token.position.saturating_sub(last)) {
            Some(0) => text.push(SAME),
            Some(1) => text.push(NEXT),
            Some(step) => text.push_str(&format!("{SKIP}{step}{NEXT}")),
            None => text.push(NEXT),
        }
        text.push_str(&token.text);
        last = Some(token.position);
    }
    text
}

/// Decodes what [`encode`] wrote.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenListTokenizer {
    token: Token,
}

impl Tokenizer for TokenListTokenizer {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        self.token.reset();
        Stream { rest: text, token: &mut self.token }
    }
}

/// The tokens of an encoded list.
pub(super) struct Stream<'a> {
    rest: &'a str,
    token: &'a mut Token,
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        let mut step = 1;
        let mut characters = self.rest.chars();
        match characters.next() {
            Some(SAME) => step = 0,
            Some(SKIP) => {
                let Some((places, rest)) = characters.as_str().split_once(NEXT) else { return false };
                step = places.parse().unwrap_or(1);
                characters = rest.chars();
            }
            Some(_) => {}
            None => return false,
        }
        let rest = characters.as_str();
        let end = rest.find([NEXT, SAME, SKIP]).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        // The first position is 0: resetting a token sets its position to `usize::MAX`.
        self.token.position = self.token.position.wrapping_add(step);
        self.token.text.clear();
        self.token.text.push_str(word);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back() {
        let tokens = [(0, "get"), (0, "getuser"), (1, "user"), (101, "body"), (102, "1.2.3"), (102, "1")];
        let tokens: Vec<words::Token> =
            tokens.map(|(position, text)| words::Token { text: text.to_owned(), position }).to_vec();
        let listed = encode(&tokens);
        let mut tokenizer = TokenListTokenizer::default();
        for _ in 0..2 {
            let mut stream = tokenizer.token_stream(&listed);
            for token in &tokens {
                assert!(stream.advance());
                let read = stream.token();
                assert_eq!((read.position, &read.text), (token.position as usize, &token.text));
            }
            assert!(!stream.advance());
        }
        assert!(!tokenizer.token_stream("").advance());
    }
}
