//! Documents of sources: listing them, and reading one.

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::SourceMode;
use cairn_proto::ids::{DocumentId, SourceId};
use cairn_providers::{Entry, ExternalId, Version};

use super::{SOURCES, Sources, parse_id};
use crate::checks::titles_with;
use crate::live::live_path;
use crate::model::{
    DocumentStatus, IngestStatus, ListedDocument, LiveText, Page, PageRequest, Source, SourceView,
};
use crate::runs::entry_of;
use crate::scope::Caller;
use crate::store::source_views::Filter;
use crate::{Error, store};

/// A document with its full text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) title: String,
    pub(crate) content: String,
    pub(crate) external_id: String,
    pub(crate) path: String,
    pub(crate) url: Option<String>,
    /// Absent for documents of live sources, which are not stored.
    pub(crate) id: Option<String>,
    pub(crate) content_hash: String,
    pub(crate) updated_at: Option<cairn_chassis::clock::Timestamp>,
    pub(crate) is_live: bool,
    pub(crate) used: u32,
    pub(crate) remaining: u32,
}

/// Document counts by status, without zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusCounts {
    pub(crate) ingested: Vec<(IngestStatus, u64)>,
    pub(crate) of_sources: Vec<(DocumentStatus, u64)>,
}

/// A document with everything that is stored of it.
#[derive(Debug, Clone)]
pub(crate) struct DocumentDetails {
    pub(crate) document: ListedDocument,
    pub(crate) source: Source,
    /// Absent for documents that only lists of failures show.
    pub(crate) view: Option<SourceView>,
    /// Absent if no text is stored.
    pub(crate) text: Option<String>,
}

impl Sources {
    /// A document by its id, from storage alone.
    pub(crate) async fn get_document(&self, caller: &Caller, id: &str) -> Result<DocumentDetails, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let (db, workspace) = (self.db(), caller.workspace);
        let no_document = || Error::NoDocumentHere(id.to_owned());
        let parsed: DocumentId = id.parse().map_err(|_| no_document())?;
        let found = store::source_views::one(db, workspace, parsed).await?;
        let document = found.ok_or_else(no_document)?;
        let source = store::sources::get(db, workspace, document.source).await?;
        let source = source.ok_or_else(no_document)?;
        let view = store::source_views::get_many(db, workspace, &[parsed]).await?.pop();
        let text = match view.as_ref().and_then(|view| view.content_hash.as_deref()) {
            Some(hash) => {
                let bodies = store::bodies::get_many(db, workspace, &[hash]).await?;
                bodies.into_iter().next().map(|body| body.into_text()).transpose()?
            }
            None => None,
        };
        Ok(DocumentDetails { document, source, view, text })
    }

    /// Counts ingested documents and those of sources by status.
    pub(crate) async fn count_documents(&self, caller: &Caller) -> Result<StatusCounts, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let db = self.db();
        let _turn = db.read_permit(caller.workspace).await?;
        Ok(StatusCounts {
            ingested: store::ingest::count_by_status(db, caller.workspace).await?,
            of_sources: store::source_views::count_by_status(db, caller.workspace).await?,
        })
    }

    /// A page of documents by title, of one source or of all.
    pub(crate) async fn list_documents(
        &self,
        caller: &Caller,
        source: Option<&str>,
        status: Option<&str>,
        title: &str,
        request: PageRequest,
    ) -> Result<Page<ListedDocument>, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let source: Option<SourceId> = match source {
            None => None,
            Some(id) => Some(self.find(caller, id).await?.id),
        };
        let titles = titles_with(title)?;
        let filter = Filter { source, status: status.map(parse_status).transpose()?, titles: &titles };
        let after = request.after.as_ref().map_or(("", ""), |after| (&after.name, &after.id));
        let found =
            store::source_views::page(self.db(), caller.workspace, filter, after, request.fetch()).await?;
        let total = match request.known_total(found.len()) {
            Some(total) => total,
            None => store::source_views::count(self.db(), caller.workspace, filter).await?,
        };
        Ok(request.page(found, total, |item| (item.title.clone(), item.id.to_string())))
    }

    /// A document from storage if its text is stored, else from the provider within the daily budget.
    pub(crate) async fn fetch(&self, caller: &Caller, source: &str, id: &str) -> Result<Fetched, Error> {
        caller.require_whole_workspace(SOURCES)?;
        let external_id = check_fetch(source, id)?;
        let source = self.find(caller, source).await?;
        let found = store::source_views::find(self.db(), source.workspace, source.id, id).await?;
        match (source.mode, found) {
            (SourceMode::Indexed, Some(view)) if view.content_hash.is_some() => {
                self.kept(&source, view).await
            }
            // After a switch from catalog mode, documents that no run has read yet have no stored text.
            (SourceMode::Indexed | SourceMode::Catalog, Some(view)) => {
                self.live(&source, &external_id, Some(view)).await
            }
            (SourceMode::Live, _) => self.live(&source, &external_id, None).await,
            (SourceMode::Indexed | SourceMode::Catalog, None) => Err(Error::NoSourceDocument(id.to_owned())),
        }
    }

    async fn kept(&self, source: &Source, view: SourceView) -> Result<Fetched, Error> {
        let no_document = || Error::NoSourceDocument(view.external_id.clone());
        let hash = view.content_hash.clone().ok_or_else(no_document)?;
        let bodies = store::bodies::get_many(self.db(), source.workspace, &[hash.as_str()]).await?;
        let body = bodies.into_iter().next().ok_or_else(no_document)?;
        let used = self.used_today(source).await?;
        Ok(Fetched {
            content: body.into_text()?,
            title: view.title,
            external_id: view.external_id,
            path: view.path,
            url: view.url,
            id: Some(view.id.to_string()),
            content_hash: hash,
            updated_at: Some(view.updated_at),
            is_live: false,
            used: 0,
            remaining: source.daily_budget.saturating_sub(used),
        })
    }

    /// Fetches a document from the provider without storing it.
    async fn live(
        &self,
        source: &Source,
        id: &ExternalId,
        view: Option<SourceView>,
    ) -> Result<Fetched, Error> {
        let known = match &view {
            Some(_) => store::source_documents::known(self.db(), source.workspace, source.id, [id]).await?,
            None => Vec::new(),
        };
        let unknown = || Entry::new(id.clone(), Version::unknown(), "");
        let entry = known.first().map_or_else(unknown, entry_of);
        let (text, asked) = self.live.fetch(source, &entry).await?;
        let used = self.used_today(source).await?;
        let path = view.as_ref().map_or_else(|| live_path(source, &text), |view| view.path.clone());
        let LiveText { metadata, content, content_hash, format: _ } = text;
        Ok(Fetched {
            title: metadata.title,
            content_hash,
            content,
            external_id: id.to_string(),
            path,
            url: metadata.url,
            id: view.map(|view| view.id.to_string()),
            updated_at: metadata.updated_at,
            is_live: true,
            used: asked,
            remaining: source.daily_budget.saturating_sub(used),
        })
    }
}

fn check_fetch(source: &str, id: &str) -> Result<ExternalId, Error> {
    let is_source = parse_id::<SourceId>(source);
    let external_id = ExternalId::new(id).map_err(|_| {
        if id.trim().is_empty() {
            return Violation::new("externalId", "required", "give the provider's id of the document");
        }
        let message = wording::at_most(ExternalId::MAX_BYTES, Unit::Bytes);
        Violation::new("externalId", "invalid", format!("{message}, and {}", wording::NO_NUL))
    });
    match (is_source, external_id) {
        (Ok(_), Ok(id)) => Ok(id),
        (Err(Error::Invalid(mut violations)), Err(more)) => {
            violations.push(more);
            Err(Error::Invalid(violations))
        }
        (Err(error), _) => Err(error),
        (Ok(_), Err(violation)) => Err(Error::Invalid(vec![violation])),
    }
}

fn parse_status(text: &str) -> Result<DocumentStatus, Error> {
    let found = DocumentStatus::ALL.into_iter().find(|status| status.as_str() == text);
    found.ok_or_else(|| {
        let names = DocumentStatus::ALL.map(DocumentStatus::as_str);
        Error::invalid("status", "invalid_value", wording::one_of(&names))
    })
}
