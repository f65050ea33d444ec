//! The change feed (beyond the spec).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef as _, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use cairn_chassis::status::{Problem, Violation};
use futures::{StreamExt as _, stream};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::{Answer, text_of};
use crate::answers::Changes;
use crate::app::App;
use crate::error::Error;
use crate::extract::Query;
use crate::follow::FollowLimit;
use crate::followers::{EntryPoint, Follower};
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::changes::{self, Cursor, ListOptions};
use crate::schema::inputs;
use crate::suspension::Permits;

inputs!(ListChanges);

const DEFAULT_LIMIT: u32 = 100;
const LAST_EVENT_ID: &str = "last-event-id";
/// Interval of keep-alive comments, so that no proxy closes an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Which changes.
#[derive(Debug, Deserialize, ToSchema, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(super) struct ListChanges {
    /// Where to begin: `next` of the answer before, or the change token of a write, which is told of its own feed alone. Left
    /// out: no changes, and as `next` where the feed is now.
    #[schema(max_length = 64)]
    after: Option<String>,
    /// How many seconds to wait when there is no change yet: 0 to 25, 0 when left out.
    #[schema(minimum = 0, maximum = 25)]
    #[param(minimum = 0, maximum = 25)]
    wait: Option<u32>,
    /// How many at once: 1 to 1000, 100 when left out.
    #[schema(minimum = 1, maximum = 1000)]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Follow what changes in the workspace: ids, kinds and versions, no texts.
///
/// Ask for `next` without `after`, read the workspace, then ask for what came `after` it, again and again; with `wait` the answer
/// comes as soon as there is a change. Each change is told at least once, and in the order of the writes. With `Accept:
/// text/event-stream` the same comes as server-sent events: `ready` first, then a `change` for each, whose id is the place behind
/// it; `Last-Event-ID` goes on from there. A stream ends with the token, and when the server goes down.
///
/// A folder-scoped token is told of what its folders hold, and of memories. What leaves them, or went to trash, is told as
/// `delete`; what stands below a folder that is told as `delete` went with it.
#[utoipa::path(
    get, path = "/api/v1/changes", operation_id = "listChanges", tag = "Changes",
    params(
        ListChanges,
        ("Last-Event-ID" = Option<String>, Header, description = "Of a stream: the id of the last event that arrived."),
    ),
    responses(
        (status = 200, description = "The changes after that place.", body = Changes),
        (status = 429, description = "The token waits for changes too often at once.", body = crate::error::ErrorBody),
    ),
)]
pub(super) async fn list(
    State(follows): State<Arc<FollowLimit>>,
    State(app): State<App>,
    context: Context,
    Query(query): Query<ListChanges>,
    parts: Parts,
) -> Answer {
    let after = cursor("after", query.after.as_deref())?;
    if accepts_events(&parts.headers) {
        let seen = cursor("Last-Event-ID", text_of(&parts.headers, LAST_EVENT_ID))?;
        return stream(&follows, &app, &context, seen.or(after), parts).await;
    }
    let wait = Duration::from_secs(query.wait.unwrap_or_default().into());
    let options = ListOptions { after, limit: query.limit.unwrap_or(DEFAULT_LIMIT), wait };
    let (changes, _) = if wait.is_zero() || after.is_none() {
        changes::list(&context.upstreams, &context.call, options).await?
    } else {
        let mut permit = follows.join(&context.identity)?;
        // A long poll uses no capacity, and followers have a limit of their own.
        let _suspended = Permits::suspend(&parts.extensions);
        tokio::select! {
            found = changes::list(&context.upstreams, &context.call, options) => found?,
            // On shutdown, respond with what there is without waiting.
            () = permit.shutdown() => {
                let options = ListOptions { wait: Duration::ZERO, ..options };
                changes::list(&context.upstreams, &context.call, options).await?
            }
        }
    };
    let mut response = JsonBody(changes).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn cursor(path: &str, text: Option<&str>) -> Result<Option<Cursor>, Problem> {
    let read = |text: &str| {
        text.parse::<Cursor>().map_err(|_| {
            let message = "must be `next` of an answer before, or the change token of a write, as it came";
            Problem::validation(vec![Violation::new(path, "invalid_change", message)])
        })
    };
    text.map(read).transpose()
}

fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    types.any(|one| one.split(';').next().is_some_and(|one| one.trim() == "text/event-stream"))
}

/// The event stream, from a cursor or from now.
async fn stream(
    follows: &Arc<FollowLimit>,
    app: &App,
    context: &Context,
    from: Option<Cursor>,
    parts: Parts,
) -> Result<Response, Error> {
    let permit = follows.join(&context.identity)?;
    let cursor = match from {
        Some(cursor) => cursor,
        None => {
            let options = ListOptions { after: None, limit: 1, wait: Duration::ZERO };
            changes::list(&context.upstreams, &context.call, options).await?.1
        }
    };
    let follower = Follower {
        permit,
        upstreams: Arc::clone(&context.upstreams),
        authenticator: Arc::from_ref(app),
        parts,
        entry_point: EntryPoint::Api,
        cursor,
    };
    let ready = Event::default().event("ready").id(cursor.to_string()).data("{}");
    let told = follower.changes().map(|(change, cursor)| {
        let data = serde_json::to_string(&change).unwrap_or_default();
        Event::default().event("change").id(cursor.to_string()).data(data)
    });
    let events = stream::once(async { ready }).chain(told).map(Ok::<_, Infallible>);
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)).into_response();
    unbuffered(response.headers_mut());
    Ok(response)
}

/// Buffering proxies would hold a stream back for ever.
pub(crate) fn unbuffered(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}
