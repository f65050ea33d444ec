//! The owner of the first start, signed in as the console signs people in.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Context as _;
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};

use super::api::accepted;

/// A signed-in owner.
#[derive(Debug)]
pub(crate) struct Session {
    client: reqwest::Client,
    base: String,
    cookie: String,
    /// The id of the workspace of the first start.
    pub(crate) workspace: String,
}

impl Session {
    /// Signs in with the credentials that `cairn up` has written to its data folder.
    pub(crate) async fn open(address: SocketAddr, data: &Path) -> anyhow::Result<Self> {
        let file: Value = serde_json::from_slice(&fs::read(data.join("bootstrap.json"))?)?;
        let field =
            |name: &str| file.get(name).and_then(Value::as_str).context("bootstrap.json lacks a field");
        // The TLS of this build has no default crypto provider.
        cairn_chassis::outbound::install_crypto();
        let (client, base) = (reqwest::Client::builder().no_proxy().build()?, format!("http://{address}"));
        let body = json!({"email": field("email")?, "password": field("password")?});
        let opened = accepted(client.post(format!("{base}/api/session")).json(&body)).await?;
        let cookie = opened.headers().get(header::SET_COOKIE).and_then(|value| value.to_str().ok());
        let cookie =
            cookie.and_then(|cookie| cookie.split(';').next()).context("no session cookie")?.to_owned();
        let workspace = field("workspaceId")?.to_owned();
        Ok(Self { client, base, cookie, workspace })
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(accepted(self.request(Method::GET, path)).await?.json().await?)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).header(header::COOKIE, &self.cookie)
    }
}
