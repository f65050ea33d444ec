//! The starter guide: the one file of the first workspace.

use std::time::Duration;

use anyhow::Context as _;
use cairn_chassis::call::Call;
use cairn_proto::auth::v1::ExchangeRequest;
use cairn_proto::auth::v1::token_service_client::TokenServiceClient;
use cairn_proto::content::v1::file_service_client::FileServiceClient;
use cairn_proto::content::v1::{CreateFileRequest, FileType};

use crate::topology::Channels;

const BUDGET: Duration = Duration::from_secs(10);
const NAME: &str = "Getting started.md";
const CONTENT: &str = include_str!("starter_guide/getting-started.md");

/// Writes the guide through the API, authorized by the token.
pub(crate) async fn write(channels: &Channels, token: &str) -> anyhow::Result<()> {
    let call = Call::within(BUDGET);
    let exchange = call.request(ExchangeRequest { api_token: token.to_owned() });
    let exchanged = TokenServiceClient::new(channels.auth.clone()).exchange(exchange).await;
    let identity = exchanged.context("the first token is not accepted")?.into_inner().identity;

    let guide = CreateFileRequest {
        name: NAME.to_owned(),
        content: CONTENT.to_owned(),
        file_type: FileType::Markdown.into(),
        ..CreateFileRequest::default()
    };
    let request = call.with_identity(&identity).request(guide);
    FileServiceClient::new(channels.content.clone())
        .create_file(request)
        .await
        .context("the starter guide cannot be written")?;
    Ok(())
}
