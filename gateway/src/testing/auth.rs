//! A fake svc-auth with one token, one person and one workspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cairn_chassis::status::{Problem, Violation};
use cairn_proto::auth::v1 as auth;
use cairn_proto::auth::v1::session_service_server::SessionService;
use cairn_proto::auth::v1::token_service_server::TokenService;
use cairn_proto::auth::v1::workspace_service_server::WorkspaceService;
use tonic::{Request, Response, Status};

use super::{PASSWORD, WORKSPACE, console, token};

type Answered<T> = Result<Response<T>, Status>;

pub(super) struct Tokens {
    pub(super) identity: String,
    pub(super) asked: Arc<AtomicUsize>,
}

#[tonic::async_trait]
impl TokenService for Tokens {
    async fn exchange(&self, request: Request<auth::ExchangeRequest>) -> Answered<auth::ExchangeResponse> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if request.into_inner().api_token != token() {
            return Err(Problem::unauthorized("no such token").into());
        }
        Ok(Response::new(auth::ExchangeResponse { identity: self.identity.clone(), expires_at: None }))
    }

    async fn list_tokens(&self, _: Request<auth::ListTokensRequest>) -> Answered<auth::ListTokensResponse> {
        Ok(Response::new(auth::ListTokensResponse { tokens: vec![console::token()] }))
    }

    async fn create_token(
        &self,
        _: Request<auth::CreateTokenRequest>,
    ) -> Answered<auth::CreateTokenResponse> {
        Err(Status::unimplemented(""))
    }

    async fn update_token(
        &self,
        _: Request<auth::UpdateTokenRequest>,
    ) -> Answered<auth::UpdateTokenResponse> {
        Err(Status::unimplemented(""))
    }

    async fn issue_token_view(
        &self,
        request: Request<auth::IssueTokenViewRequest>,
    ) -> Answered<auth::IssueTokenViewResponse> {
        let asked = request.into_inner();
        if !asked.token_id.is_empty() && asked.token_id != console::token().id {
            return Err(Problem::not_found("there is no such token").into());
        }
        Ok(Response::new(auth::IssueTokenViewResponse {
            identity: self.identity.clone(),
            expires_at: None,
            permissions: vec![auth::Permission::Read.into(), auth::Permission::Write.into()],
            scope: asked.scope,
        }))
    }

    async fn delete_token(
        &self,
        _: Request<auth::DeleteTokenRequest>,
    ) -> Answered<auth::DeleteTokenResponse> {
        Err(Status::unimplemented(""))
    }
}

const SECRET: &str = "5e5510e05ec2e75e5510e05ec2e75e5510e05ec2e75e5510e05ec2e75e5510e0";

pub(super) struct Sessions {
    pub(super) identity: String,
    ended: AtomicBool,
}

impl Sessions {
    pub(super) fn new(identity: String) -> Self {
        Self { identity, ended: AtomicBool::new(false) }
    }
}

fn user() -> Option<auth::User> {
    Some(auth::User {
        id: "u".to_owned(),
        email: "a@b.example".to_owned(),
        name: "A".to_owned(),
        email_verified: false,
    })
}

fn membership() -> auth::Membership {
    let workspace = auth::Workspace {
        id: WORKSPACE.to_owned(),
        name: "Home".to_owned(),
        plan: "selfhosted".to_owned(),
        ..Default::default()
    };
    auth::Membership { workspace: Some(workspace), role: auth::Role::Owner.into() }
}

#[tonic::async_trait]
impl SessionService for Sessions {
    async fn create_session(
        &self,
        request: Request<auth::CreateSessionRequest>,
    ) -> Answered<auth::CreateSessionResponse> {
        if request.into_inner().password != PASSWORD {
            return Err(Problem::unauthorized("the email or the password is wrong").into());
        }
        Ok(Response::new(auth::CreateSessionResponse {
            session_secret: SECRET.to_owned(),
            expires_at: Some(prost_types::Timestamp { seconds: 4_000_000_000, nanos: 0 }),
            user: user(),
            memberships: vec![membership()],
            pending_invitations: Vec::new(),
        }))
    }

    async fn exchange_session(
        &self,
        request: Request<auth::ExchangeSessionRequest>,
    ) -> Answered<auth::ExchangeSessionResponse> {
        let asked = request.into_inner();
        if asked.session_secret != SECRET || self.ended.load(Ordering::SeqCst) {
            return Err(Problem::unauthorized("the session has ended").into());
        }
        if asked.workspace_id.is_some_and(|workspace| workspace != WORKSPACE) {
            return Err(Problem::not_found("there is no workspace with that id").into());
        }
        Ok(Response::new(auth::ExchangeSessionResponse { identity: self.identity.clone(), expires_at: None }))
    }

    async fn get_session(
        &self,
        request: Request<auth::GetSessionRequest>,
    ) -> Answered<auth::GetSessionResponse> {
        assert!(request.metadata().contains_key("authorization"));
        Ok(Response::new(auth::GetSessionResponse {
            user: user(),
            memberships: vec![membership()],
            pending_invitations: Vec::new(),
        }))
    }

    async fn delete_session(
        &self,
        _: Request<auth::DeleteSessionRequest>,
    ) -> Answered<auth::DeleteSessionResponse> {
        self.ended.store(true, Ordering::SeqCst);
        Ok(Response::new(auth::DeleteSessionResponse {}))
    }

    async fn list_sessions(
        &self,
        request: Request<auth::ListSessionsRequest>,
    ) -> Answered<auth::ListSessionsResponse> {
        assert_eq!(request.into_inner().session_secret.as_deref(), Some(SECRET));
        let session = |id: &str, current| auth::Session {
            id: id.to_owned(),
            agent: console::HOSTILE.to_owned(),
            place: "203.0.113.0/24".to_owned(),
            created_at: Some(prost_types::Timestamp { seconds: 1_800_000_000, nanos: 0 }),
            last_used_at: None,
            expires_at: Some(prost_types::Timestamp { seconds: 4_000_000_000, nanos: 0 }),
            current,
        };
        let sessions = vec![
            session("0199c0de-0000-7000-8000-0000000000e1", true),
            session("0199c0de-0000-7000-8000-0000000000e2", false),
        ];
        Ok(Response::new(auth::ListSessionsResponse { sessions }))
    }

    async fn end_session(&self, _: Request<auth::EndSessionRequest>) -> Answered<auth::EndSessionResponse> {
        Ok(Response::new(auth::EndSessionResponse {}))
    }

    async fn delete_sessions(
        &self,
        _: Request<auth::DeleteSessionsRequest>,
    ) -> Answered<auth::DeleteSessionsResponse> {
        self.ended.store(true, Ordering::SeqCst);
        Ok(Response::new(auth::DeleteSessionsResponse {}))
    }

    async fn change_password(
        &self,
        request: Request<auth::ChangePasswordRequest>,
    ) -> Answered<auth::ChangePasswordResponse> {
        let asked = request.into_inner();
        assert_eq!(asked.session_secret.as_deref(), Some(SECRET), "the session at hand stays");
        if asked.current_password != PASSWORD {
            let wrong = Violation::new("current_password", "wrong", "is not your password");
            return Err(Problem::validation(vec![wrong]).into());
        }
        Ok(Response::new(auth::ChangePasswordResponse {}))
    }
}

pub(super) struct Workspaces;

#[tonic::async_trait]
impl WorkspaceService for Workspaces {
    async fn get_workspace(
        &self,
        request: Request<auth::GetWorkspaceRequest>,
    ) -> Answered<auth::GetWorkspaceResponse> {
        if request.into_inner().workspace_id != WORKSPACE {
            return Err(Problem::not_found("there is no such workspace").into());
        }
        Ok(Response::new(auth::GetWorkspaceResponse { membership: Some(membership()), tokens: None }))
    }

    async fn list_workspaces(
        &self,
        _: Request<auth::ListWorkspacesRequest>,
    ) -> Answered<auth::ListWorkspacesResponse> {
        Ok(Response::new(auth::ListWorkspacesResponse { memberships: vec![membership()] }))
    }

    async fn create_workspace(
        &self,
        _: Request<auth::CreateWorkspaceRequest>,
    ) -> Answered<auth::CreateWorkspaceResponse> {
        Err(Status::unimplemented(""))
    }

    async fn update_workspace(
        &self,
        _: Request<auth::UpdateWorkspaceRequest>,
    ) -> Answered<auth::UpdateWorkspaceResponse> {
        Err(Status::unimplemented(""))
    }

    async fn delete_workspace(
        &self,
        _: Request<auth::DeleteWorkspaceRequest>,
    ) -> Answered<auth::DeleteWorkspaceResponse> {
        Err(Status::unimplemented(""))
    }

    async fn restore_workspace(
        &self,
        _: Request<auth::RestoreWorkspaceRequest>,
    ) -> Answered<auth::RestoreWorkspaceResponse> {
        Err(Status::unimplemented(""))
    }
}
