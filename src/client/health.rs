//! `cairn health`.

use anyhow::bail;
use clap::Args;
use reqwest::Method;

use super::connection::{Connection, ServerOptions};
use super::output::print;

#[derive(Debug, Args)]
pub(crate) struct HealthOptions {
    #[command(flatten)]
    server: ServerOptions,
}

pub(super) async fn run(options: HealthOptions) -> anyhow::Result<()> {
    let connection = Connection::without_token(&options.server)?;
    let response = connection.send(connection.request(Method::GET, "/readyz")).await?;
    let status = response.status();
    let body = response.text().await.unwrap_or_default();
    if !status.is_success() {
        bail!("not ready (HTTP {}): {}", status.as_u16(), body.trim());
    }
    print(&body)
}
