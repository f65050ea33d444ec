//! `cairn sync`.

mod directory;
mod plan;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use cairn_chassis::bodies::content_hash;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use self::directory::{Directory, Document};
use super::Ended;
use super::connection::{Connection, ConnectionOptions};
use super::output::{confirmed, note, print, print_json, print_json_line};

pub(super) const EXAMPLES: &str = "Examples:
  cairn sync docs/ --dry-run                  what would be done; nothing is written
  cairn sync docs/ --yes                      new and changed files, without a question
  cairn sync docs/ --prune --yes --json       also move to trash what the directory lacks
  cairn sync docs/ --name handbook --watch    again whenever a file changes, until Ctrl-C

Files that git ignores (.gitignore, .git/info/exclude), or .cairnignore names, are left out, and so are hidden files, links
and what is no text. Files that were edited in the workspace since the last sync of that name are never overwritten.

It ends with 0 when all is done, 1 when it failed, 3 when something was left alone, such as a conflict, and 4 when nothing
opens the workspace.";

/// The polling interval of a run.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Args)]
pub(crate) struct SyncOptions {
    #[command(flatten)]
    connection: ConnectionOptions,
    /// The directory.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// By which the next sync of the directory is known. Default: the directory's name.
    #[arg(long)]
    name: Option<String>,
    /// The id of the folder that the directory goes into. Default: the workspace's root.
    #[arg(long, value_name = "ID")]
    folder: Option<String>,
    /// Move to trash what earlier syncs of that name wrote and the directory lacks.
    #[arg(long)]
    prune: bool,
    /// What becomes of documents that changed: updated, left as they are, or put beside the old ones.
    #[arg(long, value_parser = ["update", "skip", "duplicate"], default_value = "update")]
    policy: String,
    /// Say what would be done, and do nothing.
    #[arg(long, conflicts_with = "watch")]
    dry_run: bool,
    /// Do not ask before anything is written.
    #[arg(long, short)]
    yes: bool,
    /// Sync again whenever a file of the directory changes.
    #[arg(long)]
    watch: bool,
    /// Print the run as JSON: a line for each, with --watch.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: SyncOptions) -> anyhow::Result<()> {
    let directory = Directory::open(&options.directory)?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => directory.name().context("the directory has no name: give the sync one with --name")?,
    };
    let connection = Connection::open(&options.connection)?;
    let sync = Sync { connection, options, directory, name, left: Mutex::default() };
    if sync.options.watch { watch::run(&sync).await } else { sync.once(false).await }
}

/// A sync of one directory.
struct Sync {
    connection: Connection,
    options: SyncOptions,
    directory: Directory,
    name: String,
    /// Hashes that the last run of this process left in the workspace, by path: their contents need not be sent again.
    left: Mutex<HashMap<String, String>>,
}

impl Sync {
    /// Previews, asks for confirmation, and applies. `asked`: already confirmed.
    async fn once(&self, asked: bool) -> anyhow::Result<()> {
        let read = self.directory.read()?;
        for left_out in &read.left_out {
            note(&format!("left out {left_out}"));
        }
        let previewed = self.preview(&read.documents).await?;
        let id = previewed.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !self.options.json {
            print(&plan::told(&previewed))?;
        } else if self.options.dry_run {
            self.say(&previewed)?;
        }
        if self.options.dry_run {
            return self.discard(&id).await;
        }
        if !(asked || self.options.yes || !plan::changes_anything(&previewed) || confirmed()?) {
            self.discard(&id).await?;
            bail!("nothing was written");
        }
        let path = format!("/api/v1/sync/{id}");
        let started = self.connection.request(Method::POST, &format!("{path}/start"));
        let run = self.wait_for_end(&path, self.connection.json(started).await?).await?;
        if self.options.json {
            self.say(&run)?;
        } else {
            print(&plan::ended(&run))?;
        }
        self.remember(&read.documents, &run);
        match run.get("status").and_then(Value::as_str).unwrap_or_default() {
            "completed" => Ok(()),
            "completed_with_warnings" => Err(Ended::left_alone().into()),
            status => {
                let why = run.get("error").and_then(Value::as_str).unwrap_or("no reason was given");
                Err(anyhow!("the run is {status}: {why}"))
            }
        }
    }

    async fn preview(&self, documents: &[Document]) -> anyhow::Result<Value> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let preview = |documents: Vec<Value>| {
            let body = json!({
                "manifest": {"name": self.name, "documents": documents},
                "conflictPolicy": self.options.policy,
                "prune": self.options.prune,
                "folderId": self.options.folder,
            });
            self.connection.request(Method::POST, "/api/v1/sync/preview").json(&body)
        };
        if !left.is_empty() {
            let response = self.connection.send(preview(sent(documents, &left))).await?;
            // If the workspace has changed since, it rejects the hashes, and all contents are sent.
            if response.status() != StatusCode::BAD_REQUEST {
                return self.connection.read(response).await;
            }
        }
        self.connection.json(preview(sent(documents, &HashMap::new()))).await
    }

    /// Records what a run left in the workspace. Documents that it skipped differ from the local ones.
    fn remember(&self, documents: &[Document], run: &Value) {
        let is_over =
            run.get("status").and_then(Value::as_str).is_some_and(|status| status.starts_with("completed"));
        // Skipped documents are reported like unchanged ones.
        let is_exact = is_over && self.options.policy != "skip";
        let left_alone = plan::left_alone(run);
        let known =
            documents.iter().filter(|document| is_exact && !left_alone.contains(document.path.as_str()));
        let known = known.map(|document| (document.path.clone(), content_hash(&document.content)));
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = known.collect();
    }

    /// Deletes a run that will not be applied.
    async fn discard(&self, id: &str) -> anyhow::Result<()> {
        let request = self.connection.request(Method::DELETE, &format!("/api/v1/sync/{id}"));
        self.connection.send(request).await.map(drop)
    }

    /// Polls a run until it has ended.
    async fn wait_for_end(&self, path: &str, mut run: Value) -> anyhow::Result<Value> {
        let number = |run: &Value, field: &str| run.get(field).and_then(Value::as_u64).unwrap_or_default();
        let bar = progress();
        loop {
            bar.set_length(number(&run, "total"));
            bar.set_position(number(&run, "processed"));
            match run.get("status").and_then(Value::as_str) {
                Some("queued" | "running") => {}
                _ => {
                    bar.finish_and_clear();
                    return Ok(run);
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            run = self.connection.json(self.connection.request(Method::GET, path)).await?;
        }
    }

    fn say(&self, run: &Value) -> anyhow::Result<()> {
        if self.options.watch { print_json_line(run) } else { print_json(run) }
    }
}

/// Documents as sent: only the hash of those that the workspace already has.
fn sent(documents: &[Document], left: &HashMap<String, String>) -> Vec<Value> {
    let one = |document: &Document| {
        let there = left.get(&document.path).filter(|hash| **hash == content_hash(&document.content));
        match there {
            Some(hash) => json!({"path": document.path, "contentHash": hash}),
            None => json!({"path": document.path, "content": document.content}),
        }
    };
    documents.iter().map(one).collect()
}

/// Shown on a terminal only.
fn progress() -> ProgressBar {
    let style = ProgressStyle::with_template("syncing {pos} of {len} {wide_bar}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_there_the_hash_alone_is_sent() {
        let document = |path: &str, content: &str| Document { path: path.into(), content: content.into() };
        let documents = [document("a", "same"), document("b", "new"), document("c", "never seen")];
        let left = [("a", "same"), ("b", "old"), ("gone", "x")];
        let left = left.map(|(path, content)| (path.to_owned(), content_hash(content))).into();
        let expected = json!([
            {"path": "a", "contentHash": content_hash("same")}, {"path": "b", "content": "new"},
            {"path": "c", "content": "never seen"},
        ]);
        assert_eq!(json!(sent(&documents, &left)), expected);
    }
}
