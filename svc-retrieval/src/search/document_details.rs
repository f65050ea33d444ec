//! The current titles and paths of documents.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::domain::page_of;
use cairn_proto::feed::v1::Kind;
use uuid::Uuid;

use super::{Searcher, confirm};
use crate::error::Error;

/// A document that exists and that the caller may see.
#[derive(Debug)]
pub(crate) struct DocumentDetails {
    pub(crate) title: String,
    pub(crate) path: String,
    /// The database of a record.
    pub(crate) database_id: Option<String>,
    /// Its page in the console.
    pub(crate) url: String,
    /// Absent where it is unknown.
    pub(crate) updated_at: Option<prost_types::Timestamp>,
}

impl Searcher {
    /// The details of those documents that exist and are in the caller's scope.
    pub(crate) async fn document_details(
        &self,
        call: &Call,
        documents: impl Iterator<Item = (Kind, Uuid)>,
    ) -> Result<HashMap<Uuid, DocumentDetails>, Error> {
        let kinds: HashMap<Uuid, Kind> = documents.map(|(kind, document)| (document, kind)).collect();
        let asked = kinds.iter().map(|(document, kind)| (*kind, *document));
        let confirmed = confirm::confirm_documents(&self.generations.current(), call, asked).await?;
        let live = |(id, document): (Uuid, Arc<ConfirmedDocument>)| {
            let kind = kinds.get(&id).copied().unwrap_or_default();
            let url = page_of(kind, id.hyphenated(), document.database_id.as_deref());
            let details = DocumentDetails {
                title: document.title.clone(),
                path: document.path.clone(),
                database_id: document.database_id.clone(),
                url,
                updated_at: document.updated_at,
            };
            (id, details)
        };
        Ok(confirmed.into_iter().map(live).collect())
    }
}
