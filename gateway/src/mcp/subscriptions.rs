//! `subscriptions/listen` of the modern era: notifications as the answer of the request that asks for them, for as long as it
//! stands open. Nothing is kept between two of them, so it is as stateless as everything else here.
//!
//! A file and a database have changed when the feed says so. What a memory, a folder or a source shows depends on many
//! documents: these are read anew when something changed, and told when they are different.

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
use crate::followers::{Door, Follower, Round};
use crate::operations::Context;
use crate::operations::changes::{self, Asked};
use crate::rest::changes::unbuffered;

/// The method.
pub(super) const LISTEN: &str = "subscriptions/listen";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Resources of one subscription; of those that are read anew to see whether they changed, fewer.
const MOST_RESOURCES: usize = 100;
const MOST_READ: usize = 10;
/// A comment line, so that nothing on the way takes the stream for dead.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// Between two rounds, however much happens: what is read anew costs.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// What is told.
struct Filter {
    prompts: bool,
    resources: bool,
    watched: Vec<Watched>,
}

/// A resource that is watched.
struct Watched {
    uri: String,
    named: Named,
    /// What it showed, where that is compared.
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
    let seat = endpoint.follows.join(&context.identity).map_err(|problem| resources::failure_of(&problem))?;
    let asked = Asked { after: None, limit: 1, wait: Duration::ZERO };
    let heads = changes::list(&context.upstreams, &context.call, asked).await;
    let (_, place) = heads.map_err(|problem| resources::failure_of(&problem))?;
    let follower = Follower {
        seat,
        upstreams: Arc::clone(&endpoint.upstreams),
        authenticator: Arc::clone(&endpoint.authenticator),
        parts: parts.clone(),
        door: Door::Mcp,
        place,
    };
    let id = request.id.clone();
    let acknowledged =
        message(&id, "notifications/subscriptions/acknowledged", json!({"notifications": filter.honoured()}));
    let told = Told {
        rounds: Box::pin(follower.rounds()),
        filter,
        context: context.clone(),
        id,
        waiting: VecDeque::new(),
        has_told: false,
    };
    let told = stream::unfold(told, |mut told| async {
        let message = told.next().await?;
        Some((message, told))
    });
    let events = stream::once(async { acknowledged }).chain(told);
    let events = events.map(|message| Ok::<_, Infallible>(Event::default().data(message.to_string())));
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response();
    unbuffered(response.headers_mut());
    Ok(response)
}

impl Filter {
    /// Of what is asked for, what there is: tools change with the release alone, and what is not there or may not be read is
    /// left out.
    async fn read(context: &Context, request: &Request) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::invalid_params(format!("{LISTEN}: {what}"));
        let Some(Value::Object(asked)) = request.params.get("notifications") else {
            return Err(wrong("`notifications` must be an object"));
        };
        let wants = |name: &str| asked.get(name) == Some(&Value::Bool(true));
        let mut filter = Self {
            prompts: wants("promptsListChanged"),
            resources: wants("resourcesListChanged"),
            watched: Vec::new(),
        };
        let uris = match asked.get("resourceSubscriptions") {
            None | Some(Value::Null) => &Vec::new(),
            Some(Value::Array(uris)) if uris.len() <= MOST_RESOURCES => uris,
            Some(_) => {
                let message = format!("`resourceSubscriptions` must be at most {MOST_RESOURCES} addresses");
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
            if read > MOST_READ {
                let message = format!(
                    "at most {MOST_READ} memories, folders and sources of one subscription: open another for the rest"
                );
                return Err(wrong(&message));
            }
            if let Ok((_, text)) = resources::read_named(context, named.clone()).await {
                let digest = is_compared(&named).then(|| blake3::hash(text.as_bytes()));
                filter.watched.push(Watched { uri: uri.to_owned(), named, digest });
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
        if !self.watched.is_empty() {
            let uris: Vec<&str> = self.watched.iter().map(|watched| watched.uri.as_str()).collect();
            honoured.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        Value::Object(honoured)
    }
}

/// Whether it is read to see whether it has changed.
const fn is_compared(named: &Named) -> bool {
    match named {
        Named::Memory(_) | Named::Folder(_) | Named::Source(_) => true,
        Named::File(_) | Named::Database(_) => false,
    }
}

/// A stream that goes on.
struct Told {
    rounds: Pin<Box<dyn Stream<Item = Round> + Send>>,
    filter: Filter,
    context: Context,
    id: Value,
    waiting: VecDeque<Value>,
    /// Whether a round was over.
    has_told: bool,
}

impl Told {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            if std::mem::replace(&mut self.has_told, true) {
                sleep(LEAST_PAUSE).await;
            }
            let Round { changes, caller, call } = self.rounds.next().await?;
            self.context.identity = caller;
            self.context.call = call;
            self.judge(&changes).await;
        }
    }

    /// Puts together what a round's changes mean for who listens: each notification once.
    async fn judge(&mut self, changes: &[Change]) {
        let has = |kinds: &[&str]| changes.iter().any(|change| kinds.contains(&change.kind.as_str()));
        let ids: HashMap<&str, &str> =
            changes.iter().map(|change| (change.id.as_str(), change.op.as_str())).collect();
        if self.filter.prompts && has(&["memory"]) {
            self.tell("notifications/prompts/list_changed", json!({}));
        }
        if self.filter.resources && has(&["memory", "file"]) {
            self.tell("notifications/resources/list_changed", json!({}));
        }
        let mut changed = Vec::new();
        for watched in &mut self.filter.watched {
            let is_changed = match &watched.named {
                Named::File(id) => ids.contains_key(id.to_string().as_str()),
                Named::Database(id) => ids.contains_key(id.to_string().as_str()),
                Named::Memory(_) | Named::Folder(_) | Named::Source(_) => {
                    let now = resources::read_named(&self.context, watched.named.clone()).await;
                    // What is gone has changed, once.
                    let now = now.ok().map(|(_, text)| blake3::hash(text.as_bytes()));
                    std::mem::replace(&mut watched.digest, now) != now
                }
            };
            if is_changed {
                changed.push(watched.uri.clone());
            }
        }
        for uri in changed {
            self.tell("notifications/resources/updated", json!({"uri": uri}));
        }
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.waiting.push_back(message(&self.id, method, params));
    }
}

/// A notification of the subscription that the request of that id opened.
fn message(id: &Value, method: &str, mut params: Value) -> Value {
    if let Some(fields) = params.as_object_mut() {
        fields.insert("_meta".to_owned(), json!({SUBSCRIPTION_ID: id}));
    }
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}
