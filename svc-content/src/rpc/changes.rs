//! `cairn.feed.v1.ChangeService` on the feed of this service.

use cairn_chassis::feed::Feed;
use cairn_chassis::feed::changes::{Lens, Rpc, TimedChange, VisibleChange};
use cairn_chassis::identity::{Identity, Verifier};
use cairn_chassis::status::Problem;
use cairn_proto::feed::v1::change_service_server::ChangeServiceServer;

use crate::changes::Changes;
use crate::scope::Caller;

pub(crate) fn server(feed: Feed, changes: Changes, verifier: Verifier) -> ChangeServiceServer<Rpc<Changes>> {
    Rpc::server(feed, changes, verifier)
}

#[tonic::async_trait]
impl Lens for Changes {
    async fn look(
        &self,
        caller: &Identity,
        changes: Vec<TimedChange>,
    ) -> Result<Vec<VisibleChange>, Problem> {
        let caller = Caller::try_from(caller.clone())?;
        Ok(self.seen(&caller, changes).await?)
    }
}
