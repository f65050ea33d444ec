//! Point-in-time reads of several files, each with its own outcome.

use super::{Moment, Past};
use crate::Error;
use crate::files::many::{ContentBudget, FoundFile, check_count};
use crate::scope::Caller;

impl Past {
    /// The files at a moment, in the order of `ids`, each with its own error. Contents beyond `max_bytes`, alone or in total, are
    /// left out.
    pub(crate) async fn files(
        &self,
        caller: &Caller,
        ids: &[String],
        max_bytes: Option<u64>,
        moment: Moment,
    ) -> Result<Vec<Result<FoundFile, Error>>, Error> {
        check_count(ids)?;
        self.check(caller, moment).await?;
        // One permit for all files: waiting for a second one while holding the first could deadlock (ADR 30).
        let _permit = self.context.db.read_permit(caller.workspace).await?;
        let mut budget = ContentBudget::new(max_bytes);
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.push(self.one_of_many(caller, id, moment, &mut budget).await);
        }
        Ok(found)
    }

    async fn one_of_many(
        &self,
        caller: &Caller,
        id: &str,
        moment: Moment,
        budget: &mut ContentBudget,
    ) -> Result<FoundFile, Error> {
        let now = self.readable(caller, id).await?;
        let was = self.as_it_was(caller, now, moment).await?;
        if !budget.try_take(was.file.size_bytes) {
            return Ok((was.file, None));
        }
        let (file, content) = self.with_content(caller, was).await?;
        Ok((file, Some(content)))
    }
}
