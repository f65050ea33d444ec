//! The filters of a search besides the caller's scope; the owners resolve them to documents.

use cairn_chassis::clock::Timestamp;
use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::document::v1::SelectDocumentsRequest;
use cairn_proto::domain::Feed;
use cairn_proto::domain::limits::{KINDS, TAGS};
use cairn_proto::feed::v1::Kind;
use cairn_proto::retrieval::v1::SearchContextRequest;

use crate::kinds;

/// The kinds of documents with a known past.
const PAST_KINDS: [Kind; 3] = [Kind::File, Kind::Record, Kind::Memory];

/// A document must match all filters.
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
    /// The filters of a request.
    pub(super) fn of(request: &SearchContextRequest) -> Self {
        Self {
            folder_id: request.folder_id.clone(),
            tags: request.tags.clone(),
            kinds: request.kinds.clone(),
            updated_after: request.updated_after,
            updated_before: request.updated_before,
        }
    }

    /// The same among what is known as it was.
    pub(super) fn of_past(self) -> Self {
        let is_asked = |kind: &Kind| self.kinds.is_empty() || self.kinds.contains(&i32::from(*kind));
        let kinds: Vec<i32> = PAST_KINDS.into_iter().filter(is_asked).map(i32::from).collect();
        Self { kinds, ..self }
    }

    /// Whether documents of that kind may match.
    pub(super) fn may_name(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind.into())
    }

    /// Whether there is no filter.
    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether documents of that feed's owner may match.
    pub(super) fn may_name_documents_of(&self, feed: Feed) -> bool {
        let is_of = |kind: &i32| Kind::try_from(*kind).is_ok_and(|kind| kinds::feed_of(kind) == feed);
        let is_kind = self.kinds.is_empty() || self.kinds.iter().any(is_of);
        match feed {
            // It knows whether there is such a folder, and whether the caller may see it.
            Feed::Content => is_kind || self.folder_id.is_some(),
            // Nothing from outside stands in a folder or bears tags.
            Feed::Ingest => is_kind && self.folder_id.is_none() && self.tags.is_empty(),
        }
    }

    /// Whether documents of connected sources may match.
    pub(super) fn may_name_source_documents(&self) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&Kind::SourceDocument.into());
        is_kind && self.may_name_documents_of(Feed::Ingest)
    }

    /// Whether a document that changed at that time matches.
    pub(super) fn includes_time(&self, updated_at: Timestamp) -> bool {
        let bound = |time: &Option<prost_types::Timestamp>| time.as_ref().map(Timestamp::from_proto);
        bound(&self.updated_after).is_none_or(|after| updated_at > after)
            && bound(&self.updated_before).is_none_or(|before| updated_at < before)
    }

    /// The violations of a request; folders and tags are validated by their owner.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_asked_for_what_they_may_have() {
        let asked = |narrowing: Narrowing| {
            [Feed::Content, Feed::Ingest].map(|feed| narrowing.may_name_documents_of(feed))
        };
        let of_kinds = |kinds: &[Kind]| Narrowing {
            kinds: kinds.iter().map(|kind| i32::from(*kind)).collect(),
            ..Narrowing::default()
        };
        let after = Some(prost_types::Timestamp::default());
        assert_eq!(asked(Narrowing { updated_after: after, ..Narrowing::default() }), [true, true]);
        assert_eq!(asked(of_kinds(&[Kind::File, Kind::Record])), [true, false]);
        assert_eq!(asked(of_kinds(&[Kind::Ingested])), [false, true]);
        assert_eq!(asked(of_kinds(&[Kind::SourceDocument, Kind::Memory])), [true, true]);
        let tags = vec!["a".to_owned()];
        assert_eq!(asked(Narrowing { tags, ..Narrowing::default() }), [true, false]);
        let folder_id = Some(String::new());
        assert_eq!(asked(Narrowing { folder_id, ..of_kinds(&[Kind::Ingested]) }), [true, false]);
    }

    #[test]
    fn documents_of_sources_are_of_a_kind_and_a_time() {
        let of_kinds = |kinds: &[Kind]| Narrowing {
            kinds: kinds.iter().map(|kind| i32::from(*kind)).collect(),
            ..Narrowing::default()
        };
        assert!(of_kinds(&[]).may_name_source_documents());
        assert!(of_kinds(&[Kind::File, Kind::SourceDocument]).may_name_source_documents());
        assert!(!of_kinds(&[Kind::File, Kind::Ingested]).may_name_source_documents());
        let tagged = Narrowing { tags: vec!["a".to_owned()], ..Narrowing::default() };
        assert!(!tagged.may_name_source_documents());

        let at = |seconds| Timestamp::from_seconds(seconds);
        let updated_after = Some(at(10).to_proto());
        let updated_before = Some(at(20).to_proto());
        let narrowing = Narrowing { updated_after, updated_before, ..Narrowing::default() };
        let included = [10, 11, 19, 20].map(|seconds| narrowing.includes_time(at(seconds)));
        assert_eq!(included, [false, true, true, false]);
        assert!(Narrowing::default().includes_time(at(0)));
    }
}
