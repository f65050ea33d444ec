//! Issues and documents of Linear.

mod objects;
mod queries;

use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SourceMode;
use http::header;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use url::Url;

use self::objects::{Comment, Listed, Node, PageInfo};
use crate::connect::Draft;
use crate::limit::{Limit, asked_wait};
use crate::rest::{Api, Collected, Items, MAX_BODY_BYTES, MAX_BODY_PAGES, MAX_LIST_BYTES, read};
use crate::{
    Account, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, Listing, Page, Position,
    Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const SHAPE: u16 = 1;
const HOST: &str = "https://api.linear.app";
/// Linear discourages polling.
const EVERY: Duration = Duration::from_secs(15 * 60);
const OVERLAP: Duration = Duration::from_secs(2 * 60);
const PAGE: u32 = 100;
/// Documents per page, which include their text.
const DOCUMENT_PAGE: u32 = 25;
/// The wait for a rate limit without a reset header: Linear's leaky bucket refills continuously.
const UNSAID_LIMIT: Duration = Duration::from_secs(60);
/// Hourly limits of requests, of requests per endpoint, and of query complexity. Reset times are in milliseconds.
const LIMITS: [Limit; 3] = [
    Limit { remaining: "x-ratelimit-requests-remaining", reset: "x-ratelimit-requests-reset" },
    Limit {
        remaining: "x-ratelimit-endpoint-requests-remaining",
        reset: "x-ratelimit-endpoint-requests-reset",
    },
    Limit { remaining: "x-ratelimit-complexity-remaining", reset: "x-ratelimit-complexity-reset" },
];

#[derive(Debug)]
struct Linear {
    api: Api,
    mode: SourceMode,
}

/// The cursor of a listing or of changes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Place {
    stage: Stage,
    after: Option<String>,
    /// The latest change at the start, in microseconds: writes during the listing are later.
    latest: Option<i64>,
    /// The start of the changes; `None` in a listing.
    since: Option<i64>,
}

/// The stages of reading a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    #[default]
    Issues,
    /// For issues of which only comments changed.
    Comments,
    Documents,
}

/// The result of a query.
enum QueryResult {
    Data(String),
    NotFound,
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let has_base = draft.settings.value("baseUrl").is_some();
    let base = draft.settings.address("baseUrl", draft.reach.guard());
    let token = draft
        .credentials
        .required_secret("token", "give a personal API key (`lin_api_…`) or an OAuth token")?;
    // API keys are sent bare; Linear rejects them with `Bearer`.
    let header = if token.expose().starts_with("lin_oauth_") { token.bearer() } else { token.plain() };
    let Ok(header) = header else {
        draft.credentials.refuse("token", "invalid_value", "cannot stand in an HTTP header");
        return None;
    };
    let base = if has_base { base? } else { Url::parse(HOST).ok()? };
    Some(Box::new(Linear { api: Api::new(base).with(header::AUTHORIZATION, header), mode: draft.mode }))
}

impl Linear {
    /// Sends a query; returns the data as JSON text.
    async fn ask(&self, call: &Call, query: &str, variables: &Value) -> Result<QueryResult, Fault> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow, default)]
            data: Option<&'a RawValue>,
            #[serde(default)]
            errors: Vec<Refusal>,
        }
        #[derive(Deserialize)]
        struct Refusal {
            #[serde(default)]
            message: String,
            #[serde(default)]
            extensions: Extensions,
        }
        #[derive(Default, Deserialize)]
        struct Extensions {
            #[serde(default)]
            code: Option<String>,
        }
        let body = json!({ "query": query, "variables": variables });
        let request = self.api.posting(&self.api.at(["graphql"]), &body)?;
        let response = call.exchange(request, MAX_LIST_BYTES).await?;
        let answer: Answer<'_> = match read(response.body()) {
            Ok(answer) => answer,
            Err(fault) => {
                crate::call::judge(response.status())?;
                return Err(fault);
            }
        };
        let code = answer.errors.first().and_then(|error| error.extensions.code.as_deref());
        match code {
            Some("RATELIMITED") => {
                let wait = asked_wait(response.headers(), &LIMITS, call.now());
                return Err(call.hold_for(wait.unwrap_or(UNSAID_LIMIT)).await);
            }
            Some("AUTHENTICATION_ERROR") => return Err(Fault::Credentials),
            Some("FORBIDDEN") => return Err(Fault::Forbidden),
            _ => {}
        }
        if answer.errors.iter().any(|error| error.message.starts_with("Entity not found")) {
            return Ok(QueryResult::NotFound);
        }
        crate::call::judge(response.status())?;
        match answer.data.filter(|_| answer.errors.is_empty()) {
            Some(data) => Ok(QueryResult::Data(data.get().to_owned())),
            None => Err(Fault::Refused),
        }
    }

    /// The latest change, in microseconds; zero for an empty workspace.
    async fn latest(&self, call: &Call) -> Result<i64, Fault> {
        #[derive(Deserialize)]
        struct Data {
            issues: Newest,
            comments: Newest,
            documents: Newest,
        }
        #[derive(Deserialize)]
        struct Newest {
            nodes: Vec<Written>,
        }
        #[derive(Deserialize)]
        struct Written {
            #[serde(rename = "updatedAt")]
            at: String,
        }
        let QueryResult::Data(data) = self.ask(call, queries::LATEST, &json!({})).await? else {
            return Err(Fault::Refused);
        };
        let data: Data = read(data.as_bytes())?;
        let newest = [data.issues, data.comments, data.documents].into_iter().flat_map(|list| list.nodes);
        let times = newest.filter_map(|written| crate::rest::moment(&written.at));
        Ok(times.map(Timestamp::as_micros).max().unwrap_or_default())
    }

    async fn advance(&self, call: &Call, mut place: Place) -> Result<Page, Fault> {
        #[derive(Deserialize)]
        struct Data<'a> {
            #[serde(borrow, alias = "issues", alias = "comments", alias = "documents")]
            listed: Listed<'a>,
        }
        let (query, size) = match place.stage {
            Stage::Issues => (queries::ISSUES, PAGE),
            Stage::Comments => (queries::COMMENTS, PAGE),
            Stage::Documents => (queries::DOCUMENTS, DOCUMENT_PAGE),
        };
        if place.latest.is_none() {
            place.latest = Some(self.latest(call).await?);
        }
        // Sorted by modification time, an item that is modified during the listing would move to a part that was already read.
        let order = if place.since.is_some() { "updatedAt" } else { "createdAt" };
        let mut variables = json!({ "first": size, "after": place.after, "order": order });
        if let (Some(since), Value::Object(fields)) = (place.since, &mut variables) {
            let since = Timestamp::from_micros(since.saturating_sub(micros(OVERLAP)).max(0)).to_rfc3339();
            fields.insert("filter".to_owned(), json!({ "updatedAt": { "gte": since } }));
        }
        let data = match self.ask(call, query, &variables).await {
            Err(Fault::Refused) if place.after.is_some() => return Err(Fault::PositionLost),
            Ok(QueryResult::NotFound) => return Err(Fault::PositionLost),
            Ok(QueryResult::Data(data)) => data,
            Err(fault) => return Err(fault),
        };
        let Data { listed } = read(data.as_bytes())?;
        let mut page = Collected::default();
        if place.stage == Stage::Comments {
            for comment in listed.nodes.each::<Comment>().flatten() {
                let at = comment.updated_at();
                // An issue that is as new as its comment was already listed.
                if let Some(issue) = comment.issue.filter(|issue| issue.updated_at() < at) {
                    page.take(issue.item(at));
                }
            }
        } else {
            for node in listed.nodes.each::<Node>() {
                let item = node.and_then(|node| {
                    let mut item = node.item(None)?;
                    if let (Stage::Documents, SourceMode::Indexed, Item::Present(entry)) =
                        (place.stage, self.mode, &mut item)
                    {
                        entry.body = node.document_body();
                    }
                    Ok(item)
                });
                page.take(item);
            }
        }
        let next = listed.next();
        if next.is_some() && next == place.after {
            return Err(Fault::broken("Linear's list does not go on"));
        }
        let following = match place.stage {
            _ if next.is_some() => Some(place.stage),
            Stage::Issues if place.since.is_some() => Some(Stage::Comments),
            Stage::Issues | Stage::Comments => Some(Stage::Documents),
            Stage::Documents => None,
        };
        let then = match following {
            Some(stage) => Then::More(Position::new(SHAPE, &Place { stage, after: next, ..place })?),
            None => {
                let since = place.latest.max(place.since);
                Then::End {
                    next: Position::new(SHAPE, &Place { since, ..Place::default() })?,
                    partial: Vec::new(),
                }
            }
        };
        page.into_page(then)
    }

    /// An issue with its comments.
    async fn issue(&self, call: &Call, id: &str, known: Option<&Version>) -> Result<Fetched, Fault> {
        #[derive(Deserialize)]
        struct Data<'a> {
            #[serde(borrow)]
            issue: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Commented<'a> {
            #[serde(borrow, default)]
            comments: Option<Comments<'a>>,
        }
        #[derive(Deserialize)]
        struct Comments<'a> {
            #[serde(borrow)]
            nodes: Items<'a>,
            #[serde(rename = "pageInfo", default)]
            page: PageInfo,
        }
        let mut issue: Option<Node> = None;
        let (mut text, mut latest, mut after) = (String::new(), None, None::<String>);
        for _ in 0..MAX_BODY_PAGES {
            let asked = self.ask(call, queries::ISSUE, &json!({ "id": id, "after": after })).await?;
            let QueryResult::Data(data) = asked else { return Ok(Fetched::Gone) };
            let Some(found) = read::<Data<'_>>(data.as_bytes())?.issue else { return Ok(Fetched::Gone) };
            if issue.is_none() {
                let node: Node = read(found.get().as_bytes())?;
                if node.is_in_trash() {
                    return Ok(Fetched::Gone);
                }
                text = node.issue_text();
                issue = Some(node);
            }
            let comments = read::<Commented<'_>>(found.get().as_bytes())?.comments;
            after = None;
            if let Some(comments) = comments {
                for comment in comments.nodes.each::<Comment>().flatten() {
                    latest = latest.max(comment.updated_at());
                    comment.add_to(&mut text);
                }
                after = comments.page.next();
            }
            if text.len() > MAX_BODY_BYTES {
                return Ok(Fetched::TooLarge(text.len() as u64));
            }
            if after.is_none() {
                break;
            }
        }
        fetched(issue.and_then(|issue| issue.body(text, latest)), known)
    }

    async fn document(&self, call: &Call, id: &str, known: Option<&Version>) -> Result<Fetched, Fault> {
        #[derive(Deserialize)]
        struct Data {
            document: Option<Node>,
        }
        let QueryResult::Data(data) = self.ask(call, queries::DOCUMENT, &json!({ "id": id })).await? else {
            return Ok(Fetched::Gone);
        };
        match read::<Data>(data.as_bytes())?.document.filter(|document| !document.is_in_trash()) {
            None => Ok(Fetched::Gone),
            Some(document) => fetched(document.document_body(), known),
        }
    }
}

fn fetched(body: Option<crate::Body>, known: Option<&Version>) -> Result<Fetched, Fault> {
    let body = body.ok_or(Fault::broken(crate::rest::NO_ZONE))?;
    Ok(if known == Some(&body.version) { Fetched::Same } else { Fetched::Body(body) })
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[async_trait]
impl Provider for Linear {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::Exhaustive,
            changes: Changes::HighWater { overlap: OVERLAP },
            deletions: Deletions::FromListing,
            gone_after: None,
            search: Search::Text,
            every: EVERY,
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        #[derive(Deserialize)]
        struct Data {
            viewer: Viewer,
        }
        #[derive(Deserialize)]
        struct Viewer {
            #[serde(default)]
            email: Option<String>,
            #[serde(default)]
            name: Option<String>,
        }
        let QueryResult::Data(data) = self.ask(call, queries::VIEWER, &json!({})).await? else {
            return Err(Fault::Credentials);
        };
        let data: Data = read(data.as_bytes())?;
        let name = data.viewer.email.or(data.viewer.name);
        let words = "Linear answers. Everything that the key's owner sees there is shown to every member of the workspace.";
        Ok(Account::new(name.as_deref(), words))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let place = from.map_or_else(|| Ok(Place::default()), |from| from.read(SHAPE))?;
        self.advance(call, place).await
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        self.advance(call, from.read(SHAPE)?).await
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        // Ids do not tell the type: try an issue first, as most are.
        let fetched = self.issue(call, id.as_str(), known).await?;
        if fetched == Fetched::Gone { self.document(call, id.as_str(), known).await } else { Ok(fetched) }
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        #[derive(Deserialize)]
        struct Data<'a> {
            #[serde(rename = "searchIssues", borrow)]
            found: Listed<'a>,
        }
        let term: String = query.chars().take(300).collect();
        let variables = json!({ "term": term, "first": limit.clamp(1, 50) });
        let QueryResult::Data(data) = self.ask(call, queries::SEARCH, &variables).await? else {
            return Ok(Vec::new());
        };
        let Data { found } = read(data.as_bytes())?;
        let nodes = found.nodes.each::<Node>().flatten().filter(|node| !node.is_in_trash());
        Ok(nodes.filter_map(|node| node.entry(None).ok()).take(limit).collect())
    }
}

#[cfg(test)]
mod tests;
