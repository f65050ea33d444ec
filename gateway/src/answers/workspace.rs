//! Records of svc-auth: workspaces, tokens, sessions.

use cairn_chassis::identity::{self, Identity};
use cairn_proto::auth::v1::{self as proto, User};
use cairn_proto::domain::{Permission, Publishers, Role};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::member::PendingInvitation;
use super::{Usage, optional_time, time};

/// Whether a token sees the whole workspace or some folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScopeType {
    All,
    Folders,
}

/// Which part of the workspace a token may touch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenScope {
    pub(crate) r#type: ScopeType,
    /// The folders, each with everything below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) folder_ids: Option<Vec<String>>,
}

impl TokenScope {
    fn of(folder_ids: Option<Vec<String>>) -> Self {
        let folder_ids = folder_ids.filter(|folders| !folders.is_empty());
        let r#type = if folder_ids.is_some() { ScopeType::Folders } else { ScopeType::All };
        Self { r#type, folder_ids }
    }
}

/// The workspace of an API token, and what the token may do in it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenWorkspace {
    #[schema(format = "uuid")]
    id: String,
    name: String,
    plan: String,
    /// What the token may do now: what it was given, cut to its owner's present role.
    permissions: Vec<Permission>,
    /// Whether the token may make memories public: the workspace says which roles may.
    may_publish: bool,
    scope: TokenScope,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    #[serde(flatten)]
    usage: Usage,
}

impl TokenWorkspace {
    pub(crate) fn read(workspace: proto::Workspace, identity: &Identity, usage: Usage) -> Self {
        let folder_ids = match &identity.scope {
            identity::Scope::All => None,
            identity::Scope::Folders(folders) => Some(folders.iter().map(ToString::to_string).collect()),
        };
        Self {
            created_at: time(workspace.created_at.as_ref()),
            updated_at: time(workspace.updated_at.as_ref()),
            id: workspace.id,
            name: workspace.name,
            plan: workspace.plan,
            permissions: identity.permissions.iter().collect(),
            may_publish: identity.may_publish,
            scope: TokenScope::of(folder_ids),
            usage,
        }
    }
}

/// A workspace and the role of the signed-in person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Workspace {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) plan: String,
    /// Who may make memories public.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) publishers: Option<Publishers>,
    /// For how many days what is asked is kept: 7, 30 or 90. Left out: it is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) question_log_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<Role>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deleted_at: Option<String>,
    /// Until when an owner can restore it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) purge_at: Option<String>,
}

impl From<proto::Membership> for Workspace {
    fn from(membership: proto::Membership) -> Self {
        let role = Role::from_number(membership.role);
        let workspace = membership.workspace.unwrap_or_default();
        Self {
            role,
            publishers: Publishers::from_number(workspace.publishers),
            question_log_days: workspace.question_log_days,
            deleted_at: optional_time(workspace.deleted_at.as_ref()),
            purge_at: optional_time(workspace.purge_at.as_ref()),
            created_at: time(workspace.created_at.as_ref()),
            updated_at: time(workspace.updated_at.as_ref()),
            id: workspace.id,
            name: workspace.name,
            plan: workspace.plan,
        }
    }
}

/// An API token without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Token {
    pub(crate) id: String,
    pub(crate) workspace_id: String,
    pub(crate) owner_id: String,
    pub(crate) name: String,
    pub(crate) permissions: Vec<Permission>,
    pub(crate) scope: TokenScope,
    pub(crate) last_four: String,
    pub(crate) active: bool,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) last_used_at: Option<String>,
    /// What the program that used it then calls itself: its `User-Agent`, which proves nothing.
    pub(crate) last_client: Option<String>,
    /// The door that it came by: `rest`, `mcp`, `console` or `grpc`.
    pub(crate) last_channel: Option<String>,
    /// The whole token: shown once, in the answer that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
}

impl Token {
    pub(crate) fn with_secret(self, secret: String) -> Self {
        Self { token: Some(secret), ..self }
    }
}

impl From<proto::Token> for Token {
    fn from(token: proto::Token) -> Self {
        Self {
            permissions: token
                .permissions
                .iter()
                .filter_map(|number| Permission::from_number(*number))
                .collect(),
            created_at: time(token.created_at.as_ref()),
            expires_at: optional_time(token.expires_at.as_ref()),
            last_used_at: optional_time(token.last_used_at.as_ref()),
            last_client: Some(token.last_client).filter(|client| !client.is_empty()),
            last_channel: Some(token.last_channel).filter(|channel| !channel.is_empty()),
            scope: TokenScope::of(token.scope.map(|scope| scope.folder_ids)),
            id: token.id,
            workspace_id: token.workspace_id,
            owner_id: token.owner_id,
            name: token.name,
            last_four: token.last_four,
            active: token.active,
            token: None,
        }
    }
}

/// Who is signed in, and where they belong.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Session {
    pub(crate) user: User,
    pub(crate) workspaces: Vec<Workspace>,
    /// What the person may accept or decline; none for an email that is not verified.
    pub(crate) pending_invitations: Vec<PendingInvitation>,
}

impl Session {
    pub(crate) fn read(
        user: Option<proto::User>,
        memberships: Vec<proto::Membership>,
        pending: Vec<proto::PendingInvitation>,
    ) -> Self {
        Self {
            user: user.unwrap_or_default(),
            workspaces: memberships.into_iter().map(Workspace::from).collect(),
            pending_invitations: pending.into_iter().map(PendingInvitation::from).collect(),
        }
    }
}
