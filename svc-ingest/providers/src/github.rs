//! Issues, pull requests and files of GitHub, of one repository or of all of an owner.

mod files;
mod issues;
mod place;
mod search;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cairn_chassis::clock::Timestamp;
use cairn_proto::domain::SourceMode;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use serde::Deserialize;
use url::Url;

use self::files::Trees;
use self::issues::{Comment, Issue};
use self::place::{CommentsOf, Place, Stage, Walk};
use crate::connect::Draft;
use crate::rest::{Api, Collected, Items, MOST_BODY_PAGES, MOST_LIST_BYTES, next_page, read};
use crate::{
    Account, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, Listing, Page, Position,
    Provider, Search, Then, Traits, Version,
};

pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog, SourceMode::Live];

const HOST: &str = "https://api.github.com";
const API_VERSION: HeaderName = HeaderName::from_static("x-github-api-version");
const EVERY: Duration = Duration::from_secs(15 * 60);
/// Times of issues are whole seconds, and its lists are not written at once.
const OVERLAP: Duration = Duration::from_secs(2 * 60);
/// What GitHub asks for when it limits without saying until when.
const SECONDARY_LIMIT: Duration = Duration::from_secs(60);
/// Issues, and comments, of a page. Each comment may take a request for its issue.
const PAGE: &str = "100";
const COMMENTS_PAGE: &str = "30";
/// The most issues that are remembered as told while their comments are looked through.
const MOST_TOLD: usize = 500;
/// The most pages of repositories of an owner.
const MOST_REPOSITORY_PAGES: usize = 20;

/// What is read.
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
    trees: Trees,
}

/// Reads the settings.
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
        trees: Trees::default(),
    }))
}

fn is_name(name: &str) -> bool {
    let is_plain =
        name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'));
    is_plain && name.len() <= 100 && !matches!(name, "." | "..")
}

#[derive(Deserialize)]
struct Named {
    name: String,
    owner: Owner,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
}

impl GitHub {
    fn at(&self, repository: &str, parts: &[&str]) -> Url {
        self.api.at(["repos", &self.owner, repository].into_iter().chain(parts.iter().copied()))
    }

    /// The address that a place kept, or the first page.
    fn page(&self, kept: Option<&str>, first: impl FnOnce() -> Url) -> Result<Url, Fault> {
        kept.map_or_else(|| Ok(first()), |kept| self.api.kept(kept))
    }

    async fn get(&self, call: &Call, url: &Url, most_bytes: usize) -> Result<Response<Bytes>, Fault> {
        let request = self.api.request(Method::GET, url, Bytes::new())?;
        let response = self.exchange(call, request, most_bytes).await?;
        crate::call::judge(response.status())?;
        Ok(response)
    }

    /// Sends a request, and knows the limits that come as 403 without a header.
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

    /// The repository and number of an issue's id.
    fn issue_of<'i>(&self, id: &'i str) -> Option<(&'i str, u64)> {
        let (repository, number) =
            id.strip_prefix(self.owner.as_str())?.strip_prefix('/')?.split_once('#')?;
        Some((repository, number.parse().ok().filter(|_| is_name(repository))?))
    }

    /// A file's id: its path, below the name of its repository where there are several.
    fn file_id(&self, repository: &str, path: &str) -> String {
        if self.repository.is_some() { path.to_owned() } else { format!("{repository}/{path}") }
    }

    fn is_wanted(&self, issue: &Issue) -> bool {
        if issue.is_pull() { self.content.pulls } else { self.content.issues }
    }

    /// An issue's document. What a listing brings along is left out where bodies are not kept.
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

    /// The names of the repositories.
    async fn repositories(&self, call: &Call) -> Result<Vec<String>, Fault> {
        if let Some(repository) = &self.repository {
            return Ok(vec![repository.clone()]);
        }
        let query = [("per_page", PAGE), ("sort", "full_name")];
        let mine = self.named(call, self.api.at_with(["user", "repos"], &query)).await?;
        if !mine.is_empty() {
            return Ok(mine);
        }
        // Those of an organisation or a person whose repositories are public and not the token's.
        match self.named(call, self.api.at_with(["orgs", &self.owner, "repos"], &query)).await {
            Err(Fault::Gone) => {
                self.named(call, self.api.at_with(["users", &self.owner, "repos"], &query)).await
            }
            named => named,
        }
    }

    async fn named(&self, call: &Call, first: Url) -> Result<Vec<String>, Fault> {
        let mut names = Vec::new();
        let mut next = Some(first);
        for _ in 0..MOST_REPOSITORY_PAGES {
            let Some(url) = next else { break };
            let answer = self.get(call, &url, MOST_LIST_BYTES).await?;
            let listed: Items<'_> = read(answer.body())?;
            let owned = listed.each::<Named>().flatten();
            let owned = owned.filter(|named| named.owner.login.eq_ignore_ascii_case(&self.owner));
            names.extend(owned.map(|named| named.name).filter(|name| is_name(name)));
            next = next_page(answer.headers(), &url)?;
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// One page, from a place on.
    async fn advance(&self, call: &Call, mut place: Place) -> Result<Page, Fault> {
        loop {
            if place.queue.is_none() {
                let names = self.repositories(call).await?;
                place.begin(names);
            }
            let Some(repository) = place.repository().map(str::to_owned) else {
                let partial = std::mem::take(&mut place.partial);
                let next = Place { marks: place.marks, ..Place::default() }.position()?;
                return Page::new(Vec::new(), Vec::new(), Then::End { next, partial });
            };
            let page = match std::mem::take(&mut place.stage) {
                Stage::Begin => {
                    let has_issues = self.content.issues || self.content.pulls;
                    place.stage =
                        if has_issues { Stage::Issues { page: None } } else { Stage::Files(Walk::default()) };
                    continue;
                }
                Stage::Issues { page } => self.issues(call, &mut place, &repository, page.as_deref()).await?,
                Stage::Comments { of, page, told } => {
                    self.comments(call, &mut place, &repository, of, page.as_deref(), told).await?
                }
                Stage::Files(walk) if self.content.files => self.files(call, &mut place, walk).await?,
                Stage::Files(_) | Stage::End => {
                    place.finish_repository();
                    continue;
                }
            };
            return page.into_page(Then::More(place.position()?));
        }
    }

    async fn issues(
        &self,
        call: &Call,
        place: &mut Place,
        repository: &str,
        page: Option<&str>,
    ) -> Result<Collected, Fault> {
        let since = place.before().latest.map(since);
        let url = self.page(page, || {
            let mut url = self.at(repository, &["issues"]);
            let order = [("state", "all"), ("sort", "updated"), ("direction", "asc"), ("per_page", PAGE)];
            url.query_pairs_mut()
                .extend_pairs(order)
                .extend_pairs(since.as_ref().map(|since| ("since", since)));
            url
        })?;
        let answer = self.get(call, &url, MOST_LIST_BYTES).await?;
        let listed: Items<'_> = read(answer.body())?;
        let mut collected = Collected::default();
        for issue in listed.each::<Issue>() {
            let issue = match issue {
                Err(fault) => {
                    collected.take(Err(fault));
                    continue;
                }
                Ok(issue) if !self.is_wanted(&issue) => continue,
                Ok(issue) => issue,
            };
            if let Some(at) = issue.updated_at() {
                place.saw(at.as_micros());
            }
            collected.take(self.entry(repository, &issue, None));
        }
        let next = next_page(answer.headers(), &url)?;
        place.stage = match next {
            Some(next) => Stage::Issues { page: Some(next.into()) },
            // A first listing has every issue with its comments: only what comes later may come alone.
            None if since.is_some() => {
                Stage::Comments { of: CommentsOf::Issues, page: None, told: Vec::new() }
            }
            None => Stage::Files(Walk::default()),
        };
        Ok(collected)
    }

    /// Issues whose comments were written or changed, which does not always change the issue's own time.
    async fn comments(
        &self,
        call: &Call,
        place: &mut Place,
        repository: &str,
        of: CommentsOf,
        page: Option<&str>,
        mut told: Vec<u64>,
    ) -> Result<Collected, Fault> {
        let since = place.before().latest.map(since).unwrap_or_default();
        let kind = match of {
            CommentsOf::Issues => "issues",
            CommentsOf::Reviews => "pulls",
        };
        let url = self.page(page, || {
            let mut url = self.at(repository, &[kind, "comments"]);
            let order =
                [("sort", "updated"), ("direction", "asc"), ("per_page", COMMENTS_PAGE), ("since", &since)];
            url.query_pairs_mut().extend_pairs(order);
            url
        })?;
        let answer = match self.get(call, &url, MOST_LIST_BYTES).await {
            // Servers of GitHub's interface need not have comments by themselves.
            Err(Fault::Gone) if page.is_none() => None,
            answer => Some(answer?),
        };
        let mut collected = Collected::default();
        let mut next = None;
        if let Some(answer) = answer {
            let listed: Items<'_> = read(answer.body())?;
            for comment in listed.each::<Comment>().flatten() {
                let (Some(number), Some(at)) = (comment.number(), comment.updated_at()) else { continue };
                place.saw(at.as_micros());
                if told.contains(&number) {
                    continue;
                }
                if told.len() < MOST_TOLD {
                    told.push(number);
                }
                match self.issue(call, repository, number).await? {
                    Some(issue) if self.is_wanted(&issue) && issue.updated_at() < Some(at) => {
                        collected.take(self.entry(repository, &issue, Some(at)));
                    }
                    Some(_) | None => {}
                }
            }
            next = next_page(answer.headers(), &url)?;
        }
        place.stage = match (next, of) {
            (Some(next), of) => Stage::Comments { of, page: Some(next.into()), told },
            (None, CommentsOf::Issues) if self.content.pulls => {
                Stage::Comments { of: CommentsOf::Reviews, page: None, told }
            }
            (None, _) => Stage::Files(Walk::default()),
        };
        Ok(collected)
    }

    /// One issue; `None` when it is not there, or was moved to another repository.
    async fn issue(&self, call: &Call, repository: &str, number: u64) -> Result<Option<Issue>, Fault> {
        let url = self.at(repository, &["issues", &number.to_string()]);
        let answer = match self.get(call, &url, MOST_LIST_BYTES).await {
            Err(Fault::Gone) => return Ok(None),
            answer => answer?,
        };
        let issue: Issue = read(answer.body())?;
        let is_elsewhere = issue.repository().is_some_and(|(owner, name)| {
            !owner.eq_ignore_ascii_case(&self.owner) || !name.eq_ignore_ascii_case(repository)
        });
        Ok((issue.number == number && !is_elsewhere).then_some(issue))
    }

    async fn fetch_issue(
        &self,
        call: &Call,
        repository: &str,
        number: u64,
        known: Option<&Version>,
    ) -> Result<Fetched, Fault> {
        let Some(issue) = self.issue(call, repository, number).await? else { return Ok(Fetched::Gone) };
        if known == Some(&issue.version(None)) {
            return Ok(Fetched::Same);
        }
        let number = number.to_string();
        let mut comments = Vec::new();
        if issue.comments != Some(0) {
            comments = self.comments_of(call, self.at(repository, &["issues", &number, "comments"])).await?;
        }
        if issue.is_pull() {
            comments
                .extend(self.comments_of(call, self.at(repository, &["pulls", &number, "comments"])).await?);
        }
        let latest = comments.iter().filter_map(Comment::updated_at).max();
        let text = issue.text(&comments);
        if text.is_too_large() {
            return Ok(Fetched::TooLarge(crate::rest::MOST_BODY_BYTES as u64));
        }
        let version = issue.version(latest);
        Ok(Fetched::Body(text.body(&issue, version)))
    }

    async fn comments_of(&self, call: &Call, mut url: Url) -> Result<Vec<Comment>, Fault> {
        url.query_pairs_mut().append_pair("per_page", PAGE);
        let mut comments = Vec::new();
        let mut next = Some(url);
        let mut bytes = 0;
        for _ in 0..MOST_BODY_PAGES {
            let Some(url) = next else { break };
            let answer = self.get(call, &url, MOST_LIST_BYTES).await?;
            bytes += answer.body().len();
            if bytes > 2 * MOST_LIST_BYTES {
                return Err(Fault::TooLarge(bytes as u64));
            }
            let listed: Items<'_> = read(answer.body())?;
            comments.extend(listed.each::<Comment>().flatten());
            next = next_page(answer.headers(), &url)?;
        }
        Ok(comments)
    }
}

/// The time from which changes are asked for.
fn since(latest: i64) -> String {
    let overlap = i64::try_from(OVERLAP.as_micros()).unwrap_or_default();
    Timestamp::from_micros(latest.saturating_sub(overlap)).to_rfc3339()
}

/// Whether a refusal is a limit. Only these words decide; none of them goes further.
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
        let login = match self.get(call, &self.api.at(["user"]), MOST_LIST_BYTES).await {
            Ok(answer) => read::<Owner>(answer.body()).ok().map(|user| user.login),
            // Tokens of apps are nobody's.
            Err(Fault::Gone | Fault::Forbidden) => None,
            Err(fault) => return Err(fault),
        };
        if let Some(repository) = &self.repository {
            self.get(call, &self.at(repository, &[]), MOST_LIST_BYTES).await?;
        } else if self.repositories(call).await?.is_empty() {
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
            return self.fetch_issue(call, repository, number, known).await;
        }
        match (&self.repository, id.as_str().split_once('/')) {
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
