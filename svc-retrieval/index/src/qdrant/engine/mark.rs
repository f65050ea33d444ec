//! The mark of a collection: a point with a random id that identifies it among successive collections of the same name.
//!
//! A replica that finds the collection gone recreates it at once. Another replica that sent no request in between would take the new
//! collection for the old one, and assume that its cached cursors hold there. So every lookup by id and every search reads the mark
//! in the same call, and a response with another mark is rejected: the replica has lost the collection, too.

use std::sync::PoisonError;

use qdrant_client::qdrant::points_update_operation::{Operation, PointStructList};
use qdrant_client::qdrant::{Filter, GetPoints, QueryPoints, ScoredPoint, UpdateMode};
use uuid::Uuid;

use super::points::{self, MARK, mark_point, point_id};
use super::read::fields;
use super::{Error, Inner, filters};

impl Inner {
    /// The mark of the collection that this process uses.
    pub(super) fn mark(&self) -> Option<Uuid> {
        *self.mark.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the collection unless it has a mark; returns its mark. Fails if there is none, since the collection was replaced
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

    /// Reads the mark in a batch of queries.
    pub(super) fn mark_query(&self) -> QueryPoints {
        QueryPoints {
            collection_name: self.collection.clone(),
            // Without a query, points are only filtered.
            query: None,
            filter: Some(Filter::must([filters::is_mark()])),
            limit: Some(1),
            with_payload: Some(fields(&[MARK])),
            ..QueryPoints::default()
        }
    }

    /// Parses the result of [`Self::mark_query`].
    pub(super) fn parse_mark(found: &[ScoredPoint]) -> Option<Uuid> {
        found.first().and_then(|point| points::read_mark(&point.payload))
    }

    /// Fails if the mark in a response is not the expected one: the collection was lost.
    pub(super) fn check_mark(&self, expected: Option<Uuid>, found: Option<Uuid>) -> Result<(), Error> {
        // There is none while another task, which detected the loss, recreates the collection.
        if expected.is_none() || expected == found {
            return Ok(());
        }
        if self.mark() == expected {
            self.mark_lost();
        }
        Err(Error::Gone)
    }

    /// Checks that the collection is still the same, and prepares the next one if not.
    pub(super) async fn recover(&self) -> Result<(), Error> {
        self.ready().await?;
        match self.get(Vec::new(), &[]).await {
            Err(Error::Gone) => self.ready().await,
            looked => looked.map(drop),
        }
    }
}
