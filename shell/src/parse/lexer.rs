//! Words and operators.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

use super::{Complaints, Refused, Word, refusal};

/// What a script is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// `|`
    Pipe,
    /// `;`
    Semicolon,
    /// The end of a line.
    Line,
    /// `&&`
    Both,
    /// `||`
    Either,
    /// `2>/dev/null` or `2>&1`
    Complaints(Complaints),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Word(word) => &word.text,
            Self::Pipe => "|",
            Self::Semicolon => ";",
            Self::Line => "a new line",
            Self::Both => "&&",
            Self::Either => "||",
            Self::Complaints(Complaints::Merged) => "2>&1",
            Self::Complaints(_) => "2>/dev/null",
            Self::End => "the end",
        })
    }
}

/// Splits a script into tokens, one at a time.
pub(super) struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(script: &'a str) -> Self {
        Self { rest: script.chars().peekable(), line: 1 }
    }

    pub(super) fn refuse(&self, why: String) -> Refused {
        Refused { line: self.line, why }
    }

    /// The next token after any empty lines.
    pub(super) fn next_command(&mut self) -> Result<Token, Refused> {
        loop {
            let token = self.next()?;
            if token != Token::Line {
                return Ok(token);
            }
        }
    }

    pub(super) fn next(&mut self) -> Result<Token, Refused> {
        self.skip_blanks();
        let Some(&first) = self.rest.peek() else { return Ok(Token::End) };
        match first {
            '\n' => {
                self.bump();
                Ok(Token::Line)
            }
            ';' => {
                self.bump();
                if self.rest.peek() == Some(&';') {
                    return Err(self.refuse("syntax error near `;;`: one `;` separates commands".to_owned()));
                }
                Ok(Token::Semicolon)
            }
            '|' => {
                self.bump();
                match self.rest.peek() {
                    Some('|') => {
                        self.bump();
                        Ok(Token::Either)
                    }
                    Some('&') => Err(self.refuse(refusal::PIPE_BOTH.to_owned())),
                    _ => Ok(Token::Pipe),
                }
            }
            '&' => {
                self.bump();
                match self.rest.peek() {
                    Some('&') => {
                        self.bump();
                        Ok(Token::Both)
                    }
                    Some('>') => Err(self.refuse(refusal::OUTPUT.to_owned())),
                    _ => Err(self.refuse(refusal::BACKGROUND.to_owned())),
                }
            }
            '>' | '<' => Err(self.redirection()),
            _ => self.word(),
        }
    }

    fn bump(&mut self) -> Option<char> {
        let next = self.rest.next();
        if next == Some('\n') {
            self.line += 1;
        }
        next
    }

    /// Skips blanks, comments and escaped line breaks.
    fn skip_blanks(&mut self) {
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' | '\t' | '\r' => {
                    self.bump();
                }
                '#' => {
                    while self.rest.peek().is_some_and(|next| *next != '\n') {
                        self.bump();
                    }
                }
                '\\' if self.rest.clone().nth(1) == Some('\n') => {
                    self.bump();
                    self.bump();
                }
                _ => return,
            }
        }
    }

    fn word(&mut self) -> Result<Token, Refused> {
        let mut word = WordBuilder::new();
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' => break,
                '>' | '<' => {
                    let number =
                        word.bare && !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
                    if number {
                        return self.numbered_redirection(&word.text);
                    }
                    return Err(self.redirection());
                }
                '(' => return Err(self.refuse(refusal::parenthesis(word.bare && !word.text.is_empty()))),
                ')' => return Err(self.refuse(refusal::parenthesis(false))),
                '`' => return Err(self.refuse(refusal::BACKTICKS.to_owned())),
                '\'' => {
                    self.bump();
                    self.single_quoted(&mut word)?;
                }
                '"' => {
                    self.bump();
                    self.double_quoted(&mut word)?;
                }
                '\\' => {
                    self.bump();
                    match self.bump() {
                        Some('\n') => {}
                        Some(escaped) => word.quoted(escaped),
                        None => word.quoted('\\'),
                    }
                }
                '$' => {
                    self.bump();
                    self.dollar(false)?;
                    word.plain('$');
                }
                other => {
                    self.bump();
                    word.plain(other);
                }
            }
        }
        if word.expands_braces {
            return Err(self.refuse(refusal::BRACES.to_owned()));
        }
        Ok(Token::Word(word.finish()))
    }

    fn single_quoted(&mut self, word: &mut WordBuilder) -> Result<(), Refused> {
        word.bare = false;
        let opened = self.line;
        loop {
            match self.bump() {
                Some('\'') => return Ok(()),
                Some(other) => word.quoted(other),
                None => return Err(Refused { line: opened, why: refusal::open_quote('\'') }),
            }
        }
    }

    fn double_quoted(&mut self, word: &mut WordBuilder) -> Result<(), Refused> {
        word.bare = false;
        let opened = self.line;
        loop {
            match self.bump() {
                Some('"') => return Ok(()),
                Some('`') => return Err(self.refuse(refusal::BACKTICKS.to_owned())),
                Some('$') => {
                    self.dollar(true)?;
                    word.quoted('$');
                }
                Some('\\') => match self.rest.peek().copied() {
                    Some('\n') => {
                        self.bump();
                    }
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        self.bump();
                        word.quoted(escaped);
                    }
                    _ => word.quoted('\\'),
                },
                Some(other) => word.quoted(other),
                None => return Err(Refused { line: opened, why: refusal::open_quote('"') }),
            }
        }
    }

    /// Rejects what follows an unquoted `$`; a `$` before anything else is literal.
    fn dollar(&mut self, in_quotes: bool) -> Result<(), Refused> {
        let why = match self.rest.peek().copied() {
            Some('(') => refusal::SUBSTITUTION.to_owned(),
            Some('{') => refusal::VARIABLE.to_owned(),
            Some('\'' | '"') if !in_quotes => refusal::DOLLAR_QUOTES.to_owned(),
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?$!-".contains(c) => refusal::VARIABLE.to_owned(),
            _ => return Ok(()),
        };
        Err(self.refuse(why))
    }

    /// A number before `>` or `<`: one of the two harmless redirections, or an error.
    fn numbered_redirection(&mut self, number: &str) -> Result<Token, Refused> {
        if number == "2" && self.rest.peek() == Some(&'>') {
            let mut ahead = self.rest.clone();
            ahead.next();
            if ahead.peek() == Some(&'&') {
                ahead.next();
                if ahead.next() == Some('1') && ahead.peek().is_none_or(|next| ends_word(*next)) {
                    self.rest = ahead;
                    return Ok(Token::Complaints(Complaints::Merged));
                }
                return Err(self.redirection());
            }
            while ahead.next_if(|next| matches!(next, ' ' | '\t')).is_some() {}
            let named = "/dev/null".chars().all(|expected| ahead.next() == Some(expected));
            if named && ahead.peek().is_none_or(|next| ends_word(*next)) {
                self.rest = ahead;
                return Ok(Token::Complaints(Complaints::Dropped));
            }
        }
        Err(self.redirection())
    }

    /// Why the redirection that begins here is rejected.
    fn redirection(&self) -> Refused {
        let mut ahead = self.rest.clone();
        let first = ahead.next();
        let second = ahead.next();
        self.refuse(match (first, second) {
            (Some('<'), Some('<')) => refusal::HERE_DOCUMENT.to_owned(),
            (Some('<' | '>'), Some('(')) => refusal::PROCESS_SUBSTITUTION.to_owned(),
            (Some('<'), _) => refusal::INPUT.to_owned(),
            _ => refusal::OUTPUT.to_owned(),
        })
    }
}

fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&')
}

/// A word under construction.
struct WordBuilder {
    text: String,
    glob: String,
    globs: bool,
    bare: bool,
    assigns: bool,
    brace_open: bool,
    brace_lists: bool,
    expands_braces: bool,
}

impl WordBuilder {
    fn new() -> Self {
        Self {
            text: String::new(),
            glob: String::new(),
            globs: false,
            bare: true,
            assigns: false,
            brace_open: false,
            brace_lists: false,
            expands_braces: false,
        }
    }

    /// Adds a literal character.
    fn quoted(&mut self, c: char) {
        self.bare = false;
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '!' | '^' | '-' | '~') {
            self.glob.push('\\');
        }
        self.glob.push(c);
        self.text.push(c);
    }

    /// Adds a character that is neither quoted nor escaped.
    fn plain(&mut self, c: char) {
        match c {
            '*' | '?' | '[' => self.globs = true,
            '=' => self.assigns |= self.bare && is_name(self.text.strip_suffix('+').unwrap_or(&self.text)),
            '{' => (self.brace_open, self.brace_lists) = (true, false),
            ',' => self.brace_lists |= self.brace_open,
            '.' => self.brace_lists |= self.brace_open && self.text.ends_with('.'),
            '}' => self.expands_braces |= self.brace_open && self.brace_lists,
            _ => {}
        }
        self.glob.push(c);
        self.text.push(c);
    }

    fn finish(self) -> Word {
        // `~` is the folder that `cd` without arguments goes to.
        let at_home = self.glob == "~" || self.glob.starts_with("~/");
        let homeless = |text: String| match text.strip_prefix('~') {
            Some("") if at_home => "/".to_owned(),
            Some(rest) if at_home => rest.to_owned(),
            _ => text,
        };
        Word {
            text: homeless(self.text),
            glob: self.globs.then(|| homeless(self.glob)),
            bare: self.bare,
            assigns: self.assigns,
        }
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
