//! A past moment (`asOf` or `hash`), in the form each service takes it.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1::get_past_file_request::When;
use cairn_proto::content::v1::{batch_get_files_request, resolve_memory_request};
use cairn_proto::retrieval::v1::{execute_script_request, search_context_request};

use super::changes::Cursor;

/// A past state of a file, a memory or the whole workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PastMoment(When);

impl PastMoment {
    /// Parses `asOf` and `hash`; `None` means now. `asOf` is a time (RFC 3339), or a change token of the content
    /// feed.
    pub(crate) fn read(as_of: Option<&str>, hash: Option<&str>) -> Result<Option<Self>, Problem> {
        let wrong = |path: &str, code: &str, message: &str| {
            Problem::validation(vec![Violation::new(path, code, message)])
        };
        match (as_of, hash) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(wrong("hash", "conflict", "give asOf or hash, not both")),
            (None, Some(hash)) => Ok(Some(Self(When::ContentHash(hash.to_owned())))),
            (Some(text), None) => {
                let message = "must be a time such as 2026-11-23T14:00:00Z (RFC 3339), or a change token of a write of \
                    files and records (it begins with `c`)";
                let moment = match text.parse::<Cursor>() {
                    Ok(place) => place.of_content().map(When::AfterChange),
                    Err(_) => Timestamp::parse_rfc3339(text).map(|time| When::AsOf(time.to_proto())),
                };
                moment.map(|when| Some(Self(when))).ok_or_else(|| wrong("asOf", "invalid", message))
            }
        }
    }

    /// For a file.
    pub(crate) fn of_file(self) -> When {
        self.0
    }

    /// For memories, which have no content hash.
    pub(crate) fn of_memory(self) -> Option<resolve_memory_request::When> {
        match self.0 {
            When::AsOf(time) => Some(resolve_memory_request::When::AsOf(time)),
            When::AfterChange(position) => Some(resolve_memory_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }

    /// For several files; a hash names only one content.
    pub(crate) fn of_files(self) -> Option<batch_get_files_request::When> {
        match self.0 {
            When::AsOf(time) => Some(batch_get_files_request::When::AsOf(time)),
            When::AfterChange(position) => Some(batch_get_files_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }

    /// For searches, which have no content hash.
    pub(crate) fn of_search(self) -> Option<search_context_request::When> {
        match self.0 {
            When::AsOf(time) => Some(search_context_request::When::AsOf(time)),
            When::AfterChange(position) => Some(search_context_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }

    /// For scripts; a file tree has no content hash.
    pub(crate) fn of_script(self) -> Option<execute_script_request::When> {
        match self.0 {
            When::AsOf(time) => Some(execute_script_request::When::AsOf(time)),
            When::AfterChange(position) => Some(execute_script_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }
}
