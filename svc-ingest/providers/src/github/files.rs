//! Files of a repository's default branch, from its git trees.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode};
use serde::Deserialize;
use url::Url;

use super::GitHub;
use super::place::{Place, Stage, Walk};
use crate::rest::{Collected, Items, MAX_BODY_BYTES, MAX_LIST_BYTES, read};
use crate::{Body, Call, Entry, ExternalId, Fault, Fetched, Item, ItemFault, Partial, Version};

/// Files per page: a tree has up to 100 000.
const PAGE_FILES: usize = 5_000;
/// Entries of a tree in one response of GitHub.
const MAX_ENTRIES: usize = 100_000;
/// A base64 body within JSON.
const MAX_ANSWER_BYTES: usize = 2 * MAX_BODY_BYTES;

/// A cache of the last trees, so that pages and fetches do not request them again.
#[derive(Debug, Default)]
pub(super) struct TreeCache(Mutex<Vec<CachedTree>>);

#[derive(Debug)]
struct CachedTree {
    key: String,
    /// The folder of the tree in the repository; paths are relative to it.
    folder: String,
    tree: Arc<Tree>,
}

/// The files and folders of a tree, by relative path.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, Leaf>,
    folders: Vec<(String, String)>,
    is_truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Leaf {
    sha: String,
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Repository {
    html_url: String,
    default_branch: String,
}

#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tree: Items<'a, MAX_ENTRIES>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Deserialize)]
struct Node {
    path: String,
    #[serde(default)]
    mode: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    sha: String,
    #[serde(default)]
    size: Option<u64>,
}

#[derive(Deserialize)]
struct Blob {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    sha: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    html_url: Option<String>,
}

/// A symbolic link, which is not followed.
const LINK_MODE: &str = "120000";
const TREES_KEPT: usize = 2;

impl TreeCache {
    fn get(&self, key: &str) -> Option<Arc<Tree>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|kept| kept.key == key).map(|kept| Arc::clone(&kept.tree))
    }

    fn insert(&self, tree: CachedTree) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= TREES_KEPT {
            kept.remove(0);
        }
        kept.push(tree);
    }
}

impl GitHub {
    /// A page of files; advances the cursor.
    pub(super) async fn files(
        &self,
        call: &Call,
        place: &mut Place,
        mut walk: Walk,
    ) -> Result<Collected, Fault> {
        let Some(repository) = place.repository().map(str::to_owned) else { return Ok(Collected::default()) };
        if walk.head.is_none() {
            let Some((web, head)) = self.head(call, &repository).await? else {
                place.stage = Stage::End;
                return Ok(Collected::default());
            };
            walk = Walk { head: Some(head.clone()), web, folders: vec![(String::new(), head)], told: 0 };
        }
        place.now.head.clone_from(&walk.head);
        let before = place.before().head;
        if before.is_some() && before == walk.head {
            place.stage = Stage::End;
            return Ok(Collected::default());
        }
        match before {
            Some(before) => self.changed_files(call, place, &repository, walk, &before).await,
            None => self.all_files(call, place, &repository, walk).await,
        }
    }

    async fn all_files(
        &self,
        call: &Call,
        place: &mut Place,
        repository: &str,
        mut walk: Walk,
    ) -> Result<Collected, Fault> {
        let mut page = Collected::default();
        let Some((folder, sha)) = walk.folders.pop() else {
            place.stage = Stage::End;
            return Ok(page);
        };
        let mut tree = self.tree(call, repository, &folder, &sha, true).await?;
        if tree.is_truncated {
            // Reads its own entries, and queues its folders.
            tree = self.tree(call, repository, &folder, &sha, false).await?;
            if walk.told == 0 {
                for (name, sha) in &tree.folders {
                    let path = join(&folder, name);
                    if !walk.wait_for(path.clone(), sha.clone()) {
                        let scope = self.file_id(repository, &format!("{path}/"));
                        let words = "the repository is larger than what is read of one";
                        place.leave_out(Partial::below(scope, words));
                    }
                }
            }
            if tree.is_truncated {
                let scope = self.file_id(repository, &folder);
                place.leave_out(Partial::below(scope, "a folder has more entries than GitHub tells"));
            }
        }
        let files = tree.files.iter().skip(walk.told).take(PAGE_FILES);
        for (path, leaf) in files {
            page.take(self.file(repository, &walk, &join(&folder, path), leaf));
        }
        walk.told += PAGE_FILES;
        if walk.told < tree.files.len() {
            walk.folders.push((folder, sha));
        } else {
            walk.told = 0;
        }
        place.stage = if walk.folders.is_empty() { Stage::End } else { Stage::Files(walk) };
        Ok(page)
    }

    /// The diff of the trees of two commits.
    async fn changed_files(
        &self,
        call: &Call,
        place: &mut Place,
        repository: &str,
        mut walk: Walk,
        before: &str,
    ) -> Result<Collected, Fault> {
        let head = walk.head.clone().unwrap_or_default();
        let old = match self.tree(call, repository, "", before, true).await {
            Err(Fault::Gone | Fault::Refused) => return Err(Fault::PositionLost),
            old => old?,
        };
        let new = self.tree(call, repository, "", &head, true).await?;
        if old.is_truncated || new.is_truncated {
            return Err(Fault::PositionLost);
        }
        let written = new.files.iter().filter(|(path, leaf)| old.files.get(*path) != Some(leaf));
        let written = written.map(|(path, leaf)| self.file(repository, &walk, path, leaf));
        let removed = old.files.keys().filter(|path| !new.files.contains_key(*path));
        let removed = removed
            .filter_map(|path| Some(Ok(Item::Gone(ExternalId::new(self.file_id(repository, path)).ok()?))));
        let mut page = Collected::default();
        let mut told = 0;
        for item in written.chain(removed).skip(walk.told).take(PAGE_FILES) {
            page.take(item);
            told += 1;
        }
        if told == PAGE_FILES {
            walk.told += PAGE_FILES;
            place.stage = Stage::Files(walk);
        } else {
            place.stage = Stage::End;
        }
        Ok(page)
    }

    fn file(&self, repository: &str, walk: &Walk, path: &str, leaf: &Leaf) -> Result<Item, ItemFault> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let id = self.file_id(repository, path);
        let reads_as_issue = self.issue_of(&id).is_some();
        let id = ExternalId::new(id).map_err(|_| ItemFault::unusable_id(name))?;
        let mut entry = Entry::new(id, Version::new(leaf.sha.clone()), name);
        if reads_as_issue {
            return Err(ItemFault::lasting(&entry, "its path reads like the number of an issue"));
        }
        entry.size = leaf.size;
        entry.path = Some(entry.id.as_str().to_owned());
        entry.url = web_address(&walk.web, walk.head.as_deref().unwrap_or_default(), path);
        Ok(entry.into())
    }

    /// The repository's URL for people, and the commit of its default branch; `None` for an empty repository.
    async fn head(&self, call: &Call, repository: &str) -> Result<Option<(String, String)>, Fault> {
        #[derive(Deserialize)]
        struct Commit {
            sha: String,
        }
        #[derive(Deserialize)]
        struct Reference {
            object: Commit,
        }
        #[derive(Deserialize)]
        struct Branch {
            commit: Commit,
        }
        let answer = self.get(call, &self.at(repository, &[]), MAX_LIST_BYTES).await?;
        let found: Repository = read(answer.body())?;
        let branch: Vec<&str> = found.default_branch.split('/').collect();
        let reference = [&["git", "ref", "heads"], branch.as_slice()].concat();
        let request = self.api.request(Method::GET, &self.at(repository, &reference), bytes::Bytes::new())?;
        let answer = self.exchange(call, request, MAX_LIST_BYTES).await?;
        let sha = match answer.status() {
            StatusCode::CONFLICT => return Ok(None),
            StatusCode::NOT_FOUND => {
                let branch = [&["branches"], branch.as_slice()].concat();
                match self.get(call, &self.at(repository, &branch), MAX_LIST_BYTES).await {
                    Err(Fault::Gone) => return Ok(None),
                    answer => read::<Branch>(answer?.body())?.commit.sha,
                }
            }
            status => {
                crate::call::judge(status)?;
                read::<Reference>(answer.body())?.object.sha
            }
        };
        Ok(Some((found.html_url, sha)))
    }

    async fn tree(
        &self,
        call: &Call,
        repository: &str,
        folder: &str,
        sha: &str,
        is_deep: bool,
    ) -> Result<Arc<Tree>, Fault> {
        let key = format!("{repository} {sha} {is_deep}");
        if let Some(tree) = self.trees.get(&key) {
            return Ok(tree);
        }
        let mut url = self.at(repository, &["git", "trees", sha]);
        if is_deep {
            url.set_query(Some("recursive=1"));
        }
        let answer = self.get(call, &url, MAX_LIST_BYTES).await?;
        let listed: Listed<'_> = read(answer.body())?;
        let mut tree = Tree { is_truncated: listed.truncated, ..Tree::default() };
        for node in listed.tree.each::<Node>() {
            let Ok(node) = node else {
                return Err(Fault::broken("a file of the repository is not told as GitHub tells files"));
            };
            match node.kind.as_str() {
                "blob" if node.mode.as_deref() != Some(LINK_MODE) => {
                    tree.files.insert(node.path, Leaf { sha: node.sha, size: node.size });
                }
                "tree" => tree.folders.push((node.path, node.sha)),
                // Symbolic links are not followed, and submodules have to be connected separately.
                _ => {}
            }
        }
        let tree = Arc::new(tree);
        self.trees.insert(CachedTree { key, folder: folder.to_owned(), tree: Arc::clone(&tree) });
        Ok(tree)
    }

    /// Fetches a file: by its hash if a cached tree has it, else by its path.
    pub(super) async fn fetch_file(
        &self,
        call: &Call,
        repository: &str,
        path: &str,
        known: Option<&Version>,
    ) -> Result<Fetched, Fault> {
        if let Some(sha) = self.known_file(repository, path) {
            if known.is_some_and(|known| known.as_str() == sha) {
                return Ok(Fetched::Same);
            }
            let url = self.at(repository, &["git", "blobs", &sha]);
            return Ok(match self.get(call, &url, MAX_ANSWER_BYTES).await {
                Err(Fault::TooLarge(bytes)) => Fetched::TooLarge(bytes),
                Err(Fault::Gone) => Fetched::Gone,
                answer => body(read(answer?.body())?, &sha)?,
            });
        }
        let parts: Vec<&str> = std::iter::once("contents").chain(path.split('/')).collect();
        let answer = match self.get(call, &self.at(repository, &parts), MAX_ANSWER_BYTES).await {
            Err(Fault::TooLarge(bytes)) => return Ok(Fetched::TooLarge(bytes)),
            Err(Fault::Gone) => return Ok(Fetched::Gone),
            answer => answer?,
        };
        let blob: Blob = read(answer.body())?;
        let Some(sha) = blob.sha.clone() else {
            return Err(Fault::broken("the file is not told as GitHub tells files"));
        };
        if known.is_some_and(|known| known.as_str() == sha) {
            return Ok(Fetched::Same);
        }
        if blob.kind.as_deref().is_some_and(|kind| kind != "file") {
            return Ok(Fetched::Unsupported("application/octet-stream".to_owned()));
        }
        if blob.encoding.as_deref() == Some("base64") {
            return body(blob, &sha);
        }
        // Above one megabyte, only the blob has the content.
        let url = self.at(repository, &["git", "blobs", &sha]);
        match self.get(call, &url, MAX_ANSWER_BYTES).await {
            Err(Fault::TooLarge(bytes)) => Ok(Fetched::TooLarge(bytes)),
            answer => {
                let found: Blob = read(answer?.body())?;
                // Only the response without content has the URL for people.
                body(Blob { html_url: blob.html_url, ..found }, &sha)
            }
        }
    }

    fn known_file(&self, repository: &str, path: &str) -> Option<String> {
        let kept = self.trees.0.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = format!("{repository} ");
        let mut latest =
            kept.iter().rev().filter(|kept| kept.key.starts_with(&prefix) && kept.key.ends_with(" true"));
        let (kept, path) = latest.find_map(|kept| Some((kept, below(&kept.folder, path)?)))?;
        kept.tree.files.get(path).map(|leaf| leaf.sha.clone())
    }
}

/// The path relative to a folder, if it is below it.
fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

fn body(blob: Blob, sha: &str) -> Result<Fetched, Fault> {
    let odd = || Fault::broken("the file's content is not told as GitHub tells it");
    if blob.size.is_some_and(|size| size > MAX_BODY_BYTES as u64) {
        return Ok(Fetched::TooLarge(blob.size.unwrap_or_default()));
    }
    let content = blob.content.ok_or_else(odd)?;
    let bytes = if blob.encoding.as_deref() == Some("base64") {
        let packed: Vec<u8> = content.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        STANDARD.decode(packed).map_err(|_| odd())?
    } else {
        content.into_bytes()
    };
    let mut body = Body::new(bytes, "application/octet-stream", Version::new(sha));
    body.url = blob.html_url;
    Ok(Fetched::Body(body))
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The URL of a file at a commit, for people.
fn web_address(web: &str, head: &str, path: &str) -> Option<String> {
    let mut url = Url::parse(web).ok()?;
    url.path_segments_mut().ok()?.pop_if_empty().extend(["blob", head]).extend(path.split('/'));
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_people_holds_the_commit_and_the_path() {
        let address = web_address("https://github.com/acme/app", "abc", "docs/a b#1.md").unwrap();
        assert_eq!(address, "https://github.com/acme/app/blob/abc/docs/a%20b%231.md");
        assert_eq!(web_address("no address", "abc", "a"), None);
    }

    #[test]
    fn a_body_is_base64_of_many_lines() {
        let blob = |text: &str| serde_json::from_str::<Blob>(text).unwrap();
        let packed = blob(r#"{"content": "SGVs\nbG8=\n", "encoding": "base64", "size": 5}"#);
        let Ok(Fetched::Body(hello)) = body(packed, "s") else { panic!("no body") };
        assert_eq!(hello.bytes, "Hello");
        assert!(body(blob(r#"{"content": "%", "encoding": "base64"}"#), "s").is_err());
        assert!(body(blob(r#"{"encoding": "none"}"#), "s").is_err());
        assert_eq!(body(blob(r#"{"size": 100000000}"#), "s"), Ok(Fetched::TooLarge(100_000_000)));
    }
}
