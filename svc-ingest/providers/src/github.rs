//! Issues, pull requests and files on GitHub, of one repository or of all of an owner.

mod files;
mod issues;
mod place;
mod repositories;
mod search;
mod threads;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SourceMode;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::Deserialize;
use url::Url;

use self::files::TreeCache;
use self::issues::Issue;
use self::place::{Place, Stage, Walk};
use crate::connect::Draft;
use crate::rest::{Api, Collected, MAX_LIST_BYTES, read};
use crate::{
    Account, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, Listing, Page, Position,
    Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const HOST: &str = "https://api.github.com";
const API_VERSION: HeaderName = HeaderName::from_static("x-github-api-version");
const EVERY: Duration = Duration::from_secs(15 * 60);
/// Timestamps of issues are whole seconds, and its lists are eventually consistent.
const OVERLAP: Duration = Duration::from_secs(2 * 60);
/// The wait that GitHub recommends for a rate limit without a reset time.
const SECONDARY_LIMIT: Duration = Duration::from_secs(60);
/// Issues, comments of an issue, or repositories per page.
const PAGE: &str = "100";

/// The kinds of content to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Content {
    issues: bool,
    pulls: bool,
    files: bool,
}

#[derive(Debug)]
struct GitHub {
    api: Api,
    owner: String,
    repository: Option<String>,
    content: Content,
    mode: SourceMode,
    trees: TreeCache,
}

/// Parses the settings.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    let settings = &mut draft.settings;
    let owner = settings.required_text("owner", "give the account or organisation, such as rust-lang");
    let repository = settings.text("repo");
    let words: Vec<String> = settings.choices("content", &["issues", "pulls", "files"]);
    let has_base = settings.value("baseUrl").is_some();
    let base = settings.address("baseUrl", draft.reach.guard());
    for (field, name) in [("owner", &owner), ("repo", &repository)] {
        if name.as_deref().is_some_and(|name| !is_name(name)) {
            settings.refuse(
                field,
                "invalid_value",
                "must be a name as it stands in addresses of GitHub, without slashes",
            );
        }
    }
    let token = draft
        .credentials
        .required_secret("token", "give a fine-grained personal access token with read rights");
    let bearer = token?.bearer();
    let Ok(bearer) = bearer else {
        draft.credentials.refuse("token", "invalid_value", "cannot stand in an HTTP header");
        return None;
    };
    let base = if has_base { base? } else { Url::parse(HOST).ok()? };
    let has = |word: &str| words.is_empty() || words.iter().any(|chosen| chosen == word);
    let api = Api::new(base)
        .with(header::AUTHORIZATION, bearer)
        .with(header::ACCEPT, HeaderValue::from_static("application/vnd.github+json"))
        .with(API_VERSION, HeaderValue::from_static("2022-11-28"));
    Some(Box::new(GitHub {
        api,
        owner: owner?,
        repository,
        content: Content { issues: has("issues"), pulls: has("pulls"), files: has("files") },
        mode: draft.mode,
        trees: TreeCache::default(),
    }))
}

fn is_name(name: &str) -> bool {
    let is_plain =
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'));
    is_plain && name.len() <= 100 && !matches!(name, "." | "..")
}

#[derive(Deserialize)]
struct Owner {
    login: String,
}

impl GitHub {
    fn at(&self, repository: &str, parts: &[&str]) -> Url {
        self.api.at(["repos", &self.owner, repository].into_iter().chain(parts.iter().copied()))
    }

    /// The URL stored in the cursor, else that of the first page.
    fn page(&self, kept: Option<&str>, first: impl FnOnce() -> Url) -> Result<Url, Fault> {
        kept.map_or_else(|| Ok(first()), |kept| self.api.kept(kept))
    }

    async fn get(&self, call: &Call, url: &Url, most_bytes: usize) -> Result<Response<Bytes>, Fault> {
        let request = self.api.request(Method::GET, url, Bytes::new())?;
        let response = self.exchange(call, request, most_bytes).await?;
        crate::call::judge(response.status())?;
        Ok(response)
    }

    /// Sends a request; also detects rate limits that come as 403 without a header.
    async fn exchange(
        &self,
        call: &Call,
        request: Request<Bytes>,
        most_bytes: usize,
    ) -> Result<Response<Bytes>, Fault> {
        let response = call.exchange(request, most_bytes).await?;
        if response.status() == StatusCode::FORBIDDEN && is_limit(response.body()) {
            return Err(call.hold_for(SECONDARY_LIMIT).await);
        }
        Ok(response)
    }

    fn issue_id(&self, repository: &str, number: u64) -> String {
        format!("{}/{repository}#{number}", self.owner)
    }

    /// Parses the id of an issue into repository and number.
    fn issue_of<'i>(&self, id: &'i str) -> Option<(&'i str, u64)> {
        let (repository, number) =
            id.strip_prefix(self.owner.as_str())?.strip_prefix('/')?.split_once('#')?;
        Some((repository, number.parse().ok().filter(|_| is_name(repository))?))
    }

    /// The id of a file: its path, prefixed with the repository if there are several.
    fn file_id(&self, repository: &str, path: &str) -> String {
        if self.repository.is_some() { path.to_owned() } else { format!("{repository}/{path}") }
    }

    fn is_wanted(&self, issue: &Issue) -> bool {
        if issue.is_pull() { self.content.pulls } else { self.content.issues }
    }

    /// The entry of an issue. The body that a listing includes is dropped if bodies are not stored.
    fn entry(
        &self,
        repository: &str,
        issue: &Issue,
        later: Option<Timestamp>,
    ) -> Result<Item, crate::ItemFault> {
        let mut entry = issue.entry(self.issue_id(repository, issue.number), later)?;
        if self.mode == SourceMode::Catalog {
            entry.body = None;
        }
        Ok(entry.into())
    }

    /// Reads one page from a cursor.
    async fn advance(&self, call: &Call, mut place: Place) -> Result<Page, Fault> {
        loop {
            if place.queue.is_none() {
                let (names, is_whole) = self.repositories(call).await?;
                place.begin(names, is_whole);
            }
            let Some(repository) = place.repository().map(str::to_owned) else {
                let partial = std::mem::take(&mut place.partial);
                let next = Place { marks: place.marks, ..Place::default() }.position()?;
                return Page::new(Vec::new(), Vec::new(), Then::End { next, partial });
            };
            match self.turn(call, &mut place, &repository).await {
                Ok(Some(page)) => return page.into_page(Then::More(place.position()?)),
                Ok(None) => {}
                // One of several repositories that is deleted or not accessible does not stop the others.
                Err(Fault::Gone | Fault::Forbidden | Fault::Refused) if self.repository.is_none() => {
                    place.leave_out_repository(&self.owner);
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// The next page of the current repository; `None` if a stage has none.
    async fn turn(
        &self,
        call: &Call,
        place: &mut Place,
        repository: &str,
    ) -> Result<Option<Collected>, Fault> {
        match std::mem::take(&mut place.stage) {
            Stage::Begin => {
                place.stage = Stage::Files(Walk::default());
                if self.content.issues || self.content.pulls {
                    place.stage = Stage::Issues { page: None };
                }
                Ok(None)
            }
            Stage::Issues { page } => self.issues(call, place, repository, page.as_deref()).await.map(Some),
            Stage::Comments { of, page } => {
                self.comments(call, place, repository, of, page.as_deref()).await.map(Some)
            }
            Stage::Files(walk) if self.content.files => self.files(call, place, walk).await.map(Some),
            Stage::Files(_) | Stage::End => {
                place.finish_repository();
                Ok(None)
            }
        }
    }
}

/// Whether a refusal is a rate limit, by its message, which is not passed on.
fn is_limit(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body.get(..4_096).unwrap_or(body)).to_ascii_lowercase();
    text.contains("secondary rate limit")
        || text.contains("rate limit exceeded")
        || text.contains("abuse detection")
}

#[async_trait]
impl Provider for GitHub {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::Exhaustive,
            changes: Changes::HighWater { overlap: OVERLAP },
            deletions: Deletions::FromListing,
            gone_after: None,
            search: if self.content.issues || self.content.pulls { Search::Semantic } else { Search::None },
            every: EVERY,
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        let login = match self.get(call, &self.api.at(["user"]), MAX_LIST_BYTES).await {
            Ok(answer) => read::<Owner>(answer.body()).ok().map(|user| user.login),
            // App tokens have no user.
            Err(Fault::Gone | Fault::Forbidden) => None,
            Err(fault) => return Err(fault),
        };
        if let Some(repository) = &self.repository {
            self.get(call, &self.at(repository, &[]), MAX_LIST_BYTES).await?;
        } else if self.repositories(call).await?.0.is_empty() {
            return Err(Fault::Gone);
        }
        let words = "GitHub answers. Everything that the token reaches in it is shown to every member of the workspace.";
        Ok(Account::new(login.as_deref(), words))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let place = from.map_or_else(|| Ok(Place::default()), Place::read)?;
        self.advance(call, place).await
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        self.advance(call, Place::read(from)?).await
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        if let Some((repository, number)) = self.issue_of(id.as_str()) {
            let is_ours = self.repository.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(repository));
            return match is_ours && (self.content.issues || self.content.pulls) {
                true => self.fetch_issue(call, repository, number, known).await,
                false => Ok(Fetched::Gone),
            };
        }
        match (&self.repository, id.as_str().split_once('/')) {
            // Documents outside of the selection do not exist, even if the token could read them.
            _ if !self.content.files => Ok(Fetched::Gone),
            (Some(repository), _) => self.fetch_file(call, repository, id.as_str(), known).await,
            (None, Some((repository, path))) if is_name(repository) => {
                self.fetch_file(call, repository, path, known).await
            }
            (None, _) => Ok(Fetched::Gone),
        }
    }

    async fn search(&self, call: &Call, query: &str, limit: usize) -> Result<Vec<Entry>, Fault> {
        self.find(call, query, limit).await
    }
}

#[cfg(test)]
mod tests;
