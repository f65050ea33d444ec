//! The task that polls a workspace on behalf of all its streams.
//!
//! The feeds are read as a service of the mesh. Index and runs are polled with the identity of a subscribed member:
//! every member sees the same of them, and nothing beyond their rights is published.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cairn_chassis::call::Call;
use cairn_proto::domain::{RunStatus, SourceRunStatus};
use cairn_proto::ids::WorkspaceId;
use cairn_proto::ingest::v1::ListConnectedSourcesRequest;
use cairn_proto::retrieval::v1::GetIndexStatusRequest;
use cairn_proto::sync::v1::{ListImportsRequest, ListSyncsRequest};
use tokio::sync::broadcast;

use super::position::Position;
use super::{CHANNEL_CAPACITY, Event, Events, feeds};
use crate::upstreams::Upstreams;

/// Events are visible within three seconds.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const BUDGET: Duration = Duration::from_secs(3);
/// Only the newest runs of each kind are polled: a run in progress is among them.
const MAX_RUNS: u32 = 10;

/// A workspace with subscribers.
pub(super) struct WatchedWorkspace {
    pub(super) workspace: WorkspaceId,
    sender: broadcast::Sender<Event>,
    /// The heads of the feeds when the first stream started.
    start: OnceLock<Position>,
    /// The identity of the member checked last.
    identity: Mutex<Option<String>>,
}

impl WatchedWorkspace {
    pub(super) fn new(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            sender: broadcast::channel(CHANNEL_CAPACITY).0,
            start: OnceLock::new(),
            identity: Mutex::default(),
        }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }

    pub(super) fn has_subscribers(&self) -> bool {
        self.sender.receiver_count() > 0
    }

    pub(super) fn publish(&self, event: Event) {
        // Having no subscribers is not an error.
        let _listeners = self.sender.send(event);
    }

    /// Sets where the watcher starts. Only the first stream's position is used.
    pub(super) fn begin(&self, at: Position) {
        // Later streams started later, and are subscribed already.
        let _is_known = self.start.set(at);
    }

    /// Hands in the identity of a member that was just checked, for the next poll.
    pub(super) fn set_identity(&self, signed: &str) {
        *self.identity.lock().unwrap_or_else(PoisonError::into_inner) = Some(signed.to_owned());
    }

    /// Taken, so that it is used for one poll only and never after its owner has left.
    fn take_identity(&self) -> Option<Call> {
        let identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Call::within(BUDGET).with_identity(&identity))
    }
}

/// Polls until there are no subscribers.
pub(super) async fn watch(events: Arc<Events>, watched: Arc<WatchedWorkspace>) {
    let mut closed = events.closed.subscribe();
    let (mut last_position, mut snapshot) = (None, Snapshot::default());
    loop {
        tokio::select! {
            _ = closed.changed() => return,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        if events.leave(&watched) {
            return;
        }
        let Some(mut after) = last_position.or_else(|| watched.start.get().copied()) else { continue };
        for event in feeds::since(&events.upstreams, watched.workspace, after).await {
            if let Event::Change { feed, position, .. } | Event::Changes { feed, position } = &event {
                after.advance(*feed, *position);
            }
            watched.publish(event);
        }
        last_position = Some(after);
        if let Some(call) = watched.take_identity() {
            snapshot
                .poll(&events.upstreams, &call)
                .await
                .into_iter()
                .for_each(|event| watched.publish(event));
        }
    }
}

/// By kind and id: the status, and the progress.
type Runs = HashMap<(&'static str, String), (String, u64)>;

/// The last polled state of index and runs.
#[derive(Default)]
struct Snapshot {
    index: Option<(&'static str, u64)>,
    /// `None` before the first poll.
    runs: Option<Runs>,
}

impl Snapshot {
    async fn poll(&mut self, upstreams: &Upstreams, call: &Call) -> Vec<Event> {
        let (index, runs) = tokio::join!(index(upstreams, call), runs(upstreams, call));
        let mut events = Vec::new();
        if self.index != Some(index) {
            let (state, behind) = index;
            // The initial state is news to streams that subscribed before the first poll.
            events.push(Event::Index { state, behind });
            self.index = Some(index);
        }
        if let Some(known) = &self.runs {
            let moved = runs.iter().filter(|(run, snapshot)| known.get(*run) != Some(*snapshot));
            events.extend(moved.map(|((kind, id), (status, _))| Event::Run {
                kind,
                id: id.clone(),
                status: status.clone(),
            }));
        }
        self.runs = Some(runs);
        events
    }
}

async fn index(upstreams: &Upstreams, call: &Call) -> (&'static str, u64) {
    match upstreams.index().get_index_status(call.request(GetIndexStatusRequest {})).await {
        Ok(status) => {
            let status = status.into_inner();
            let behind = status.feeds.iter().map(|feed| feed.behind).sum::<u64>();
            let state = if behind == 0 { "current" } else { "behind" };
            (state, behind + status.not_embedded)
        }
        Err(_) => ("unavailable", 0),
    }
}

/// The newest runs. An unavailable service contributes none.
async fn runs(upstreams: &Upstreams, call: &Call) -> Runs {
    let (mut syncs, mut imports, mut sources) = (upstreams.syncs(), upstreams.imports(), upstreams.sources());
    let newest = || (MAX_RUNS, String::new());
    let (syncs, imports, sources) = tokio::join!(
        syncs.list_syncs(call.request({
            let (page_size, page_token) = newest();
            ListSyncsRequest { page_size, page_token, ..ListSyncsRequest::default() }
        })),
        imports.list_imports(call.request({
            let (page_size, page_token) = newest();
            ListImportsRequest { page_size, page_token }
        })),
        sources.list_connected_sources(call.request(ListConnectedSourcesRequest {})),
    );
    let status = |number: i32| RunStatus::from_number(number).map_or("unknown", RunStatus::as_str).to_owned();
    let mut found = Runs::new();
    for run in syncs.map(|answer| answer.into_inner().runs).unwrap_or_default() {
        found.insert(("sync", run.id), (status(run.status), run.processed));
    }
    for run in imports.map(|answer| answer.into_inner().runs).unwrap_or_default() {
        found.insert(("import", run.id), (status(run.status), run.processed));
    }
    for source in sources.map(|answer| answer.into_inner().sources).unwrap_or_default() {
        let Some(run) = source.run else { continue };
        let word = SourceRunStatus::from_number(run.status).map_or("unknown", SourceRunStatus::as_str);
        let done = run.counters.map_or(0, |counters| counters.listed + counters.fetched + counters.failed);
        found.insert(("source", run.id), (word.to_owned(), done));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_asked_without_a_member_who_looks() {
        let watched = WatchedWorkspace::new("0199c0de-0000-7000-8000-0000000000a1".parse().unwrap());
        assert!(watched.take_identity().is_none() && !watched.has_subscribers());
        let receiver = watched.subscribe();
        watched.set_identity("signed");
        assert!(watched.take_identity().is_some() && watched.has_subscribers());
        assert!(watched.take_identity().is_none(), "lent for one round");
        drop(receiver);
        watched.publish(Event::Ready {});
        assert!(!watched.has_subscribers());
    }
}
