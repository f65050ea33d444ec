//! The way of one process to the services that it asks: the process may stand still before a call has an effect and behind it, be
//! refused there, or be lost.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use cairn_chassis::channel::ServiceChannel;
use cairn_chassis::status::Problem;
use cairn_proto::content::v1::asset_service_server::AssetServiceServer;
use cairn_proto::content::v1::batch_service_server::BatchServiceServer;
use cairn_proto::content::v1::database_service_server::DatabaseServiceServer;
use cairn_proto::content::v1::file_service_server::FileServiceServer;
use cairn_proto::content::v1::folder_service_server::FolderServiceServer;
use cairn_proto::content::v1::record_service_server::RecordServiceServer;
use cairn_proto::ids::WorkspaceId;
use tokio::sync::Notify;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::service::Routes;

use super::super::Rights;
use crate::content::Content;
use crate::delegation::{Delegated, Delegates};
use crate::model::Requester;

/// What stands on every way of a process. Each call passes it twice: before it has an effect, and before its answer is heard.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<State>,
    opened: Notify,
    stopped: Notify,
}

#[derive(Debug, Default)]
struct State {
    passes: u64,
    /// Whether the next one to pass is refused.
    is_refusing: bool,
    is_stopped: bool,
}

impl Gate {
    /// Lets so many pass; the first of them is refused, or not.
    pub(super) fn open_for(&self, passes: u64, is_refusing: bool) {
        *self.state.lock().unwrap() = State { passes, is_refusing, is_stopped: false };
        self.opened.notify_one();
    }

    /// Waits until somebody stands before the gate.
    pub(super) async fn stopped(&self) {
        while !self.state.lock().unwrap().is_stopped {
            self.stopped.notified().await;
        }
    }

    /// Whether it was refused.
    async fn pass(&self) -> bool {
        loop {
            if let Some(is_refused) = self.try_pass() {
                return is_refused;
            }
            self.stopped.notify_one();
            self.opened.notified().await;
        }
    }

    fn try_pass(&self) -> Option<bool> {
        let mut state = self.state.lock().unwrap();
        match state.passes.checked_sub(1) {
            Some(left) => {
                state.passes = left;
                Some(std::mem::take(&mut state.is_refusing))
            }
            None => {
                state.is_stopped = true;
                None
            }
        }
    }

    /// The way to svc-content behind this gate, and to who says what a run may do.
    pub(super) fn guard(self: &Arc<Self>, content: &ServiceChannel, rights: &Arc<Rights>) -> Content {
        let routes = Routes::new(Gated::<BatchServiceServer<()>>::new(self, content))
            .add_service(Gated::<FolderServiceServer<()>>::new(self, content))
            .add_service(Gated::<FileServiceServer<()>>::new(self, content))
            .add_service(Gated::<AssetServiceServer<()>>::new(self, content))
            .add_service(Gated::<DatabaseServiceServer<()>>::new(self, content))
            .add_service(Gated::<RecordServiceServer<()>>::new(self, content));
        let delegates = Arc::new(GatedRights { rights: Arc::clone(rights), gate: Arc::clone(self) });
        Content { channel: ServiceChannel::local(routes), delegates }
    }
}

/// One service behind a gate.
struct Gated<T> {
    gate: Arc<Gate>,
    content: ServiceChannel,
    of: PhantomData<fn() -> T>,
}

impl<T> Gated<T> {
    fn new(gate: &Arc<Gate>, content: &ServiceChannel) -> Self {
        Self { gate: Arc::clone(gate), content: content.clone(), of: PhantomData }
    }
}

impl<T> Clone for Gated<T> {
    fn clone(&self) -> Self {
        Self::new(&self.gate, &self.content)
    }
}

impl<T: NamedService> NamedService for Gated<T> {
    const NAME: &'static str = T::NAME;
}

impl<T> Service<http::Request<Body>> for Gated<T> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (gate, mut content) = (Arc::clone(&self.gate), self.content.clone());
        Box::pin(async move {
            if gate.pass().await {
                return Ok(refusal());
            }
            let answer = content.call(request).await;
            // What was asked for is done, and nobody may hear of it.
            if gate.pass().await {
                return Ok(refusal());
            }
            Ok(answer.unwrap_or_else(|_| refusal()))
        })
    }
}

fn refusal() -> http::Response<Body> {
    Status::unavailable("the simulation refuses this call").into_http()
}

#[derive(Debug)]
struct GatedRights {
    rights: Arc<Rights>,
    gate: Arc<Gate>,
}

#[async_trait::async_trait]
impl Delegates for GatedRights {
    async fn delegate(&self, workspace: WorkspaceId, requester: &Requester) -> Result<Delegated, Problem> {
        if self.gate.pass().await {
            return Err(Problem::unavailable("the simulation refuses this call", Duration::from_secs(1)));
        }
        self.rights.delegate(workspace, requester).await
    }
}
