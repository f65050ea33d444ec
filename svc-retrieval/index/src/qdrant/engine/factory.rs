//! Generations on Qdrant: each has its own collection, and an alias points to the current one.
//!
//! All replicas resolve the alias at startup. A replica that starts with another embedder in its configuration builds the next
//! generation; the first replica to complete it moves the alias. The others keep using the old collection until they have the new
//! one as well, which is why it is not removed at once.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cairn_chassis::clock::{Clock, Timestamp};
use cairn_chassis::ids::IdSource;
use cairn_embed::EmbedderIdentity;
use qdrant_client::qdrant::points_update_operation::{Operation, PointStructList};
use qdrant_client::qdrant::{CreateAlias, GetPoints};

use super::client::Client;
use super::{Config, Error, Index, collection, points, read};
use crate::Engine;
use crate::EngineFactory;

/// How often a starting process tries to reach Qdrant, and the delay between attempts: a minute in total, enough where Qdrant starts
/// at the same time.
const START_ATTEMPTS: u32 = 60;
const START_PAUSE: Duration = Duration::from_secs(1);
/// How long a collection is kept after it ceases to be current: replicas that started before still use it.
const RETENTION: Duration = Duration::from_secs(60 * 60);

/// Opens indexes on Qdrant, one collection each.
pub(crate) struct QdrantFactory {
    client: Client,
    prefix: String,
    clock: Arc<dyn Clock>,
    ids: IdSource,
}

cairn_chassis::debug_fields!(QdrantFactory { prefix });

impl QdrantFactory {
    /// A factory on a Qdrant server. Does not connect yet.
    ///
    /// # Errors
    /// [`crate::Error::Config`] when an option is invalid.
    pub(crate) fn open(config: &Config, clock: Arc<dyn Clock>, ids: IdSource) -> Result<Self, crate::Error> {
        Ok(Self { client: Client::new(config)?, prefix: config.prefix.clone(), clock, ids })
    }

    fn index(&self, identity: &EmbedderIdentity) -> Index {
        Index::on(self.client.clone(), self.name(identity), identity.dimensions, self.ids.clone())
    }

    fn name(&self, identity: &EmbedderIdentity) -> String {
        collection::name(&self.prefix, &identity.slug())
    }

    /// The identity stored in a collection or alias, and since when it is current; `None` if there is none.
    async fn identity_in(&self, collection: String) -> Result<Option<(EmbedderIdentity, Timestamp)>, Error> {
        let request = GetPoints {
            collection_name: collection,
            ids: vec![points::point_id(points::identity_point())],
            with_payload: Some(read::fields(&[points::IDENTITY, points::SINCE])),
            ..GetPoints::default()
        };
        let found = match self.client.api.get_points(request).await.map_err(Error::from) {
            Ok(found) => found.result,
            Err(Error::Gone) => Vec::new(),
            Err(error) => return Err(error),
        };
        // An unreadable identity is treated as none: the index is rebuilt from the feeds.
        Ok(found.first().and_then(|point| {
            let (identity, since) = points::read_identity(&point.payload);
            Some((serde_json::from_str(&identity).ok()?, Timestamp::from_micros(since)))
        }))
    }

    /// The collections of this deployment's generations, except one.
    async fn others(&self, kept: &str) -> Result<Vec<String>, Error> {
        let all = self.client.api.list_collections().await?.collections;
        let names = all.into_iter().map(|collection| collection.name);
        Ok(names.filter(|name| *name != kept && collection::is_generation(&self.prefix, name)).collect())
    }

    async fn point_alias_at(&self, collection_name: String, identity: String) -> Result<(), Error> {
        let point = points::identity(identity, self.clock.now().as_micros());
        let list = PointStructList { points: vec![point], ..PointStructList::default() };
        self.client.update(&collection_name, vec![Operation::Upsert(list)]).await?;
        // An existing alias is moved.
        let alias_name = collection::alias(&self.prefix);
        self.client.api.create_alias(CreateAlias { collection_name, alias_name }).await?;
        Ok(())
    }

    async fn remove_others(&self, kept: &str) -> Result<(), Error> {
        for other in self.others(kept).await? {
            tracing::info!(collection = other, "removing an index that is no longer used from Qdrant");
            self.client.api.delete_collection(other).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl EngineFactory for QdrantFactory {
    async fn current(&self) -> Result<Option<EmbedderIdentity>, crate::Error> {
        let mut attempts = 1;
        loop {
            match self.identity_in(collection::alias(&self.prefix)).await {
                Ok(found) => return Ok(found.map(|(identity, _)| identity)),
                Err(error @ Error::Unreachable(_)) if attempts < START_ATTEMPTS => {
                    tracing::warn!(%error, tries = attempts, "waiting for Qdrant");
                    attempts += 1;
                    tokio::time::sleep(START_PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn open(&self, identity: &EmbedderIdentity) -> Result<Arc<dyn Engine>, crate::Error> {
        let index = self.index(identity);
        // Loads the cursors.
        index.prepare().await?;
        Ok(Arc::new(index))
    }

    async fn make_current(&self, identity: &EmbedderIdentity) -> Result<(), crate::Error> {
        self.index(identity).prepare().await?;
        Ok(self.point_alias_at(self.name(identity), serde_json::to_string(identity)?).await?)
    }

    async fn keep_only(&self, identity: &EmbedderIdentity) -> Result<(), crate::Error> {
        let name = self.name(identity);
        let Some((_, since)) = self.identity_in(name.clone()).await? else { return Ok(()) };
        // Replicas that started before may still use the others.
        if self.clock.now() < since.plus(RETENTION) {
            return Ok(());
        }
        Ok(self.remove_others(&name).await?)
    }
}
