//! Validates questions, and resolves their sources and documents.

use std::collections::BTreeMap;
use std::str::FromStr;

use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{DocumentId, SourceId, WorkspaceId};
use cairn_providers::{Entry, ExternalId};

use super::Live;
use crate::checks::Checks;
use crate::model::{Retention, Source, SourceView, StoredDocument};
use crate::runs::entry_of;
use crate::{Error, store};

const MAX_QUERY_CHARS: usize = 10_000;
const MAX_SOURCES: usize = 50;
/// Catalog documents of one question (spec 4.4: a few).
const MAX_DOCUMENTS: usize = 3;

/// A validated question.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) query: String,
    sources: Vec<SourceId>,
    documents: Vec<DocumentId>,
}

/// A source of the question.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) source: Source,
    pub(super) selection: Selection,
}

/// What a question reads from a source.
#[derive(Debug)]
pub(super) enum Selection {
    /// The hits of its own search.
    Search,
    /// These entries of its catalog.
    Entries(Vec<CatalogEntry>),
}

/// A catalog entry whose body is requested.
#[derive(Debug)]
pub(super) struct CatalogEntry {
    pub(super) id: DocumentId,
    /// Starting with `/sources`.
    pub(super) path: String,
    pub(super) entry: Entry,
    /// The index in the question.
    place: usize,
}

impl Question {
    pub(super) fn check(query: String, sources: &[String], documents: &[String]) -> Result<Self, Error> {
        let mut checks = Checks::default();
        if query.trim().is_empty() && !sources.is_empty() {
            checks.violation("query", "required", "say what to look for");
        } else if query.chars().count() > MAX_QUERY_CHARS {
            checks.violation("query", "too_long", wording::at_most(MAX_QUERY_CHARS, Unit::Characters));
        }
        let sources = ids(&mut checks, "sourceIds", sources, MAX_SOURCES);
        let documents = ids(&mut checks, "documentIds", documents, MAX_DOCUMENTS);
        checks.finish()?;
        Ok(Self { query, sources, documents })
    }
}

/// Parses ids, without duplicates.
fn ids<T: FromStr + PartialEq>(checks: &mut Checks, path: &str, texts: &[String], most: usize) -> Vec<T> {
    if texts.len() > most {
        checks.violation(path, "too_many", wording::at_most(most, Unit::Entries));
    }
    let mut ids = Vec::new();
    for (place, text) in texts.iter().take(most).enumerate() {
        match text.parse() {
            Ok(id) if ids.contains(&id) => {}
            Ok(id) => ids.push(id),
            Err(_) => checks.violation(&format!("{path}[{place}]"), "invalid_id", "must be a UUID"),
        }
    }
    ids
}

impl Live {
    /// The targets of a question: first the sources of catalog entries, then live ones, in the question's order. Sources that are gone or
    /// have another mode by now are left out.
    pub(super) async fn targets(
        &self,
        workspace: WorkspaceId,
        question: &Question,
    ) -> Result<Vec<Target>, Error> {
        let mut sources = store::sources::list(&self.runner.context.db, workspace).await?;
        let mut targets = Vec::new();
        for (id, catalog_entries) in self.catalog_entries(workspace, &question.documents).await? {
            if let Some(source) = take(&mut sources, id, SourceMode::has_runs) {
                targets.push(Target { source, selection: Selection::Entries(catalog_entries) });
            }
        }
        targets.sort_by_key(|target| target.selection.place());
        for id in &question.sources {
            if let Some(source) = take(&mut sources, *id, |mode| mode == SourceMode::Live) {
                targets.push(Target { source, selection: Selection::Search });
            }
        }
        Ok(targets)
    }

    /// The requested catalog entries by source: documents of which only metadata is stored.
    async fn catalog_entries(
        &self,
        workspace: WorkspaceId,
        ids: &[DocumentId],
    ) -> Result<BTreeMap<SourceId, Vec<CatalogEntry>>, Error> {
        let mut catalog_entries = BTreeMap::<SourceId, Vec<CatalogEntry>>::new();
        if ids.is_empty() {
            return Ok(catalog_entries);
        }
        let db = &self.runner.context.db;
        let views: Vec<SourceView> = store::source_views::get_many(db, workspace, ids).await?;
        for view in views {
            let Ok(external_id) = ExternalId::new(view.external_id.clone()) else { continue };
            let known = store::source_documents::known(db, workspace, view.source, [&external_id]).await?;
            let known =
                known.into_iter().find(|known| known.id == view.id && known.kept == Retention::Metadata);
            let place = ids.iter().position(|id| *id == view.id);
            if let (Some(known), Some(place)) = (known, place) {
                let (source, catalog_entry) = (view.source, CatalogEntry::new(view, &known, place));
                catalog_entries.entry(source).or_default().push(catalog_entry);
            }
        }
        for catalog_entries in catalog_entries.values_mut() {
            catalog_entries.sort_by_key(|catalog_entry| catalog_entry.place);
        }
        Ok(catalog_entries)
    }
}

impl Selection {
    /// The index of its first entry in the question.
    fn place(&self) -> usize {
        match self {
            Self::Search => usize::MAX,
            Self::Entries(catalog_entries) => {
                catalog_entries.first().map_or(usize::MAX, |catalog_entry| catalog_entry.place)
            }
        }
    }
}

impl CatalogEntry {
    fn new(view: SourceView, known: &StoredDocument, place: usize) -> Self {
        Self { id: view.id, path: view.path, entry: entry_of(known), place }
    }
}

fn take(sources: &mut Vec<Source>, id: SourceId, is_of: fn(SourceMode) -> bool) -> Option<Source> {
    let place = sources.iter().position(|source| source.id == id && is_of(source.mode))?;
    Some(sources.swap_remove(place))
}
