//! Messages on Slack, searched live for each question: nothing is listed or stored.

mod objects;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_proto::domain::SourceMode;
use http::{Method, header};
use serde::Deserialize;
use url::Url;

use self::objects::{Channel, Hit, Message, address, message_id, place_of};
use crate::connect::Draft;
use crate::rest::{Api, Items, MAX_BODY_BYTES, MAX_BODY_PAGES, MAX_LIST_BYTES, read};
use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Listing, Page, Position,
    Provider, Search, Traits, Version,
};

/// Slack's terms allow searches, but not copies.
pub(crate) const MODES: &[SourceMode] = &[SourceMode::Live];

const HOST: &str = "https://slack.com/api";
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
const CHANNEL_TYPES: [&str; 4] = ["public_channel", "private_channel", "mpim", "im"];
/// Results of one search.
const MAX_HITS: usize = 20;
/// Entries of each cache.
const MAX_REMEMBERED: usize = 1_000;
/// The wait for a rate limit without a reset time: Slack's limits are per minute.
const UNSAID_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Slack {
    api: Api,
    channel_types: Vec<String>,
    /// Caches whether channels are of the selected types.
    channels: Mutex<HashMap<String, bool>>,
    /// Caches the permalinks of found threads.
    links: Mutex<HashMap<ExternalId, String>>,
}

/// The result of a method.
enum MethodResult {
    Good(Bytes),
    /// The method is not allowed for this type of token.
    NotAllowed,
    /// The channel or thread does not exist.
    Gone,
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let settings = &mut draft.settings;
    let channel_types: Vec<String> = settings.choices("channelTypes", &CHANNEL_TYPES);
    let has_base = settings.value("baseUrl").is_some();
    let base = settings.address("baseUrl", draft.reach.guard());
    let advice = "give a user token (`xoxp-…`) of an app of your own with the scope `search:read.public`";
    let Ok(bearer) = draft.credentials.required_secret("token", advice)?.bearer() else {
        draft.credentials.refuse("token", "invalid_value", "cannot stand in an HTTP header");
        return None;
    };
    // A user token sees the user's private channels, which are only searched if selected.
    let channel_types =
        if channel_types.is_empty() { vec!["public_channel".to_owned()] } else { channel_types };
    let api =
        Api::new(if has_base { base? } else { Url::parse(HOST).ok()? }).with(header::AUTHORIZATION, bearer);
    Some(Box::new(Slack { api, channel_types, channels: Mutex::default(), links: Mutex::default() }))
}

impl Slack {
    async fn ask(
        &self,
        call: &Call,
        method: &str,
        arguments: &[(&str, &str)],
    ) -> Result<MethodResult, Fault> {
        #[derive(Deserialize)]
        struct Outcome {
            ok: bool,
            #[serde(default)]
            error: Option<String>,
        }
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(arguments).finish();
        let mut request = self.api.request(Method::POST, &self.api.at([method]), Bytes::from(form))?;
        let form_type = header::HeaderValue::from_static("application/x-www-form-urlencoded");
        request.headers_mut().insert(header::CONTENT_TYPE, form_type);
        let answer = call.send(request, MAX_LIST_BYTES).await?;
        let outcome: Outcome = read(answer.body())?;
        if outcome.ok {
            return Ok(MethodResult::Good(answer.into_body()));
        }
        match outcome.error.as_deref().unwrap_or_default() {
            "invalid_auth"
            | "not_authed"
            | "account_inactive"
            | "token_revoked"
            | "token_expired"
            | "no_permission_to_use_token" => Err(Fault::Credentials),
            "ratelimited" | "rate_limited" => Err(call.hold_for(UNSAID_LIMIT).await),
            "missing_scope"
            | "not_allowed_token_type"
            | "unknown_method"
            | "method_deprecated"
            | "feature_not_enabled"
            | "assistant_search_context_disabled" => Ok(MethodResult::NotAllowed),
            "access_denied"
            | "team_access_not_granted"
            | "enterprise_is_restricted"
            | "ekm_access_denied" => Err(Fault::Forbidden),
            "channel_not_found" | "thread_not_found" | "message_not_found" | "not_in_channel"
            | "is_archived" => Ok(MethodResult::Gone),
            "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => {
                Err(Fault::Unavailable)
            }
            _ => Err(Fault::Refused),
        }
    }

    /// The semantic search for assistants.
    async fn search_context(&self, call: &Call, query: &str, limit: &str) -> Result<Option<Vec<Hit>>, Fault> {
        #[derive(Deserialize)]
        struct Found<'a> {
            #[serde(borrow)]
            results: Results<'a>,
        }
        #[derive(Deserialize)]
        struct Results<'a> {
            #[serde(borrow, default)]
            messages: Items<'a>,
        }
        let types = self.channel_types.join(",");
        let arguments =
            [("query", query), ("content_types", "messages"), ("channel_types", &types), ("limit", limit)];
        match self.ask(call, "assistant.search.context", &arguments).await {
            // Hosts without the method also answer this way.
            Ok(MethodResult::NotAllowed) | Err(Fault::Gone) => Ok(None),
            Ok(MethodResult::Gone) => Ok(Some(Vec::new())),
            Err(fault) => Err(fault),
            Ok(MethodResult::Good(body)) => {
                let found: Found<'_> = read(&body)?;
                Ok(Some(found.results.messages.each::<Hit>().flatten().collect()))
            }
        }
    }

    /// Whether a channel is of a selected type: ids can be guessed, and the token may reach more.
    async fn is_chosen(&self, call: &Call, channel: &str) -> Result<bool, Fault> {
        #[derive(Deserialize)]
        struct Found {
            channel: Channel,
        }
        if CHANNEL_TYPES.iter().all(|kind| self.channel_types.iter().any(|chosen| chosen == kind)) {
            return Ok(true);
        }
        let known = self.channels.lock().unwrap_or_else(PoisonError::into_inner).get(channel).copied();
        if let Some(is_chosen) = known {
            return Ok(is_chosen);
        }
        let is_chosen = match self.ask(call, "conversations.info", &[("channel", channel)]).await? {
            MethodResult::Good(body) => {
                let kind = read::<Found>(&body)?.channel.kind();
                self.channel_types.iter().any(|chosen| chosen == kind)
            }
            MethodResult::Gone => false,
            MethodResult::NotAllowed => return Err(Fault::Forbidden),
        };
        self.cache_channel(channel, is_chosen);
        Ok(is_chosen)
    }

    fn cache_channel(&self, channel: &str, is_chosen: bool) {
        insert_bounded(&self.channels, channel.to_owned(), is_chosen);
    }

    /// The permalink of a thread; optional.
    async fn link(&self, call: &Call, id: &ExternalId) -> Option<String> {
        #[derive(Deserialize)]
        struct Link {
            permalink: String,
        }
        let known = self.links.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        if known.is_some() {
            return known;
        }
        let (channel, ts) = place_of(id.as_str())?;
        let arguments = [("channel", channel), ("message_ts", ts)];
        let Ok(MethodResult::Good(body)) = self.ask(call, "chat.getPermalink", &arguments).await else {
            return None;
        };
        let link = read::<Link>(&body).ok().and_then(|link| address(Some(&link.permalink)))?;
        insert_bounded(&self.links, id.clone(), link.clone());
        Some(link)
    }

    /// The older keyword search.
    async fn search_messages(&self, call: &Call, query: &str, limit: &str) -> Result<Vec<Hit>, Fault> {
        #[derive(Deserialize)]
        struct Found<'a> {
            #[serde(borrow)]
            messages: Matches<'a>,
        }
        #[derive(Deserialize)]
        struct Matches<'a> {
            #[serde(borrow, default)]
            matches: Items<'a>,
        }
        match self.ask(call, "search.messages", &[("query", query), ("count", limit)]).await? {
            MethodResult::NotAllowed => Err(Fault::Forbidden),
            MethodResult::Gone => Ok(Vec::new()),
            MethodResult::Good(body) => {
                let found: Found<'_> = read(&body)?;
                let hits = found.messages.matches.each::<Hit>().flatten();
                Ok(hits
                    .filter(|hit| self.channel_types.iter().any(|kind| kind == hit.channel_type()))
                    .collect())
            }
        }
    }
}

fn insert_bounded<K: Eq + Hash, V>(known: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MAX_REMEMBERED {
        known.clear();
    }
    known.insert(key, value);
}

#[async_trait]
impl Provider for Slack {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::BestEffort,
            changes: Changes::None,
            deletions: Deletions::ByProbe,
            gone_after: None,
            search: Search::Semantic,
            every: EVERY,
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        #[derive(Deserialize)]
        struct Me {
            #[serde(default)]
            team: Option<String>,
            #[serde(default)]
            user: Option<String>,
        }
        let MethodResult::Good(body) = self.ask(call, "auth.test", &[]).await? else {
            return Err(Fault::Forbidden);
        };
        let me: Me = read(&body)?;
        let name = [me.user, me.team].into_iter().flatten().collect::<Vec<_>>().join(" at ");
        let words = "Slack answers. What the token's owner may search in these kinds of channels is shown to every member of the workspace.";
        Ok(Account::new(Some(&name), words))
    }

    async fn list(&self, _call: &Call, _from: Option<&Position>) -> Result<Page, Fault> {
        Err(Fault::Refused)
    }

    /// Fetches a thread: a message with its replies.
    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        #[derive(Deserialize)]
        struct Thread<'a> {
            #[serde(borrow)]
            messages: Items<'a>,
            #[serde(default)]
            has_more: bool,
            #[serde(default)]
            response_metadata: Option<Metadata>,
        }
        #[derive(Deserialize)]
        struct Metadata {
            #[serde(default)]
            next_cursor: Option<String>,
        }
        let Some((channel, ts)) = place_of(id.as_str()) else { return Ok(Fetched::Gone) };
        if !self.is_chosen(call, channel).await? {
            return Ok(Fetched::Gone);
        }
        let (mut text, mut cursor) = (String::new(), String::new());
        for _ in 0..MAX_BODY_PAGES {
            let arguments = [("channel", channel), ("ts", ts), ("limit", "200"), ("cursor", cursor.as_str())];
            let arguments =
                if cursor.is_empty() { arguments.get(..3).unwrap_or_default() } else { &arguments };
            let body = match self.ask(call, "conversations.replies", arguments).await? {
                MethodResult::Good(body) => body,
                MethodResult::Gone => return Ok(Fetched::Gone),
                MethodResult::NotAllowed => return Err(Fault::Forbidden),
            };
            let thread: Thread<'_> = read(&body)?;
            for message in thread.messages.each::<Message>().flatten() {
                message.add_to(&mut text);
            }
            if text.len() > MAX_BODY_BYTES {
                return Ok(Fetched::TooLarge(text.len() as u64));
            }
            let next = thread.response_metadata.and_then(|metadata| metadata.next_cursor).unwrap_or_default();
            if !thread.has_more || next.is_empty() || next == cursor {
                break;
            }
            cursor = next;
        }
        if text.is_empty() {
            return Ok(Fetched::Gone);
        }
        let version = Version::of_bytes(text.as_bytes());
        if known == Some(&version) {
            return Ok(Fetched::Same);
        }
        let mut body = Body::new(text, "text/markdown", version);
        body.url = self.link(call, id).await;
        Ok(Fetched::Body(body))
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        let size = limit.clamp(1, MAX_HITS).to_string();
        let query: String = query.chars().take(500).collect();
        let hits = match self.search_context(call, &query, &size).await? {
            Some(hits) => hits,
            None => self.search_messages(call, &query, &size).await?,
        };
        let mut entries: Vec<Entry> = Vec::new();
        for hit in hits {
            let entry = message_id(&hit).map(|id| hit.entry(id));
            // Messages of a thread are merged into one document.
            entries.extend(entry.filter(|entry| entries.iter().all(|known| known.id != entry.id)));
        }
        entries.truncate(limit);
        // Both searches are restricted to the selected types, so no channel needs a lookup.
        for (channel, _) in entries.iter().filter_map(|entry| place_of(entry.id.as_str())) {
            self.cache_channel(channel, true);
        }
        for entry in &entries {
            if let Some(link) = &entry.url {
                insert_bounded(&self.links, entry.id.clone(), link.clone());
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
