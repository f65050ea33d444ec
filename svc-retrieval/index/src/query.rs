//! Parses the text of a search: `plain words`, `"quoted phrases"`, `-excluded` words and `-"phrases"`.

use std::collections::HashSet;
use std::sync::Arc;

use uuid::Uuid;

use super::tuning::MAX_WORDS_BESIDE_A_PHRASE;
use super::words::{ContainerExpansion, ContainerNames};

/// A parsed search text. Parsing never fails: malformed syntax is parsed as words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedQuery {
    words: Vec<String>,
    phrases: Vec<String>,
    excluded: Vec<String>,
    text: String,
    expansion: Option<ContainerExpansion>,
}

impl ParsedQuery {
    /// Parses a search text.
    ///
    /// An unmatched quote is dropped. A dash excludes only at the start of a word and before a letter, a digit or a quote, so `--release`,
    /// `a-b` and ` - ` are plain words. In a query of many plain words, which is prose, quotes mark names and do not require phrases: its
    /// phrases are parsed as words.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut parsed = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            rest = parsed.read_part(rest).trim_start();
        }
        if parsed.words.len() > MAX_WORDS_BESIDE_A_PHRASE {
            let phrases = std::mem::take(&mut parsed.phrases);
            let words = phrases.iter().flat_map(|phrase| phrase.split_whitespace());
            parsed.words.extend(words.filter(|word| is_word(word)).map(str::to_owned));
        }
        parsed
    }

    /// Plain words; a match needs at least one.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Quoted phrases; a match contains all of them.
    #[must_use]
    pub fn phrases(&self) -> &[String] {
        &self.phrases
    }

    /// Excluded words and phrases; a match contains none of them.
    #[must_use]
    pub fn excluded(&self) -> &[String] {
        &self.excluded
    }

    /// The query without exclusions and quotes, in the given order: the text that is embedded for semantic search.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same query, whose words, phrases and exclusions also match the names of these containers; `searched` restricts them, `None` for
    /// all.
    #[must_use]
    pub fn with_container_names(
        &self,
        names: Arc<ContainerNames>,
        searched: Option<Arc<HashSet<Uuid>>>,
    ) -> Self {
        Self { expansion: Some(ContainerExpansion::new(names, searched)), ..self.clone() }
    }

    pub(crate) const fn expansion(&self) -> Option<&ContainerExpansion> {
        self.expansion.as_ref()
    }

    /// Parses one word or phrase at the start of a non-empty text without leading spaces; returns the rest.
    fn read_part<'a>(&mut self, text: &'a str) -> &'a str {
        let negated = text.strip_prefix('-').filter(|after| after.starts_with(begins_excludable));
        let after_dash = negated.unwrap_or(text);
        let Some(after_quote) = after_dash.strip_prefix(is_quote) else {
            let end = after_dash.find(ends_word).unwrap_or(after_dash.len());
            let (word, rest) = after_dash.split_at(end);
            self.add(word, Kind::Word, negated.is_some());
            return rest;
        };
        match after_quote.split_once(is_quote) {
            Some((phrase, rest)) => {
                self.add(phrase.trim(), Kind::Phrase, negated.is_some());
                rest
            }
            None => after_quote,
        }
    }

    fn add(&mut self, part: &str, kind: Kind, negated: bool) {
        if !is_word(part) {
            return;
        }
        let list = match (negated, kind) {
            (true, _) => &mut self.excluded,
            (false, Kind::Word) => &mut self.words,
            (false, Kind::Phrase) => &mut self.phrases,
        };
        list.push(part.to_owned());
        if !negated {
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(part);
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Word,
    Phrase,
}

fn is_word(part: &str) -> bool {
    part.contains(char::is_alphanumeric)
}

fn is_quote(character: char) -> bool {
    matches!(character, '"' | '“' | '”' | '„')
}

fn begins_excludable(character: char) -> bool {
    character.is_alphanumeric() || is_quote(character)
}

fn ends_word(character: char) -> bool {
    character.is_whitespace() || is_quote(character)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ParsedQuery;

    #[track_caller]
    fn check(text: &str, words: &[&str], phrases: &[&str], excluded: &[&str]) {
        let parsed = ParsedQuery::parse(text);
        assert_eq!(parsed.words(), words, "words of {text:?}");
        assert_eq!(parsed.phrases(), phrases, "phrases of {text:?}");
        assert_eq!(parsed.excluded(), excluded, "exclusions of {text:?}");
    }

    #[test]
    fn reads_words_phrases_and_exclusions() {
        check("how to deploy", &["how", "to", "deploy"], &[], &[]);
        check(r#"retry "rate limit" now"#, &["retry", "now"], &["rate limit"], &[]);
        check(r#"cats -dogs -"big birds""#, &["cats"], &[], &["dogs", "big birds"]);
        check("“curly quotes” too", &["too"], &["curly quotes"], &[]);
    }

    #[test]
    fn reads_odd_input_as_words() {
        check("", &[], &[], &[]);
        check("  - -- \"\" \" ", &[], &[], &[]);
        check("cargo --release read-your-writes", &["cargo", "--release", "read-your-writes"], &[], &[]);
        check("a 5\" pipe", &["a", "5", "pipe"], &[], &[]);
        check(r#"title:"two words"x"#, &["title:", "x"], &["two words"], &[]);
        check("-\"open end", &["open", "end"], &[], &[]);
        check("field:(a AND b) OR *", &["field:(a", "AND", "b)", "OR"], &[], &[]);
    }

    #[test]
    fn reads_the_quotes_of_prose_as_words() {
        let prose = r#"articles on systems that claim "what you see" is shown -paper"#;
        let words = ["articles", "on", "systems", "that", "claim", "is", "shown", "what", "you", "see"];
        check(prose, &words, &[], &["paper"]);
        check(
            r#"one two three four five six "a b""#,
            &["one", "two", "three", "four", "five", "six"],
            &["a b"],
            &[],
        );
    }

    #[test]
    fn keeps_the_text_to_embed_in_order() {
        let parsed = ParsedQuery::parse(r#"how does "rate limit" work -redis"#);
        assert_eq!(parsed.text(), "how does rate limit work");
    }

    proptest! {
        #[test]
        fn never_fails_and_loses_no_letter(text in any::<String>()) {
            let parsed = ParsedQuery::parse(&text);
            let kept: usize = [parsed.words(), parsed.phrases(), parsed.excluded()]
                .iter()
                .flat_map(|parts| parts.iter())
                .map(|part| part.chars().filter(|c| c.is_alphanumeric()).count())
                .sum();
            prop_assert_eq!(kept, text.chars().filter(|c| c.is_alphanumeric()).count());
        }

        #[test]
        fn syntax_heavy_input_never_fails(text in r#"[-"“” a-c]{0,40}"#) {
            let parsed = ParsedQuery::parse(&text);
            prop_assert!(parsed.words().iter().all(|word| !word.contains(char::is_whitespace)));
        }
    }
}
