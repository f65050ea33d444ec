//! The tokenizer: prose, identifiers, versions, scripts without spaces.

use std::iter::Peekable;
use std::str::CharIndices;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfkc};

/// The maximum length of a word in bytes; longer ones, which are encoded data, are truncated.
const MAX_WORD_BYTES: usize = 64;

/// The maximum number of pieces of a name that is also indexed as one word; anything longer is a list or a URL.
const MAX_PIECES: usize = 8;

/// Longer runs whose camel-case parts are shorter than [`SHORT_PART`] on average are encoded data.
const LONG_RUN: usize = 16;
const SHORT_PART: usize = 3;

/// The kind of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word, or a part of a name. Consecutive parts have consecutive positions.
    Part,
    /// A whole name of several parts (`getUserName` as `getusername`), at the position of its first part.
    Name,
    /// One character of a script without spaces.
    Character,
    /// A bigram of a script without spaces, at the position of its first character.
    Pair,
}

/// A word in lower case, with accents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its letters and digits.
    pub text: String,
    /// Its position in the text.
    pub position: u32,
    /// Its kind.
    pub kind: Kind,
}

/// The words of a text. Words do not depend on what precedes or follows them beyond whitespace.
pub fn split(text: &str) -> Vec<Word> {
    if text.is_ascii() || is_nfkc(text) {
        return Splitter { text, at: 0, position: 0, words: Vec::new() }.run();
    }
    let normal: String = text.nfkc().collect();
    Splitter { text: &normal, at: 0, position: 0, words: Vec::new() }.run()
}

struct Splitter<'a> {
    text: &'a str,
    at: usize,
    position: u32,
    words: Vec<Word>,
}

/// A run of letters and digits within a name.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    run: &'a str,
    /// A suffix: `++` or `#`.
    mark: &'a str,
    /// Whether a dot separates it from the previous piece.
    after_dot: bool,
}

impl Piece<'_> {
    fn is_number(&self) -> bool {
        self.run.bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl<'a> Splitter<'a> {
    fn run(mut self) -> Vec<Word> {
        while let Some(offset) = self.rest().find(char::is_alphanumeric) {
            self.at += offset;
            let pieces = self.read_name();
            self.add_name(&pieces);
        }
        self.words
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = self.rest().get(..length).unwrap_or_default();
        self.at += taken.len();
        taken
    }

    /// Reads pieces as long as they are separated only by a joint.
    fn read_name(&mut self) -> Vec<Piece<'a>> {
        let mut pieces: Vec<Piece<'a>> = Vec::new();
        let mut joint = "";
        loop {
            let rest = self.rest();
            let run = self.take(rest.find(ends_run).unwrap_or(rest.len()));
            let mark = self.take(mark_length(run, self.rest()));
            // Drops a possessive `'s`.
            if !(joint.starts_with(is_apostrophe) && matches!(run, "s" | "S")) {
                pieces.push(Piece { run, mark, after_dot: joint == "." });
            }
            match joint_length(self.rest(), mark) {
                Some(length) => joint = self.take(length),
                None => break,
            }
        }
        without_v(&mut pieces);
        pieces
    }

    fn add_name(&mut self, pieces: &[Piece<'a>]) {
        let first = self.position;
        let mut version: Option<(String, u32)> = None;
        let mut whole = String::new();
        for piece in pieces {
            let position = self.position;
            let continues = piece.after_dot && piece.is_number();
            match version.as_mut() {
                Some((text, _)) if continues => {
                    text.push('.');
                    text.push_str(piece.run);
                }
                _ => {
                    self.add_version(version.take());
                    version = piece.is_number().then(|| (piece.run.to_owned(), position));
                }
            }
            if continues && whole.ends_with(|last: char| last.is_ascii_digit()) {
                whole.push('.');
            }
            whole.push_str(piece.run);
            whole.push_str(piece.mark);
            self.add_piece(*piece);
        }
        let is_version = version.as_ref().is_some_and(|(text, _)| *text == whole);
        self.add_version(version);
        let is_name = (2..=MAX_PIECES).contains(&pieces.len()) && whole.len() <= MAX_WORD_BYTES;
        if is_name && !is_version && !whole.contains(is_unspaced) {
            self.add(&whole, first, Kind::Name);
        }
    }

    /// Dotted numbers are also one word: 1.2.3 is neither 1 nor 123.
    fn add_version(&mut self, version: Option<(String, u32)>) {
        if let Some((text, position)) = version.filter(|(text, _)| text.contains('.')) {
            self.add(&text, position, Kind::Name);
        }
    }

    fn add_piece(&mut self, piece: Piece<'a>) {
        let mut rest = piece.run;
        while !rest.is_empty() {
            let unspaced = rest.starts_with(is_unspaced);
            let changes = |c: char| !is_inner_mark(c) && is_unspaced(c) != unspaced;
            let (run, following) = rest.split_at(rest.find(changes).unwrap_or(rest.len()));
            rest = following;
            if unspaced {
                self.add_unspaced(run);
            } else {
                let mark = if rest.is_empty() { piece.mark } else { "" };
                self.add_run(run, mark);
            }
        }
    }

    fn add_unspaced(&mut self, run: &str) {
        let mut clusters = clusters(run).peekable();
        while let Some(cluster) = clusters.next() {
            let position = self.position;
            self.add(cluster, position, Kind::Character);
            if let Some(next) = clusters.peek() {
                self.add(&[cluster, next].concat(), position, Kind::Pair);
            }
            self.position += 1;
        }
    }

    fn add_run(&mut self, run: &str, mark: &str) {
        let first = self.position;
        let parts = parts(run);
        for (place, part) in parts.iter().enumerate() {
            let is_last = place + 1 == parts.len();
            if is_last && !mark.is_empty() {
                self.add(&[part, mark].concat(), self.position, Kind::Part);
            }
            // A single letter is not indexed without its suffix: C is not C++.
            if !is_last || mark.is_empty() || part.len() > 1 {
                self.add(part, self.position, Kind::Part);
            }
            self.position += 1;
        }
        if parts.len() > 1 {
            self.add(run, first, Kind::Name);
        }
    }

    fn add(&mut self, text: &str, position: u32, kind: Kind) {
        let mut text = if text.is_ascii() {
            text.to_ascii_lowercase()
        } else {
            text.to_lowercase().replace(is_invisible, "")
        };
        text.truncate(text.floor_char_boundary(MAX_WORD_BYTES));
        self.words.push(Word { text, position, kind });
    }
}

/// Strips the `v` of versions: v1.2 is 1.2.
fn without_v(pieces: &mut [Piece<'_>]) {
    for place in 0..pieces.len() {
        let dotted = pieces.get(place + 1).is_some_and(|next| next.after_dot && next.is_number());
        if let Some(piece) = pieces.get_mut(place).filter(|_| dotted)
            && let Some(number) = piece.run.strip_prefix(['v', 'V'])
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
        {
            piece.run = number;
        }
    }
}

/// Splits camel case: `getHTTPServer` is `get`, `HTTP`, `Server`. Encoded data is not split.
fn parts(run: &str) -> Vec<&str> {
    let has_inner_capital = run.chars().skip(1).any(char::is_uppercase);
    if !has_inner_capital || run.len() > MAX_WORD_BYTES {
        return vec![run];
    }
    let mut parts = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (offset, current) in run.char_indices() {
        let mut after = run.get(offset..).unwrap_or_default().chars().skip(1);
        if before.is_some_and(|before| begins_part(before, current, after.next(), after.next())) {
            parts.extend(run.get(start..offset));
            start = offset;
        }
        before = Some(current);
    }
    parts.extend(run.get(start..));
    if run.len() > LONG_RUN && parts.len() * SHORT_PART > run.len() {
        return vec![run];
    }
    parts
}

fn begins_part(before: char, current: char, next: Option<char>, second: Option<char>) -> bool {
    let next_is_lower = next.is_some_and(char::is_lowercase);
    // The `s` of `URLs` and `IDs`.
    let is_plural = next == Some('s') && second.is_none_or(char::is_uppercase);
    current.is_uppercase()
        && if before.is_uppercase() || before.is_numeric() { next_is_lower && !is_plural } else { true }
}

/// Characters with their combining marks.
fn clusters(run: &str) -> impl Iterator<Item = &str> {
    struct Clusters<'a> {
        run: &'a str,
        rest: Peekable<CharIndices<'a>>,
    }
    impl<'a> Iterator for Clusters<'a> {
        type Item = &'a str;

        fn next(&mut self) -> Option<&'a str> {
            let (start, _) = self.rest.next()?;
            while self.rest.next_if(|(_, c)| is_inner_mark(*c)).is_some() {}
            let end = self.rest.peek().map_or(self.run.len(), |(offset, _)| *offset);
            self.run.get(start..end)
        }
    }
    Clusters { run, rest: run.char_indices().peekable() }
}

fn ends_run(c: char) -> bool {
    !c.is_alphanumeric() && !is_inner_mark(c)
}

/// What stands within a word besides letters and digits.
fn is_inner_mark(c: char) -> bool {
    !c.is_ascii() && (is_combining_mark(c) || is_invisible(c))
}

/// The soft hyphen and the joiners.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{2060}' | '\u{fe0e}' | '\u{fe0f}')
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

/// The bytes of `++` or `#` at the start of what follows a run (C++, C#).
fn mark_length(run: &str, following: &str) -> usize {
    if following.starts_with("++") && !following.starts_with("+++") {
        return 2;
    }
    let sharp = following.strip_prefix('#').is_some_and(|after| !after.starts_with(char::is_alphanumeric));
    usize::from(sharp && run.ends_with(|last: char| last.is_ascii_alphabetic()))
}

/// The bytes of what joins a run to the next one; none where a name ends.
fn joint_length(following: &str, mark: &str) -> Option<usize> {
    if !mark.is_empty() && following.starts_with(char::is_alphanumeric) {
        return Some(0);
    }
    let first = following.chars().next()?;
    let length = match first {
        '_' => following.len() - following.trim_start_matches('_').len(),
        '-' | '.' | '@' | '&' | '·' | '\u{2010}' => first.len_utf8(),
        _ if is_apostrophe(first) => first.len_utf8(),
        _ => return None,
    };
    let after = following.get(length..)?;
    after.starts_with(char::is_alphanumeric).then_some(length)
}

/// Whether a character is of a script that sets no spaces between words, or of Korean, whose endings stick to them.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(
        u32::from(c),
        0x0e00..=0x0eff // Thai, Lao
        | 0x1000..=0x109f // Burmese
        | 0x1100..=0x11ff // Korean letters
        | 0x1780..=0x17ff // Khmer
        | 0x3005..=0x3007
        | 0x3040..=0x30ff // Japanese
        | 0x31f0..=0x31ff
        | 0x3400..=0x4dbf // Chinese
        | 0x4e00..=0x9fff
        | 0xac00..=0xd7ff // Korean
        | 0xf900..=0xfaff
        | 0x20000..=0x3ffff
    )
}
