//! The mark of a collection: a point that tells it from one of the same name that is made later.
//!
//! Whoever finds a collection gone has it made again at once. Another replica that asked for nothing in between would meet a collection
//! of the name that it knows, and take what it knew to be applied for applied in there. So every lookup by id and every search reads
//! the mark, in the same call, and what comes from a collection with another one is no answer: that process has lost the
//! collection, too.

use std::sync::PoisonError;

use qdrant_client::qdrant::points_update_operation::{Operation, PointStructList};
use qdrant_client::qdrant::{Filter, GetPoints, QueryPoints, ScoredPoint, UpdateMode};
use uuid::Uuid;

use super::points::{self, MARK, mark_point, point_id};
use super::read::fields;
use super::{Error, Inner, filters};

impl Inner {
    /// The mark of the collection as this process knows it.
    pub(super) fn mark(&self) -> Option<Uuid> {
        *self.mark.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the collection, unless somebody has; answers its mark. Fails where there is none, since another collection took its place
    /// meanwhile.
    pub(super) async fn ensure_mark(&self) -> Result<Uuid, Error> {
        let list = PointStructList {
            points: vec![points::mark(self.ids.next())],
            update_mode: Some(UpdateMode::InsertOnly.into()),
            ..PointStructList::default()
        };
        self.detect_loss(self.client.update(&self.collection, vec![Operation::Upsert(list)]).await)?;
        let request = GetPoints {
            collection_name: self.collection.clone(),
            ids: vec![point_id(mark_point())],
            with_payload: Some(fields(&[MARK])),
            ..GetPoints::default()
        };
        let found = self.detect_loss(self.client.api.get_points(request).await)?.result;
        found.first().and_then(|point| points::read_mark(&point.payload)).ok_or(Error::Gone)
    }

    /// Asks for the mark beside other queries.
    pub(super) fn mark_query(&self) -> QueryPoints {
        QueryPoints {
            collection_name: self.collection.clone(),
            // Without a query the points come as they are.
            query: None,
            filter: Some(Filter::must([filters::is_mark()])),
            limit: Some(1),
            with_payload: Some(fields(&[MARK])),
            ..QueryPoints::default()
        }
    }

    /// What [`Self::mark_query`] was answered.
    pub(super) fn parse_mark(found: &[ScoredPoint]) -> Option<Uuid> {
        found.first().and_then(|point| points::read_mark(&point.payload))
    }

    /// Fails where an answer bears another mark than the collection that was asked, which is lost then.
    pub(super) fn check_mark(&self, asked: Option<Uuid>, told: Option<Uuid>) -> Result<(), Error> {
        // None is known while somebody else has found out, and makes it again.
        if asked.is_none() || asked == told {
            return Ok(());
        }
        if self.mark() == asked {
            self.mark_lost();
        }
        Err(Error::Gone)
    }

    /// Looks whether the collection is the one that this process knows, and knows the next one where it is not.
    pub(super) async fn recover(&self) -> Result<(), Error> {
        self.ready().await?;
        match self.get(Vec::new(), &[]).await {
            Err(Error::Gone) => self.ready().await,
            looked => looked.map(drop),
        }
    }
}
