//! Views a workspace as a token would see it, and counts what is visible. svc-auth issues a read-only identity of
//! the person for it, so that every service authorizes it like any caller.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::FromRef;
use cairn_chassis::call::Call;
use cairn_chassis::status::{Problem, Reason};
use cairn_proto::auth::v1 as proto;
use cairn_proto::content::v1::GetOverviewRequest;
use cairn_proto::domain::Permission;
use cairn_proto::ids::{FolderId, TokenId, WorkspaceId};
use futures::future::try_join_all;
use serde::Deserialize;
use utoipa::ToSchema;

use super::folders::{self, Selection};
use super::tokens::{ScopeInput, scope_of};
use super::{Context, Paging, answered};
use crate::answers::{Folder, Links, TokenReach};
use crate::app::App;
use crate::auth::Authenticator;
use crate::own_writes::OwnWrites;
use crate::schema::inputs;
use crate::upstreams::Upstreams;

inputs!(WishedToken);

/// At most this many hidden folders are named.
const MAX_NAMED: usize = 10;

/// A token that could be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WishedToken {
    permissions: Vec<Permission>,
    /// The whole workspace when left out.
    scope: Option<ScopeInput>,
}

/// The token whose view is taken.
#[derive(Debug)]
pub(crate) enum ViewTarget {
    /// An existing token.
    Token(TokenId),
    /// A token to be created.
    Proposed(WishedToken),
}

/// What a view needs.
#[derive(Debug, Clone)]
pub(crate) struct TokenViews {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) links: Arc<Links>,
    pub(crate) own_writes: Arc<OwnWrites>,
}

impl FromRef<App> for TokenViews {
    fn from_ref(app: &App) -> Self {
        Self {
            authenticator: FromRef::from_ref(app),
            upstreams: FromRef::from_ref(app),
            links: FromRef::from_ref(app),
            own_writes: FromRef::from_ref(app),
        }
    }
}

/// The workspace as a token sees it.
#[derive(Debug)]
pub(crate) struct View {
    /// Operations in this context read what the token may read.
    pub(crate) context: Context,
    permissions: Vec<Permission>,
    /// `None` for the whole workspace.
    folders: Option<Vec<String>>,
}

impl TokenViews {
    /// Takes the view of a token, on behalf of the calling person.
    pub(crate) async fn see(
        &self,
        call: &Call,
        workspace: WorkspaceId,
        seen: ViewTarget,
    ) -> Result<View, Problem> {
        let message =
            proto::IssueTokenViewRequest { workspace_id: workspace.to_string(), ..Default::default() };
        let message = match seen {
            ViewTarget::Token(token) => {
                proto::IssueTokenViewRequest { token_id: token.to_string(), ..message }
            }
            ViewTarget::Proposed(proposed) => proto::IssueTokenViewRequest {
                permissions: proposed.permissions.into_iter().map(Permission::number).collect(),
                scope: scope_of(proposed.scope)?,
                ..message
            },
        };
        let (identity, view) = self.authenticator.tokens().view(message, call).await?;
        let context = Context {
            upstreams: Arc::clone(&self.upstreams),
            links: Arc::clone(&self.links),
            own_writes: Arc::clone(&self.own_writes),
            call: call.clone().with_identity(&identity.signed),
            identity: Arc::new(identity),
            step_up: None,
            writer: None,
            seen_contents: None,
            events: None,
        };
        let permissions = view.permissions.into_iter().filter_map(Permission::from_number).collect();
        Ok(View { context, permissions, folders: view.scope.map(|scope| scope.folder_ids) })
    }
}

impl View {
    /// Counts what is visible; `own` is the person's own view, and names what is hidden.
    pub(crate) async fn reach(self, own: &Context) -> Result<TokenReach, Problem> {
        let reads = self.permissions.contains(&Permission::Read);
        let reach = TokenReach {
            permissions: self.permissions.clone(),
            whole_workspace: self.folders.is_none(),
            ..TokenReach::default()
        };
        let named = self.folders.as_deref().unwrap_or_default();
        let paths = try_join_all(named.iter().map(|id| path_of(own, id))).await?;
        let folder_paths: Vec<String> = paths.into_iter().flatten().collect();
        let folders_gone = (named.len() - folder_paths.len()) as u64;
        let reach = TokenReach { folder_paths, folders_gone, ..reach };
        if !reads {
            return Ok(reach);
        }
        let mut overviews = self.context.upstreams.overviews();
        let held = answered(
            overviews.get_overview(self.context.call.request(GetOverviewRequest { counts_only: true })).await,
        )?;
        let hidden =
            if reach.whole_workspace { Vec::new() } else { hidden(own, &reach.folder_paths).await? };
        Ok(TokenReach {
            files: held.files,
            folders: held.folders,
            databases: held.databases,
            memories: held.memories,
            hidden_folders_total: hidden.len() as u64,
            hidden_folders: hidden.into_iter().take(MAX_NAMED).collect(),
            ..reach
        })
    }
}

/// The root folders that are neither one of these paths nor an ancestor of one.
async fn hidden(own: &Context, paths: &[String]) -> Result<Vec<String>, Problem> {
    let root = Selection::of_filter(Some(super::ROOT.to_owned()))?;
    let tops: Vec<Folder> = folders::list(own, root, Paging::default()).await?.items;
    let seen: HashSet<&str> =
        paths.iter().filter_map(|path| path.split('/').find(|part| !part.is_empty())).collect();
    Ok(tops.into_iter().map(|folder| folder.name).filter(|name| !seen.contains(name.as_str())).collect())
}

/// `None` if the folder no longer exists.
async fn path_of(own: &Context, id: &str) -> Result<Option<String>, Problem> {
    let Ok(id) = id.parse::<FolderId>() else { return Ok(None) };
    match folders::get(own, id).await {
        Ok(folder) => Ok(Some(folder.path)),
        Err(problem) if problem.reason == Reason::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}
