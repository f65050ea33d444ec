//! A git repository over HTTP: the files of one ref.
//!
//! A shallow fetch brings all files; changes are the diff of two trees, independent of the history between them. The protocol and pack
//! files are parsed by our own code, see ADR 45.

mod pack;
mod snapshot;
mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_proto::domain::SourceMode;
use http::HeaderValue;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use url::Url;

use self::pack::Oid;
use self::snapshot::{Commit, Snapshot};
use self::wire::Server;
use crate::connect::Draft;
use crate::filter::Filter;
use crate::{
    Account, Body, Call, Changes, Deletions, Entry, ExternalId, Fault, Fetched, Item, Listing,
    MAX_BODY_BYTES, Page, Partial, Position, Provider, Search, Then, Traits, Version, mime,
};

/// The default first.
pub(crate) const MODES: &[SourceMode] = &[SourceMode::Indexed, SourceMode::Catalog];

/// Parses the settings `url`, `ref`, `path`, `include` and `exclude`.
pub(crate) fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
    Git::make(draft)
}

const POSITION_VERSION: u16 = 1;
/// Files of a page.
const PAGE: usize = 1_000;
/// The first line of a Git LFS pointer file.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// A repository.
#[derive(Debug)]
struct Git {
    url: Url,
    reference: String,
    within: String,
    filter: Arc<Filter>,
    authorization: Option<HeaderValue>,
    /// The fetched snapshot of this run.
    fetched: Mutex<Fetch>,
}

#[derive(Debug, Default)]
struct Fetch {
    server: Option<Server>,
    snapshot: Option<Arc<Snapshot>>,
    /// The commit that the run reads.
    head: Option<Oid>,
}

/// The cursor of a listing or of changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct At {
    /// The commit of the previous run; absent in a listing.
    from: Option<String>,
    /// The commit to read; absent for an empty repository.
    to: Option<String>,
    /// The last path that was reported.
    after: Option<String>,
}

impl Git {
    fn make(draft: &mut Draft<'_>) -> Option<Box<dyn Provider>> {
        let settings = &mut draft.settings;
        let advice = "give the https address of a repository";
        let url = settings.required_address("url", advice, draft.reach.guard());
        if url.as_ref().is_some_and(|url| url.query().is_some()) {
            settings.refuse("url", "invalid_url", "may have no query");
        }
        let reference = settings.text("ref").unwrap_or_else(|| "HEAD".to_owned());
        let is_reference = is_reference(&reference);
        if !is_reference {
            settings.refuse(
                "ref",
                "invalid_value",
                "must be the name of a branch or a tag, or the id of a commit",
            );
        }
        let within = settings.text("path").unwrap_or_default().trim_matches('/').to_owned();
        let is_path = within.is_empty() || within.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_path {
            settings.refuse("path", "invalid_value", "must be the path of a folder in the repository");
        }
        let filter = Filter::of(settings);
        let user = draft.credentials.text("username");
        let token = draft.credentials.secret("token");
        if user.is_some() && token.is_none() {
            draft.credentials.refuse("token", "required", "give the token or password of the user");
        }
        let user = user.unwrap_or_else(|| "x-access-token".to_owned());
        let authorization = token.map(|token| token.basic(&user));
        if matches!(authorization, Some(Err(_))) {
            draft.credentials.refuse("token", "invalid_value", "cannot stand in a header");
        }
        let authorization = authorization.transpose().ok()?;
        let (url, filter) = (url?, Arc::new(filter?));
        let fetched = Mutex::default();
        (is_reference && is_path).then(|| {
            Box::new(Self { url, reference, within, filter, authorization, fetched }) as Box<dyn Provider>
        })
    }

    async fn server(&self, call: &Call, fetched: &mut Fetch) -> Result<Server, Fault> {
        if let Some(server) = &fetched.server {
            return Ok(server.clone());
        }
        let server = Server::discover(call, &self.url, self.authorization.clone()).await?;
        fetched.server = Some(server.clone());
        Ok(server)
    }

    /// The commit that the ref points to.
    async fn head(&self, call: &Call, fetched: &mut Fetch) -> Result<Option<Oid>, Fault> {
        let server = self.server(call, fetched).await?;
        let head = server.resolve(call, &self.reference).await?;
        if head.is_none() && self.reference != "HEAD" {
            return Err(Fault::broken("the repository has no such branch or tag"));
        }
        fetched.head = head;
        Ok(head)
    }

    /// A snapshot that has all these commits.
    async fn snapshot(
        &self,
        call: &Call,
        fetched: &mut Fetch,
        commits: &[Oid],
    ) -> Result<Arc<Snapshot>, Fault> {
        let has_all = |snapshot: &&Arc<Snapshot>| commits.iter().all(|id| snapshot.commit(id).is_some());
        if let Some(snapshot) = fetched.snapshot.as_ref().filter(has_all) {
            return Ok(Arc::clone(snapshot));
        }
        // Frees the previous one before the next is read.
        fetched.snapshot = None;
        let server = self.server(call, fetched).await?;
        let pack = server.fetch(call, commits).await?;
        let (commits, within, filter) = (commits.to_vec(), self.within.clone(), Arc::clone(&self.filter));
        let read =
            tokio::task::spawn_blocking(move || Snapshot::read(pack, &commits, &within, &filter)).await;
        let snapshot = Arc::new(read.map_err(|_| Fault::broken("the repository cannot be read"))??);
        fetched.snapshot = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    fn page(&self, at: &At, commit: &Commit, items: BTreeMap<String, Option<Oid>>) -> Result<Page, Fault> {
        let is_first = at.after.is_none();
        let mut rest =
            items.into_iter().filter(|(path, _)| at.after.as_ref().is_none_or(|after| path > after));
        let mut taken = Vec::new();
        let mut last = None;
        for (path, blob) in rest.by_ref().take(PAGE) {
            let Ok(id) = ExternalId::new(path.as_str()) else { continue };
            taken.push(match blob {
                Some(blob) => Item::from(self.entry(id, &path, &blob, &commit.id)),
                None => Item::Gone(id),
            });
            last = Some(path);
        }
        let then = if rest.next().is_some() {
            Then::More(Position::new(POSITION_VERSION, &At { after: last, ..at.clone() })?)
        } else {
            Then::End { next: end(Some(&commit.id))?, partial: Vec::new() }
        };
        let faults = if is_first { commit.faults.iter().take(PAGE).cloned().collect() } else { Vec::new() };
        Page::new(taken, faults, then)
    }

    fn entry(&self, id: ExternalId, path: &str, blob: &Oid, commit: &Oid) -> Entry {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut entry = Entry::new(id, Version::new(hex::encode(blob)), name);
        entry.mime = Some(mime::of_name(path).to_owned());
        entry.path = Some(path.to_owned());
        entry.url = self.address(path, commit);
        entry
    }

    /// The URL of the file for people. It names the commit, so that line numbers stay valid.
    fn address(&self, path: &str, commit: &Oid) -> Option<String> {
        let mut url = self.url.clone();
        let repository = url.path().trim_end_matches('/');
        let repository = repository.strip_suffix(".git").unwrap_or(repository).to_owned();
        url.set_path(&repository);
        let mut parts = url.path_segments_mut().ok()?;
        parts.pop_if_empty().push("blob").push(&hex::encode(commit)).extend(path.split('/'));
        drop(parts);
        Some(url.into())
    }
}

#[async_trait]
impl Provider for Git {
    fn traits(&self) -> Traits {
        Traits {
            listing: Listing::Exhaustive,
            changes: Changes::Exact,
            deletions: Deletions::FromChanges,
            gone_after: None,
            search: Search::None,
            every: Duration::from_secs(15 * 60),
        }
    }

    async fn check(&self, call: &Call) -> Result<Account, Fault> {
        let mut fetched = self.fetched.lock().await;
        let message = match self.head(call, &mut fetched).await? {
            Some(_) => "the repository can be read",
            None => "the repository can be read; it has no commit yet",
        };
        Ok(Account::new(None, message))
    }

    async fn list(&self, call: &Call, from: Option<&Position>) -> Result<Page, Fault> {
        let mut fetched = self.fetched.lock().await;
        let at = match from {
            Some(from) => from.read::<At>(POSITION_VERSION)?,
            None => {
                let head = self.head(call, &mut fetched).await?;
                At { from: None, to: head.map(hex::encode), after: None }
            }
        };
        let Some(to) = at.to.as_deref() else {
            let partial = vec![Partial::everywhere("the repository has no commit")];
            return Page::new(Vec::new(), Vec::new(), Then::End { next: end(None)?, partial });
        };
        let to = wire::oid(to.as_bytes()).ok_or(Fault::PositionLost)?;
        fetched.head = Some(to);
        let snapshot = self.snapshot(call, &mut fetched, &[to]).await?;
        let commit = snapshot.commit(&to).ok_or(Fault::PositionLost)?;
        self.page(&at, commit, commit.files.iter().map(|(path, blob)| (path.clone(), Some(*blob))).collect())
    }

    async fn changes(&self, call: &Call, from: &Position) -> Result<Page, Fault> {
        let mut fetched = self.fetched.lock().await;
        let mut at: At = from.read(POSITION_VERSION)?;
        if at.after.is_none() {
            // The final position of the previous run: its commit is the base of the changes.
            let head = self.head(call, &mut fetched).await?;
            at = At { from: at.to, to: head.map(hex::encode), after: None };
        }
        if at.from == at.to {
            let next = Position::new(POSITION_VERSION, &At { from: None, ..at })?;
            return Page::new(Vec::new(), Vec::new(), Then::End { next, partial: Vec::new() });
        }
        // From or to an empty repository: requires a full listing.
        let read = |id: &Option<String>| id.as_ref().and_then(|id| wire::oid(id.as_bytes()));
        let (before, to) = read(&at.from).zip(read(&at.to)).ok_or(Fault::PositionLost)?;
        fetched.head = Some(to);
        let snapshot = self.snapshot(call, &mut fetched, &[before, to]).await?;
        let (old, new) = snapshot.commit(&before).zip(snapshot.commit(&to)).ok_or(Fault::PositionLost)?;
        let changed = new.files.iter().filter(|(path, blob)| old.files.get(*path) != Some(*blob));
        let gone = old.files.keys().filter(|path| !new.files.contains_key(*path));
        let items = changed
            .map(|(path, blob)| (path.clone(), Some(*blob)))
            .chain(gone.map(|path| (path.clone(), None)))
            .collect();
        self.page(&at, new, items)
    }

    async fn fetch(&self, call: &Call, id: &ExternalId, known: Option<&Version>) -> Result<Fetched, Fault> {
        let mut fetched = self.fetched.lock().await;
        let head = match fetched.head {
            Some(head) => Some(head),
            None => self.head(call, &mut fetched).await?,
        };
        let Some(head) = head else { return Ok(Fetched::Gone) };
        let snapshot = self.snapshot(call, &mut fetched, &[head]).await?;
        drop(fetched);
        let Some(blob) = snapshot.commit(&head).and_then(|commit| commit.files.get(id.as_str())) else {
            return Ok(Fetched::Gone);
        };
        let version = Version::new(hex::encode(blob));
        if known == Some(&version) {
            return Ok(Fetched::Same);
        }
        let blob = *blob;
        let read = tokio::task::spawn_blocking(move || snapshot.file(&blob)).await;
        let Some(bytes) = read.map_err(|_| Fault::broken("the file cannot be read"))?? else {
            return Ok(Fetched::TooLarge(MAX_BODY_BYTES as u64 + 1));
        };
        if bytes.starts_with(LFS) {
            return Ok(Fetched::Unsupported("application/vnd.git-lfs".to_owned()));
        }
        let mut body = Body::new(bytes, mime::of_name(id.as_str()), version);
        body.url = self.address(id.as_str(), &head);
        Ok(Fetched::Body(body))
    }
}

fn end(commit: Option<&Oid>) -> Result<Position, Fault> {
    Position::new(POSITION_VERSION, &At { from: None, to: commit.map(hex::encode), after: None })
}

/// The rules of `git check-ref-format`, as far as they prevent injection.
fn is_reference(name: &str) -> bool {
    let is_plain = |letter: char| !letter.is_whitespace() && !"~^:?*[\\".contains(letter);
    !name.is_empty()
        && name.len() <= 250
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !["..", "//", "@{", "/."].iter().any(|odd| name.contains(odd))
        && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
