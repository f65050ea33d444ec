//! Connected sources: connecting them, and waiting for their runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::callers::{Caller, Session};
use super::deployment::Deployment;
use super::http::{Reply, id, text};
use super::wait::eventually;
use super::workspace::Workspace;

const TERMINAL: [&str; 4] = ["completed", "completed_with_warnings", "failed", "cancelled"];

/// A folder that sources may read, unique to its test.
pub(crate) struct SourceFolder(PathBuf);

impl SourceFolder {
    pub(crate) fn new(deployment: &Deployment) -> Self {
        Self::below(deployment.source_root())
    }

    pub(crate) fn below(root: &Path) -> Self {
        let folder = root.join(Uuid::new_v4().to_string());
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let file = self.0.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// Waits until unchanged metadata proves unchanged files: a file written within the last 50 ms or so may be written
    /// again within the file system's timestamp granularity, so a run would read it again.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap();
    }

    /// The body that connects a source of it.
    pub(crate) fn draft(&self, name: &str) -> Value {
        json!({"name": name, "provider": "folder", "settings": {"path": self.0}})
    }
}

/// A source of a workspace, as someone who may connect sources sees it.
pub(crate) struct Source {
    pub(crate) session: Session,
    pub(crate) workspace: String,
    pub(crate) id: String,
}

/// Connects a source.
pub(crate) async fn connect(workspace: &Workspace, draft: Value) -> Source {
    connect_as(&workspace.session, &workspace.id, draft).await
}

/// Like [`connect`], in the workspace with that id.
pub(crate) async fn connect_as(session: &Session, workspace: &str, draft: Value) -> Source {
    let path = format!("/api/workspaces/{workspace}/sources");
    let connected = session.post(&path).json(draft).await.expect(201).json();
    Source { session: session.clone(), workspace: workspace.to_owned(), id: id(&connected) }
}

impl Source {
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/workspaces/{}/sources/{}{rest}", self.workspace, self.id)
    }

    pub(crate) async fn get(&self) -> Value {
        self.session.get(&self.path("")).await.expect(200).json()
    }

    pub(crate) async fn change(&self, patch: Value) -> Reply {
        self.session.patch(&self.path("")).json(patch).await
    }

    /// The newest run, once it has finished.
    pub(crate) async fn run(&self) -> Value {
        eventually("the newest run is over", async || {
            let run = self.get().await["run"].clone();
            TERMINAL.contains(&run["status"].as_str()?).then_some(run)
        })
        .await
    }

    /// Starts a run; returns it once it has finished.
    pub(crate) async fn sync(&self) -> Value {
        let queued = self.session.post(&self.path("/sync")).json(json!({})).await.expect(202).json();
        self.finished(&id(&queued)).await
    }

    /// A run, once it has finished.
    pub(crate) async fn finished(&self, run: &str) -> Value {
        let path = self.path(&format!("/runs/{run}"));
        eventually("the run is over", async || {
            let run = self.session.get(&path).await.expect(200).json();
            TERMINAL.contains(&text(&run, "status").as_str()).then_some(run)
        })
        .await
    }

    /// The source, once it has this status.
    pub(crate) async fn wait_for_status(&self, status: &str) -> Value {
        eventually(&format!("the source is {status}"), async || {
            let shown = self.get().await;
            (shown["status"] == status).then_some(shown)
        })
        .await
    }

    /// All its documents.
    pub(crate) async fn documents(&self) -> Value {
        self.session.get(&self.path("/documents?limit=200")).await.expect(200).json()
    }
}

/// The counters of a run in the contract's order, without the requests.
pub(crate) fn counters(run: &Value) -> [u64; 7] {
    ["listed", "fetched", "unchanged", "created", "updated", "removed", "failed"]
        .map(|counter| run["counters"][counter].as_u64().unwrap_or_else(|| panic!("no {counter} in {run}")))
}
