//! Pages of Confluence Cloud, over version 2 of its API.
//!
//! Changes are the pages sorted by last modification, down to the high-water mark. A query by date would be interpreted in the time zone of
//! the token's owner.

mod storage;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SourceMode;
use http::Response;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use url::Url;

use crate::atlassian::{self, Keys};
use crate::connect::Draft;
use crate::rest::{
    Api, Collected, Items, MAX_BODY_BYTES, MAX_LIST_BYTES, NO_ZONE, follow, moment, next_page, read,
};
use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Listing,
    Page, Partial, Position, Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const SHAPE: u16 = 1;
const EVERY: Duration = Duration::from_secs(30 * 60);
const OVERLAP: Duration = Duration::from_secs(2 * 60);
/// Confluence pages per request, without and with bodies.
const PAGE: &str = "250";
const PAGE_OF_BODIES: &str = "50";
const MAX_SPACES: usize = 100;

#[derive(Debug)]
struct Confluence {
    api: Api,
    spaces: Vec<String>,
    mode: SourceMode,
    /// The ids of the selected spaces, cached on first use.
    chosen: OnceCell<Vec<String>>,
}

/// The cursor of a listing or of changes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Place {
    /// The ids of the remaining spaces, the current one first; an empty id stands for all spaces at once.
    spaces: Vec<String>,
    stage: Stage,
    page: Option<String>,
    /// The latest change at the start, in microseconds.
    latest: Option<i64>,
    /// The start of the changes; `None` in a listing.
    since: Option<i64>,
    partial: Vec<Partial>,
}

/// The stages of reading a space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    #[default]
    Pages,
    Trash,
}

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    results: Items<'a>,
    #[serde(rename = "_links", default)]
    links: Links,
}

#[derive(Default, Deserialize)]
struct Links {
    #[serde(default)]
    next: Option<String>,
    #[serde(default)]
    webui: Option<String>,
}

/// A page of Confluence.
#[derive(Deserialize)]
struct WikiPage {
    id: Id,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(rename = "spaceId", default)]
    space: Option<Id>,
    #[serde(default)]
    version: Option<Revision>,
    #[serde(rename = "_links", default)]
    links: Links,
    #[serde(default)]
    body: Option<Bodies>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(u64),
}

#[derive(Deserialize)]
struct Revision {
    number: u64,
    #[serde(rename = "createdAt", default)]
    created_at: Option<String>,
}

#[derive(Deserialize)]
struct Bodies {
    #[serde(default)]
    storage: Option<Stored>,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    value: Option<String>,
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let keys = Keys { setting: "spaces", is_one: is_key, rule: "must be the key of a space, such as DOCS" };
    let (api, spaces) = atlassian::connect(draft, &keys)?;
    Some(Box::new(Confluence { api, spaces, mode: draft.mode, chosen: OnceCell::new() }))
}

fn is_key(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'~' | b'_' | b'-' | b'.');
    text.len() <= 255 && text.bytes().all(is_plain)
}

impl Id {
    fn text(&self) -> String {
        match self {
            Self::Text(id) => id.clone(),
            Self::Number(id) => id.to_string(),
        }
    }
}

impl WikiPage {
    fn id(&self) -> Result<ExternalId, ItemFault> {
        let id = self.id.text();
        let is_number = (1..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit());
        let odd = || ItemFault::unusable_id(self.title.as_deref().unwrap_or_default());
        ExternalId::new(id).ok().filter(|_| is_number).ok_or_else(odd)
    }

    fn updated_at(&self) -> Option<Timestamp> {
        moment(self.version.as_ref()?.created_at.as_deref()?)
    }

    fn version(&self) -> Option<Version> {
        self.version.as_ref().map(|version| Version::new(version.number.to_string()))
    }

    fn is_there(&self) -> bool {
        self.status.as_deref().is_none_or(|status| status == "current")
    }
}

impl Confluence {
    fn at(&self, parts: &[&str], query: &[(&str, &str)]) -> Url {
        self.api.at_with(["wiki", "api", "v2"].into_iter().chain(parts.iter().copied()), query)
    }

    /// The URL of a page for people.
    fn address(&self, wiki_page: &WikiPage) -> Option<String> {
        let path =
            wiki_page.links.webui.as_deref().filter(|path| path.starts_with('/') && path.len() <= 2_000)?;
        let site = self.api.base().as_str().trim_end_matches('/');
        Some(format!("{site}/wiki{path}"))
    }

    fn entry(&self, wiki_page: &WikiPage) -> Result<Entry, ItemFault> {
        let title = wiki_page.title.as_deref().unwrap_or_default();
        let id = wiki_page.id()?;
        let (Some(version), Some(updated_at)) = (wiki_page.version(), wiki_page.updated_at()) else {
            return Err(ItemFault::passing(id, title, NO_ZONE));
        };
        let mut entry = Entry::new(id, version, if title.is_empty() { "Untitled" } else { title });
        entry.mime = Some("text/html".to_owned());
        entry.url = self.address(wiki_page);
        entry.updated_at = Some(updated_at);
        if self.mode == SourceMode::Indexed {
            entry.body = self.body(wiki_page);
        }
        Ok(entry)
    }

    fn body(&self, wiki_page: &WikiPage) -> Option<Body> {
        let stored = wiki_page.body.as_ref()?.storage.as_ref()?.value.as_ref()?;
        let html = format!("<html><body><article>{}</article></body></html>", storage::html(stored));
        let mut body = Body::new(html, "text/html; charset=utf-8", wiki_page.version()?);
        body.title.clone_from(&wiki_page.title);
        body.url = self.address(wiki_page);
        Some(body)
    }

    /// The ids of the selected spaces, and whether all of them exist.
    async fn space_ids(&self, call: &Call) -> Result<(Vec<String>, bool), Fault> {
        #[derive(Deserialize)]
        struct Space {
            id: Id,
            key: String,
        }
        if self.spaces.is_empty() {
            return Ok((vec![String::new()], true));
        }
        let url = self.at(&["spaces"], &[("keys", &self.spaces.join(",")), ("limit", PAGE)]);
        let answer = self.api.get(call, &url, MAX_LIST_BYTES).await?;
        let listed: Listed<'_> = read(answer.body())?;
        let mut ids = Vec::new();
        for space in listed.results.each::<Space>().flatten() {
            let id = space.id.text();
            let is_ours = self.spaces.iter().any(|key| key.eq_ignore_ascii_case(&space.key));
            if is_ours && (1..=40).contains(&id.len()) && ids.len() < MAX_SPACES {
                ids.push(id);
            }
        }
        let is_all = ids.len() >= self.spaces.len();
        Ok((ids, is_all))
    }

    /// Whether a page is in the selected spaces; true if none were selected.
    async fn is_chosen(&self, call: &Call, wiki_page: &WikiPage) -> Result<bool, Fault> {
        if self.spaces.is_empty() {
            return Ok(true);
        }
        let ids = async || self.space_ids(call).await.map(|(ids, _)| ids);
        let chosen = self.chosen.get_or_try_init(ids).await?;
        Ok(wiki_page.space.as_ref().is_some_and(|space| chosen.contains(&space.text())))
    }

    /// The URL of the first page of a stage.
    fn first(&self, place: &Place) -> Url {
        let space = place.spaces.first().filter(|space| !space.is_empty());
        let has_bodies = self.mode == SourceMode::Indexed && place.stage == Stage::Pages;
        let (status, sort) = match place.stage {
            Stage::Pages if place.since.is_none() => ("current", "id"),
            Stage::Pages => ("current", "-modified-date"),
            Stage::Trash => ("trashed", "-modified-date"),
        };
        let size = if has_bodies { PAGE_OF_BODIES } else { PAGE };
        let mut url = self.at(&["pages"], &[("status", status), ("sort", sort), ("limit", size)]);
        url.query_pairs_mut().extend_pairs(space.map(|space| ("space-id", space)));
        if has_bodies {
            url.query_pairs_mut().append_pair("body-format", "storage");
        }
        url
    }

    /// One page of the listing; without bodies if a response with them would be too large.
    async fn pages(&self, call: &Call, place: &Place) -> Result<(Response<Bytes>, Url), Fault> {
        let url = match &place.page {
            None => self.first(place),
            Some(kept) => self.api.kept(kept)?,
        };
        let has_bodies = url.query_pairs().any(|(name, _)| name == "body-format");
        match self.api.get(call, &url, MAX_LIST_BYTES).await {
            Err(Fault::Unavailable | Fault::TooLarge(_)) if has_bodies => {
                let others: Vec<(String, String)> =
                    url.query_pairs().into_owned().filter(|(name, _)| name != "body-format").collect();
                let mut bare = url;
                bare.query_pairs_mut().clear().extend_pairs(others);
                Ok((self.api.get(call, &bare, MAX_LIST_BYTES).await?, bare))
            }
            Err(Fault::Refused) if place.page.is_some() => Err(Fault::PositionLost),
            answer => Ok((answer?, url)),
        }
    }

    /// Determines the spaces and the latest change before the first page, so that writes during the listing count as changes.
    async fn begin(&self, call: &Call) -> Result<Place, Fault> {
        let (spaces, is_all) = self.space_ids(call).await?;
        let answer = self
            .api
            .get(call, &self.at(&["pages"], &[("sort", "-modified-date"), ("limit", "1")]), MAX_LIST_BYTES)
            .await?;
        let listed: Listed<'_> = read(answer.body())?;
        let latest =
            listed.results.each::<WikiPage>().flatten().next().and_then(|wiki_page| wiki_page.updated_at());
        let mut place = Place { spaces, latest: latest.map(Timestamp::as_micros), ..Place::default() };
        if !is_all {
            place.partial.push(Partial::everywhere("a space that was chosen is not there for this account"));
        }
        Ok(place)
    }

    async fn advance(&self, call: &Call, mut place: Place) -> Result<Page, Fault> {
        if place.spaces.is_empty() {
            return self.end(Collected::default(), place);
        }
        let (answer, url) = self.pages(call, &place).await?;
        let listed: Listed<'_> = read(answer.body())?;
        let known_before = place
            .since
            .map(|since| since.saturating_sub(i64::try_from(OVERLAP.as_micros()).unwrap_or_default()));
        let (mut page, mut is_known) = (Collected::default(), false);
        for wiki_page in listed.results.each::<WikiPage>() {
            let wiki_page = match wiki_page {
                Ok(wiki_page) => wiki_page,
                Err(fault) => {
                    page.take(Err(fault));
                    continue;
                }
            };
            let at = wiki_page.updated_at().map(Timestamp::as_micros);
            let is_old =
                place.stage == Stage::Pages && place.since.is_some() && at.is_some() && at < known_before;
            if is_old {
                is_known = true;
                break;
            }
            if place.stage == Stage::Trash {
                if !wiki_page.is_there() {
                    page.take(wiki_page.id().map(Item::Gone));
                }
                continue;
            }
            page.take(self.entry(&wiki_page).map(Item::from));
        }
        let linked = next_page(answer.headers(), &url)?;
        let next = match (linked, &listed.links.next) {
            (None, Some(next)) => Some(follow(&url, next)?),
            (linked, _) => linked,
        };
        // The trash has its own order: changes read only its first page.
        is_known |= place.stage == Stage::Trash && place.since.is_some();
        place.page = next.filter(|_| !is_known).map(String::from);
        if place.page.is_none() {
            place.stage = match place.stage {
                Stage::Pages => Stage::Trash,
                Stage::Trash => {
                    place.spaces.remove(0);
                    Stage::Pages
                }
            };
        }
        if place.spaces.is_empty() {
            return self.end(page, place);
        }
        page.into_page(Then::More(Position::new(SHAPE, &place)?))
    }

    fn end(&self, page: Collected, place: Place) -> Result<Page, Fault> {
        // Changes in a space that is temporarily missing are not reported, so the high-water mark stays.
        let kept = place.since.filter(|_| !place.partial.is_empty());
        let since = kept.or(place.latest.max(place.since)).or(Some(0));
        let next = Position::new(SHAPE, &Place { since, ..Place::default() })?;
        page.into_page(Then::End { next, partial: place.partial })
    }
}

#[async_trait]
impl Provider for Confluence {
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
        let url = self.at(&["spaces"], &[("limit", "1")]);
        self.api.get(call, &url, MAX_LIST_BYTES).await?;
        if !self.space_ids(call).await?.1 {
            return Err(Fault::broken("a space that `spaces` names is not there for this account"));
        }
        let words = "Confluence answers. Every page that the account sees there is shown to every member of the workspace.";
        Ok(Account::new(None, words))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let place = match from {
            Some(from) => from.read(SHAPE)?,
            None => self.begin(call).await?,
        };
        self.advance(call, place).await
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        let mut place: Place = from.read(SHAPE)?;
        if place.spaces.is_empty() {
            let begun = self.begin(call).await?;
            (place.spaces, place.latest, place.partial) = (begun.spaces, begun.latest, begun.partial);
        }
        self.advance(call, place).await
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        let url = self.at(&["pages", id.as_str()], &[("body-format", "storage")]);
        let answer = match self.api.get(call, &url, MAX_LIST_BYTES).await {
            Err(Fault::Gone) => return Ok(Fetched::Gone),
            Err(Fault::TooLarge(bytes)) => return Ok(Fetched::TooLarge(bytes)),
            answer => answer?,
        };
        let wiki_page: WikiPage = read(answer.body())?;
        if !wiki_page.is_there() || !self.is_chosen(call, &wiki_page).await? {
            return Ok(Fetched::Gone);
        }
        if known.is_some() && known == wiki_page.version().as_ref() {
            return Ok(Fetched::Same);
        }
        let body =
            self.body(&wiki_page).ok_or(Fault::broken("Confluence gives the page without its text"))?;
        let size = body.bytes.len();
        Ok(if size > MAX_BODY_BYTES { Fetched::TooLarge(size as u64) } else { Fetched::Body(body) })
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        #[derive(Deserialize)]
        struct Found<'a> {
            #[serde(borrow)]
            results: Items<'a>,
        }
        #[derive(Deserialize)]
        struct Hit {
            content: Content,
            #[serde(rename = "lastModified", default)]
            modified: Option<String>,
        }
        #[derive(Deserialize)]
        struct Content {
            id: Id,
            #[serde(default)]
            title: Option<String>,
            #[serde(rename = "_links", default)]
            links: Links,
        }
        let plain: String =
            query.chars().map(|letter| if letter.is_alphanumeric() { letter } else { ' ' }).collect();
        let words: String =
            plain.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let mut condition = format!("text ~ \"{words}\" AND type = page");
        if !self.spaces.is_empty() {
            condition.push_str(&format!(" AND space in (\"{}\")", self.spaces.join("\", \"")));
        }
        let size = limit.clamp(1, 50).to_string();
        let url =
            self.api.at_with(["wiki", "rest", "api", "search"], &[("cql", &condition), ("limit", &size)]);
        let answer = self.api.get(call, &url, MAX_LIST_BYTES).await?;
        let found: Found<'_> = read(answer.body())?;
        let mut entries = Vec::new();
        for Hit { content, modified } in found.results.each::<Hit>().flatten().take(limit) {
            let Content { id, title, links } = content;
            let wiki_page =
                WikiPage { id, status: None, title, space: None, version: None, links, body: None };
            let Ok(id) = wiki_page.id() else { continue };
            let version = Version::new(modified.clone().unwrap_or_default());
            let mut entry = Entry::new(id, version, wiki_page.title.as_deref().unwrap_or("Untitled"));
            entry.url = self.address(&wiki_page);
            entry.updated_at = modified.as_deref().and_then(moment);
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
