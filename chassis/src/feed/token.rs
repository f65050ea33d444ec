//! The opaque value of `X-Cairn-Change`: a feed and a position in it.

use std::fmt;
use std::str::FromStr;

pub use cairn_proto::domain::Feed as Source;

const RADIX: u32 = 36;
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// `u64::MAX` in base 36.
const MAX_DIGITS: usize = 13;
/// The version of the format.
const VERSION: &str = "1-";

/// A position in a workspace's feed, as clients send it back: `c1-` or `i1-` and the position in base 36. It is opaque to
/// clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChangeToken {
    /// The feed.
    pub source: Source,
    /// The position.
    pub position: u64,
}

/// The text is not a change token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a change token: send the value of X-Cairn-Change back as it came")]
pub struct InvalidToken;

impl fmt::Display for ChangeToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::Content => "c",
            Source::Ingest => "i",
        };
        let mut digits = Vec::with_capacity(MAX_DIGITS);
        let mut rest = self.position;
        loop {
            let place = usize::try_from(rest % u64::from(RADIX)).unwrap_or_default();
            digits.push(char::from(DIGITS.get(place).copied().unwrap_or(b'0')));
            rest /= u64::from(RADIX);
            if rest == 0 {
                break;
            }
        }
        write!(formatter, "{source}{VERSION}{}", digits.iter().rev().collect::<String>())
    }
}

impl FromStr for ChangeToken {
    type Err = InvalidToken;

    /// Accepts exactly what [`fmt::Display`] writes: the encoding of a position is unique.
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let (source, rest) = match text.split_at_checked(1) {
            Some(("c", rest)) => (Source::Content, rest),
            Some(("i", rest)) => (Source::Ingest, rest),
            _ => return Err(InvalidToken),
        };
        let digits = rest.strip_prefix(VERSION).ok_or(InvalidToken)?;
        let is_padded = digits.starts_with('0') && digits.len() > 1;
        if is_padded || digits.len() > MAX_DIGITS || !digits.bytes().all(|digit| DIGITS.contains(&digit)) {
            return Err(InvalidToken);
        }
        let position = u64::from_str_radix(digits, RADIX).map_err(|_| InvalidToken)?;
        Ok(Self { source, position })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_survives_its_text(position: u64, is_content: bool) {
            let source = if is_content { Source::Content } else { Source::Ingest };
            let token = ChangeToken { source, position };
            prop_assert_eq!(token.to_string().parse(), Ok(token));
        }

        #[test]
        fn what_parses_has_one_spelling(text in "[ci]?1?-?[0-9a-zA-Z+ -]{0,15}") {
            if let Ok(token) = text.parse::<ChangeToken>() {
                prop_assert_eq!(token.to_string(), text);
            }
        }
    }

    #[test]
    fn only_tokens_are_tokens() {
        assert_eq!(ChangeToken { source: Source::Content, position: 35 }.to_string(), "c1-z");
        for odd in [
            "",
            "c",
            "c1-",
            "c1-00",
            "c1-A",
            "c1-+1",
            "x1-1",
            "c2-1",
            " c1-1",
            "c1-1 ",
            "c1-3w5e11264sgsg",
            "é1-1",
        ] {
            assert_eq!(odd.parse::<ChangeToken>(), Err(InvalidToken), "{odd}");
        }
    }
}
