//! Fakes for the console's pages, each list with one entry whose names are hostile.

use cairn_chassis::status::Problem;
use cairn_proto::auth::v1 as auth;
use cairn_proto::auth::v1::grant_service_server::GrantService;
use cairn_proto::auth::v1::invitation_service_server::InvitationService;
use cairn_proto::auth::v1::member_service_server::MemberService;
use cairn_proto::content::v1 as content;
use cairn_proto::content::v1::folder_service_server::FolderService;
use cairn_proto::content::v1::name_service_server::NameService;
use cairn_proto::content::v1::overview_service_server::OverviewService;
use cairn_proto::content::v1::trash_service_server::TrashService;
use cairn_proto::content::v1::usage_service_server::UsageService;
use cairn_proto::feed::v1::Kind;
use prost_types::Timestamp;
use tonic::{Request, Response, Status};

use super::{FILE, TRASHED, WORKSPACE};

type Answered<T> = Result<Response<T>, Status>;

/// A hostile name (HTML and template injection).
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\"' onclick=x {{&amp;";
const ID: &str = "0199c0de-0000-7000-8000-0000000000c1";
const AT: Option<Timestamp> = Some(Timestamp { seconds: 1_800_000_000, nanos: 0 });

fn person() -> auth::User {
    auth::User { id: ID.into(), email: "b@b.example".into(), name: HOSTILE.into(), email_verified: true }
}

/// The one token in a list.
pub(super) fn token() -> auth::Token {
    auth::Token {
        id: ID.into(),
        workspace_id: WORKSPACE.into(),
        owner_id: ID.into(),
        name: HOSTILE.into(),
        permissions: vec![auth::Permission::Read.into()],
        last_four: "abcd".into(),
        active: true,
        created_at: AT,
        last_used_at: AT,
        last_client: HOSTILE.into(),
        last_channel: "mcp".into(),
        ..Default::default()
    }
}

pub(super) struct Console;

#[tonic::async_trait]
impl GrantService for Console {
    async fn list_grants(&self, _: Request<auth::ListGrantsRequest>) -> Answered<auth::ListGrantsResponse> {
        let grant = auth::Grant {
            id: ID.into(),
            client_name: HOSTILE.into(),
            redirect_host: "tools.example".into(),
            permissions: vec![auth::Permission::Read.into(), auth::Permission::Write.into()],
            created_at: AT,
            ..Default::default()
        };
        Ok(Response::new(auth::ListGrantsResponse { grants: vec![grant] }))
    }

    async fn revoke_grant(
        &self,
        _: Request<auth::RevokeGrantRequest>,
    ) -> Answered<auth::RevokeGrantResponse> {
        Ok(Response::new(auth::RevokeGrantResponse::default()))
    }
}

#[tonic::async_trait]
impl MemberService for Console {
    async fn list_members(
        &self,
        _: Request<auth::ListMembersRequest>,
    ) -> Answered<auth::ListMembersResponse> {
        let member = auth::Member { user: Some(person()), role: auth::Role::Editor.into(), created_at: AT };
        Ok(Response::new(auth::ListMembersResponse { members: vec![member] }))
    }

    async fn add_member(&self, _: Request<auth::AddMemberRequest>) -> Answered<auth::AddMemberResponse> {
        Err(Status::unimplemented(""))
    }

    async fn update_member(
        &self,
        _: Request<auth::UpdateMemberRequest>,
    ) -> Answered<auth::UpdateMemberResponse> {
        Err(Status::unimplemented(""))
    }

    async fn remove_member(
        &self,
        _: Request<auth::RemoveMemberRequest>,
    ) -> Answered<auth::RemoveMemberResponse> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl InvitationService for Console {
    async fn list_invitations(
        &self,
        _: Request<auth::ListInvitationsRequest>,
    ) -> Answered<auth::ListInvitationsResponse> {
        let invitation = auth::Invitation {
            id: ID.into(),
            workspace_id: WORKSPACE.into(),
            email: "c@b.example".into(),
            role: auth::Role::Viewer.into(),
            inviter: Some(person()),
            created_at: AT,
            expires_at: AT,
        };
        Ok(Response::new(auth::ListInvitationsResponse { invitations: vec![invitation] }))
    }

    async fn delete_invitation(
        &self,
        _: Request<auth::DeleteInvitationRequest>,
    ) -> Answered<auth::DeleteInvitationResponse> {
        Err(Status::unimplemented(""))
    }

    async fn look_up_invitation(
        &self,
        _: Request<auth::LookUpInvitationRequest>,
    ) -> Answered<auth::LookUpInvitationResponse> {
        Err(Status::unimplemented(""))
    }

    async fn accept_invitation(
        &self,
        _: Request<auth::AcceptInvitationRequest>,
    ) -> Answered<auth::AcceptInvitationResponse> {
        Err(Status::unimplemented(""))
    }

    async fn join_workspace(
        &self,
        _: Request<auth::JoinWorkspaceRequest>,
    ) -> Answered<auth::JoinWorkspaceResponse> {
        Err(Status::unimplemented(""))
    }

    async fn accept_pending_invitation(
        &self,
        _: Request<auth::AcceptPendingInvitationRequest>,
    ) -> Answered<auth::AcceptPendingInvitationResponse> {
        Err(Status::unimplemented(""))
    }

    async fn decline_pending_invitation(
        &self,
        _: Request<auth::DeclinePendingInvitationRequest>,
    ) -> Answered<auth::DeclinePendingInvitationResponse> {
        Err(Status::unimplemented(""))
    }
}

#[tonic::async_trait]
impl NameService for Console {
    async fn find_names(
        &self,
        _: Request<content::FindNamesRequest>,
    ) -> Answered<content::FindNamesResponse> {
        let item = |kind: Kind, path: Option<String>| content::NamedItem {
            kind: kind.into(),
            id: ID.into(),
            name: HOSTILE.into(),
            path,
        };
        let items = vec![
            item(Kind::Folder, Some(format!("/{HOSTILE}"))),
            item(Kind::Database, None),
            item(Kind::Memory, None),
        ];
        Ok(Response::new(content::FindNamesResponse { items, is_part: false }))
    }
}

#[tonic::async_trait]
impl OverviewService for Console {
    async fn get_overview(
        &self,
        _: Request<content::GetOverviewRequest>,
    ) -> Answered<content::GetOverviewResponse> {
        let change = content::RecentChange {
            kind: Kind::File.into(),
            id: FILE.into(),
            title: HOSTILE.into(),
            path: format!("/{HOSTILE}"),
            version: 1,
            changed_at: AT,
            author: Some(content::ChangeAuthor { kind: "user".into(), id: ID.into(), name: HOSTILE.into() }),
            ..Default::default()
        };
        Ok(Response::new(content::GetOverviewResponse {
            files: 1,
            recent_changes: vec![change],
            ..Default::default()
        }))
    }
}

#[tonic::async_trait]
impl TrashService for Console {
    async fn list_trash(
        &self,
        _: Request<content::ListTrashRequest>,
    ) -> Answered<content::ListTrashResponse> {
        let item = |kind: Kind, id: &str| content::TrashItem {
            kind: kind.into(),
            id: id.into(),
            name: HOSTILE.into(),
            path: format!("/{HOSTILE}"),
            deleted_at: AT,
            item_count: 2,
            ..Default::default()
        };
        Ok(Response::new(content::ListTrashResponse {
            items: vec![item(Kind::File, FILE), item(Kind::Folder, ID)],
            next_page_token: "next".into(),
            total_size: 70,
        }))
    }

    async fn list_deleters(
        &self,
        _: Request<content::ListDeletersRequest>,
    ) -> Answered<content::ListDeletersResponse> {
        let deleter = content::Author { kind: "token".into(), id: ID.into(), name: HOSTILE.into() };
        Ok(Response::new(content::ListDeletersResponse { deleters: vec![deleter] }))
    }

    async fn get_trash_item(
        &self,
        request: Request<content::GetTrashItemRequest>,
    ) -> Answered<content::GetTrashItemResponse> {
        let asked = request.into_inner();
        if asked.item_id != TRASHED {
            return Err(Problem::not_found("there is no such item in trash").into());
        }
        let item = content::TrashItem {
            kind: asked.kind,
            id: asked.item_id,
            name: HOSTILE.into(),
            path: format!("/{HOSTILE}"),
            deleted_at: AT,
            item_count: 1,
            deleted_by: Some(content::Author { kind: "token".into(), id: ID.into(), name: HOSTILE.into() }),
            ..Default::default()
        };
        Ok(Response::new(content::GetTrashItemResponse { item: Some(item) }))
    }

    async fn restore_item(
        &self,
        request: Request<content::RestoreItemRequest>,
    ) -> Answered<content::RestoreItemResponse> {
        let asked = request.into_inner();
        Ok(Response::new(content::RestoreItemResponse {
            kind: asked.kind,
            item_id: asked.item_id,
            ..Default::default()
        }))
    }

    async fn delete_item_permanently(
        &self,
        _: Request<content::DeleteItemPermanentlyRequest>,
    ) -> Answered<content::DeleteItemPermanentlyResponse> {
        Ok(Response::new(content::DeleteItemPermanentlyResponse::default()))
    }
}

#[tonic::async_trait]
impl UsageService for Console {
    async fn get_usage(&self, _: Request<content::GetUsageRequest>) -> Answered<content::GetUsageResponse> {
        let measure = |used, limit| Some(content::Measure { used, limit });
        Ok(Response::new(content::GetUsageResponse {
            files: measure(1_843, Some(2_000)),
            storage_bytes: measure(25_900_000, None),
        }))
    }

    async fn get_storage(
        &self,
        _: Request<content::GetStorageRequest>,
    ) -> Answered<content::GetStorageResponse> {
        Ok(Response::new(content::GetStorageResponse {
            files_bytes: 20_000_000,
            assets_bytes: 5_000_000,
            records_bytes: 900_000,
        }))
    }
}

#[tonic::async_trait]
impl FolderService for Console {
    async fn list_folders(
        &self,
        _: Request<content::ListFoldersRequest>,
    ) -> Answered<content::ListFoldersResponse> {
        let folder = content::Folder {
            id: ID.into(),
            workspace_id: WORKSPACE.into(),
            name: HOSTILE.into(),
            path: format!("/{HOSTILE}"),
            ..Default::default()
        };
        Ok(Response::new(content::ListFoldersResponse {
            folders: vec![folder],
            next_page_token: String::new(),
            total_size: 1,
        }))
    }

    async fn create_folder(
        &self,
        _: Request<content::CreateFolderRequest>,
    ) -> Answered<content::CreateFolderResponse> {
        Err(Status::unimplemented(""))
    }

    async fn get_folder(
        &self,
        _: Request<content::GetFolderRequest>,
    ) -> Answered<content::GetFolderResponse> {
        Err(Status::unimplemented(""))
    }

    async fn update_folder(
        &self,
        _: Request<content::UpdateFolderRequest>,
    ) -> Answered<content::UpdateFolderResponse> {
        Err(Status::unimplemented(""))
    }

    async fn delete_folder(
        &self,
        _: Request<content::DeleteFolderRequest>,
    ) -> Answered<content::DeleteFolderResponse> {
        Err(Status::unimplemented(""))
    }

    async fn resolve_scope(
        &self,
        _: Request<content::ResolveScopeRequest>,
    ) -> Answered<content::ResolveScopeResponse> {
        Err(Status::unimplemented(""))
    }
}
