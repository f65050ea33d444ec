//! Compares an index with the documents of this service.

use std::sync::Arc;

use cairn_chassis::clock::{Clock, SystemClock};
use cairn_chassis::doctor::index::{self, Asked, Indexed};
use cairn_chassis::doctor::{Finding, Progress};
use cairn_chassis::entropy::OsEntropy;
use cairn_chassis::feed::{Feed, Kind};
use cairn_chassis::ids::IdSource;
use cairn_chassis::lifecycle::Suspensions;
use cairn_chassis::shared_storage::SharedStorage;
use cairn_chassis::sql::{self, Db};

use crate::context::Context;
use crate::documents::Documents;
use crate::model::DocumentRef;
use crate::{Error, store};

/// The kinds of this service's documents.
const KINDS: &[Kind] = &[Kind::SourceDocument, Kind::Ingested];

/// Finds missing and stale documents in an index, read-only; `None` if the storage has no tables of this service.
///
/// # Errors
/// When the storage cannot be read.
pub async fn examine_index(
    storage: &sql::Config,
    indexed: &Indexed,
    progress: Progress<'_>,
) -> Result<Option<Vec<Finding>>, Error> {
    let Some(db) = Db::open_existing(storage, store::SCHEMA, store::MIGRATIONS).await? else {
        return Ok(None);
    };
    let documents = Documents::new(read_only(&db));
    let owned = async |asked: Asked| {
        let Asked { workspace, documents: wanted, with_text } = asked;
        let refs: Vec<_> =
            wanted.into_iter().map(|(kind, id)| DocumentRef { kind: Some(kind), id }).collect();
        documents.owned(workspace, &refs, with_text).await
    };
    let findings = index::examine(&db, KINDS, indexed, progress, owned).await?;
    db.close().await;
    Ok(Some(findings))
}

/// A context for reads.
fn read_only(db: &Db) -> Context {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    Context {
        db: db.clone(),
        feed: Feed::new(db.clone(), Arc::clone(&clock)),
        suspensions: Suspensions::in_memory(Arc::clone(&clock)),
        ids: IdSource::new(Arc::clone(&clock), Arc::new(OsEntropy)),
        limits: Arc::default(),
        storage: SharedStorage::new(Arc::clone(&clock)),
        arrivals: Arc::default(),
        clock,
    }
}
