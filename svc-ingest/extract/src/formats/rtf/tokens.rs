//! The tokenizer of RTF.

/// A token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    /// `\*`: readers that do not know this destination may ignore it.
    Ignorable,
    /// A byte of text in the file's charset.
    Byte(u8),
    /// A control symbol such as `\~`.
    Symbol(u8),
    /// A control word with its number.
    Word(&'a str, Option<i32>),
}

/// Iterates over the tokens.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    /// Parses a control after a backslash.
    fn control(&mut self) -> Option<Token<'a>> {
        let first = *self.rest.first()?;
        if first.is_ascii_alphabetic() {
            return Some(self.word());
        }
        self.skip(1);
        Some(match first {
            b'{' | b'}' | b'\\' => Token::Byte(first),
            b'*' => Token::Ignorable,
            b'\'' => {
                let digits = self.rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                self.skip(2);
                // Invalid and truncated hex digits are dropped.
                return digits
                    .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                    .map(Token::Byte)
                    .or_else(|| self.next());
            }
            symbol => Token::Symbol(symbol),
        })
    }

    fn word(&mut self) -> Token<'a> {
        let letters = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, after) = self.rest.split_at(letters);
        let sign = usize::from(after.first() == Some(&b'-'));
        let digits = after.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        let length = if digits == 0 { 0 } else { sign + digits };
        let value = after.get(..length).and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
        self.rest = after.get(length..).unwrap_or_default();
        if self.rest.first() == Some(&b' ') {
            self.skip(1);
        }
        let word = std::str::from_utf8(word).unwrap_or_default();
        if word == "bin" {
            self.skip(value.and_then(|bytes: i32| usize::try_from(bytes).ok()).unwrap_or_default());
        }
        Token::Word(word, value)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let first = *self.rest.first()?;
            self.skip(1);
            match first {
                b'{' => return Some(Token::Open),
                b'}' => return Some(Token::Close),
                b'\\' => return self.control(),
                // Raw line breaks are only formatting of the source.
                b'\r' | b'\n' | 0 => {}
                byte => return Some(Token::Byte(byte)),
            }
        }
    }
}
