//! A batch: what a run has found out and not written yet.

use cairn_proto::ids::DocumentId;

use super::document::{Counted, Step};
use crate::model::{Body, Counters, StoredDocument, Warning};

/// Texts of one transaction, which bounds how many are fetched again after a crash.
const MAX_TEXTS: usize = 16;
const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;
/// Documents of one transaction.
const MAX_STEPS: usize = 500;

/// The write of one document.
#[derive(Debug)]
pub(super) struct Write {
    pub(super) before: Option<StoredDocument>,
    pub(super) step: Step,
    /// A new text.
    pub(super) body: Option<Body>,
}

/// The writes of one transaction.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) writes: Vec<Write>,
    /// Unchanged documents.
    pub(super) seen: Vec<DocumentId>,
    pub(super) counters: Counters,
    pub(super) warnings: Vec<Warning>,
    texts: usize,
    text_bytes: usize,
}

impl Batch {
    pub(super) fn add(&mut self, before: Option<StoredDocument>, step: Step, body: Option<Body>) {
        let counters = &mut self.counters;
        match step.counted {
            Counted::Unchanged => counters.unchanged += 1,
            Counted::Created => counters.created += 1,
            Counted::Updated => counters.updated += 1,
            Counted::Removed => counters.removed += 1,
            Counted::Failed => {
                counters.failed += 1;
                let fault = step.document.as_ref().and_then(|document| document.fault.as_ref());
                if let Some(fault) = fault {
                    self.warnings.push(Warning::new("item_failed", fault.message.clone()));
                }
            }
        }
        if let Some(body) = &body {
            self.texts += 1;
            self.text_bytes += body.data.len();
        }
        self.writes.push(Write { before, step, body });
    }

    /// Records that a listing has a document unchanged.
    pub(super) fn see(&mut self, id: DocumentId) {
        self.counters.listed += 1;
        self.counters.unchanged += 1;
        self.seen.push(id);
    }

    /// Splits off a batch for each document; the second value is the rest.
    pub(super) fn split(self) -> (Vec<Self>, Self) {
        let mut rest = Self { seen: self.seen, counters: self.counters, ..Self::default() };
        let mut each = Vec::with_capacity(self.writes.len());
        for Write { before, step, body } in self.writes {
            let mut one = Self::default();
            one.add(before, step, body);
            rest.counters.subtract(one.counters);
            each.push(one);
        }
        // Warnings about a document go with its batch.
        let per_document: Vec<&Warning> = each.iter().flat_map(|one| &one.warnings).collect();
        rest.warnings =
            self.warnings.iter().filter(|warning| !per_document.contains(warning)).cloned().collect();
        (each, rest)
    }

    pub(super) const fn is_full(&self) -> bool {
        self.texts >= MAX_TEXTS || self.text_bytes >= MAX_TEXT_BYTES || self.writes.len() >= MAX_STEPS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.seen.is_empty() && self.counters == Counters::default()
    }

    /// By how much the number of visible documents grows.
    pub(super) fn growth(&self) -> i64 {
        let visible =
            |known: Option<&StoredDocument>| i64::from(known.is_some_and(|known| known.kept.is_visible()));
        self.writes
            .iter()
            .map(|write| visible(write.step.document.as_ref()) - visible(write.before.as_ref()))
            .sum()
    }

    /// Hashes of texts that documents no longer refer to.
    pub(super) fn left(&self) -> Vec<String> {
        let hash =
            |known: &StoredDocument| known.retained.as_ref().map(|retained| retained.content_hash.clone());
        let left = self.writes.iter().filter_map(|write| {
            let before = write.before.as_ref().and_then(hash)?;
            let after = write.step.document.as_ref().and_then(hash);
            (after.as_ref() != Some(&before)).then_some(before)
        });
        left.collect()
    }
}
