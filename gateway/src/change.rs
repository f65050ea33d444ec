//! The consistency token (contract): converts between the text that callers hold and the feed positions of
//! retrieval.

use cairn_chassis::feed::{ChangeToken, Source};
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::retrieval::v1::FeedPosition;
use http::HeaderName;

/// The header that carries it, in both directions.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-cairn-change");
/// The key in `_meta` that carries it over MCP, in both directions.
pub(crate) const META: &str = "cairn/change";

/// There are fewer feeds than this, so more tokens are a mistake.
const MAX_TOKENS: usize = 8;

/// The token of a write to svc-content.
pub(crate) const fn of_content(position: u64) -> ChangeToken {
    ChangeToken { source: Source::Content, position }
}

/// The token of a write to svc-ingest.
pub(crate) const fn of_ingest(position: u64) -> ChangeToken {
    ChangeToken { source: Source::Ingest, position }
}

/// The feed position a search waits for to see a write.
pub(crate) fn of_token(token: ChangeToken) -> FeedPosition {
    FeedPosition { feed: token.source.as_str().to_owned(), position: token.position }
}

/// Parses a comma-separated list of tokens, the form of a repeated header: content and ingested documents have
/// separate feeds. `path` is the violation's path.
pub(crate) fn parse(text: &str, path: &str) -> Result<Vec<FeedPosition>, Problem> {
    let tokens: Result<Vec<ChangeToken>, _> =
        text.split(',').take(MAX_TOKENS + 1).map(|token| token.trim().parse()).collect();
    match tokens {
        Ok(tokens) if tokens.len() <= MAX_TOKENS => Ok(tokens.into_iter().map(of_token).collect()),
        Ok(_) | Err(_) => {
            let message = "must be a change token as a write answered it; leave it out if you have none";
            Err(Problem::validation(vec![Violation::new(path, "invalid_change", message)]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_its_position() {
        let read = |text: &str| {
            let positions = parse(text, "x")?.into_iter();
            Ok::<_, Problem>(positions.map(|read| (read.feed, read.position)).collect::<Vec<_>>())
        };
        assert_eq!(read(&of_content(42).to_string()), Ok(vec![("content".to_owned(), 42)]));
        let outside = of_ingest(7);
        let both = format!("{}, {outside}", of_content(42));
        assert_eq!(read(&both), Ok(vec![("content".to_owned(), 42), ("ingest".to_owned(), 7)]));
        for odd in ["nonsense", "", "c1-1,", &["c1-1"; 9].join(",")] {
            assert_eq!(read(odd).unwrap_err().violations[0].path, "x", "{odd}");
        }
    }
}
