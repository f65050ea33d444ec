//! The moment as of which something is asked for, as each service takes it.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::{Problem, Violation};
use cairn_proto::content::v1::get_past_file_request::When;
use cairn_proto::content::v1::{batch_get_files_request, resolve_memory_request};
use cairn_proto::retrieval::v1::{execute_script_request, search_context_request};

use super::changes::Place;

/// When a file, a memory or the whole workspace is wanted as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PastMoment(When);

impl PastMoment {
    /// What `asOf` and `hash` of a request name; `None` for what is now. An `asOf` is a time (RFC 3339), or a change token of the
    /// workspace's own content.
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
                let moment = match text.parse::<Place>() {
                    Ok(place) => place.of_content().map(When::AfterChange),
                    Err(_) => Timestamp::parse_rfc3339(text).map(|time| When::AsOf(time.to_proto())),
                };
                moment.map(|when| Some(Self(when))).ok_or_else(|| wrong("asOf", "invalid", message))
            }
        }
    }

    /// As a file is asked for.
    pub(crate) fn of_file(self) -> When {
        self.0
    }

    /// As memories are asked for; a memory has no content of its own that a hash could name.
    pub(crate) fn of_memory(self) -> Option<resolve_memory_request::When> {
        match self.0 {
            When::AsOf(time) => Some(resolve_memory_request::When::AsOf(time)),
            When::AfterChange(position) => Some(resolve_memory_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }

    /// As several files are asked for; a hash names one content.
    pub(crate) fn of_files(self) -> Option<batch_get_files_request::When> {
        match self.0 {
            When::AsOf(time) => Some(batch_get_files_request::When::AsOf(time)),
            When::AfterChange(position) => Some(batch_get_files_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }

    /// As searches are asked for; what is looked for has no content yet that a hash could name.
    pub(crate) fn of_search(self) -> Option<search_context_request::When> {
        match self.0 {
            When::AsOf(time) => Some(search_context_request::When::AsOf(time)),
            When::AfterChange(position) => Some(search_context_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }

    /// As scripts are asked for; a tree has no content that a hash could name.
    pub(crate) fn of_script(self) -> Option<execute_script_request::When> {
        match self.0 {
            When::AsOf(time) => Some(execute_script_request::When::AsOf(time)),
            When::AfterChange(position) => Some(execute_script_request::When::AfterChange(position)),
            When::ContentHash(_) => None,
        }
    }
}
