//! The cursor of an event stream, which is the id of its events.

use std::fmt;
use std::str::FromStr;

use cairn_chassis::feed::{ChangeToken, InvalidToken, Source};

/// The last position sent of each feed: `c1-z.i1-4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    content: u64,
    ingest: u64,
}

impl Position {
    pub(super) const fn of(self, feed: Source) -> u64 {
        match feed {
            Source::Content => self.content,
            Source::Ingest => self.ingest,
        }
    }

    /// Advances to a position; `false` if it was already reached.
    pub(super) fn advance(&mut self, feed: Source, to: u64) -> bool {
        let place = match feed {
            Source::Content => &mut self.content,
            Source::Ingest => &mut self.ingest,
        };
        let is_new = to > *place;
        *place = to.max(*place);
        is_new
    }

    /// Clamped to the heads: a higher cursor came from another deployment.
    pub(super) fn within(self, heads: Self) -> Self {
        Self { content: self.content.min(heads.content), ingest: self.ingest.min(heads.ingest) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = |source| ChangeToken { source, position: self.of(source) };
        write!(formatter, "{}.{}", token(Source::Content), token(Source::Ingest))
    }
}

impl FromStr for Position {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let (content, ingest) = text.split_once('.').ok_or(InvalidToken)?;
        let (content, ingest): (ChangeToken, ChangeToken) = (content.parse()?, ingest.parse()?);
        if (content.source, ingest.source) != (Source::Content, Source::Ingest) {
            return Err(InvalidToken);
        }
        Ok(Self { content: content.position, ingest: ingest.position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_from_its_id_and_nothing_else_does() {
        let mut position = Position::default();
        assert!(position.advance(Source::Content, 35) && position.advance(Source::Ingest, 4));
        assert!(!position.advance(Source::Content, 35), "told before");
        assert_eq!(position.to_string(), "c1-z.i1-4");
        assert_eq!("c1-z.i1-4".parse::<Position>().unwrap(), position);
        for odd in ["", ".", "c1-z", "i1-4.c1-z", "c1-z.c1-z", "c1-z.i1-4.i1-4", "c1-Z.i1-4", "35.4", "é.é"]
        {
            assert!(odd.parse::<Position>().is_err(), "{odd}");
        }
        let heads = "c1-a.i1-9".parse::<Position>().unwrap();
        assert_eq!(position.within(heads).to_string(), "c1-a.i1-4");
    }
}
