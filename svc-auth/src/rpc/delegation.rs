//! DelegationService.

use std::sync::Arc;

use cairn_chassis::identity::{Permission, PermissionSet, PrincipalKind, Scope, Verifier};
use cairn_chassis::status::{Problem, Violation};
use cairn_chassis::wording;
use cairn_proto::auth::v1::delegation_service_server::DelegationService;
use cairn_proto::auth::v1::{IssueDelegatedIdentityRequest, IssueDelegatedIdentityResponse};
use cairn_proto::ids::FolderId;
use tonic::{Request, Response, Status};

use crate::delegation::{Delegation, Reach};

/// The principals that can start work which outlives the request.
const KINDS: [PrincipalKind; 3] = [PrincipalKind::Token, PrincipalKind::Grant, PrincipalKind::User];

#[derive(Debug)]
pub(super) struct DelegationServer {
    pub(super) rules: Arc<Delegation>,
    pub(super) verifier: Verifier,
}

#[tonic::async_trait]
impl DelegationService for DelegationServer {
    async fn issue_delegated_identity(
        &self,
        request: Request<IssueDelegatedIdentityRequest>,
    ) -> Result<Response<IssueDelegatedIdentityResponse>, Status> {
        let identity = self.verifier.authenticate(request.metadata()).await?;
        identity.require_service()?;
        let asked = request.get_ref();
        let invalid =
            |path: &str, message: String| Problem::validation(vec![Violation::new(path, "invalid", message)]);
        let workspace =
            asked.workspace_id.parse().map_err(|_| invalid("workspaceId", wording::ID.to_owned()))?;
        let kind = KINDS.into_iter().find(|kind| kind.as_str() == asked.principal_kind);
        let kind =
            kind.ok_or_else(|| invalid("principalKind", wording::one_of(&KINDS.map(PrincipalKind::as_str))))?;
        let folders: Result<Vec<FolderId>, _> = asked.folder_ids.iter().map(|id| id.parse()).collect();
        let folders = folders.map_err(|_| invalid("folderIds", wording::ID.to_owned()))?;
        let reach = Reach {
            scope: if folders.is_empty() { Scope::All } else { Scope::Folders(folders.into()) },
            permissions: match asked.read_only {
                true => [Permission::Read].into_iter().collect(),
                false => PermissionSet::all(),
            },
        };
        let service = &identity.principal.id;
        let principal = (kind, asked.principal_id.as_str());
        let delegated = self.rules.issue(service, workspace, principal, reach).await?;
        Ok(Response::new(IssueDelegatedIdentityResponse {
            identity: delegated.issued.identity,
            expires_at: Some(delegated.issued.expires_at.to_proto()),
            permissions: delegated.permissions.numbers(),
            whole_workspace: delegated.whole_workspace,
            role: delegated.role.number(),
        }))
    }
}
