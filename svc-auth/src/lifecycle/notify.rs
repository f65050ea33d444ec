//! Delivery of notices to the services.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::identity::{Identity, PermissionSet, Principal, PrincipalKind, Scope};
use cairn_chassis::status::Problem;
use cairn_proto::lifecycle::v1::lifecycle_service_client::LifecycleServiceClient;
use cairn_proto::lifecycle::v1::{PurgeWorkspaceRequest, SetWorkspaceStateRequest, WorkspaceState};
use futures::future::join_all;

use super::Lifecycle;
use crate::error::Error;
use crate::model::lifecycle::{Action, Notice};
use crate::store;

/// The timeout for recording a state.
const TELL_BUDGET: Duration = Duration::from_secs(3);
/// The timeout for one step of a purge.
const PURGE_BUDGET: Duration = Duration::from_secs(60);
/// The initial retry delay, doubled after each failure.
const INITIAL_DELAY: Duration = Duration::from_secs(1);
/// The maximum retry delay, which bounds how long a recovered service stays unaware.
const MAX_DELAY: Duration = Duration::from_secs(15);
/// While a service is not connected.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The services of the mesh, once they are connected; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Services(Arc<OnceLock<Vec<(&'static str, ServiceChannel)>>>);

impl Services {
    pub(super) fn connect(&self, services: Vec<(&'static str, ServiceChannel)>) {
        let _ = self.0.set(services);
    }

    fn channel(&self, service: &str) -> Result<ServiceChannel, Problem> {
        let known = self.0.get().into_iter().flatten().find(|(name, _)| *name == service);
        known.map(|(_, channel)| channel.clone()).ok_or_else(|| {
            Problem::unavailable(format!("the service {service} is not known yet"), RETRY_AFTER)
        })
    }
}

impl Lifecycle {
    /// Delivers all notices concurrently; fails only if the storage does.
    pub(super) async fn notify_all(&self, notices: Vec<Notice>) -> Result<(), Error> {
        join_all(notices.iter().map(|notice| self.notify(notice))).await.into_iter().collect()
    }

    /// Delivers one notice and records the result.
    async fn notify(&self, notice: &Notice) -> Result<(), Error> {
        let Notice { workspace, service, action, .. } = notice;
        match self.call(notice).await {
            Ok(is_done) => {
                if is_done {
                    store::lifecycle::forget(&self.db, notice).await?;
                }
                if *action == Action::Purge {
                    // More to purge, in this service or the next.
                    self.changed.notify_one();
                }
                Ok(())
            }
            Err(problem) => {
                tracing::warn!(%problem, %workspace, service, action = action.as_str(),
                    "a service does not know of a workspace's new state yet; telling it again");
                let factor = 1_u32.checked_shl(notice.attempts).unwrap_or(u32::MAX);
                let pause = INITIAL_DELAY.saturating_mul(factor).min(MAX_DELAY);
                let due_at = self.ambient.clock.now().plus(pause);
                Ok(store::lifecycle::put_off(&self.db, notice, due_at).await?)
            }
        }
    }

    /// Whether the service has acknowledged the notice.
    async fn call(&self, notice: &Notice) -> Result<bool, Problem> {
        let mut client = LifecycleServiceClient::new(self.services.channel(&notice.service)?);
        let (workspace_id, revision) = (notice.workspace.to_string(), notice.revision);
        let identity = self.identity()?;
        let state = match notice.action {
            Action::Purge => {
                let call = Call::within(PURGE_BUDGET).with_identity(&identity);
                let request = call.request(PurgeWorkspaceRequest { workspace_id, revision });
                let answer = client.purge_workspace(request).await;
                return Ok(answer.map_err(|status| Problem::from_status(&status))?.into_inner().is_done);
            }
            Action::Suspend => WorkspaceState::Suspended,
            Action::Restore => WorkspaceState::Live,
        };
        let call = Call::within(TELL_BUDGET).with_identity(&identity);
        let request = call.request(SetWorkspaceStateRequest { workspace_id, state: state.into(), revision });
        let answer = client.set_workspace_state(request).await;
        answer.map_err(|status| Problem::from_status(&status))?;
        Ok(true)
    }

    /// The identity of svc-auth itself.
    fn identity(&self) -> Result<String, Problem> {
        let now = self.ambient.clock.now();
        let identity = Identity {
            principal: Principal { kind: PrincipalKind::Service, id: "auth".into(), name: "auth".into() },
            workspace: None,
            role: None,
            permissions: PermissionSet::default(),
            may_publish: false,
            question_log_days: None,
            on_behalf_of: None,
            scope: Scope::All,
            plan: None,
            expires_at: now,
        };
        Ok(self.keys.issue(identity, now, None).map_err(Error::from)?.identity)
    }
}
