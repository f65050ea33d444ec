use cairn_proto::auth::v1::delegation_service_client::DelegationServiceClient;
use cairn_proto::auth::v1::{
    IssueDelegatedIdentityRequest, IssueDelegatedIdentityResponse, UpdateTokenRequest,
};

use super::tokens::READ_WRITE;
use super::*;

impl World {
    async fn delegate(&self, kind: &str, id: &str) -> Result<IssueDelegatedIdentityResponse, Status> {
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        let sync = ServiceIdentitySource::new("sync", MESH_SECRET.to_owned(), self.direct.clone(), clock);
        let identity = sync.identity().await.unwrap();
        self.delegate_as(&identity, kind, id).await
    }

    async fn delegate_as(
        &self,
        identity: &str,
        kind: &str,
        id: &str,
    ) -> Result<IssueDelegatedIdentityResponse, Status> {
        let request = Call::within(MINUTE).with_identity(identity).request(IssueDelegatedIdentityRequest {
            workspace_id: self.workspace(),
            principal_kind: kind.to_owned(),
            principal_id: id.to_owned(),
            ..IssueDelegatedIdentityRequest::default()
        });
        let mut client = DelegationServiceClient::new(self.direct.clone());
        Ok(client.issue_delegated_identity(request).await?.into_inner())
    }
}

#[tokio::test]
async fn a_service_goes_on_for_as_long_as_whoever_asked_could_ask() {
    for world in worlds().await {
        let contributor = world.member("c@example.org", Role::Contributor).await;
        let delegated = world.delegate("user", &contributor.id.to_string()).await.unwrap();
        assert_eq!(
            delegated.permissions,
            [Permission::Read as i32, Permission::Write as i32],
            "{}",
            world.engine
        );
        assert!(delegated.whole_workspace);
        let identity = world.read(&delegated.identity).await.unwrap();
        assert_eq!(
            (identity.principal.kind, identity.principal.id.as_str()),
            (PrincipalKind::Service, "sync")
        );
        assert_eq!(identity.workspace, Some(world.first.workspace_id));
        assert_eq!(identity.plan.as_deref(), Some("selfhosted"));

        let stranger = world.stranger("s@example.org").await;
        for (kind, id) in [("user", stranger.id.to_string()), ("token", stranger.id.to_string())] {
            assert_eq!(reason(world.delegate(kind, &id).await), Reason::Forbidden, "{kind}");
        }
        assert_eq!(reason(world.delegate("service", "sync").await), Reason::ValidationError);
        let as_person = world.delegate_as(&contributor.identity, "user", &contributor.id.to_string()).await;
        assert_eq!(reason(as_person), Reason::Forbidden);
    }
}

#[tokio::test]
async fn an_identity_can_be_bound_to_folders_and_to_reading() {
    for world in worlds().await {
        let owner = world.owner().await;
        let folder = "0199c0de-0000-7000-8000-000000000009";
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&world.clock);
        let source =
            ServiceIdentitySource::new("ingest", MESH_SECRET.to_owned(), world.direct.clone(), clock);
        let call = Call::within(MINUTE).with_identity(&source.identity().await.unwrap());
        let request = |folder: &str| {
            call.request(IssueDelegatedIdentityRequest {
                workspace_id: world.workspace(),
                principal_kind: "user".to_owned(),
                principal_id: owner.id.to_string(),
                folder_ids: vec![folder.to_owned()],
                read_only: true,
            })
        };
        let mut client = DelegationServiceClient::new(world.direct.clone());
        let delegated = client.issue_delegated_identity(request(folder)).await.unwrap().into_inner();
        assert_eq!(delegated.role, Role::Owner.number(), "{}", world.engine);
        let identity = world.read(&delegated.identity).await.unwrap();
        assert_eq!(identity.scope, Scope::Folders([folder.parse().unwrap()].into()));
        assert_eq!(identity.permissions.numbers(), [Permission::Read as i32]);
        let odd = client.issue_delegated_identity(request("handbook")).await.map(tonic::Response::into_inner);
        assert_eq!(reason(odd), Reason::ValidationError);
    }
}

#[tokio::test]
async fn a_token_that_was_deactivated_asks_for_nothing_any_more() {
    for world in worlds().await {
        let owner = world.owner().await;
        let (token, _) = world.token(&owner, &READ_WRITE).await;
        let delegated = world.delegate("token", &token.id).await.unwrap();
        assert_eq!(delegated.permissions.len(), 2, "what was granted: {}", world.engine);
        let off = UpdateTokenRequest {
            workspace_id: world.workspace(),
            token_id: token.id.clone(),
            active: Some(false),
            name: None,
        };
        world.tokens().update_token(owner.request(off)).await.unwrap();
        assert_eq!(reason(world.delegate("token", &token.id).await), Reason::Forbidden);
    }
}
