//! What documents are called and where they stand now.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_chassis::call::Call;
use cairn_proto::document::v1::ConfirmedDocument;
use cairn_proto::domain::page_of;
use cairn_proto::feed::v1::Kind;
use uuid::Uuid;

use super::{Searcher, confirm};
use crate::error::Error;

/// A document that lives.
#[derive(Debug)]
pub(crate) struct KnownDocument {
    pub(crate) title: String,
    pub(crate) path: String,
    /// Of a record: what holds it.
    pub(crate) database_id: Option<String>,
    /// Where the console shows it.
    pub(crate) url: String,
    /// Absent where nobody knows.
    pub(crate) updated_at: Option<prost_types::Timestamp>,
}

impl Searcher {
    /// Those of the documents that live and are in the caller's scope.
    pub(crate) async fn known_documents(
        &self,
        call: &Call,
        documents: impl Iterator<Item = (Kind, Uuid)>,
    ) -> Result<HashMap<Uuid, KnownDocument>, Error> {
        let kinds: HashMap<Uuid, Kind> = documents.map(|(kind, document)| (document, kind)).collect();
        let asked = kinds.iter().map(|(document, kind)| (*kind, *document));
        let confirmed = confirm::confirm_documents(&self.generations.current(), call, asked).await?;
        let live = |(id, document): (Uuid, Arc<ConfirmedDocument>)| {
            let kind = kinds.get(&id).copied().unwrap_or_default();
            let url = page_of(kind, id.hyphenated(), document.database_id.as_deref());
            let known = KnownDocument {
                title: document.title.clone(),
                path: document.path.clone(),
                database_id: document.database_id.clone(),
                url,
                updated_at: document.updated_at,
            };
            (id, known)
        };
        Ok(confirmed.into_iter().map(live).collect())
    }
}
