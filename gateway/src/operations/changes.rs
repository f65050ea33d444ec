//! The change feed of a workspace: changes after a cursor, with long polling. The services filter by what the caller
//! may see.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::feed::{ChangeToken, InvalidToken, Source};
use cairn_chassis::status::Problem;
use cairn_proto::feed::v1::{ListChangesRequest, ListChangesResponse};
use futures::future::{self, Either};

use super::answered;
use crate::answers::{Change, Changes};
use crate::upstreams::Upstreams;

/// Reserved so that a long poll responds before its deadline.
const MARGIN: Duration = Duration::from_secs(2);

/// A cursor: the position in each feed. One that lacks a feed reads only the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cursor {
    content: Option<u64>,
    ingest: Option<u64>,
}

impl Cursor {
    /// The position in the content feed.
    pub(crate) const fn of_content(self) -> Option<u64> {
        self.content
    }

    fn of(self, feed: Source) -> Option<u64> {
        match feed {
            Source::Content => self.content,
            Source::Ingest => self.ingest,
        }
    }

    /// The cursor advanced to a position of one feed.
    pub(crate) fn at(self, token: ChangeToken) -> Self {
        let position = Some(token.position);
        match token.source {
            Source::Content => Self { content: position, ..self },
            Source::Ingest => Self { ingest: position, ..self },
        }
    }
}

/// As `c1-z.i1-4`, or the single token of one feed.
impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = |source: Source| Some(ChangeToken { source, position: self.of(source)? }.to_string());
        let tokens: Vec<String> = [Source::Content, Source::Ingest].into_iter().filter_map(token).collect();
        formatter.write_str(&tokens.join("."))
    }
}

impl FromStr for Cursor {
    type Err = InvalidToken;

    /// Parses what [`fmt::Display`] writes, and the token of a write.
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let mut cursor = Self::default();
        for token in text.split('.') {
            let token: ChangeToken = token.parse()?;
            if cursor.of(token.source).is_some() {
                return Err(InvalidToken);
            }
            cursor = cursor.at(token);
        }
        Ok(cursor)
    }
}

/// Options of a read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListOptions {
    /// `None` returns the heads of the feeds.
    pub(crate) after: Option<Cursor>,
    /// The maximum number of changes.
    pub(crate) limit: u32,
    /// How long to wait if there are none.
    pub(crate) wait: Duration,
}

/// Changes read so far.
struct Part {
    changes: Vec<Change>,
    next: Cursor,
    has_more: bool,
}

impl Part {
    fn take(&mut self, feed: Source, answer: ListChangesResponse) {
        self.next = self.next.at(ChangeToken { source: feed, position: answer.last });
        self.has_more |= answer.has_more;
        self.changes.extend(answer.changes.into_iter().map(|change| Change::read(feed, change)));
    }

    fn done(self) -> (Changes, Cursor) {
        let next = self.next.to_string();
        (Changes { changes: self.changes, next, has_more: self.has_more }, self.next)
    }
}

/// The changes after a cursor that are visible to the caller, and the next cursor.
pub(crate) async fn list(
    upstreams: &Upstreams,
    call: &Call,
    options: ListOptions,
) -> Result<(Changes, Cursor), Problem> {
    let Some(after) = options.after else { return heads(upstreams, call).await };
    let mut part = Part { changes: Vec::new(), next: after, has_more: false };
    for feed in [Source::Content, Source::Ingest] {
        let room = options.limit.saturating_sub(u32::try_from(part.changes.len()).unwrap_or(u32::MAX));
        let Some(position) = after.of(feed) else { continue };
        if room == 0 {
            part.has_more = true;
            continue;
        }
        part.take(feed, read(upstreams, call, feed, Some(position), room, Duration::ZERO).await?);
    }
    let wait = options.wait.min(call.remaining().saturating_sub(MARGIN));
    if part.changes.is_empty() && !part.has_more && !wait.is_zero() {
        wait_for(upstreams, call, options.limit, wait, &mut part).await?;
    }
    Ok(part.done())
}

/// The heads of the feeds.
async fn heads(upstreams: &Upstreams, call: &Call) -> Result<(Changes, Cursor), Problem> {
    let mut part = Part { changes: Vec::new(), next: Cursor::default(), has_more: false };
    for feed in [Source::Content, Source::Ingest] {
        part.take(feed, read(upstreams, call, feed, None, 1, Duration::ZERO).await?);
    }
    Ok(part.done())
}

/// Waits until a feed has changes or the time is up.
async fn wait_for(
    upstreams: &Upstreams,
    call: &Call,
    limit: u32,
    wait: Duration,
    part: &mut Part,
) -> Result<(), Problem> {
    let cursor = part.next;
    let told = async |feed: Source| match cursor.of(feed) {
        Some(position) => read(upstreams, call, feed, Some(position), limit, wait).await.map(Some),
        None => future::pending().await,
    };
    let (content, ingest) = (Box::pin(told(Source::Content)), Box::pin(told(Source::Ingest)));
    let (feed, answer, other) = match future::select(content, ingest).await {
        Either::Left((answer, ingest)) => (Source::Content, answer?, Either::Right(ingest)),
        Either::Right((answer, content)) => (Source::Ingest, answer?, Either::Left(content)),
    };
    let Some(answer) = answer else { return Ok(()) };
    let is_over = answer.changes.is_empty();
    part.take(feed, answer);
    let other_feed = match feed {
        Source::Content => Source::Ingest,
        Source::Ingest => Source::Content,
    };
    // Both wait equally long; the slower one may just have changes, too.
    if is_over
        && cursor.of(other_feed).is_some()
        && let Some(answer) = other.await?
    {
        part.take(other_feed, answer);
    }
    Ok(())
}

async fn read(
    upstreams: &Upstreams,
    call: &Call,
    feed: Source,
    after: Option<u64>,
    limit: u32,
    wait: Duration,
) -> Result<ListChangesResponse, Problem> {
    let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
    let request = call.request(ListChangesRequest { after, limit, wait_ms });
    let mut client = match feed {
        Source::Content => upstreams.seen_content(),
        Source::Ingest => upstreams.seen_ingest(),
    };
    answered(client.list_changes(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_from_its_text_and_nothing_else_does() {
        for text in ["c1-z.i1-4", "c1-0", "i1-7"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for odd in ["", ".", "c1-1.", "c1-1.c1-2", "i1-1.i1-1", "x1-1", "c1-1.i1-2.c1-3", "1", "é"] {
            assert!(odd.parse::<Cursor>().is_err(), "{odd}");
        }
        let cursor = "c1-1.i1-2".parse::<Cursor>().unwrap();
        assert_eq!(cursor.at("i1-9".parse().unwrap()).to_string(), "c1-1.i1-9");
    }
}
