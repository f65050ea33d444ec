//! Recent calls of agents and programs, as answered by this process: caller, tool, number of results, duration.
//! Never the content of the request.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cairn_chassis::call::Channel;
use cairn_chassis::clock::Timestamp;
use cairn_chassis::identity::{Identity, PrincipalKind};
use cairn_proto::ids::WorkspaceId;
use quick_cache::sync::Cache;
use serde::Serialize;

/// Workspaces whose calls are kept.
const MAX_WORKSPACES: usize = 1_024;
/// Calls kept per workspace, about 300 bytes each.
const MAX_CALLS: usize = 50;

/// A completed call.
#[derive(Debug, Clone)]
pub(crate) struct CompletedCall {
    pub(crate) channel: Channel,
    /// The tool, or the method and the route.
    pub(crate) tool: String,
    /// `None` if the response is no list.
    pub(crate) results: Option<usize>,
    pub(crate) has_failed: bool,
    pub(crate) took: Duration,
}

/// How many results a response holds: handlers put it into its extensions, for the live view of the workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Results(pub(crate) usize);

/// The call with its caller, as the stream and the page show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentCall {
    /// `token` or `grant`.
    pub(crate) principal_kind: &'static str,
    pub(crate) principal_id: String,
    /// For the page only: the stream carries ids, no texts.
    #[serde(skip)]
    pub(crate) principal_name: String,
    pub(crate) channel: &'static str,
    pub(crate) tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<usize>,
    pub(crate) failed: bool,
    pub(crate) ms: u64,
    pub(crate) at: String,
}

impl AgentCall {
    /// `None` for calls of people and services.
    pub(super) fn of(caller: &Identity, call: CompletedCall, at: Timestamp) -> Option<Self> {
        let principal = &caller.principal;
        if !matches!(principal.kind, PrincipalKind::Token | PrincipalKind::Grant) {
            return None;
        }
        Some(Self {
            principal_kind: principal.kind.as_str(),
            principal_id: principal.id.clone(),
            principal_name: principal.name.clone(),
            channel: call.channel.as_str(),
            tool: call.tool,
            results: call.results,
            failed: call.has_failed,
            ms: u64::try_from(call.took.as_millis()).unwrap_or(u64::MAX),
            at: at.to_rfc3339(),
        })
    }
}

type Calls = Arc<Mutex<VecDeque<Arc<AgentCall>>>>;

/// Recent calls by workspace.
pub(super) struct RecentCalls(Cache<WorkspaceId, Calls>);

impl Default for RecentCalls {
    fn default() -> Self {
        Self(Cache::new(MAX_WORKSPACES))
    }
}

impl RecentCalls {
    pub(super) fn push(&self, workspace: WorkspaceId, call: Arc<AgentCall>) {
        let entry =
            self.0.get_or_insert_with(&workspace, || Ok::<_, std::convert::Infallible>(Calls::default()));
        let Ok(calls) = entry;
        let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.truncate(MAX_CALLS - 1);
        calls.push_front(call);
    }

    pub(super) fn of(&self, workspace: WorkspaceId) -> Vec<Arc<AgentCall>> {
        let Some(calls) = self.0.get(&workspace) else { return Vec::new() };
        calls.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
