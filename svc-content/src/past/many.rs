//! Several files as they were, each with its own outcome.

use super::{Moment, Past};
use crate::Error;
use crate::files::many::{FoundFile, Room, check_count};
use crate::scope::Caller;

impl Past {
    /// The files as they stood then, in the order of `ids`; why there is none where there is none. A content above `most_bytes`
    /// is left out, and one that does not fit beside those before it.
    pub(crate) async fn files(
        &self,
        caller: &Caller,
        ids: &[String],
        most_bytes: Option<u64>,
        moment: Moment,
    ) -> Result<Vec<Result<FoundFile, Error>>, Error> {
        check_count(ids)?;
        self.check(caller, moment).await?;
        // One turn for all of them: to ask for a second one meanwhile would be to wait for oneself (ADR 30).
        let _turn = self.context.db.reading_fairly(caller.workspace).await?;
        let mut room = Room::new(most_bytes);
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.push(self.one_of_many(caller, id, moment, &mut room).await);
        }
        Ok(found)
    }

    async fn one_of_many(
        &self,
        caller: &Caller,
        id: &str,
        moment: Moment,
        room: &mut Room,
    ) -> Result<FoundFile, Error> {
        let now = self.readable(caller, id).await?;
        let was = self.as_it_was(caller, now, moment).await?;
        if !room.takes(was.file.size_bytes) {
            return Ok((was.file, None));
        }
        let (file, content) = self.with_content(caller, was).await?;
        Ok((file, Some(content)))
    }
}
