//! `cairn health`.

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::Method;
use serde_json::Value;

use super::connection::{Connection, ServerOptions};
use super::output::{print, print_json, visible};

pub(super) const EXAMPLES: &str = "Examples:
  cairn health                              of the default profile, else of http://127.0.0.1:8700
  cairn health --url https://cairn.example --json | jq .status";

#[derive(Debug, Args)]
pub(crate) struct HealthOptions {
    #[command(flatten)]
    server: ServerOptions,
    /// Print the answer as JSON; what is down stands in `down`.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(options: HealthOptions) -> anyhow::Result<()> {
    let connection = Connection::without_token(&options.server)?;
    let response = connection.send(connection.request(Method::GET, "/readyz")).await?;
    let status = response.status();
    let body = response.text().await.unwrap_or_default();
    if options.json {
        let answer: Value = serde_json::from_str(&body).context("the answer is not JSON: is it a Cairn?")?;
        print_json(&answer)?;
    }
    if !status.is_success() {
        bail!("not ready (HTTP {}): {}", status.as_u16(), visible(body.trim()));
    }
    if options.json { Ok(()) } else { print(&visible(body.trim())) }
}
