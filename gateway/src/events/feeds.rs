//! The change feeds of the services that own documents, read as a service of the mesh.

use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::feed::Source;
use cairn_chassis::status::Problem;
use cairn_proto::feed::v1::{Change, ReadFeedRequest, ReadFeedResponse};
use cairn_proto::ids::WorkspaceId;

use super::Event;
use super::position::Position;
use crate::error;
use crate::upstreams::Upstreams;

const BUDGET: Duration = Duration::from_secs(5);
/// More changes than this are reported as one event: the page reloads anyway.
const MAX_CHANGES: u32 = 200;

async fn read(
    upstreams: &Upstreams,
    feed: Source,
    workspace: WorkspaceId,
    after: u64,
    limit: u32,
) -> Result<ReadFeedResponse, Problem> {
    let message = ReadFeedRequest { workspace_id: workspace.to_string(), after, limit };
    let mut client = match feed {
        Source::Content => upstreams.content_changes(),
        Source::Ingest => upstreams.ingest_changes(),
    };
    let answer = client.read_feed(Call::within(BUDGET).request(message)).await;
    answer.map(tonic::Response::into_inner).map_err(|status| error::from_upstream(&status))
}

/// The heads of the feeds. If svc-ingest is unavailable, its head counts as 0.
pub(super) async fn heads(upstreams: &Upstreams, workspace: WorkspaceId) -> Result<Position, Problem> {
    let head = async |feed| read(upstreams, feed, workspace, u64::MAX, 1).await.map(|page| page.head);
    let (content, ingest) = tokio::join!(head(Source::Content), head(Source::Ingest));
    let mut heads = Position::default();
    heads.advance(Source::Content, content?);
    match ingest {
        Ok(position) => {
            heads.advance(Source::Ingest, position);
        }
        Err(problem) => tracing::debug!(%problem, "events do without what comes from outside"),
    }
    Ok(heads)
}

/// The changes after a position. A feed that cannot be read is retried in the next round.
pub(super) async fn since(upstreams: &Upstreams, workspace: WorkspaceId, after: Position) -> Vec<Event> {
    let of = async |feed: Source| {
        let position = after.of(feed);
        match read(upstreams, feed, workspace, position, MAX_CHANGES).await {
            Ok(page) => to_events(feed, position, page),
            Err(problem) => {
                tracing::debug!(%problem, feed = feed.as_str(), "a feed cannot be read now");
                Vec::new()
            }
        }
    };
    let (mut content, ingest) = tokio::join!(of(Source::Content), of(Source::Ingest));
    content.extend(ingest);
    content
}

fn to_events(feed: Source, after: u64, page: ReadFeedResponse) -> Vec<Event> {
    let last = page.changes.last().map_or(after, |change| change.position);
    if page.head > last {
        return vec![Event::Changes { feed, position: page.head }];
    }
    page.changes.into_iter().map(|change| event(feed, change)).collect()
}

fn event(feed: Source, change: Change) -> Event {
    let (kind, op) = (change.kind(), change.op());
    Event::Change { feed, position: change.position, kind, id: change.item_id, op }
}

#[cfg(test)]
mod tests {
    use cairn_proto::feed::v1::{Kind, Op};

    use super::*;

    #[test]
    fn many_changes_are_told_as_one() {
        let change = |position| Change {
            position,
            kind: Kind::SourceDocument.into(),
            item_id: "x".to_owned(),
            op: Op::Upsert.into(),
        };
        let page = |head| ReadFeedResponse { changes: vec![change(8), change(9)], head };
        let few = to_events(Source::Ingest, 7, page(9));
        assert_eq!(
            few.iter().map(|event| serde_json::to_string(event).unwrap()).collect::<Vec<_>>(),
            [8, 9].map(|at| format!(
                "{{\"feed\":\"ingest\",\"position\":{at},\"kind\":\"source_document\",\"id\":\"x\",\"op\":\"upsert\"}}"
            ))
        );
        assert_eq!(
            to_events(Source::Ingest, 7, page(5_000)),
            [Event::Changes { feed: Source::Ingest, position: 5_000 }]
        );
        assert_eq!(to_events(Source::Content, 7, ReadFeedResponse { changes: Vec::new(), head: 7 }), []);
    }
}
