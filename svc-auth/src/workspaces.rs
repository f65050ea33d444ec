//! Workspaces.

use std::sync::Arc;

use cairn_chassis::ambient::Ambient;
use cairn_chassis::identity::Role;
use cairn_chassis::sql::{Db, Tx};
use cairn_chassis::status::Violation;
use cairn_chassis::wording;
use cairn_proto::domain::Publishers;
use cairn_proto::ids::{UserId, WorkspaceId};

use crate::error::Error;
use crate::lifecycle::Lifecycle;
use crate::model::workspaces::{Changes, Membership, Workspace};
use crate::{names, store};

/// The plans of the contract's limit table.
pub const PLANS: [&str; 7] = ["free", "starter", "studio", "team", "pro", "business", "selfhosted"];

/// The fields that an update may contain.
const CHANGEABLE: &str = "name, plan, publishers, question_log_days";
/// The allowed retention of the question log, in days (contract, "What agents did").
const QUESTION_LOG_DAYS: [u32; 3] = [7, 30, 90];

/// Who may change the plan of a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlanChanges {
    /// Its owners.
    #[default]
    Owner,
    /// Only the operator of the deployment ([`crate::set_plan`]).
    Operator,
}

/// Settings of the deployment's operator.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// The plan of new workspaces.
    pub(crate) default_plan: String,
    pub(crate) plan_changes: PlanChanges,
    /// How many one user may own.
    pub(crate) per_person: u32,
}

/// The rules of workspaces.
#[derive(Debug)]
pub(crate) struct Workspaces {
    db: Db,
    ambient: Ambient,
    policy: Policy,
    lifecycle: Arc<Lifecycle>,
}

impl Workspaces {
    pub(crate) const fn new(db: Db, ambient: Ambient, policy: Policy, lifecycle: Arc<Lifecycle>) -> Self {
        Self { db, ambient, policy, lifecycle }
    }

    /// The workspaces of a user, by name.
    pub(crate) async fn list(&self, user: UserId) -> Result<Vec<Membership>, Error> {
        Ok(store::workspaces::list(&self.db, user).await?)
    }

    /// The deleted workspaces that the user owns and can restore.
    pub(crate) async fn list_deleted(&self, user: UserId) -> Result<Vec<Membership>, Error> {
        Ok(store::workspaces::list_deleted(&self.db, user).await?)
    }

    /// Creates a workspace that the user owns.
    pub(crate) async fn create(&self, user: UserId, name: &str) -> Result<Membership, Error> {
        let mut violations = Vec::new();
        let name = names::check("name", name, &mut violations);
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }
        let mut tx = self.db.begin_write().await?;
        if store::users::find(&mut tx, user).await?.is_none() {
            return Err(Error::SessionRefused);
        }
        self.check_number(&mut tx, user).await?;
        let membership = self.create_in(&mut tx, user, name).await?;
        tx.commit().await?;
        Ok(membership)
    }

    async fn check_number(&self, tx: &mut Tx, user: UserId) -> Result<(), Error> {
        tx.lock_name(&format!("auth:workspaces-of:{user}")).await?;
        let (used, limit) = (store::members::count_owned(tx, user).await?, i64::from(self.policy.per_person));
        if used < limit {
            return Ok(());
        }
        let remedy = "delete one that nobody uses, or ask the operator of this server for more";
        let what = "workspaces that you own";
        Err(Error::LimitExceeded { path: "workspaces", what, used, limit, remedy })
    }

    /// Like [`Self::create`], within a larger transaction, with a validated name.
    pub(crate) async fn create_in(
        &self,
        tx: &mut Tx,
        user: UserId,
        name: String,
    ) -> Result<Membership, Error> {
        let now = self.ambient.clock.now();
        let workspace = Workspace {
            id: self.ambient.ids.next(),
            name,
            plan: self.policy.default_plan.clone(),
            publishers: Publishers::default(),
            question_log_days: None,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            purge_at: None,
        };
        let membership = Membership { workspace, role: Role::Owner };
        store::workspaces::insert(tx, &membership.workspace).await?;
        store::members::insert(tx, membership.workspace.id, user, membership.role, now).await?;
        Ok(membership)
    }

    /// A workspace of the user.
    pub(crate) async fn get(&self, user: UserId, id: WorkspaceId) -> Result<Membership, Error> {
        store::workspaces::get_membership(&self.db, user, id).await?.ok_or_else(not_found)
    }

    /// The workspace that a token is bound to.
    pub(crate) async fn get_bound(&self, bound_to: WorkspaceId, id: WorkspaceId) -> Result<Workspace, Error> {
        if bound_to != id {
            return Err(not_found());
        }
        store::workspaces::find(&self.db, id).await?.ok_or_else(not_found)
    }

    /// Updates a workspace: its name or publishers (owner, admin), the retention of its question log (owner), or its
    /// plan (owner, unless reserved to the operator).
    pub(crate) async fn update(
        &self,
        user: UserId,
        id: WorkspaceId,
        mut changes: Changes,
    ) -> Result<Membership, Error> {
        let mut tx = self.db.begin_write().await?;
        let membership = require_member(&mut tx, user, id).await?;
        if changes.name.is_some() {
            require_manager(membership.role, "renaming a workspace")?;
        }
        if changes.publishers.is_some() || !changes.invalid.is_empty() {
            require_manager(membership.role, "deciding who may publish")?;
        }
        if changes.question_log_days.is_some() {
            require_owner(membership.role, "switching the question log on or off")?;
        }
        if changes.plan.is_some() {
            require_owner(membership.role, "changing the plan")?;
            if self.policy.plan_changes == PlanChanges::Operator {
                return Err(Error::PlanIsOperators);
            }
        }
        check(&mut changes)?;
        let now = self.ambient.clock.now();
        let workspace = store::workspaces::update(&mut tx, id, &changes, now).await?.ok_or_else(not_found)?;
        tx.commit().await?;
        Ok(Membership { workspace, ..membership })
    }

    /// Deletes a workspace (owner): it is hidden, its tokens are rejected, and every service is notified.
    pub(crate) async fn delete(&self, user: UserId, id: WorkspaceId) -> Result<(), Error> {
        let mut tx = self.db.begin_write().await?;
        let membership = require_member(&mut tx, user, id).await?;
        require_owner(membership.role, "deleting a workspace")?;
        self.lifecycle.suspend(&mut tx, id).await?;
        tx.commit().await?;
        self.lifecycle.notify_now(id).await;
        Ok(())
    }

    /// Restores a deleted workspace with its data (owner). A live one is left unchanged.
    pub(crate) async fn restore(&self, user: UserId, id: WorkspaceId) -> Result<Membership, Error> {
        let mut tx = self.db.begin_write().await?;
        if let Some(living) = store::workspaces::find_membership(&mut tx, user, id).await? {
            require_owner(living.role, "restoring a workspace")?;
            return Ok(living);
        }
        let deleted = store::workspaces::find_deleted(&mut tx, user, id).await?.ok_or_else(not_found)?;
        self.check_number(&mut tx, user).await?;
        if !self.lifecycle.restore(&mut tx, id).await? {
            return Err(not_found());
        }
        tx.commit().await?;
        self.lifecycle.notify_now(id).await;
        let workspace = Workspace { deleted_at: None, purge_at: None, ..deleted.workspace };
        Ok(Membership { workspace, ..deleted })
    }
}

/// The workspace with the user's role. An unknown workspace and one of others give the same error.
pub(crate) async fn require_member(tx: &mut Tx, user: UserId, id: WorkspaceId) -> Result<Membership, Error> {
    store::workspaces::find_membership(tx, user, id).await?.ok_or_else(not_found)
}

pub(crate) const fn not_found() -> Error {
    Error::NotFound("workspace")
}

pub(crate) fn require_manager(held: Role, action: &'static str) -> Result<(), Error> {
    if held.is_manager() {
        return Ok(());
    }
    Err(Error::RoleTooLow { action, needed: "'owner' or 'admin'", held })
}

fn require_owner(held: Role, action: &'static str) -> Result<(), Error> {
    if held == Role::Owner {
        return Ok(());
    }
    Err(Error::RoleTooLow { action, needed: "'owner'", held })
}

pub(crate) fn check(changes: &mut Changes) -> Result<(), Error> {
    let mut violations = std::mem::take(&mut changes.invalid);
    for field in &changes.unknown {
        let message = format!("'{field}' cannot be changed; these can: {CHANGEABLE}");
        violations.push(Violation::new("updateMask", "unknown_field", message));
    }
    let names_nothing = changes.name.is_none()
        && changes.plan.is_none()
        && changes.publishers.is_none()
        && changes.question_log_days.is_none();
    if violations.is_empty() && names_nothing {
        let message = format!("must name what to change: {CHANGEABLE}");
        violations.push(Violation::new("updateMask", "required", message));
    }
    if let Some(name) = changes.name.take() {
        changes.name = Some(names::check("name", &name, &mut violations));
    }
    if let Some(plan) = &changes.plan
        && !PLANS.contains(&plan.as_str())
    {
        violations.push(Violation::new("plan", "invalid", wording::one_of(&PLANS)));
    }
    if let Some(Some(days)) = changes.question_log_days
        && !QUESTION_LOG_DAYS.contains(&days)
    {
        let message = "must be 7, 30 or 90, or null to keep no questions";
        violations.push(Violation::new("questionLogDays", "invalid", message));
    }
    if violations.is_empty() { Ok(()) } else { Err(Error::Invalid(violations)) }
}
