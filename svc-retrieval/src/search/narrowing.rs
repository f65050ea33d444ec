//! What a search is narrowed to besides the caller's scope: the owners say which documents that are.

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::document::v1::SelectDocumentsRequest;
use cairn_proto::domain::limits::{KINDS, TAGS};
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::SearchContextRequest;

/// A document must meet all that is given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Narrowing {
    /// In this folder or below it.
    pub folder_id: Option<String>,
    /// Files that bear all of these.
    pub tags: Vec<String>,
    /// Of one of these kinds; none: of any.
    pub kinds: Vec<i32>,
    /// Changed after this time.
    pub updated_after: Option<prost_types::Timestamp>,
    /// Changed before this time.
    pub updated_before: Option<prost_types::Timestamp>,
}

impl Narrowing {
    /// What a request says of it.
    pub(super) fn of(request: &SearchContextRequest) -> Self {
        Self {
            folder_id: request.folder_id.clone(),
            tags: request.tags.clone(),
            kinds: request.kinds.clone(),
            updated_after: request.updated_after,
            updated_before: request.updated_before,
        }
    }

    /// Whether everything may be found.
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// What of it breaks rules; what a folder and a tag are, their owner knows.
    pub(super) fn violations(request: &SearchContextRequest) -> Vec<Violation> {
        let mut violations = Vec::new();
        if request.tags.len() > TAGS {
            let message = wording::at_most(TAGS, Unit::Tags);
            violations.push(Violation::new("tags", "too_many", message));
        }
        if request.kinds.len() > KINDS {
            let message = wording::at_most(KINDS, Unit::Entries);
            violations.push(Violation::new("kinds", "too_many", message));
        }
        let is_known = |kind: &i32| Kind::try_from(*kind).is_ok_and(|kind| kind != Kind::Unspecified);
        for (place, _) in request.kinds.iter().enumerate().filter(|(_, kind)| !is_known(kind)) {
            violations.push(Violation::new(format!("kinds[{place}]"), "invalid", "is no kind of a document"));
        }
        violations
    }
}

impl From<Narrowing> for SelectDocumentsRequest {
    fn from(narrowing: Narrowing) -> Self {
        Self {
            folder_id: narrowing.folder_id,
            tags: narrowing.tags,
            kinds: narrowing.kinds,
            updated_after: narrowing.updated_after,
            updated_before: narrowing.updated_before,
            source_ids: Vec::new(),
        }
    }
}
