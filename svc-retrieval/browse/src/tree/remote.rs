//! Asks content what the tree of a workspace is made of, and for the texts in it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_proto::content::v1::text_ref::Text as Named;
use cairn_proto::content::v1::tree_service_client::TreeServiceClient;
use cairn_proto::content::v1::{
    ListTreeRequest, ReadTextsRequest, ReadTreeChangesRequest, ReadTreeChangesResponse, TextRef,
};
use cairn_proto::ids::WorkspaceId;

use super::rows::Rows;
use crate::error::Error;

/// Drawing up a tree is not cut off with the caller who happened to be the first to want it.
const LIST_BUDGET: Duration = Duration::from_secs(60);
const BUDGET: Duration = Duration::from_secs(20);

/// Content, as the service of the mesh that this one is.
#[derive(Debug, Clone)]
pub(super) struct Content {
    channel: ServiceChannel,
    identity: ServiceIdentitySource,
}

impl Content {
    pub(super) const fn new(channel: ServiceChannel, identity: ServiceIdentitySource) -> Self {
        Self { channel, identity }
    }

    fn client(&self) -> TreeServiceClient<ServiceChannel> {
        TreeServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    async fn call(&self, budget: Duration) -> Result<Call, Error> {
        Ok(Call::within(budget).with_identity(&self.identity.identity().await?))
    }

    /// Everything that lives, and the position from which on changes make it exact.
    pub(super) async fn list(&self, workspace: WorkspaceId) -> Result<(Rows, u64), Error> {
        let call = self.call(LIST_BUDGET).await?;
        let mut rows = Rows::default();
        let mut position = None;
        let mut page_token = String::new();
        loop {
            let request = ListTreeRequest { workspace_id: workspace.to_string(), page_token };
            let page = self.client().list_tree(call.request(request)).await?.into_inner();
            let first = *position.get_or_insert(page.position);
            rows.take(page.items.unwrap_or_default(), Vec::new())?;
            if page.next_page_token.is_empty() {
                return Ok((rows, first));
            }
            page_token = page.next_page_token;
        }
    }

    /// What changed after a position, up to some position.
    pub(super) async fn changes(
        &self,
        workspace: WorkspaceId,
        after: u64,
    ) -> Result<ReadTreeChangesResponse, Error> {
        let call = self.call(BUDGET).await?;
        let request = ReadTreeChangesRequest { workspace_id: workspace.to_string(), after };
        Ok(self.client().read_tree_changes(call.request(request)).await?.into_inner())
    }

    /// The texts of these names, in their order; none for what is not there.
    pub(super) async fn texts(
        &self,
        call: &Call,
        workspace: WorkspaceId,
        names: Vec<Named>,
    ) -> Result<Vec<Option<(Bytes, String)>>, Error> {
        let budget = BUDGET.min(call.remaining());
        let mut texts = vec![None; names.len()];
        let mut refs: Vec<TextRef> = names.into_iter().map(|name| TextRef { text: Some(name) }).collect();
        let mut before = 0;
        while !refs.is_empty() {
            let own = self.call(budget).await?;
            let request = ReadTextsRequest { workspace_id: workspace.to_string(), refs: refs.clone() };
            let answer = self.client().read_texts(own.request(request)).await?.into_inner();
            let read = usize::try_from(answer.read).unwrap_or(usize::MAX).min(refs.len());
            if read == 0 {
                return Err(Error::Answer("it looked at none of the texts asked for"));
            }
            for text in answer.texts {
                let place = usize::try_from(text.place).ok().and_then(|place| place.checked_add(before));
                if let Some(slot) = place.and_then(|place| texts.get_mut(place)) {
                    *slot = Some((text.content, text.hash));
                }
            }
            refs = refs.split_off(read);
            before += read;
        }
        Ok(texts)
    }
}

/// A page of two parts.
pub(super) fn joined(front: &Bytes, between: &[u8], body: &Bytes) -> Bytes {
    let mut whole = BytesMut::with_capacity(front.len() + between.len() + body.len());
    whole.extend_from_slice(front);
    whole.extend_from_slice(between);
    whole.extend_from_slice(body);
    whole.freeze()
}
