//! A session of the calling person.

use cairn_proto::auth::v1 as proto;
use serde::Serialize;
use utoipa::ToSchema;

use super::{optional_time, time};

/// Where a person is signed in. Its secret is in no answer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OwnSession {
    #[schema(format = "uuid")]
    pub(crate) id: String,
    /// What it was opened with, as that named itself; empty when that is not known.
    #[schema(examples("Mozilla/5.0 (X11; Linux x86_64) Firefox/153.0"))]
    pub(crate) agent: String,
    /// Roughly where it was opened: `loopback`, `private`, or the network of a public address; empty when that is not known.
    #[schema(examples("203.0.113.0/24"))]
    pub(crate) place: String,
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// Within a minute; null when it has not been used since it was opened.
    #[schema(required = true, format = DateTime)]
    pub(crate) last_used_at: Option<String>,
    #[schema(format = DateTime)]
    pub(crate) expires_at: String,
    /// Whether it is the one that asks.
    pub(crate) current: bool,
}

impl From<proto::Session> for OwnSession {
    fn from(session: proto::Session) -> Self {
        Self {
            id: session.id,
            agent: session.agent,
            place: session.place,
            created_at: time(session.created_at.as_ref()),
            last_used_at: optional_time(session.last_used_at.as_ref()),
            expires_at: time(session.expires_at.as_ref()),
            current: session.current,
        }
    }
}
