//! The filters of searches, lookups and writes.

use std::collections::HashSet;

use qdrant_client::qdrant::{Condition, Filter, Range};
use uuid::Uuid;

use super::points::{
    CONTAINER, DOCUMENT, FORMS, Head, MARK, MEANING, ORDINAL, PIECES, POSITION, REVISION, ROLE, Role, TOKENS,
    WORKSPACE, chunk_point, mark_point, point_id,
};
use super::words;
use crate::ChunkId;
use crate::words::Phrase;

/// In the workspace.
pub(super) fn workspace(workspace: Uuid) -> Condition {
    Condition::matches(WORKSPACE, text_of(workspace))
}

pub(super) fn role(role: Role) -> Condition {
    Condition::matches(ROLE, role.as_str().to_owned())
}

pub(super) fn document(document: Uuid) -> Condition {
    Condition::matches(DOCUMENT, text_of(document))
}

fn any_of(field: &str, ids: impl Iterator<Item = Uuid>) -> Condition {
    Condition::matches(field, ids.map(text_of).collect::<Vec<String>>())
}

/// Of one of these documents.
pub(super) fn documents(mut documents: Vec<Uuid>) -> Condition {
    documents.sort_unstable();
    any_of(DOCUMENT, documents.into_iter())
}

/// Of one of these documents, if a search is restricted to some.
pub(super) fn in_documents(documents: Option<&HashSet<Uuid>>) -> Option<Condition> {
    documents.map(|some| self::documents(some.iter().copied().collect()))
}

/// Of none of these documents.
pub(super) fn not_in_documents(documents: &[Uuid]) -> Option<Condition> {
    (!documents.is_empty()).then(|| self::documents(documents.to_vec()))
}

/// The chunk contains a word in this form.
pub(super) fn has_form(form: &str) -> Condition {
    holds_row(form)
}

/// The chunk has a vector.
pub(super) fn has_meaning() -> Condition {
    Condition::has_vector(MEANING)
}

/// The chunk's vector is composed of this piece, among others.
pub(super) fn has_piece(piece: u16) -> Condition {
    Condition::matches(PIECES, i64::from(piece))
}

/// The chunk contains a word with this prefix; of a long prefix only the indexed length is matched.
pub(super) fn has_beginning(beginning: &str) -> Condition {
    Condition::matches_text(FORMS, beginning)
}

/// What a search may find: chunks of the workspace, in the containers if given, with all phrases and without the exclusions.
pub(super) fn search(
    in_workspace: Uuid,
    containers: Option<&HashSet<Uuid>>,
    phrases: &[Phrase],
    excluded: &[Phrase],
) -> Filter {
    let mut must = vec![workspace(in_workspace)];
    if let Some(containers) = containers {
        // Sorted, so that equal searches send equal requests.
        let mut containers: Vec<Uuid> = containers.iter().copied().collect();
        containers.sort_unstable();
        must.push(any_of(CONTAINER, containers.into_iter()));
    }
    must.extend(phrases.iter().map(holds));
    Filter { must, must_not: excluded.iter().map(holds).collect(), ..Filter::default() }
}

/// The point with the collection's mark.
pub(super) fn is_mark() -> Condition {
    Condition::has_id([point_id(mark_point())])
}

/// These chunks.
pub(super) fn chunks(in_workspace: Uuid, chunks: &[ChunkId]) -> Condition {
    Condition::has_id(chunks.iter().map(|chunk| point_id(chunk_point(in_workspace, *chunk))))
}

/// The chunk contains one variant of the phrase.
fn holds(phrase: &Phrase) -> Condition {
    let mut rows: Vec<Condition> = words::rows(phrase).iter().map(|row| holds_row(row)).collect();
    match rows.pop() {
        Some(only) if rows.is_empty() => only,
        last => Filter::should(rows.into_iter().chain(last)).into(),
    }
}

/// The chunk contains these tokens in sequence. A single one is matched as a word, which reads no positions.
fn holds_row(tokens: &str) -> Condition {
    if tokens.contains(' ') {
        Condition::matches_phrase(TOKENS, tokens)
    } else {
        Condition::matches_text(TOKENS, tokens)
    }
}

/// Points that a write with this revision may replace.
pub(super) fn at_most(revision: u64) -> Filter {
    Filter::must([Condition::range(REVISION, Range { lte: Some(number(revision)), ..Range::default() })])
}

/// A cursor that a batch starting at `from` may advance to `to`: forward only, only without a gap, and only in the collection with this
/// mark.
pub(super) fn may_advance(from: u64, to: u64, mark: Uuid) -> Filter {
    let range = Range { gte: Some(number(from)), lt: Some(number(to)), ..Range::default() };
    // Cursors of earlier versions have no mark.
    let is_of_collection = Filter::should([has_mark(mark), Condition::is_empty(MARK)]);
    Filter::must([Condition::range(POSITION, range), is_of_collection.into()])
}

/// The point with this id, if it has this mark.
pub(super) fn point_with_mark(id: Uuid, mark: Uuid) -> Filter {
    Filter::must([Condition::has_id([point_id(id)]), has_mark(mark)])
}

fn has_mark(mark: Uuid) -> Condition {
    Condition::matches(MARK, text_of(mark))
}

/// Chunks of older revisions of the heads' documents, and those beyond the last ordinal; never chunks of a newer revision.
pub(super) fn stale_chunks(in_workspace: Uuid, heads: &[Head]) -> Filter {
    let left_over = heads.iter().map(|head| {
        let revision = number(head.revision);
        let not_newer = Range { lte: Some(revision), ..Range::default() };
        let older = Range { lt: Some(revision), ..Range::default() };
        let beyond = Range { gte: Some(f64::from(head.chunks)), ..Range::default() };
        Condition::from(Filter {
            must: vec![document(head.document), Condition::range(REVISION, not_newer)],
            should: vec![Condition::range(REVISION, older), Condition::range(ORDINAL, beyond)],
            ..Filter::default()
        })
    });
    Filter {
        must: vec![
            workspace(in_workspace),
            role(Role::Chunk),
            any_of(DOCUMENT, heads.iter().map(|head| head.document)),
        ],
        should: left_over.collect(),
        ..Filter::default()
    }
}

/// Exact: positions count up from 1 and stay far below 2⁵³.
fn number(position: u64) -> f64 {
    position as f64
}

fn text_of(id: Uuid) -> String {
    id.hyphenated().to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use uuid::Uuid;

    use super::{at_most, may_advance, search, stale_chunks};
    use crate::qdrant::engine::points::Head;
    use crate::words::Phrase;

    /// Renders a filter for assertions.
    fn shown(filter: &qdrant_client::qdrant::Filter) -> String {
        format!("{filter:?}")
    }

    fn phrase(words: &[&str]) -> Phrase {
        let row = (0..).zip(words).map(|(place, word)| (place, (*word).to_owned()));
        Phrase { rows: vec![row.collect()] }
    }

    #[test]
    fn a_search_stays_in_its_workspace_and_containers() {
        let workspace = Uuid::from_u128(1);
        let open = search(workspace, None, &[], &[]);
        assert_eq!((open.must.len(), open.must_not.len(), open.should.len()), (1, 0, 0));
        assert!(shown(&open).contains(&workspace.to_string()));
        let containers = HashSet::from([Uuid::from_u128(12), Uuid::from_u128(11)]);
        let ask =
            || search(workspace, Some(&containers), &[phrase(&["rate", "limit"])], &[phrase(&["draft"])]);
        let bound = ask();
        assert_eq!((bound.must.len(), bound.must_not.len()), (3, 1));
        assert_eq!(bound, ask());
        let text = shown(&bound);
        assert!(text.contains("Phrase(\"rate limit\")") && text.contains("Text(\"draft\")"), "{text}");
    }

    #[test]
    fn a_phrase_is_any_of_its_rows_and_a_row_of_one_is_a_word() {
        let mut both = phrase(&["get", "user"]);
        both.rows.push(vec![(0, "getuser".to_owned())]);
        let filter = search(Uuid::nil(), None, &[], &[both, phrase(&["c"])]);
        assert_eq!((filter.must.len(), filter.must_not.len()), (1, 2));
        let text = shown(&filter);
        for part in ["Phrase(\"get user\")", "Text(\"getuser\")", "Text(\"c\")"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_write_replaces_no_newer_revision_and_moves_no_cursor_back() {
        assert!(shown(&at_most(7)).contains("lte: Some(7.0)"));
        let moved = shown(&may_advance(3, 7, Uuid::from_u128(9)));
        assert!(moved.contains("gte: Some(3.0)") && moved.contains("lt: Some(7.0)"), "{moved}");
        assert!(moved.contains(&Uuid::from_u128(9).to_string()), "{moved}");
    }

    #[test]
    fn debris_is_older_or_beyond_the_last_chunk_and_never_newer() {
        let head = Head { document: Uuid::from_u128(1), revision: 7, chunks: 2 };
        let filter = stale_chunks(Uuid::nil(), &[head]);
        assert_eq!((filter.must.len(), filter.should.len()), (3, 1));
        let text = shown(&filter);
        for part in ["lte: Some(7.0)", "lt: Some(7.0)", "gte: Some(2.0)"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
