//! Pages of Confluence Cloud, by the second version of its interface.
//!
//! Changes are the pages in the order of their last modification down to what is known: a query by date would be read in
//! the time zone of whoever made the token.

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
    Api, Collected, Items, MOST_BODY_BYTES, MOST_LIST_BYTES, NO_ZONE, follow, moment, next_page, read,
};
use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Listing,
    Page, Partial, Position, Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const SHAPE: u16 = 1;
const EVERY: Duration = Duration::from_secs(30 * 60);
const OVERLAP: Duration = Duration::from_secs(2 * 60);
/// Pages of a page without their bodies, and with them.
const PAGE: &str = "250";
const PAGE_OF_BODIES: &str = "50";
const MOST_SPACES: usize = 100;

#[derive(Debug)]
struct Confluence {
    api: Api,
    spaces: Vec<String>,
    mode: SourceMode,
    /// The ids of the spaces that were chosen, once a page was asked for.
    chosen: OnceCell<Vec<String>>,
}

/// Where a listing, or the changes, go on.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Place {
    /// The spaces that are still to be read, by their ids, the present one first; an empty id is all of them at once.
    spaces: Vec<String>,
    stage: Stage,
    page: Option<String>,
    /// The latest change when it began, in microseconds.
    latest: Option<i64>,
    /// Changes begin here; `None` in a listing.
    since: Option<i64>,
    partial: Vec<Partial>,
}

/// What is read of a space, one after another.
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
struct Paper {
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

/// Reads the settings.
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

impl Paper {
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

    /// Where people read a page.
    fn address(&self, paper: &Paper) -> Option<String> {
        let path =
            paper.links.webui.as_deref().filter(|path| path.starts_with('/') && path.len() <= 2_000)?;
        let site = self.api.base().as_str().trim_end_matches('/');
        Some(format!("{site}/wiki{path}"))
    }

    fn entry(&self, paper: &Paper) -> Result<Entry, ItemFault> {
        let title = paper.title.as_deref().unwrap_or_default();
        let id = paper.id()?;
        let (Some(version), Some(updated_at)) = (paper.version(), paper.updated_at()) else {
            return Err(ItemFault::passing(id, title, NO_ZONE));
        };
        let mut entry = Entry::new(id, version, if title.is_empty() { "Untitled" } else { title });
        entry.mime = Some("text/html".to_owned());
        entry.url = self.address(paper);
        entry.updated_at = Some(updated_at);
        if self.mode == SourceMode::Indexed {
            entry.body = self.body(paper);
        }
        Ok(entry)
    }

    fn body(&self, paper: &Paper) -> Option<Body> {
        let stored = paper.body.as_ref()?.storage.as_ref()?.value.as_ref()?;
        let html = format!("<html><body><article>{}</article></body></html>", storage::html(stored));
        let mut body = Body::new(html, "text/html; charset=utf-8", paper.version()?);
        body.title.clone_from(&paper.title);
        body.url = self.address(paper);
        Some(body)
    }

    /// The ids of the spaces that were chosen, and whether all of them are there.
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
        let answer = self.api.get(call, &url, MOST_LIST_BYTES).await?;
        let listed: Listed<'_> = read(answer.body())?;
        let mut ids = Vec::new();
        for space in listed.results.each::<Space>().flatten() {
            let id = space.id.text();
            let is_ours = self.spaces.iter().any(|key| key.eq_ignore_ascii_case(&space.key));
            if is_ours && (1..=40).contains(&id.len()) && ids.len() < MOST_SPACES {
                ids.push(id);
            }
        }
        let is_all = ids.len() >= self.spaces.len();
        Ok((ids, is_all))
    }

    /// Whether a page is in the spaces that were chosen, if some were.
    async fn is_chosen(&self, call: &Call, paper: &Paper) -> Result<bool, Fault> {
        if self.spaces.is_empty() {
            return Ok(true);
        }
        let ids = async || self.space_ids(call).await.map(|(ids, _)| ids);
        let chosen = self.chosen.get_or_try_init(ids).await?;
        Ok(paper.space.as_ref().is_some_and(|space| chosen.contains(&space.text())))
    }

    /// The first page of a stage.
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

    /// A page of pages: without bodies when there is too much in them for one answer.
    async fn pages(&self, call: &Call, place: &Place) -> Result<(Response<Bytes>, Url), Fault> {
        let url = match &place.page {
            None => self.first(place),
            Some(kept) => self.api.kept(kept)?,
        };
        let has_bodies = url.query_pairs().any(|(name, _)| name == "body-format");
        match self.api.get(call, &url, MOST_LIST_BYTES).await {
            Err(Fault::Unavailable | Fault::TooLarge(_)) if has_bodies => {
                let others: Vec<(String, String)> =
                    url.query_pairs().into_owned().filter(|(name, _)| name != "body-format").collect();
                let mut bare = url;
                bare.query_pairs_mut().clear().extend_pairs(others);
                Ok((self.api.get(call, &bare, MOST_LIST_BYTES).await?, bare))
            }
            Err(Fault::Refused) if place.page.is_some() => Err(Fault::PositionLost),
            answer => Ok((answer?, url)),
        }
    }

    /// Before the first page of a listing, or of changes: which spaces, and when the latest change was. What is written
    /// while one space after another is read is later.
    async fn begin(&self, call: &Call) -> Result<Place, Fault> {
        let (spaces, is_all) = self.space_ids(call).await?;
        let answer = self
            .api
            .get(call, &self.at(&["pages"], &[("sort", "-modified-date"), ("limit", "1")]), MOST_LIST_BYTES)
            .await?;
        let listed: Listed<'_> = read(answer.body())?;
        let latest = listed.results.each::<Paper>().flatten().next().and_then(|paper| paper.updated_at());
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
        for paper in listed.results.each::<Paper>() {
            let paper = match paper {
                Ok(paper) => paper,
                Err(fault) => {
                    page.take(Err(fault));
                    continue;
                }
            };
            let at = paper.updated_at().map(Timestamp::as_micros);
            let is_old =
                place.stage == Stage::Pages && place.since.is_some() && at.is_some() && at < known_before;
            if is_old {
                is_known = true;
                break;
            }
            if place.stage == Stage::Trash {
                if !paper.is_there() {
                    page.take(paper.id().map(Item::Gone));
                }
                continue;
            }
            page.take(self.entry(&paper).map(Item::from));
        }
        let linked = next_page(answer.headers(), &url)?;
        let next = match (linked, &listed.links.next) {
            (None, Some(next)) => Some(follow(&url, next)?),
            (linked, _) => linked,
        };
        // The trash keeps its own order: changes look at its first page only.
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
        // What changes in a space while it is away is not told: the mark stays before it.
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
        self.api.get(call, &url, MOST_LIST_BYTES).await?;
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
        let answer = match self.api.get(call, &url, MOST_LIST_BYTES).await {
            Err(Fault::Gone) => return Ok(Fetched::Gone),
            Err(Fault::TooLarge(bytes)) => return Ok(Fetched::TooLarge(bytes)),
            answer => answer?,
        };
        let paper: Paper = read(answer.body())?;
        if !paper.is_there() || !self.is_chosen(call, &paper).await? {
            return Ok(Fetched::Gone);
        }
        if known.is_some() && known == paper.version().as_ref() {
            return Ok(Fetched::Same);
        }
        let body = self.body(&paper).ok_or(Fault::broken("Confluence gives the page without its text"))?;
        let size = body.bytes.len();
        Ok(if size > MOST_BODY_BYTES { Fetched::TooLarge(size as u64) } else { Fetched::Body(body) })
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
        let answer = self.api.get(call, &url, MOST_LIST_BYTES).await?;
        let found: Found<'_> = read(answer.body())?;
        let mut entries = Vec::new();
        for Hit { content, modified } in found.results.each::<Hit>().flatten().take(limit) {
            let Content { id, title, links } = content;
            let paper = Paper { id, status: None, title, space: None, version: None, links, body: None };
            let Ok(id) = paper.id() else { continue };
            let version = Version::new(modified.clone().unwrap_or_default());
            let mut entry = Entry::new(id, version, paper.title.as_deref().unwrap_or("Untitled"));
            entry.url = self.address(&paper);
            entry.updated_at = modified.as_deref().and_then(moment);
            entries.push(entry);
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests;
