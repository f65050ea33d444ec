//! The paths into its own crate that a source file names.

/// A path that begins with `crate`, `self` or `super`, and the name that an import gives to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    pub(super) name: Option<String>,
}

/// What a file says of modules.
#[derive(Debug, Default)]
pub(super) struct Source {
    pub(super) uses: Vec<Use>,
    /// Children that only tests have.
    pub(super) test_modules: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Step,
    Sign(char),
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let mut source = Self::default();
        let mut tokens = Tokens { all: tokenize(text), next: 0 };
        let mut is_test = false;
        while let Some(token) = tokens.take() {
            match token {
                Token::Sign('#') => is_test |= tokens.attribute_is_for_tests(),
                _ if is_test => {
                    is_test = false;
                    tokens.next -= 1;
                    source.test_modules.extend(tokens.skip_item());
                }
                Token::Word(word) => tokens.path(&word, &mut source.uses),
                // What follows a step began as the path of something else.
                Token::Step => drop(tokens.take()),
                Token::Sign(_) => {}
            }
        }
        source
    }
}

struct Tokens {
    all: Vec<Token>,
    next: usize,
}

impl Tokens {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.all.get(self.next + ahead)
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.all.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn is_sign(&self, sign: char) -> bool {
        self.peek(0) == Some(&Token::Sign(sign))
    }

    /// After the word with which a path may begin.
    fn path(&mut self, word: &str, uses: &mut Vec<Use>) {
        if matches!(word, "crate" | "self" | "super") && self.peek(0) == Some(&Token::Step) {
            self.tree(vec![word.to_owned()], uses);
        }
    }

    /// Parses the rest of a `use` tree after `path`: further segments, a group, a glob, a rename.
    fn tree(&mut self, mut path: Vec<String>, uses: &mut Vec<Use>) {
        while self.peek(0) == Some(&Token::Step) {
            match self.peek(1) {
                Some(Token::Word(word)) => path.push(word.clone()),
                Some(Token::Sign('{')) => {
                    self.next += 2;
                    return self.group(&path, uses);
                }
                _ => break,
            }
            self.next += 2;
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let mut name = path.last().cloned();
        if let (Some(Token::Word(word)), Some(Token::Word(other))) = (self.peek(0), self.peek(1))
            && word == "as"
        {
            name = Some(other.clone());
            self.next += 2;
        }
        uses.push(Use { path, name });
    }

    fn group(&mut self, before: &[String], uses: &mut Vec<Use>) {
        while let Some(token) = self.take() {
            match token {
                Token::Sign('}') => return,
                Token::Word(word) => self.tree([before, &[word]].concat(), uses),
                Token::Step | Token::Sign(_) => {}
            }
        }
    }

    /// Skips an attribute after its `#`; returns whether it is a `cfg(test)`.
    fn attribute_is_for_tests(&mut self) -> bool {
        if self.is_sign('!') {
            self.next += 1;
        }
        let begin = self.next;
        self.skip_brackets();
        let words = self.all.get(begin..self.next).unwrap_or_default();
        let has = |word: &str| words.contains(&Token::Word(word.to_owned()));
        has("cfg") && has("test") && !has("not")
    }

    /// Skips an item; returns its name if it is a module in another file.
    fn skip_item(&mut self) -> Option<String> {
        let mut module = None;
        while let Some(token) = self.take() {
            match (token, self.peek(0)) {
                (Token::Word(word), Some(Token::Word(name))) if word == "mod" => module = Some(name.clone()),
                (Token::Sign(';'), _) => return module,
                (Token::Sign('{'), _) => {
                    self.next -= 1;
                    self.skip_brackets();
                    // A `use` continues after its group.
                    if !self.is_sign(';') {
                        return None;
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Passes over brackets of any kind and what is in them.
    fn skip_brackets(&mut self) {
        let mut depth = 0_usize;
        while let Some(token) = self.take() {
            match token {
                Token::Sign('[' | '(' | '{') => depth += 1,
                Token::Sign(']' | ')' | '}') => depth = depth.saturating_sub(1),
                Token::Word(_) | Token::Step | Token::Sign(_) => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

/// Words, steps and signs, without comments and literals.
fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = literal_or_comment(rest);
        if skipped > 0 {
            rest = rest.get(skipped..).unwrap_or_default();
            continue;
        }
        let length = if is_of_word(first) {
            let word = rest.split(|other| !is_of_word(other)).next().unwrap_or_default();
            tokens.push(Token::Word(word.to_owned()));
            word.len()
        } else if rest.starts_with("::") {
            tokens.push(Token::Step);
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign(first));
            }
            first.len_utf8()
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    tokens
}

fn is_of_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// How many bytes a comment, a text or a character takes that `rest` begins with; 0 when it begins with something else.
fn literal_or_comment(rest: &str) -> usize {
    let until = |from: usize, end: &str| {
        rest.get(from..).and_then(|text| text.find(end)).map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("//") {
        return until(2, "\n");
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    let unprefixed = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    if let Some(raw) = unprefixed.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw.get(hashes..).is_some_and(|text| text.starts_with('"')) {
            let begin = rest.len() - raw.len() + hashes + 1;
            return until(begin, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    match unprefixed.chars().next() {
        Some(quote @ '"') => quoted(rest, rest.len() - unprefixed.len(), quote),
        Some(quote @ '\'') if is_character(unprefixed) => quoted(rest, rest.len() - unprefixed.len(), quote),
        _ => 0,
    }
}

/// Whether a text that begins with `'` begins with a character and not with a lifetime.
fn is_character(text: &str) -> bool {
    let mut after = text.chars().skip(1);
    match after.next() {
        Some('\\') => true,
        Some(_) => after.next() == Some('\''),
        None => false,
    }
}

/// The end of a literal whose opening quote is at `open`.
fn quoted(text: &str, open: usize, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip_while(|(at, _)| *at <= open) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            end if end == quote => return at + end.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The end of a comment, which may have others in it.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}
