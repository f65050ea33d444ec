//! `subscriptions/listen` of the modern era: notifications are streamed in the response of the request, for as long
//! as it stays open. No state survives it, so the endpoint remains stateless.
//!
//! A file and a database have changed when the feed says so. A memory, a folder or a source depends on many
//! documents: these are read again after each batch, and notified if their text differs.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::{Stream, StreamExt as _, stream};
use http::request::Parts;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Endpoint;
use super::envelope::Request;
use super::failure::Failure;
use super::resources::{self, Named};
use crate::answers::Change;
use crate::followers::{Batch, EntryPoint, Follower};
use crate::operations::Context;
use crate::operations::changes::{self, ListOptions};
use crate::rest::changes::unbuffered;

/// The method.
pub(super) const LISTEN: &str = "subscriptions/listen";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Limit of resources per subscription, and of those among them that have to be compared.
const MAX_RESOURCES: usize = 100;
const MAX_READ: usize = 10;
/// Interval of keep-alive comments, so that no proxy closes an idle stream.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Debounce between two batches, because comparing resources is expensive.
const MIN_BATCH_INTERVAL: Duration = Duration::from_millis(500);

/// The notifications that the client subscribed to.
struct Filter {
    prompts: bool,
    resources: bool,
    subscriptions: Vec<Subscription>,
}

/// A subscribed resource.
struct Subscription {
    uri: String,
    named: Named,
    /// The hash of its last text, for resources that are compared.
    digest: Option<blake3::Hash>,
}

/// Opens the stream.
pub(super) async fn listen(
    endpoint: &Endpoint,
    context: &Context,
    parts: &Parts,
    request: &Request,
) -> Result<Response, Failure> {
    let filter = Filter::read(context, request).await?;
    let permit =
        endpoint.follows.join(&context.identity).map_err(|problem| resources::failure_of(&problem))?;
    let options = ListOptions { after: None, limit: 1, wait: Duration::ZERO };
    let heads = changes::list(&context.upstreams, &context.call, options).await;
    let (_, cursor) = heads.map_err(|problem| resources::failure_of(&problem))?;
    let follower = Follower {
        permit,
        upstreams: Arc::clone(&endpoint.upstreams),
        authenticator: Arc::clone(&endpoint.authenticator),
        parts: parts.clone(),
        entry_point: EntryPoint::Mcp,
        cursor,
    };
    let id = request.id.clone();
    let acknowledged =
        message(&id, "notifications/subscriptions/acknowledged", json!({"notifications": filter.honoured()}));
    let notifications = Notifications {
        batches: Box::pin(follower.batches()),
        filter,
        context: context.clone(),
        id,
        waiting: VecDeque::new(),
        has_started: false,
    };
    let notifications = stream::unfold(notifications, |mut notifications| async {
        let message = notifications.next().await?;
        Some((message, notifications))
    });
    let events = stream::once(async { acknowledged }).chain(notifications);
    let events = events.map(|message| Ok::<_, Infallible>(Event::default().data(message.to_string())));
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_INTERVAL)).into_response();
    unbuffered(response.headers_mut());
    Ok(response)
}

impl Filter {
    /// The supported part of the request: tools change only with a release, and missing or unreadable resources are
    /// omitted.
    async fn read(context: &Context, request: &Request) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::invalid_params(format!("{LISTEN}: {what}"));
        let Some(Value::Object(options)) = request.params.get("notifications") else {
            return Err(wrong("`notifications` must be an object"));
        };
        let wants = |name: &str| options.get(name) == Some(&Value::Bool(true));
        let mut filter = Self {
            prompts: wants("promptsListChanged"),
            resources: wants("resourcesListChanged"),
            subscriptions: Vec::new(),
        };
        let uris = match options.get("resourceSubscriptions") {
            None | Some(Value::Null) => &Vec::new(),
            Some(Value::Array(uris)) if uris.len() <= MAX_RESOURCES => uris,
            Some(_) => {
                let message = format!("`resourceSubscriptions` must be at most {MAX_RESOURCES} addresses");
                return Err(wrong(&message));
            }
        };
        let mut read = 0_usize;
        for uri in uris {
            let Some(uri) = uri.as_str() else {
                return Err(wrong("each of `resourceSubscriptions` must be an address"));
            };
            let Some(named) = Named::parse(uri) else { continue };
            read += usize::from(is_compared(&named));
            if read > MAX_READ {
                let message = format!(
                    "at most {MAX_READ} memories, folders and sources of one subscription: open another for the rest"
                );
                return Err(wrong(&message));
            }
            if let Ok((_, text)) = resources::read_named(context, named.clone()).await {
                let digest = is_compared(&named).then(|| blake3::hash(text.as_bytes()));
                filter.subscriptions.push(Subscription { uri: uri.to_owned(), named, digest });
            }
        }
        Ok(filter)
    }

    fn honoured(&self) -> Value {
        let mut honoured = serde_json::Map::new();
        for (name, is_told) in
            [("promptsListChanged", self.prompts), ("resourcesListChanged", self.resources)]
        {
            if is_told {
                honoured.insert(name.to_owned(), Value::Bool(true));
            }
        }
        if !self.subscriptions.is_empty() {
            let uris: Vec<&str> =
                self.subscriptions.iter().map(|subscription| subscription.uri.as_str()).collect();
            honoured.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        Value::Object(honoured)
    }
}

/// Whether changes are detected by comparing the text.
const fn is_compared(named: &Named) -> bool {
    match named {
        Named::Memory(_) | Named::Folder(_) | Named::Source(_) => true,
        Named::File(_) | Named::Database(_) => false,
    }
}

/// The stream of notifications.
struct Notifications {
    batches: Pin<Box<dyn Stream<Item = Batch> + Send>>,
    filter: Filter,
    context: Context,
    id: Value,
    waiting: VecDeque<Value>,
    /// Whether the first batch was processed.
    has_started: bool,
}

impl Notifications {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            if std::mem::replace(&mut self.has_started, true) {
                sleep(MIN_BATCH_INTERVAL).await;
            }
            let Batch { changes, caller, call } = self.batches.next().await?;
            self.context.identity = caller;
            self.context.call = call;
            self.notify(&changes).await;
        }
    }

    /// Derives the notifications of a batch, each at most once.
    async fn notify(&mut self, changes: &[Change]) {
        let has = |kinds: &[&str]| changes.iter().any(|change| kinds.contains(&change.kind.as_str()));
        let ids: HashMap<&str, &str> =
            changes.iter().map(|change| (change.id.as_str(), change.op.as_str())).collect();
        if self.filter.prompts && has(&["memory"]) {
            self.push("notifications/prompts/list_changed", json!({}));
        }
        if self.filter.resources && has(&["memory", "file"]) {
            self.push("notifications/resources/list_changed", json!({}));
        }
        let mut changed = Vec::new();
        for subscription in &mut self.filter.subscriptions {
            let is_changed = match &subscription.named {
                Named::File(id) => ids.contains_key(id.to_string().as_str()),
                Named::Database(id) => ids.contains_key(id.to_string().as_str()),
                Named::Memory(_) | Named::Folder(_) | Named::Source(_) => {
                    let now = resources::read_named(&self.context, subscription.named.clone()).await;
                    // A deleted resource has changed, once.
                    let now = now.ok().map(|(_, text)| blake3::hash(text.as_bytes()));
                    std::mem::replace(&mut subscription.digest, now) != now
                }
            };
            if is_changed {
                changed.push(subscription.uri.clone());
            }
        }
        for uri in changed {
            self.push("notifications/resources/updated", json!({"uri": uri}));
        }
    }

    fn push(&mut self, method: &str, params: Value) {
        self.waiting.push_back(message(&self.id, method, params));
    }
}

/// A notification of the subscription, which is identified by its request's id.
fn message(id: &Value, method: &str, mut params: Value) -> Value {
    if let Some(fields) = params.as_object_mut() {
        fields.insert("_meta".to_owned(), json!({SUBSCRIPTION_ID: id}));
    }
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}
