//! Reads the items of a workspace's tree, and its texts, from their owners.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cairn_chassis::breaker::{Breaker, Threshold};
use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::clock::Clock;
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_proto::content::v1::text_ref::Text as Named;
use cairn_proto::content::v1::tree_service_client::TreeServiceClient;
use cairn_proto::content::v1::{
    ListTreeRequest, ReadPastTreeRequest, ReadPastTreeResponse, ReadTextsRequest, ReadTreeChangesRequest,
    TextRef, read_past_tree_request,
};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1 as ingest;
use cairn_proto::ingest::v1::tree_service_client::TreeServiceClient as OutsideTreeClient;

use super::rows::Rows;
use crate::error::Error;
use crate::request::Moment;

/// The deadline for listing a whole tree; it is not the one of the caller who happens to be the first.
const LIST_BUDGET: Duration = Duration::from_secs(60);
const BUDGET: Duration = Duration::from_secs(20);
/// How long a script waits for documents from outside, which it can do without.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same when all of them are listed.
const LIST_PATIENCE: Duration = Duration::from_secs(10);
/// The circuit breaker of the owner of documents from outside.
const THRESHOLD: Threshold = Threshold { failures: 2, pause: Duration::from_secs(5) };

/// Changes after a position.
#[derive(Debug)]
pub(super) struct ChangeSet {
    pub(super) rows: Rows,
    /// The last position that it covers.
    pub(super) position: u64,
    /// The head of the feed.
    pub(super) head: u64,
}

/// The owner of a part of the tree.
pub(super) trait TreeOwner {
    /// All items, and the position from which changes must be applied to make the list consistent.
    fn list(&self, workspace: WorkspaceId) -> impl Future<Output = Result<(Rows, u64), Error>> + Send;

    /// Changes after a position, one page of them.
    fn changes(
        &self,
        workspace: WorkspaceId,
        after: u64,
    ) -> impl Future<Output = Result<ChangeSet, Error>> + Send;
}

/// Content, as the service of the mesh that this one is.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    channel: ServiceChannel,
    identity: ServiceIdentitySource,
}

impl Content {
    pub(crate) const fn new(channel: ServiceChannel, identity: ServiceIdentitySource) -> Self {
        Self { channel, identity }
    }

    fn client(&self) -> TreeServiceClient<ServiceChannel> {
        TreeServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    async fn call(&self, budget: Duration) -> Result<Call, Error> {
        Ok(Call::within(budget).with_identity(&self.identity.identity().await?))
    }

    /// The items that have changed since a moment, as they were then.
    pub(super) async fn past(
        &self,
        call: &Call,
        workspace: WorkspaceId,
        moment: Moment,
    ) -> Result<ReadPastTreeResponse, Error> {
        let own = self.call(BUDGET.min(call.remaining())).await?;
        let when = match moment {
            Moment::At(time) => read_past_tree_request::When::AsOf(time.to_proto()),
            Moment::After(position) => read_past_tree_request::When::AfterChange(position),
        };
        let request = ReadPastTreeRequest { workspace_id: workspace.to_string(), when: Some(when) };
        Ok(self.client().read_past_tree(own.request(request)).await?.into_inner())
    }

    /// The texts of these names, in their order; `None` for missing ones.
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

impl TreeOwner for Content {
    async fn list(&self, workspace: WorkspaceId) -> Result<(Rows, u64), Error> {
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

    async fn changes(&self, workspace: WorkspaceId, after: u64) -> Result<ChangeSet, Error> {
        let call = self.call(BUDGET).await?;
        let request = ReadTreeChangesRequest { workspace_id: workspace.to_string(), after };
        let told = self.client().read_tree_changes(call.request(request)).await?.into_inner();
        let mut rows = Rows::default();
        rows.take(told.items.unwrap_or_default(), told.gone)?;
        Ok(ChangeSet { rows, position: told.position, head: told.head })
    }
}

/// The owner of documents from outside, as the service of the mesh that this one is. There are trees without it.
#[derive(Debug, Clone)]
pub(crate) struct Outside {
    channel: ServiceChannel,
    identity: ServiceIdentitySource,
    breaker: Arc<Breaker>,
}

impl Outside {
    pub(crate) fn new(
        channel: ServiceChannel,
        identity: ServiceIdentitySource,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { channel, identity, breaker: Arc::new(Breaker::new(THRESHOLD, clock)) }
    }

    fn client(&self) -> OutsideTreeClient<ServiceChannel> {
        OutsideTreeClient::new(self.channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES)
    }

    async fn call(&self, budget: Duration) -> Result<Call, Error> {
        Ok(Call::within(budget).with_identity(&self.identity.identity().await?))
    }

    /// Calls it through the circuit breaker.
    async fn answered<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if !self.breaker.allows() {
            return Err(Error::Silent);
        }
        let answered = tokio::time::timeout(patience, answer).await.unwrap_or(Err(Error::Silent));
        match &answered {
            Ok(_) => _ = self.breaker.succeeded(),
            Err(error) => {
                tracing::warn!(%error, "scripts do not see what is new outside");
                self.breaker.failed(None);
            }
        }
        answered
    }

    /// The retained texts with these hashes, in their order; `None` for missing ones.
    pub(super) async fn texts(
        &self,
        call: &Call,
        workspace: WorkspaceId,
        hashes: Vec<String>,
    ) -> Result<Vec<Option<Bytes>>, Error> {
        let budget = BUDGET.min(call.remaining());
        let mut texts = vec![None; hashes.len()];
        let (mut rest, mut before) = (hashes, 0);
        while !rest.is_empty() {
            let own = self.call(budget).await?;
            let content_hashes = rest.clone();
            let request = ingest::ReadTextsRequest { workspace_id: workspace.to_string(), content_hashes };
            let answer = self.client().read_texts(own.request(request)).await?.into_inner();
            let read = usize::try_from(answer.read).unwrap_or(usize::MAX).min(rest.len());
            if read == 0 {
                return Err(Error::Answer("it looked at none of the texts asked for"));
            }
            for text in answer.texts {
                let place = usize::try_from(text.place).ok().and_then(|place| place.checked_add(before));
                if let Some(slot) = place.and_then(|place| texts.get_mut(place)) {
                    *slot = Some(text.content);
                }
            }
            rest = rest.split_off(read);
            before += read;
        }
        Ok(texts)
    }

    async fn list_all(&self, workspace: WorkspaceId) -> Result<(Rows, u64), Error> {
        let call = self.call(LIST_PATIENCE).await?;
        let mut rows = Rows::default();
        let mut position = None;
        let mut page_token = String::new();
        loop {
            let request = ingest::ListTreeRequest { workspace_id: workspace.to_string(), page_token };
            let page = self.client().list_tree(call.request(request)).await?.into_inner();
            let first = *position.get_or_insert(page.position);
            rows.take_outside(page.documents, Vec::new())?;
            if page.next_page_token.is_empty() {
                return Ok((rows, first));
            }
            page_token = page.next_page_token;
        }
    }

    async fn changes_after(&self, workspace: WorkspaceId, after: u64) -> Result<ChangeSet, Error> {
        let call = self.call(PATIENCE).await?;
        let request = ingest::ReadTreeChangesRequest { workspace_id: workspace.to_string(), after };
        let told = self.client().read_tree_changes(call.request(request)).await?.into_inner();
        let mut rows = Rows::default();
        rows.take_outside(told.documents, told.gone)?;
        Ok(ChangeSet { rows, position: told.position, head: told.head })
    }
}

impl TreeOwner for Outside {
    async fn list(&self, workspace: WorkspaceId) -> Result<(Rows, u64), Error> {
        self.answered(LIST_PATIENCE, self.list_all(workspace)).await
    }

    async fn changes(&self, workspace: WorkspaceId, after: u64) -> Result<ChangeSet, Error> {
        self.answered(PATIENCE, self.changes_after(workspace, after)).await
    }
}

/// Concatenates the two parts of a page.
pub(super) fn joined(front: &Bytes, between: &[u8], body: &Bytes) -> Bytes {
    let mut whole = BytesMut::with_capacity(front.len() + between.len() + body.len());
    whole.extend_from_slice(front);
    whole.extend_from_slice(between);
    whole.extend_from_slice(body);
    whole.freeze()
}
