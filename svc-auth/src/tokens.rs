//! API tokens: who may create, see and revoke them, and their exchange for a signed identity.
//!
//! Owners and admins of a workspace manage all of its tokens. Everybody else sees and manages only their own: other
//! members' tokens do not exist for them.

mod draft;
mod last_use;
mod view;

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::call::Call;
use cairn_chassis::identity::{Identity, Permission, PermissionSet, Principal, PrincipalKind, Role, Scope};
use cairn_chassis::sql::{Db, Tx};
use cairn_chassis::token_format;
use cairn_proto::ids::{GrantId, TokenId, UserId, WorkspaceId};

use self::draft::Checked;
pub(crate) use self::draft::Draft;
use self::last_use::LastUse;
pub(crate) use self::view::ViewTarget;
use crate::error::Error;
use crate::folders::Folders;
use crate::keys::{Issued, Keys};
use crate::model::has_ended;
use crate::model::tokens::{Presented, Token, Use};
use crate::names;
use crate::secrets::{self, Digest};
use crate::store;
use crate::workspaces::{not_found, require_member};

/// Live tokens of one member in one workspace (contract, "Accounts and membership").
const MAX_TOKENS: i64 = 100;

/// A new token with its secret, which is not stored.
pub(crate) struct Created {
    pub(crate) token: Token,
    pub(crate) secret: String,
}

cairn_chassis::debug_fields!(Created { token });

/// The rules of tokens.
#[derive(Debug)]
pub(crate) struct Tokens {
    db: Db,
    ambient: Ambient,
    keys: Arc<Keys>,
    folders: Folders,
    last_use: LastUse,
}

impl Tokens {
    pub(crate) fn new(db: Db, ambient: Ambient, keys: Arc<Keys>, folders: Folders) -> Self {
        Self { db, ambient, keys, folders, last_use: LastUse::default() }
    }

    /// Exchanges a token for an identity. Checked at every exchange, so a change of the token, of its owner's role or
    /// of the workspace takes effect at the next one. `call` names the client program.
    pub(crate) async fn exchange(&self, secret: &str, call: &Call) -> Result<Issued, Error> {
        if !token_format::is_well_formed(secret) {
            return Err(Error::TokenRefused);
        }
        let found = store::tokens::find_by_digest(&self.db, &secrets::digest(secret)).await?;
        let now = self.ambient.clock.now();
        let is_open =
            |token: &Presented| token.active && token.expires_at.is_none_or(|end| !has_ended(end, now));
        let token = found.filter(is_open).ok_or(Error::TokenRefused)?;

        let used = Use { at: now, client: call.client().to_owned(), channel: call.channel() };
        self.last_use.note(token.workspace, token.id, used);
        // May be empty after a change of role: the caller is authenticated then, but has no permissions.
        let permissions = token.granted.intersection(token.owner_role.permissions());
        let identity = Identity {
            principal: Principal { kind: PrincipalKind::Token, id: token.id.to_string(), name: token.name },
            workspace: Some(token.workspace),
            role: None,
            permissions,
            may_publish: token.publishers.allow(token.owner_role, permissions),
            question_log_days: token.question_log_days,
            on_behalf_of: Some(token.owner),
            scope: token.scope,
            plan: Some(token.plan),
            expires_at: now,
        };
        Ok(self.keys.issue(identity, now, token.expires_at)?)
    }

    /// The tokens of a workspace that the user may manage, newest first.
    pub(crate) async fn list(&self, user: UserId, workspace: WorkspaceId) -> Result<Vec<Token>, Error> {
        let found = store::tokens::list(&self.db, workspace, user).await?;
        let (role, mut tokens) = found.ok_or_else(not_found)?;
        tokens.retain(|token| may_manage(role, user, token));
        for token in &mut tokens {
            self.last_use.refresh(token);
        }
        Ok(tokens)
    }

    /// Creates a token that the caller owns. `call` is the current request: its deadline and request id are passed to
    /// svc-content.
    pub(crate) async fn create(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        draft: Draft,
        call: &Call,
    ) -> Result<Created, Error> {
        let mut tx = self.db.begin_read().await?;
        let role = require_member(&mut tx, user, workspace).await?.role;
        tx.commit().await?;
        let checked = draft.check(role, self.ambient.clock.now())?;
        // Outside of the transaction: a call to another service must not hold up other writers.
        self.check_folders(workspace, &checked, call).await?;

        let mut tx = self.db.begin_write().await?;
        // Removing a member deletes their tokens; the lock prevents one from being created concurrently.
        store::members::lock(&mut tx, workspace).await?;
        require_member(&mut tx, user, workspace).await?;
        self.check_number(&mut tx, user, workspace).await?;
        let secret = token_format::generate(&*self.ambient.entropy);
        let created = self.insert(&mut tx, user, workspace, checked, secret).await?;
        tx.commit().await?;
        Ok(created)
    }

    /// The number of a user's live tokens in a workspace, and the limit.
    pub(crate) async fn usage(&self, person: UserId, workspace: WorkspaceId) -> Result<(u64, u64), Error> {
        let (on, now) = (self.db.engine(), self.ambient.clock.now());
        let used = store::tokens::count_live(on, workspace, person, now).await?;
        Ok((used.unsigned_abs(), MAX_TOKENS.unsigned_abs()))
    }

    /// The user behind a token or grant; `None` if it no longer exists.
    pub(crate) async fn person_behind(
        &self,
        principal: &Principal,
        workspace: WorkspaceId,
    ) -> Result<Option<UserId>, Error> {
        let on = self.db.engine();
        let person = match principal.kind {
            PrincipalKind::Token => match principal.id.parse::<TokenId>() {
                Ok(id) => store::tokens::find(on, workspace, id).await?.map(|token| token.owner),
                Err(_) => None,
            },
            PrincipalKind::Grant => match principal.id.parse::<GrantId>() {
                Ok(id) => store::oauth_grants::find_user(on, workspace, id).await?,
                Err(_) => None,
            },
            PrincipalKind::User | PrincipalKind::Service => None,
        };
        Ok(person)
    }

    /// Inactive tokens count too: they can be reactivated.
    async fn check_number(&self, tx: &mut Tx, user: UserId, workspace: WorkspaceId) -> Result<(), Error> {
        let (on, now) = (tx.engine(), self.ambient.clock.now());
        let used = store::tokens::count_live(on, workspace, user, now).await?;
        if used < MAX_TOKENS {
            return Ok(());
        }
        let what = "live tokens of yours in this workspace";
        let remedy = "delete those that nobody uses";
        Err(Error::LimitExceeded { path: "tokens", what, used, limit: MAX_TOKENS, remedy })
    }

    /// Creates a workspace's first token, with every permission, within a larger transaction.
    pub(crate) async fn create_first(
        &self,
        tx: &mut Tx,
        user: UserId,
        workspace: WorkspaceId,
        name: &str,
        secret: String,
    ) -> Result<Created, Error> {
        let everything = Checked {
            name: name.to_owned(),
            permissions: PermissionSet::all(),
            scope: Scope::All,
            requested: Vec::new(),
            expires_at: None,
        };
        self.insert(tx, user, workspace, everything, secret).await
    }

    /// Activates, deactivates or renames a token; `None` leaves a field unchanged.
    pub(crate) async fn update(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        id: TokenId,
        active: Option<bool>,
        name: Option<&str>,
    ) -> Result<Token, Error> {
        let mut violations = Vec::new();
        let name = name.map(|name| names::check("name", name, &mut violations));
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        let mut tx = self.db.begin_write().await?;
        let mut token = require_manageable(&mut tx, user, workspace, id).await?;
        if let Some(active) = active {
            store::tokens::set_active(&mut tx, workspace, id, active).await?;
            token.active = active;
        }
        if let Some(name) = name {
            store::tokens::set_name(&mut tx, workspace, id, &name).await?;
            token.name = name;
        }
        tx.commit().await?;
        self.last_use.refresh(&mut token);
        Ok(token)
    }

    /// Deletes a token permanently.
    pub(crate) async fn delete(
        &self,
        user: UserId,
        workspace: WorkspaceId,
        id: TokenId,
    ) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        require_manageable(&mut tx, user, workspace, id).await?;
        store::tokens::delete(&mut tx, workspace, id).await?;
        Ok(tx.commit().await?)
    }

    /// Writes times of last use; those that fail are kept for the next flush.
    pub(crate) async fn flush_last_use(&self) -> Result<(), Error> {
        let uses = self.last_use.take();
        if uses.is_empty() {
            return Ok(());
        }
        let written = store::tokens::record_uses(&self.db, &uses).await;
        if written.is_err() {
            self.last_use.put_back(uses);
        }
        Ok(written?)
    }

    /// Asks svc-content which of the folders exist, with an identity that is restricted to them.
    async fn check_folders(
        &self,
        workspace: WorkspaceId,
        checked: &Checked,
        call: &Call,
    ) -> Result<(), Error> {
        if checked.requested.is_empty() {
            return Ok(());
        }
        let now = self.ambient.clock.now();
        let asking = Identity {
            principal: Principal { kind: PrincipalKind::Service, id: "auth".into(), name: "auth".into() },
            workspace: Some(workspace),
            role: None,
            permissions: [Permission::Read].into_iter().collect(),
            may_publish: false,
            question_log_days: None,
            on_behalf_of: None,
            scope: checked.scope.clone(),
            plan: None,
            expires_at: now,
        };
        let signed = self.keys.issue(asking, now, None)?;
        let live = self.folders.in_scope(&call.clone().with_identity(&signed.identity)).await;
        checked.check_live(&live.map_err(Error::Upstream)?)
    }

    async fn insert(
        &self,
        tx: &mut Tx,
        user: UserId,
        workspace: WorkspaceId,
        checked: Checked,
        secret: String,
    ) -> Result<Created, Error> {
        let token = Token {
            id: self.ambient.ids.next(),
            workspace,
            owner: user,
            name: checked.name,
            permissions: checked.permissions,
            scope: checked.scope,
            last_four: secrets::last_four(&secret).to_owned(),
            active: true,
            created_at: self.ambient.clock.now(),
            expires_at: checked.expires_at,
            last_used_at: None,
            last_client: String::new(),
            last_channel: None,
        };
        let digest: Digest = secrets::digest(&secret);
        store::tokens::insert(tx, &token, &digest).await?;
        Ok(Created { token, secret })
    }
}

async fn require_manageable(
    tx: &mut Tx,
    user: UserId,
    workspace: WorkspaceId,
    id: TokenId,
) -> Result<Token, Error> {
    let role = require_member(tx, user, workspace).await?.role;
    let found = store::tokens::find(tx.engine(), workspace, id).await?;
    found.filter(|token| may_manage(role, user, token)).ok_or(Error::NotFound("token"))
}

fn may_manage(role: Role, user: UserId, token: &Token) -> bool {
    role.is_manager() || token.owner == user
}
