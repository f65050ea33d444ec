//! The account of a source's credentials.

use super::worker::{Halt, Worker};
use crate::model::Stage;
use crate::store;

impl Worker<'_> {
    /// Looks up the account once after credentials were set. Errors are ignored: the run itself will hit them.
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
            // Empty: the provider does not name one.
            let name = account.name.unwrap_or_default();
            store::sources::set_account(db, source, &name).await?;
        }
        Ok(())
    }
}
