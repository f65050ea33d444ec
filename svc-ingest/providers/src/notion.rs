//! Pages of a Notion workspace that are shared with a connection.
//!
//! Notion's search is not exhaustive, so a listing is the union of the search, the children of known pages, and the rows of known data
//! sources. No listing proves that a page is deleted: the trash is listed, and other pages are probed.

mod objects;
mod place;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SourceMode;
use http::{HeaderName, HeaderValue, header};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use self::objects::{Child, Listed, Object};
use self::place::{Place, Stage, is_id};
use crate::connect::Draft;
use crate::rest::{Api, Collected, MAX_BODY_BYTES, MAX_BODY_PAGES, MAX_LIST_BYTES, read};
use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, Listing, Page,
    Position, Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const HOST: &str = "https://api.notion.com";
const API_VERSION: HeaderName = HeaderName::from_static("notion-version");
const EVERY: Duration = Duration::from_secs(60 * 60);
/// Edit times are whole minutes.
const OVERLAP: Duration = Duration::from_secs(3 * 60);
const PAGE: u32 = 100;
/// Pages and blocks whose children are read per page of a listing: one request each.
const EXPANDED_PER_PAGE: usize = 10;
/// Pages of a block's children.
const MAX_CHILD_PAGES: usize = 10;
/// Size of the set of visited pages.
const MAX_REMEMBERED: usize = 100_000;

#[derive(Debug)]
struct Notion {
    api: Api,
    mode: SourceMode,
    /// Pages visited in this listing, so that none is read twice. Lost on a crash, which only costs requests.
    expanded: Mutex<HashSet<String>>,
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let has_base = draft.settings.value("baseUrl").is_some();
    let base = draft.settings.address("baseUrl", draft.reach.guard());
    let advice = "give the secret of an internal integration, with which pages are shared";
    let Ok(bearer) = draft.credentials.required_secret("token", advice)?.bearer() else {
        draft.credentials.refuse("token", "invalid_value", "cannot stand in an HTTP header");
        return None;
    };
    let api = Api::new(if has_base { base? } else { Url::parse(HOST).ok()? })
        .with(header::AUTHORIZATION, bearer)
        .with(API_VERSION, HeaderValue::from_static("2026-03-11"));
    Some(Box::new(Notion { api, mode: draft.mode, expanded: Mutex::default() }))
}

impl Notion {
    /// Requests a page of a list; an expired cursor is [`Fault::PositionLost`].
    async fn query(
        &self,
        call: &Call,
        parts: &[&str],
        body: &Value,
    ) -> Result<http::Response<bytes::Bytes>, Fault> {
        let url = self.api.at(std::iter::once("v1").chain(parts.iter().copied()));
        match self.api.post(call, &url, body, MAX_LIST_BYTES).await {
            Err(Fault::Refused) if body.get("start_cursor").is_some() => Err(Fault::PositionLost),
            answer => answer,
        }
    }

    /// Reads one page from a cursor.
    async fn advance(&self, call: &Call, mut place: Place) -> Result<Page, Fault> {
        let mut page = Collected::default();
        if !place.waiting.is_empty() {
            self.expand(call, &mut place, &mut page).await?;
            return page.into_page(Then::More(place.position()?));
        }
        match std::mem::take(&mut place.stage) {
            Stage::Pages => self.pages(call, &mut place, &mut page, None).await?,
            Stage::MorePages(cursor) => self.pages(call, &mut place, &mut page, Some(cursor)).await?,
            Stage::Sources(cursor) => self.sources(call, &mut place, cursor).await?,
            Stage::Rows { from, cursor } => self.rows(call, &mut place, &mut page, from, cursor).await?,
            Stage::Trash(cursor) => self.trash(call, &mut place, &mut page, cursor).await?,
            Stage::End => place.stage = Stage::End,
        }
        if place.stage != Stage::End || !place.waiting.is_empty() {
            return page.into_page(Then::More(place.position()?));
        }
        let partial = std::mem::take(&mut place.partial);
        page.into_page(Then::End { next: place.next().position()?, partial })
    }

    /// Pages from the search, down to the high-water mark.
    async fn pages(
        &self,
        call: &Call,
        place: &mut Place,
        page: &mut Collected,
        cursor: Option<String>,
    ) -> Result<(), Fault> {
        let mut query = json!({"page_size": PAGE, "filter": {"property": "object", "value": "page"},
            "sort": {"timestamp": "last_edited_time", "direction": "descending"}});
        set(&mut query, "start_cursor", cursor.as_deref());
        // The first page has the latest edit: writes during the listing are later.
        let is_first = cursor.is_none();
        let answer = self.query(call, &["search"], &query).await?;
        let listed: Listed<'_> = read(answer.body())?;
        let known_before = place.since.map(|since| before(since, OVERLAP));
        let mut is_known = false;
        for object in listed.results.each::<Object>() {
            let object = match object {
                Ok(object) => object,
                Err(fault) => {
                    page.take(Err(fault));
                    continue;
                }
            };
            let edited = object.edited_at().map(Timestamp::as_micros);
            if is_first {
                place.latest = place.latest.max(edited);
            }
            // Only an older item ends it; an item at the mark itself does not.
            is_known = known_before.is_some() && edited.is_some() && edited < known_before;
            if is_known {
                break;
            }
            self.take(call, place, page, &object);
        }
        if listed.is_cut() && !is_known {
            place.leave_out("Notion's search stops before its end: share fewer pages with a connection");
        }
        place.stage = match listed.next().filter(|_| !is_known) {
            Some(next) => Stage::MorePages(next),
            None => Stage::Sources(None),
        };
        Ok(())
    }

    /// Adds an existing page, and queues what may be below it.
    fn take(&self, call: &Call, place: &mut Place, page: &mut Collected, object: &Object) {
        if object.is_data_source() {
            return place.know_source(object.id());
        }
        if object.is_in_trash() {
            if let Ok(id) = ExternalId::new(object.id()) {
                page.take(Ok(Item::Gone(id)));
            }
            return;
        }
        let entry = object.entry(call.now());
        if entry.is_ok() && self.mode == SourceMode::Indexed && self.is_new(object.id()) {
            place.wait_for(object.id());
        }
        page.take(entry.map(Item::from));
    }

    fn is_new(&self, id: &str) -> bool {
        let mut known = self.expanded.lock().unwrap_or_else(PoisonError::into_inner);
        known.len() >= MAX_REMEMBERED || known.insert(id.to_owned())
    }

    /// Reads the children of some queued pages.
    async fn expand(&self, call: &Call, place: &mut Place, page: &mut Collected) -> Result<(), Fault> {
        let these: Vec<String> = place.waiting.drain(..place.waiting.len().min(EXPANDED_PER_PAGE)).collect();
        for id in these {
            let mut cursor: Option<String> = None;
            for _ in 0..MAX_CHILD_PAGES {
                let size = PAGE.to_string();
                let mut url = self.api.at_with(["v1", "blocks", &id, "children"], &[("page_size", &size)]);
                if let Some(cursor) = &cursor {
                    url.query_pairs_mut().append_pair("start_cursor", cursor);
                }
                let answer = match self.api.get(call, &url, MAX_LIST_BYTES).await {
                    // Deleted since, or its children are not shared.
                    Err(Fault::Gone | Fault::Forbidden | Fault::Refused) => break,
                    answer => answer?,
                };
                let listed: Listed<'_> = read(answer.body())?;
                for block in listed.results.each::<Object>().flatten() {
                    self.child(call, place, page, &block).await?;
                }
                cursor = listed.next();
                if cursor.is_none() {
                    break;
                }
            }
            if cursor.is_some() {
                place.leave_out("a page has more blocks than are looked through for pages below it");
            }
        }
        Ok(())
    }

    async fn child(
        &self,
        call: &Call,
        place: &mut Place,
        page: &mut Collected,
        block: &Object,
    ) -> Result<(), Fault> {
        match block.child() {
            Child::Other => {}
            Child::Holder => place.wait_for(block.id()),
            Child::Page => self.take(call, place, page, block),
            Child::Database if is_id(block.id()) => {
                let url = self.api.at(["v1", "databases", block.id()]);
                match self.api.get(call, &url, MAX_LIST_BYTES).await {
                    Err(Fault::Gone | Fault::Forbidden | Fault::Refused) => {}
                    answer => {
                        let database: Object = read(answer?.body())?;
                        database.data_sources().for_each(|id| place.know_source(id));
                    }
                }
            }
            Child::Database => {}
        }
        Ok(())
    }

    /// Data sources from the search.
    async fn sources(&self, call: &Call, place: &mut Place, cursor: Option<String>) -> Result<(), Fault> {
        let mut query = json!({"page_size": PAGE, "filter": {"property": "object", "value": "data_source"}});
        set(&mut query, "start_cursor", cursor.as_deref());
        let answer = self.query(call, &["search"], &query).await?;
        let listed: Listed<'_> = read(answer.body())?;
        for object in listed.results.each::<Object>().flatten().filter(|object| !object.is_in_trash()) {
            if object.is_data_source() {
                place.know_source(object.id());
            }
        }
        if listed.is_cut() {
            place.leave_out("Notion's search stops before its end: share fewer pages with a connection");
        }
        place.stage = match listed.next() {
            Some(next) => Stage::Sources(Some(next)),
            None => Stage::Rows { from: None, cursor: None },
        };
        Ok(())
    }

    /// Rows of the next data source, the earliest edit first, so that a truncated query can continue after its last row.
    async fn rows(
        &self,
        call: &Call,
        place: &mut Place,
        page: &mut Collected,
        from: Option<String>,
        cursor: Option<String>,
    ) -> Result<(), Fault> {
        let Some(source) = place.sources.get(place.sources_read).cloned() else {
            place.stage = Stage::Trash(None);
            return Ok(());
        };
        let since = place.since.map(|since| Timestamp::from_micros(before(since, OVERLAP)).to_rfc3339());
        let from = from.or(since);
        let mut query = json!({"page_size": PAGE, "sorts": [{"timestamp": "last_edited_time", "direction": "ascending"}]});
        if let (Some(from), Value::Object(fields)) = (&from, &mut query) {
            let filter = json!({"timestamp": "last_edited_time", "last_edited_time": {"on_or_after": from}});
            fields.insert("filter".to_owned(), filter);
        }
        set(&mut query, "start_cursor", cursor.as_deref());
        let answer = match self.query(call, &["data_sources", &source, "query"], &query).await {
            // Deleted since, or no longer shared.
            Err(Fault::Gone | Fault::Forbidden) => None,
            answer => Some(answer?),
        };
        let (mut next, mut cut_at) = (None, None);
        if let Some(answer) = &answer {
            let listed: Listed<'_> = read(answer.body())?;
            let mut last = None;
            for row in listed.results.each::<Object>() {
                match row {
                    Err(fault) => page.take(Err(fault)),
                    Ok(row) => {
                        last = row.edited_text().map(str::to_owned);
                        self.take(call, place, page, &row);
                    }
                }
            }
            next = listed.next();
            cut_at = last.filter(|_| listed.is_cut());
            if listed.is_cut() && (cut_at.is_none() || cut_at == from) {
                place.leave_out("more rows of a data source were edited at one moment than Notion lists");
                cut_at = None;
            }
        }
        place.stage = match (next, cut_at) {
            (Some(cursor), _) => Stage::Rows { from, cursor: Some(cursor) },
            (None, Some(last)) => Stage::Rows { from: Some(last), cursor: None },
            (None, None) => {
                place.sources_read += 1;
                Stage::Rows { from: None, cursor: None }
            }
        };
        Ok(())
    }

    /// Pages in the trash: all for a listing, only the latest for changes.
    async fn trash(
        &self,
        call: &Call,
        place: &mut Place,
        page: &mut Collected,
        cursor: Option<String>,
    ) -> Result<(), Fault> {
        let mut query = json!({"page_size": PAGE, "filter": {"property": "object", "value": "page", "in_trash": true},
            "sort": {"timestamp": "last_edited_time", "direction": "descending"}});
        set(&mut query, "start_cursor", cursor.as_deref());
        place.stage = Stage::End;
        let answer = match self.query(call, &["search"], &query).await {
            // Some plans cannot list the trash; then pages are probed one by one.
            Err(Fault::Refused | Fault::Forbidden) => return Ok(()),
            answer => answer?,
        };
        let listed: Listed<'_> = read(answer.body())?;
        for object in listed.results.each::<Object>().flatten() {
            if object.is_in_trash()
                && let Ok(id) = ExternalId::new(object.id())
            {
                page.take(Ok(Item::Gone(id)));
            }
        }
        if let Some(next) = listed.next().filter(|_| place.since.is_none()) {
            place.stage = Stage::Trash(Some(next));
        }
        Ok(())
    }

    /// The text of a page, including parts that need further requests.
    async fn markdown(&self, call: &Call, id: &str) -> Result<String, Fault> {
        #[derive(Deserialize)]
        struct Markdown {
            markdown: String,
            #[serde(default)]
            unknown_block_ids: Vec<String>,
        }
        let mut text = String::new();
        let mut wanted = vec![id.to_owned()];
        let mut asked = HashSet::new();
        while let Some(part) = wanted.pop() {
            if !is_id(&part) || !asked.insert(part.clone()) {
                continue;
            }
            let answer =
                self.api.get(call, &self.api.at(["v1", "pages", &part, "markdown"]), MAX_LIST_BYTES).await;
            let answer = match answer {
                // The part is not shared.
                Err(Fault::Gone | Fault::Forbidden) if part != id => continue,
                answer => answer?,
            };
            let found: Markdown = read(answer.body())?;
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&found.markdown);
            wanted.extend(found.unknown_block_ids.into_iter().rev());
            if text.len() > MAX_BODY_BYTES || asked.len() > MAX_BODY_PAGES {
                return Err(Fault::TooLarge(MAX_BODY_BYTES as u64));
            }
        }
        Ok(text)
    }
}

fn set(query: &mut Value, name: &str, value: Option<&str>) {
    if let (Some(value), Value::Object(fields)) = (value, query) {
        fields.insert(name.to_owned(), value.into());
    }
}

fn before(micros: i64, overlap: Duration) -> i64 {
    micros.saturating_sub(i64::try_from(overlap.as_micros()).unwrap_or_default())
}

#[async_trait]
impl Provider for Notion {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::BestEffort,
            changes: Changes::HighWater { overlap: OVERLAP },
            deletions: Deletions::ByProbe,
            gone_after: None,
            search: Search::Titles,
            every: EVERY,
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        #[derive(Deserialize)]
        struct Me {
            #[serde(default)]
            name: Option<String>,
            #[serde(default)]
            bot: Option<Bot>,
        }
        #[derive(Deserialize)]
        struct Bot {
            #[serde(default)]
            workspace_name: Option<String>,
        }
        let answer = self.api.get(call, &self.api.at(["v1", "users", "me"]), MAX_LIST_BYTES).await?;
        let me: Me = read(answer.body())?;
        let name = me.bot.and_then(|bot| bot.workspace_name).or(me.name);
        let words = "Notion answers. Every page that is shared with the connection is shown to every member of the workspace.";
        Ok(Account::new(name.as_deref(), words))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        if from.is_none() {
            self.expanded.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        let place = from.map_or_else(|| Ok(Place::default()), Place::read)?;
        self.advance(call, place).await
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        self.advance(call, Place::read(from)?).await
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        if !is_id(id.as_str()) {
            return Ok(Fetched::Gone);
        }
        let page = match self.api.get(call, &self.api.at(["v1", "pages", id.as_str()]), MAX_LIST_BYTES).await
        {
            Err(Fault::Gone) => return Ok(Fetched::Gone),
            answer => answer?,
        };
        let page: Object = read(page.body())?;
        if page.is_in_trash() {
            return Ok(Fetched::Gone);
        }
        let version = page.version(call.now()).ok_or(Fault::broken(crate::rest::NO_ZONE))?;
        if known == Some(&version) {
            return Ok(Fetched::Same);
        }
        let markdown = match self.markdown(call, id.as_str()).await {
            Err(Fault::TooLarge(bytes)) => return Ok(Fetched::TooLarge(bytes)),
            Err(Fault::Gone) => return Err(Fault::broken("Notion has the page and does not give its text")),
            markdown => markdown?,
        };
        let title = page.title();
        let facts = page.facts();
        let parts = [
            format!("# {}", if title.is_empty() { "Untitled" } else { &title }),
            facts.trim_end().to_owned(),
            markdown,
        ];
        let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        let mut body = Body::new(parts.join("\n\n"), "text/markdown", version);
        body.title = Some(title).filter(|title| !title.is_empty());
        body.url = page.url().map(str::to_owned);
        Ok(Fetched::Body(body))
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        let size = limit.clamp(1, PAGE as usize);
        let query: String = query.chars().take(500).collect();
        let query =
            json!({"query": query, "page_size": size, "filter": {"property": "object", "value": "page"}});
        let answer = self.query(call, &["search"], &query).await?;
        let listed: Listed<'_> = read(answer.body())?;
        let pages =
            listed.results.each::<Object>().flatten().filter(|page| page.is_page() && !page.is_in_trash());
        Ok(pages.filter_map(|page| page.entry(call.now()).ok()).take(limit).collect())
    }
}

#[cfg(test)]
mod tests;
