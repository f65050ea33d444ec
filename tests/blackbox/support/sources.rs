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

const OVER: [&str; 4] = ["completed", "completed_with_warnings", "failed", "cancelled"];

/// A folder of files that sources may read, which nobody else has.
pub(crate) struct Shelf(PathBuf);

impl Shelf {
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

    /// Waits until a look at the files is enough to know that they are the same: one that was written within some 50 ms
    /// may be written again within the same time of its file system, and is read a second time.
    pub(crate) async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.0.join(name)).unwrap();
    }

    /// What a source of it is connected with.
    pub(crate) fn draft(&self, name: &str) -> Value {
        json!({"name": name, "provider": "folder", "settings": {"path": self.0}})
    }
}

/// A source of a workspace, as who may connect sources sees it.
pub(crate) struct Source {
    pub(crate) session: Session,
    pub(crate) workspace: String,
    pub(crate) id: String,
}

/// Connects a source.
pub(crate) async fn connect(workspace: &Workspace, draft: Value) -> Source {
    connect_by(&workspace.session, &workspace.id, draft).await
}

/// The same, of a workspace with that id.
pub(crate) async fn connect_by(session: &Session, workspace: &str, draft: Value) -> Source {
    let path = format!("/api/workspaces/{workspace}/sources");
    let connected = session.post(&path).json(draft).await.expect(201).json();
    Source { session: session.clone(), workspace: workspace.to_owned(), id: id(&connected) }
}

impl Source {
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/workspaces/{}/sources/{}{rest}", self.workspace, self.id)
    }

    pub(crate) async fn shown(&self) -> Value {
        self.session.get(&self.path("")).await.expect(200).json()
    }

    pub(crate) async fn change(&self, patch: Value) -> Reply {
        self.session.patch(&self.path("")).json(patch).await
    }

    /// The newest run, when it is over.
    pub(crate) async fn run(&self) -> Value {
        eventually("the newest run is over", async || {
            let run = self.shown().await["run"].clone();
            OVER.contains(&run["status"].as_str()?).then_some(run)
        })
        .await
    }

    /// Has it read; the run when it is over.
    pub(crate) async fn sync(&self) -> Value {
        let queued = self.session.post(&self.path("/sync")).json(json!({})).await.expect(202).json();
        self.over(&id(&queued)).await
    }

    /// A run when it is over.
    pub(crate) async fn over(&self, run: &str) -> Value {
        let path = self.path(&format!("/runs/{run}"));
        eventually("the run is over", async || {
            let run = self.session.get(&path).await.expect(200).json();
            OVER.contains(&text(&run, "status").as_str()).then_some(run)
        })
        .await
    }

    /// The source once it stands so.
    pub(crate) async fn once(&self, status: &str) -> Value {
        eventually(&format!("the source is {status}"), async || {
            let shown = self.shown().await;
            (shown["status"] == status).then_some(shown)
        })
        .await
    }

    /// All its documents.
    pub(crate) async fn documents(&self) -> Value {
        self.session.get(&self.path("/documents?limit=200")).await.expect(200).json()
    }
}

/// What a run says it did, in the order of the contract without the requests.
pub(crate) fn counted(run: &Value) -> [u64; 7] {
    ["listed", "fetched", "unchanged", "created", "updated", "removed", "failed"]
        .map(|counter| run["counters"][counter].as_u64().unwrap_or_else(|| panic!("no {counter} in {run}")))
}
