//! The consistency token (contract) between callers, who hold it as text, and retrieval, which holds feed positions.

use cairn_chassis::feed::{ChangeToken, Source};
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::retrieval::v1::FeedPosition;
use http::HeaderName;

/// The header that carries it, in both directions.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-cairn-change");
/// The key in `_meta` that carries it over MCP, in both directions.
pub(crate) const META: &str = "cairn/change";

/// What retrieval calls the feed of svc-content.
const CONTENT: &str = "content";

/// The token of a write of svc-content.
pub(crate) const fn of_content(position: u64) -> ChangeToken {
    ChangeToken { source: Source::Content, position }
}

/// The token of a write of svc-ingest.
pub(crate) const fn of_ingest(position: u64) -> ChangeToken {
    ChangeToken { source: Source::Ingest, position }
}

/// What a search waits for to see that write of svc-content.
pub(crate) fn of_feed(position: u64) -> FeedPosition {
    FeedPosition { feed: CONTENT.to_owned(), position }
}

/// Reads a token that a caller sent back; `path` is where it stood.
pub(crate) fn parse(text: &str, path: &str) -> Result<FeedPosition, Problem> {
    let token: ChangeToken = text.parse().map_err(|_| {
        let message = "must be a change token as a write answered it; leave it out if you have none";
        Problem::validation(vec![Violation::new(path, "invalid_change", message)])
    })?;
    let feed = match token.source {
        Source::Content => CONTENT,
        Source::Ingest => "ingest",
    };
    Ok(FeedPosition { feed: feed.to_owned(), position: token.position })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_its_position() {
        let read = parse(&of_content(42).to_string(), "x").unwrap();
        assert_eq!((read.feed.as_str(), read.position), ("content", 42));
        let read = parse(&of_ingest(7).to_string(), "x").unwrap();
        assert_eq!((read.feed.as_str(), read.position), ("ingest", 7));
        assert_eq!(parse("nonsense", "x").unwrap_err().violations[0].path, "x");
    }
}
