//! Whose credentials a source has.

use super::worker::{Halt, Worker};
use crate::model::Stage;
use crate::store;

impl Worker<'_> {
    /// Asks the provider once after credentials were given. What stands in its way the run will meet itself.
    pub(super) async fn learn_account(&mut self) -> Result<(), Halt> {
        let source = &self.source;
        if self.run.stage != Stage::Retries || source.account.is_some() {
            return Ok(());
        }
        let db = &self.context.db;
        if store::sources::credentials(db, source.workspace, source.id).await?.is_none() {
            return Ok(());
        }
        if let Ok(account) = self.provider.check(&self.call).await {
            // That it tells none is known then, too.
            let name = account.name.unwrap_or_default();
            store::sources::set_account(db, source, &name).await?;
        }
        Ok(())
    }
}
