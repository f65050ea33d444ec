//! The services that webhooks need: svc-auth issues their identities, svc-content has the main feed.

use std::collections::HashSet;
use std::fmt::Debug;
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::{MAX_MESSAGE_BYTES, ServiceChannel};
use cairn_chassis::identity::ServiceIdentitySource;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1::IssueDelegatedIdentityRequest;
use cairn_proto::auth::v1::delegation_service_client::DelegationServiceClient;
use cairn_proto::content::v1::ResolveScopeRequest;
use cairn_proto::content::v1::folder_service_client::FolderServiceClient;
use cairn_proto::domain::Role;
use cairn_proto::feed::v1::change_service_client::ChangeServiceClient;
use cairn_proto::feed::v1::feed_service_client::FeedServiceClient;
use cairn_proto::feed::v1::{ListChangesRequest, ListChangesResponse, WatchFeedRequest, WatchFeedResponse};
use cairn_proto::ids::{FolderId, UserId, WorkspaceId};
use futures::StreamExt as _;
use futures::stream::BoxStream;

/// Deadline of a call.
const PATIENCE: Duration = Duration::from_secs(10);
/// The duration of a watch, after which another one starts.
const WATCH: Duration = Duration::from_secs(60 * 60);
const USER: &str = "user";

/// A signed identity that reads some folders of a workspace for a few minutes.
#[derive(Clone)]
pub(crate) struct Delegated(pub(crate) String);

cairn_chassis::debug_fields!(Delegated);

/// A feed that has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) workspace: WorkspaceId,
    pub(crate) position: u64,
}

/// The services, which a test replaces.
#[async_trait::async_trait]
pub(crate) trait Upstream: Debug + Send + Sync {
    /// An identity for reading these folders, or everything, for a person who manages the workspace; `None` when they do
    /// not any more.
    async fn delegate(
        &self,
        workspace: WorkspaceId,
        person: UserId,
        folders: &[FolderId],
    ) -> Result<Option<Delegated>, Problem>;

    /// The live folders of an identity's scope, with all below them.
    async fn live_folders(&self, identity: &Delegated) -> Result<HashSet<FolderId>, Problem>;

    /// The changes in svc-content's feed that the identity can see after a position; without one, only the current position.
    async fn changes(
        &self,
        identity: &Delegated,
        after: Option<u64>,
        limit: u32,
    ) -> Result<ListChangesResponse, Problem>;

    /// The positions of svc-content's feeds, and then each that moves.
    async fn watch(&self) -> Result<BoxStream<'static, Result<Moved, Problem>>, Problem>;
}

/// The services of the mesh.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) auth: ServiceChannel,
    pub(crate) content: ServiceChannel,
    /// This service's own identity.
    pub(crate) identity: ServiceIdentitySource,
}

#[async_trait::async_trait]
impl Upstream for Remote {
    async fn delegate(
        &self,
        workspace: WorkspaceId,
        person: UserId,
        folders: &[FolderId],
    ) -> Result<Option<Delegated>, Problem> {
        let call = Call::within(PATIENCE).with_identity(&self.identity.identity().await?);
        let request = call.request(IssueDelegatedIdentityRequest {
            workspace_id: workspace.to_string(),
            principal_kind: USER.to_owned(),
            principal_id: person.to_string(),
            folder_ids: folders.iter().map(ToString::to_string).collect(),
            read_only: true,
        });
        let answer = DelegationServiceClient::new(self.auth.clone()).issue_delegated_identity(request).await;
        let answer = match answer.map_err(|status| Problem::from_status(&status)) {
            Ok(answer) => answer.into_inner(),
            Err(problem) if problem.reason == Reason::Forbidden => return Ok(None),
            Err(problem) => return Err(problem),
        };
        let manages = Role::from_number(answer.role).is_some_and(Role::is_manager);
        Ok(manages.then_some(Delegated(answer.identity)))
    }

    async fn live_folders(&self, identity: &Delegated) -> Result<HashSet<FolderId>, Problem> {
        let request = Call::within(PATIENCE).with_identity(&identity.0).request(ResolveScopeRequest {});
        let mut client =
            FolderServiceClient::new(self.content.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let answer = client.resolve_scope(request).await;
        let scope = answer.map_err(|status| Problem::from_status(&status))?.into_inner();
        Ok(scope.folder_ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    async fn changes(
        &self,
        identity: &Delegated,
        after: Option<u64>,
        limit: u32,
    ) -> Result<ListChangesResponse, Problem> {
        let message = ListChangesRequest { after, limit, wait_ms: 0 };
        let request = Call::within(PATIENCE).with_identity(&identity.0).request(message);
        let mut client =
            ChangeServiceClient::new(self.content.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES);
        let answer = client.list_changes(request).await;
        Ok(answer.map_err(|status| Problem::from_status(&status))?.into_inner())
    }

    async fn watch(&self) -> Result<BoxStream<'static, Result<Moved, Problem>>, Problem> {
        let call = Call::within(WATCH).with_identity(&self.identity.identity().await?);
        let mut client = FeedServiceClient::new(self.content.clone());
        let answer = client.watch_feed(call.request(WatchFeedRequest {})).await;
        let told = answer.map_err(|status| Problem::from_status(&status))?.into_inner();
        let moved = told.filter_map(async |told| match told {
            Ok(told) => moved(&told).map(Ok),
            Err(status) => Some(Err(Problem::from_status(&status))),
        });
        Ok(moved.boxed())
    }
}

/// `None` when it names no workspace.
fn moved(told: &WatchFeedResponse) -> Option<Moved> {
    Some(Moved { workspace: told.workspace_id.parse().ok()?, position: told.position })
}
