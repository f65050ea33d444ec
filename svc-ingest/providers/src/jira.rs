//! Issues of Jira Cloud.
//!
//! Times in queries are milliseconds since the epoch: a date would be interpreted in the time zone of the token's owner. Jira answers
//! queries with invalid credentials with 200 and no results, so an empty response triggers a check of the credentials.

mod adf;
mod objects;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SourceMode;
use http::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::objects::{Comments, Issue};
use crate::atlassian::{self, Keys};
use crate::connect::Draft;
use crate::rest::{Api, Collected, Items, MAX_BODY_BYTES, MAX_BODY_PAGES, MAX_LIST_BYTES, read};
use crate::{
    Account, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, Listing, Page, Position,
    Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const SHAPE: u16 = 1;
const EVERY: Duration = Duration::from_secs(15 * 60);
/// The search index lags behind writes.
const OVERLAP: Duration = Duration::from_secs(2 * 60);
const PAGE: u32 = 100;
const BODY_FIELDS: [&str; 6] = ["summary", "updated", "description", "comment", "status", "labels"];

#[derive(Debug)]
struct Jira {
    api: Api,
    projects: Vec<String>,
    mode: SourceMode,
}

/// The cursor of a listing or of changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    page: Option<String>,
    /// The latest change seen, in microseconds; in a listing, its start.
    latest: Option<i64>,
    /// The start of the changes; `None` in a listing.
    since: Option<i64>,
}

/// A page of search results.
#[derive(Deserialize)]
struct Found<'a> {
    #[serde(borrow)]
    issues: Items<'a>,
    #[serde(rename = "nextPageToken", default)]
    next: Option<String>,
    #[serde(rename = "isLast", default)]
    is_last: Option<bool>,
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let keys =
        Keys { setting: "projects", is_one: is_key, rule: "must be the key of a project, such as ENG" };
    let (api, projects) = atlassian::connect(draft, &keys)?;
    Some(Box::new(Jira { api, projects, mode: draft.mode }))
}

fn is_key(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_plain && text.len() <= 50 && text.starts_with(|first: char| first.is_ascii_alphabetic())
}

impl Jira {
    fn at(&self, parts: &[&str]) -> url::Url {
        self.api.at(["rest", "api", "3"].into_iter().chain(parts.iter().copied()))
    }

    /// A query restricted to the selected projects; Jira rejects unbounded ones.
    fn query(&self, condition: Option<&str>, order: &str) -> String {
        let projects =
            (!self.projects.is_empty()).then(|| format!("project in (\"{}\")", self.projects.join("\", \"")));
        let conditions: Vec<&str> = projects.as_deref().into_iter().chain(condition).collect();
        let bound = if conditions.is_empty() { "updated >= 0".to_owned() } else { conditions.join(" AND ") };
        format!("{bound} ORDER BY {order}")
    }

    async fn search_for(
        &self,
        call: &Call,
        query: &str,
        fields: &[&str],
        size: u32,
        page: Option<&str>,
    ) -> Result<Response<Bytes>, Fault> {
        let mut body = json!({ "jql": query, "fields": fields, "maxResults": size });
        if let (Some(page), Value::Object(body)) = (page, &mut body) {
            body.insert("nextPageToken".to_owned(), page.into());
        }
        match self.api.post(call, &self.at(&["search", "jql"]), &body, MAX_LIST_BYTES).await {
            Err(Fault::Refused) if page.is_some() => Err(Fault::PositionLost),
            answer => answer,
        }
    }

    async fn myself(&self, call: &Call) -> Result<Option<String>, Fault> {
        #[derive(Deserialize)]
        struct Myself {
            #[serde(rename = "emailAddress", default)]
            email: Option<String>,
            #[serde(rename = "displayName", default)]
            name: Option<String>,
        }
        let answer = match self.api.get(call, &self.at(&["myself"]), MAX_LIST_BYTES).await {
            // Anonymous callers get 401, so this server just hides the account.
            Err(Fault::Gone) => return Ok(None),
            answer => answer?,
        };
        let me: Myself = read(answer.body())?;
        Ok(me.email.filter(|email| !email.is_empty()).or(me.name))
    }

    /// Determines the latest change before the first page of a listing.
    async fn begin(&self, call: &Call) -> Result<Place, Fault> {
        let query = self.query(None, "updated DESC");
        let answer = self.search_for(call, &query, &["summary", "updated"], 1, None).await?;
        let found: Found<'_> = read(answer.body())?;
        let latest = found.issues.each::<Issue<'_>>().flatten().next();
        if found.issues.is_empty() {
            self.myself(call).await?;
        }
        let latest = latest.and_then(|issue| issue.updated_at()).map(Timestamp::as_micros);
        Ok(Place { page: None, latest, since: None })
    }

    async fn advance(&self, call: &Call, mut place: Place) -> Result<Page, Fault> {
        let query = match place.since {
            None => self.query(None, "id ASC"),
            Some(since) => {
                let millis =
                    since.saturating_sub(i64::try_from(OVERLAP.as_micros()).unwrap_or_default()) / 1_000;
                self.query(Some(&format!("updated >= {}", millis.max(0))), "updated ASC")
            }
        };
        let fields: &[&str] =
            if self.mode == SourceMode::Catalog { &["summary", "updated"] } else { &BODY_FIELDS };
        let answer = self.search_for(call, &query, fields, PAGE, place.page.as_deref()).await?;
        let found: Found<'_> = read(answer.body())?;
        // On any page: the credentials may have expired since the first.
        if found.issues.is_empty() {
            self.myself(call).await?;
        }
        let mut page = Collected::default();
        for issue in found.issues.each::<Issue<'_>>() {
            let item = issue.and_then(|issue| {
                if place.since.is_some() {
                    place.latest = place.latest.max(issue.updated_at().map(Timestamp::as_micros));
                }
                let mut entry = issue.entry(self.address(&issue.key))?;
                if self.mode == SourceMode::Indexed {
                    entry.body = issue.whole_body(entry.url.clone());
                }
                Ok(Item::from(entry))
            });
            page.take(item);
        }
        let next = found.next.filter(|next| !next.is_empty() && found.is_last != Some(true));
        if next.is_some() && next == place.page {
            return Err(Fault::broken("Jira's list does not go on"));
        }
        let then = match next {
            Some(next) => Then::More(Position::new(SHAPE, &Place { page: Some(next), ..place })?),
            None => {
                // No issues yet: everything later is new.
                let since = place.latest.max(place.since).or(Some(0));
                let next = Position::new(SHAPE, &Place { page: None, latest: None, since })?;
                Then::End { next, partial: Vec::new() }
            }
        };
        page.into_page(then)
    }

    /// Whether an issue is in the selected projects; true if none were selected.
    fn is_chosen(&self, key: &str) -> bool {
        let project = key.rsplit_once('-').map_or(key, |(project, _)| project);
        self.projects.is_empty() || self.projects.iter().any(|chosen| chosen.eq_ignore_ascii_case(project))
    }

    /// The URL of an issue for people.
    fn address(&self, key: &str) -> Option<String> {
        Some(self.api.at(["browse", key]).into()).filter(|_| key.len() <= 200)
    }
}

#[async_trait]
impl Provider for Jira {
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
        let name = self.myself(call).await?;
        let words = "Jira answers. Every issue that the account sees there is shown to every member of the workspace.";
        Ok(Account::new(name.as_deref(), words))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let place = match from {
            Some(from) => from.read(SHAPE)?,
            None => self.begin(call).await?,
        };
        self.advance(call, place).await
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        self.advance(call, from.read(SHAPE)?).await
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        let mut url = self.at(&["issue", id.as_str()]);
        url.query_pairs_mut().append_pair("fields", &BODY_FIELDS.join(","));
        let answer = match self.api.get(call, &url, MAX_LIST_BYTES).await {
            Err(Fault::Gone) => return Ok(Fetched::Gone),
            answer => answer?,
        };
        let issue: Issue<'_> = read(answer.body())?;
        if !self.is_chosen(&issue.key) {
            return Ok(Fetched::Gone);
        }
        if known.is_some() && known == issue.version().as_ref() {
            return Ok(Fetched::Same);
        }
        let address = self.address(&issue.key);
        if let Some(body) = issue.whole_body(address.clone()) {
            return Ok(Fetched::Body(body));
        }
        let (mut text, mut count) = (issue.text(), 0);
        for _ in 0..MAX_BODY_PAGES {
            let mut url = self.at(&["issue", id.as_str(), "comment"]);
            url.query_pairs_mut().append_pair("startAt", &count.to_string()).append_pair("maxResults", "100");
            let answer = self.api.get(call, &url, MAX_LIST_BYTES).await?;
            let more: Comments<'_> = read(answer.body())?;
            more.comments.iter().for_each(|comment| comment.add_to(&mut text));
            count += more.comments.len();
            if text.len() > MAX_BODY_BYTES {
                return Ok(Fetched::TooLarge(text.len() as u64));
            }
            if more.comments.is_empty() || more.has_all(count) {
                break;
            }
        }
        issue.body(text, address).map(Fetched::Body).ok_or(Fault::broken(crate::rest::NO_ZONE))
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        // Other characters are operators of the text search.
        let plain: String =
            query.chars().map(|letter| if letter.is_alphanumeric() { letter } else { ' ' }).collect();
        let words: String =
            plain.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let query = self.query(Some(&format!("text ~ \"{words}\"")), "updated DESC");
        let size = u32::try_from(limit.clamp(1, 50)).unwrap_or(PAGE);
        let answer = self.search_for(call, &query, &["summary", "updated"], size, None).await?;
        let found: Found<'_> = read(answer.body())?;
        let issues = found.issues.each::<Issue<'_>>().flatten();
        Ok(issues.filter_map(|issue| issue.entry(self.address(&issue.key)).ok()).take(limit).collect())
    }
}

#[cfg(test)]
mod tests;
