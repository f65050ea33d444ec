//! Attachments: streamed to svc-content.

use std::time::Duration;

use bytes::Bytes;
use cairn_chassis::call::Call;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1::asset_service_client::AssetServiceClient;
use cairn_proto::content::v1::upload_asset_request::Part;
use cairn_proto::content::v1::{AssetDraft, AssetEnd, UploadAssetRequest};
use futures::Stream;
use futures::StreamExt as _;
use uuid::Uuid;

use super::tables::refusal;
use super::{ContentSession, problem};

/// Deadline of an upload: enough for the largest attachment on a slow disk.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// The metadata of an attachment.
#[derive(Debug, Clone)]
pub(crate) struct Attachment {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) media_type: String,
    pub(crate) size_bytes: u64,
}

impl ContentSession {
    /// Creates an asset from a stream of bytes. The inner error is a refusal of this asset: code and message.
    pub(crate) async fn upload(
        &self,
        attachment: Attachment,
        bytes: impl Stream<Item = Bytes> + Send + 'static,
    ) -> Result<Result<(), (&'static str, String)>, Problem> {
        let size_bytes = attachment.size_bytes;
        let draft = Part::Draft(AssetDraft {
            name: attachment.name,
            media_type: attachment.media_type,
            size_bytes: Some(size_bytes),
            new_id: Some(attachment.id.to_string()),
        });
        let part = |part| UploadAssetRequest { part: Some(part) };
        let end = Part::End(AssetEnd { size_bytes, content_hash: None });
        let parts = futures::stream::iter([part(draft)])
            .chain(bytes.map(move |bytes| part(Part::Bytes(bytes))))
            .chain(futures::stream::iter([part(end)]));
        let request = Call::within(UPLOAD_TIMEOUT).with_identity(&self.identity).request(parts);
        let mut client = AssetServiceClient::new(self.channel.clone());
        match client.upload_asset(request).await.map_err(problem) {
            Ok(_) => Ok(Ok(())),
            Err(problem) => refusal(problem).map(Err),
        }
    }
}
