//! Turns confirmed chunks, best first, into the results of an answer: copies are collapsed, neighbours are merged, and limit, minimal
//! score and token budget are applied.
//!
//! Chunks are processed in order; each joins an existing result or becomes a new one, and the first that would exceed the limit
//! closes the page. So the page depends only on the chunks, and not on how many of them were read.

use cairn_index::StoredChunk;

use super::evidence::Evidence;
use super::request::{Detail, SearchRequest};
use super::tuning::{BYTES_PER_TOKEN, MAX_MERGED_BYTES};

/// One result: a chunk, or neighbouring chunks of one document.
#[derive(Debug)]
pub(super) struct Passage<'a> {
    /// Consecutive, in document order; never empty.
    parts: Vec<&'a Evidence>,
    /// The one with the best score.
    pub(super) best: &'a Evidence,
    /// Near-duplicates of the parts, best first.
    pub(super) copies: Vec<&'a Evidence>,
    /// Other chunks of the document, where each document is one result; best first.
    pub(super) others: Vec<&'a Evidence>,
}

impl<'a> Passage<'a> {
    fn new(evidence: &'a Evidence) -> Self {
        Self { parts: vec![evidence], best: evidence, copies: Vec::new(), others: Vec::new() }
    }

    fn first(&self) -> &'a Evidence {
        self.parts.first().copied().unwrap_or(self.best)
    }

    fn last(&self) -> &'a Evidence {
        self.parts.last().copied().unwrap_or(self.best)
    }

    /// The chunks that it is made of, in the order of the document.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &'a StoredChunk> {
        self.parts.iter().map(|part| &part.chunk)
    }

    /// The path of its document.
    pub(super) fn path(&self) -> &'a str {
        &self.best.document.path
    }

    /// The lines verbatim, without the last line break.
    pub(super) fn content(&self) -> String {
        let before = self.parts.iter().take(self.parts.len().saturating_sub(1));
        let mut content: String = before.map(|part| part.chunk.text.as_str()).collect();
        content.push_str(self.last().lines());
        content
    }

    /// The header of the table, when the content begins in the middle of one; else empty.
    pub(super) fn table_header(&self) -> &'a str {
        &self.first().chunk.table_header
    }

    /// Bytes of header and content.
    fn length(&self) -> usize {
        let last = self.last();
        let stored: usize = self.parts.iter().map(|part| part.chunk.text.len()).sum();
        self.table_header().len() + stored - last.chunk.text.len() + last.lines().len()
    }

    pub(super) fn start_line(&self) -> u32 {
        self.first().chunk.start_line
    }

    pub(super) fn end_line(&self) -> u32 {
        self.last().chunk.end_line
    }

    /// The headings that all parts stand under.
    pub(super) fn heading_path(&self) -> Vec<String> {
        let mut common = self.first().chunk.heading_path.clone();
        for part in &self.parts {
            let path = &part.chunk.heading_path;
            let shared = common.iter().zip(path).take_while(|(one, other)| one == other).count();
            common.truncate(shared);
        }
        common
    }

    fn says_the_same_as(&self, evidence: &Evidence) -> bool {
        self.parts.iter().any(|part| part.says_the_same_as(evidence))
    }

    /// Whether the other one begins on the line after this one's last.
    fn is_followed_by(&self, other: &Self) -> bool {
        let (last, next) = (&self.last().chunk, &other.first().chunk);
        let lines_between = next.start_line.saturating_sub(last.start_line);
        last.id.document == next.id.document
            && last.id.ordinal.checked_add(1) == Some(next.id.ordinal)
            // Both are whole lines, and the text between them is stored with the first.
            && last.text.ends_with('\n')
            && next.text.ends_with('\n')
            && u32::try_from(last.text.matches('\n').count()) == Ok(lines_between)
    }

    /// Merges both, when they are neighbours and together not too long.
    fn with(&self, other: &Self) -> Option<Self> {
        let (before, after) = match (self.is_followed_by(other), other.is_followed_by(self)) {
            (true, _) => (self, other),
            (_, true) => (other, self),
            (false, false) => return None,
        };
        let parts = before.parts.iter().chain(&after.parts).copied().collect();
        let copies = self.copies.iter().chain(&other.copies).copied().collect();
        let others = self.others.iter().chain(&other.others).copied().collect();
        let merged = Self { parts, best: self.best, copies, others };
        (merged.length() <= MAX_MERGED_BYTES).then_some(merged)
    }
}

/// The token budget in bytes.
pub(super) fn budget(request: &SearchRequest) -> Option<usize> {
    request.token_budget.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN))
}

/// The results of an answer, best first.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) passages: Vec<Passage<'a>>,
    limit: usize,
    bytes_left: Option<usize>,
    by_document: bool,
    /// Results that did not fit the token budget.
    pub(super) over_budget: usize,
    /// The score of the chunk that exceeded the limit.
    pub(super) closed_at: Option<f64>,
}

impl<'a> Page<'a> {
    /// The page of these chunks, which come best first.
    pub(super) fn of(evidence: &'a [Evidence], request: &SearchRequest) -> Self {
        // Excerpts of lines are measured when they are cut.
        let bytes_left = match request.detail {
            Detail::Lines => None,
            Detail::Passages | Detail::Documents => budget(request),
        };
        let mut page = Self {
            passages: Vec::new(),
            limit: request.limit,
            bytes_left,
            by_document: request.detail == Detail::Documents,
            over_budget: 0,
            closed_at: None,
        };
        for one in evidence.iter().take_while(|one| one.score() >= request.min_score) {
            if !page.take(one) {
                page.closed_at = Some(one.score());
                break;
            }
        }
        page
    }

    /// Adds a chunk; `false` when it would exceed the limit.
    fn take(&mut self, evidence: &'a Evidence) -> bool {
        if let Some(same) = self.passages.iter_mut().find(|passage| passage.says_the_same_as(evidence)) {
            same.copies.push(evidence);
            return true;
        }
        let passage = Passage::new(evidence);
        if self.merge(&passage) {
            return true;
        }
        let document = evidence.chunk.id.document;
        let of_document = |passage: &&mut Passage<'_>| passage.best.chunk.id.document == document;
        if self.by_document
            && let Some(same) = self.passages.iter_mut().find(of_document)
        {
            same.others.push(evidence);
            return true;
        }
        if self.passages.len() + self.over_budget >= self.limit {
            return false;
        }
        // Whole passages, best first: a smaller one behind one that does not fit may still fit.
        if self.spend(passage.length(), 0) {
            self.passages.push(passage);
        } else {
            self.over_budget += 1;
        }
        true
    }

    /// Merges it into a neighbour, and then that with its other neighbour.
    fn merge(&mut self, passage: &Passage<'a>) -> bool {
        let Some((place, merged)) = self.merged_with(passage, None) else { return false };
        let before = self.passages.get(place).map_or(0, Passage::length);
        if !self.spend(merged.length(), before) {
            return false;
        }
        self.replace(place, merged);
        self.merge_adjacent(place);
        true
    }

    /// The passage at that index may now be adjacent to another one: merges them.
    fn merge_adjacent(&mut self, place: usize) {
        let Some(grown) = self.passages.get(place) else { return };
        let Some((other, merged)) = self.merged_with(grown, Some(place)) else { return };
        let before = [place, other].iter().filter_map(|at| self.passages.get(*at)).map(Passage::length).sum();
        let (kept, dropped) = (place.min(other), place.max(other));
        // The merged passage has the place and the score of the better one.
        let Some(best) = self.passages.get(kept).map(|passage| passage.best) else { return };
        if self.spend(merged.length(), before) {
            self.replace(kept, Passage { best, ..merged });
            self.passages.remove(dropped);
        }
    }

    /// The index of the first neighbour, and both merged with that one's score.
    fn merged_with(&self, passage: &Passage<'a>, besides: Option<usize>) -> Option<(usize, Passage<'a>)> {
        let others = self.passages.iter().enumerate().filter(|(place, _)| Some(*place) != besides);
        others.filter_map(|(place, other)| Some((place, other.with(passage)?))).next()
    }

    fn replace(&mut self, place: usize, passage: Passage<'a>) {
        if let Some(old) = self.passages.get_mut(place) {
            *old = passage;
        }
    }

    /// Spends bytes of the budget, minus those of a replaced passage; `false` when they do not fit.
    fn spend(&mut self, bytes: usize, replaced: usize) -> bool {
        let Some(left) = self.bytes_left else { return true };
        match (left + replaced).checked_sub(bytes) {
            Some(left) => {
                self.bytes_left = Some(left);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
