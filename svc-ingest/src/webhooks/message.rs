//! What is sent: JSON, of which the changes are those that `GET /api/v1/changes` tells.

use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::feed::changes::VisibleChange;
use cairn_chassis::feed::{ChangeToken, Source};
use cairn_proto::domain::ChangeKind;
use cairn_proto::feed::v1::{Op, SeenChange};
use cairn_proto::ids::{WebhookId, WorkspaceId};
use serde::Serialize;

use crate::Error;
use crate::model::{Contents, Positions};

/// A change in the payload of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    change: String,
    kind: &'static str,
    id: String,
    op: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<Principal>,
    at: String,
}

/// Who wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Principal {
    kind: String,
    id: String,
    name: String,
}

impl Change {
    /// One of svc-content's; `None` when its kind or op is unknown to this version.
    pub(crate) fn of_content(change: SeenChange) -> Option<(ChangeKind, Self)> {
        let kind = ChangeKind::from_number(change.kind)?;
        let at = change.at.as_ref().map(|at| Timestamp::from_proto(at).to_rfc3339()).unwrap_or_default();
        let op = spelled(change.op())?;
        let change = Self {
            change: token(Source::Content, change.position),
            kind: kind.as_str(),
            id: change.item_id,
            op,
            version: change.version,
            principal: change.author.map(|author| Principal {
                kind: author.kind,
                id: author.id,
                name: author.name,
            }),
            at,
        };
        Some((kind, change))
    }

    /// One of this service's.
    pub(crate) fn of_ingest(seen: VisibleChange) -> Option<(ChangeKind, Self)> {
        let kind = ChangeKind::try_from(seen.kind).ok()?;
        let change = Self {
            change: token(Source::Ingest, seen.position),
            kind: kind.as_str(),
            id: seen.item_id,
            op: spelled(seen.op)?,
            version: None,
            principal: None,
            at: seen.at.to_rfc3339(),
        };
        Some((kind, change))
    }
}

const fn spelled(op: Op) -> Option<&'static str> {
    match op {
        Op::Upsert => Some("upsert"),
        Op::Delete => Some("delete"),
        Op::Unspecified => None,
    }
}

fn token(source: Source, position: u64) -> String {
    ChangeToken { source, position }.to_string()
}

/// The place behind both positions, as `after` of `GET /api/v1/changes`.
pub(crate) fn place(positions: Positions) -> String {
    format!("{}.{}", token(Source::Content, positions.content), token(Source::Ingest, positions.ingest))
}

/// What a delivery sends of these changes.
pub(crate) fn contents(changes: &[Change], positions: Positions) -> Result<Contents, Error> {
    let unwritable = |error| Error::Webhook(format!("changes cannot be written as JSON: {error}"));
    let changes = serde_json::to_string(changes).map_err(unwritable)?;
    Ok(Contents { changes, next: place(positions) })
}

/// The body of a delivery; the same at each try. Ids, times and places need no escapes in JSON.
pub(crate) fn changes(workspace: WorkspaceId, contents: &Contents, created_at: Timestamp) -> Bytes {
    let Contents { changes, next } = contents;
    let data = format!(r#"{{"workspaceId":"{workspace}","changes":{changes},"next":"{next}"}}"#);
    envelope("changes", created_at, &data)
}

/// The body of a test.
pub(crate) fn ping(workspace: WorkspaceId, webhook: WebhookId, now: Timestamp) -> Bytes {
    envelope("ping", now, &format!(r#"{{"workspaceId":"{workspace}","webhookId":"{webhook}"}}"#))
}

fn envelope(kind: &str, at: Timestamp, data: &str) -> Bytes {
    let at = at.to_rfc3339();
    format!(r#"{{"type":"{kind}","timestamp":"{at}","data":{data}}}"#).into()
}

#[cfg(test)]
mod tests {
    use cairn_proto::feed::v1::{ChangeAuthor, Kind};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_message_has_the_shape_of_the_feed_for_programs() {
        let at = Timestamp::from_seconds(1_800_000_000);
        let author = ChangeAuthor { kind: "token".into(), id: "t".into(), name: "CI".into() };
        let (kind, change) = Change::of_content(SeenChange {
            position: 36,
            kind: Kind::File.into(),
            item_id: "f".into(),
            op: Op::Upsert.into(),
            version: Some(2),
            author: Some(author),
            at: Some(at.to_proto()),
        })
        .unwrap();
        assert_eq!(kind, ChangeKind::File);
        let positions = Positions { content: 36, ingest: 1 };
        let contents = contents(&[change], positions).unwrap();
        let workspace = WorkspaceId(Uuid::from_u128(1));
        let body: Value = serde_json::from_slice(&changes(workspace, &contents, at)).unwrap();
        let expected = json!({
            "type": "changes",
            "timestamp": "2027-01-15T08:00:00.000Z",
            "data": {
                "workspaceId": workspace.to_string(),
                "changes": [{
                    "change": "c1-10", "kind": "file", "id": "f", "op": "upsert", "version": 2,
                    "principal": {"kind": "token", "id": "t", "name": "CI"}, "at": "2027-01-15T08:00:00.000Z",
                }],
                "next": "c1-10.i1-1",
            },
        });
        assert_eq!(body, expected);
    }
}
