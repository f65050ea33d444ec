//! The owner of the first start at the console, for its connected sources.

use std::net::SocketAddr;
use std::path::Path;

use reqwest::Method;
use serde_json::Value;

use super::api::accepted;
use super::session::Session;

/// A signed-in owner.
#[derive(Debug)]
pub(crate) struct Console {
    session: Session,
    sources: String,
}

impl Console {
    /// Signs in with the credentials that `cairn up` has written to its data folder.
    pub(crate) async fn open(address: SocketAddr, data: &Path) -> anyhow::Result<Self> {
        let session = Session::open(address, data).await?;
        let sources = format!("/api/workspaces/{}/sources", session.workspace);
        Ok(Self { session, sources })
    }

    /// Below the list of sources.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.session.get(&format!("{}{path}", self.sources)).await
    }

    /// Below the list of sources.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.session.request(Method::POST, &format!("{}{path}", self.sources));
        Ok(accepted(request.json(body)).await?.json().await?)
    }
}
