//! `cairn.feed.v1.ChangeService` on the feed of this service.

use cairn_chassis::feed::Feed;
use cairn_chassis::feed::changes::{Lens, Rpc, TimedChange, VisibleChange};
use cairn_chassis::identity::{Identity, Verifier};
use cairn_chassis::status::Problem;
use cairn_proto::feed::v1::change_service_server::ChangeServiceServer;

use crate::scope::Caller;

/// Documents of this service are in no folder: callers with workspace-wide scope see all of them, others none.
#[derive(Debug, Clone)]
pub(crate) struct WholeWorkspace;

pub(crate) fn server(feed: Feed, verifier: Verifier) -> ChangeServiceServer<Rpc<WholeWorkspace>> {
    Rpc::server(feed, WholeWorkspace, verifier)
}

#[tonic::async_trait]
impl Lens for WholeWorkspace {
    async fn look(
        &self,
        caller: &Identity,
        changes: Vec<TimedChange>,
    ) -> Result<Vec<VisibleChange>, Problem> {
        let caller = Caller::try_from(caller.clone())?;
        if !caller.has_whole_workspace() {
            return Ok(Vec::new());
        }
        Ok(changes.into_iter().map(VisibleChange::of).collect())
    }
}
