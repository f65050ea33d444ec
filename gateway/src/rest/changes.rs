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
use crate::follow::Follows;
use crate::followers::{Door, Follower};
use crate::held::Holdings;
use crate::json_body::JsonBody;
use crate::operations::Context;
use crate::operations::changes::{self, Asked, Place};
use crate::schema::inputs;

inputs!(ListChanges);

const USUAL: u32 = 100;
const LAST_EVENT_ID: &str = "last-event-id";
/// A comment line, so that nothing on the way takes the stream for dead.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

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
    State(follows): State<Arc<Follows>>,
    State(app): State<App>,
    context: Context,
    Query(query): Query<ListChanges>,
    parts: Parts,
) -> Answer {
    let after = place("after", query.after.as_deref())?;
    if accepts_events(&parts.headers) {
        let seen = place("Last-Event-ID", text_of(&parts.headers, LAST_EVENT_ID))?;
        return stream(&follows, &app, &context, seen.or(after), parts).await;
    }
    let wait = Duration::from_secs(query.wait.unwrap_or_default().into());
    let asked = Asked { after, limit: query.limit.unwrap_or(USUAL), wait };
    let (changes, _) = if wait.is_zero() || after.is_none() {
        changes::list(&context.upstreams, &context.call, asked).await?
    } else {
        let mut seat = follows.join(&context.identity)?;
        // Nothing is worked on meanwhile, and seats are bounded by themselves.
        let _away = Holdings::let_go(&parts.extensions);
        tokio::select! {
            found = changes::list(&context.upstreams, &context.call, asked) => found?,
            // The server goes down: what there is by now is told without waiting.
            () = seat.ended() => {
                let asked = Asked { wait: Duration::ZERO, ..asked };
                changes::list(&context.upstreams, &context.call, asked).await?
            }
        }
    };
    let mut response = JsonBody(changes).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn place(path: &str, text: Option<&str>) -> Result<Option<Place>, Problem> {
    let read = |text: &str| {
        text.parse::<Place>().map_err(|_| {
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

/// The stream, from a place or from now.
async fn stream(
    follows: &Arc<Follows>,
    app: &App,
    context: &Context,
    from: Option<Place>,
    parts: Parts,
) -> Result<Response, Error> {
    let seat = follows.join(&context.identity)?;
    let place = match from {
        Some(place) => place,
        None => {
            let asked = Asked { after: None, limit: 1, wait: Duration::ZERO };
            changes::list(&context.upstreams, &context.call, asked).await?.1
        }
    };
    let follower = Follower {
        seat,
        upstreams: Arc::clone(&context.upstreams),
        authenticator: Arc::from_ref(app),
        parts,
        door: Door::Api,
        place,
    };
    let ready = Event::default().event("ready").id(place.to_string()).data("{}");
    let told = follower.changes().map(|(change, place)| {
        let data = serde_json::to_string(&change).unwrap_or_default();
        Event::default().event("change").id(place.to_string()).data(data)
    });
    let events = stream::once(async { ready }).chain(told).map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response();
    unbuffered(response.headers_mut());
    Ok(response)
}

/// Proxies that keep answers back until they are whole would keep a stream for ever.
pub(crate) fn unbuffered(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}
