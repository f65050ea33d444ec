//! Questions to one source.

use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::SourceId;

use super::{SOURCES, Sources, parse_id};
use crate::Error;
use crate::checks::Checks;
use crate::scope::Caller;

const MOST_QUERY_CHARS: usize = 10_000;

/// What a provider was asked and what it cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Codes with what they mean, for people.
    pub(crate) notes: Vec<(&'static str, &'static str)>,
    pub(crate) used: u32,
    pub(crate) remaining: u32,
}

impl Sources {
    /// What a source says to a query. Nothing is searched here: what is retained is in the index of searches, and the
    /// providers' own searches are not asked yet. The answer says so.
    pub(crate) async fn query(&self, caller: &Caller, id: &str, query: &str) -> Result<Answer, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let mut checks = Checks::default();
        if parse_id::<SourceId>(id).is_err() {
            checks.violation("sourceId", "invalid_id", "must be the id of a connected source: a UUID");
        }
        if query.trim().is_empty() {
            checks.violation("query", "required", "say what to look for");
        } else if query.chars().count() > MOST_QUERY_CHARS {
            checks.violation("query", "too_long", wording::at_most(MOST_QUERY_CHARS, Unit::Characters));
        }
        checks.finish()?;
        let source = self.find(caller, id).await?;
        let remaining = source.daily_budget.saturating_sub(self.used_today(&source).await?);
        let notes = match source.mode {
            SourceMode::Indexed => {
                ("not_searched", "search_context with sourceIds searches what is retained of this source")
            }
            SourceMode::Catalog | SourceMode::Live => (
                "provider_unavailable",
                "the provider's own search is not asked yet: fetch a document by its externalId",
            ),
        };
        Ok(Answer { notes: vec![notes], used: 0, remaining })
    }
}
