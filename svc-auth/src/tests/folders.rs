//! A svc-content that has one folder, and what svc-auth makes of its answers.

use cairn_chassis::identity::Verifier;
use cairn_chassis::testing::server as double;
use cairn_proto::auth::v1::TokenScope;
use cairn_proto::content::v1::folder_service_server::{FolderService, FolderServiceServer};
use cairn_proto::content::v1::{
    CreateFolderRequest, CreateFolderResponse, DeleteFolderRequest, DeleteFolderResponse, GetFolderRequest,
    GetFolderResponse, ListFoldersRequest, ListFoldersResponse, ResolveScopeRequest, ResolveScopeResponse,
    UpdateFolderRequest, UpdateFolderResponse,
};
use tonic::Response;
use tonic::service::Routes;

use super::tokens::FOLDER;
use super::*;

struct Folders(Verifier);

#[tonic::async_trait]
impl FolderService for Folders {
    async fn resolve_scope(
        &self,
        request: Request<ResolveScopeRequest>,
    ) -> Result<Response<ResolveScopeResponse>, Status> {
        let identity = self.0.authenticate(request.metadata()).await?;
        identity.require(cairn_chassis::identity::Permission::Read)?;
        identity.workspace_id()?;
        let Scope::Folders(asked) = identity.scope else {
            return Ok(Response::new(ResolveScopeResponse { whole_workspace: true, folder_ids: Vec::new() }));
        };
        let folder_ids = asked.iter().map(ToString::to_string).filter(|id| id == FOLDER).collect();
        Ok(Response::new(ResolveScopeResponse { whole_workspace: false, folder_ids }))
    }

    async fn create_folder(
        &self,
        _: Request<CreateFolderRequest>,
    ) -> Result<Response<CreateFolderResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn get_folder(&self, _: Request<GetFolderRequest>) -> Result<Response<GetFolderResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_folders(
        &self,
        _: Request<ListFoldersRequest>,
    ) -> Result<Response<ListFoldersResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn update_folder(
        &self,
        _: Request<UpdateFolderRequest>,
    ) -> Result<Response<UpdateFolderResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_folder(
        &self,
        _: Request<DeleteFolderRequest>,
    ) -> Result<Response<DeleteFolderResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

pub(super) async fn content(verifier: Verifier) -> ServiceChannel {
    let routes = Routes::new(FolderServiceServer::new(Folders(verifier)));
    ServiceChannel::local(double::compose(routes, &[]).await.unwrap().routes)
}

fn scoped(world: &World, folders: &[&str]) -> CreateTokenRequest {
    let folder_ids = folders.iter().map(ToString::to_string).collect();
    CreateTokenRequest {
        workspace_id: world.workspace(),
        name: "agent".to_owned(),
        permissions: vec![Permission::Read.into()],
        scope: Some(TokenScope { folder_ids }),
        ..CreateTokenRequest::default()
    }
}

#[tokio::test]
async fn a_scope_is_of_folders_that_live() {
    const GONE: &str = "0199c0de-0000-7000-8000-0000000000ff";
    for world in worlds().await {
        let owner = world.owner().await;
        let message = scoped(&world, &[GONE, FOLDER, GONE]);
        let found = broken(world.tokens().create_token(owner.request(message)).await);
        let expected =
            ["scope.folderIds[0]", "scope.folderIds[2]"].map(|path| (path.into(), "unknown_folder".into()));
        assert_eq!(found, expected, "{}", world.engine);
        let stranger = world.stranger("stranger@example.com").await;
        let asked = world.tokens().create_token(stranger.request(scoped(&world, &[GONE]))).await;
        assert_eq!(reason(asked), Reason::NotFound, "a stranger learns nothing of folders");
        world.tokens().create_token(owner.request(scoped(&world, &[FOLDER, FOLDER]))).await.unwrap();
    }
}

#[tokio::test]
async fn folders_that_cannot_be_checked_bind_no_token() {
    for world in worlds().await {
        let (clock, storage) = (clock(), &world._storage);
        let alone = open(storage, &clock).await.unwrap();
        let world = World { channel: local(&alone).await, ..world };
        let owner = world.owner().await;
        let refused = world.tokens().create_token(owner.request(scoped(&world, &[FOLDER]))).await;
        assert_eq!(reason(refused), Reason::Unavailable, "{}", world.engine);
        let (_, whole) = world.token(&owner, &[Permission::Read]).await;
        world.exchange(&whole).await.unwrap();
    }
}
