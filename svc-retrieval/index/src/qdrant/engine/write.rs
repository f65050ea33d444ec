//! Writes: how batches are applied without transactions by concurrent replicas.
//!
//! A batch is applied in four steps, each completed before the next:
//! 1. Upsert the chunks of each document, unless newer ones exist.
//! 2. Upsert the document's head, which says that this revision is complete and how many chunks it has, unless a newer one exists.
//! 3. Delete what the heads do not cover: chunks of older revisions, and those after the last one.
//! 4. Advance the cursors: only forward, only from the positions that this process knew, and with the mark of the collection that the
//!    batch was written into. In a collection that replaced it they do not count.
//!
//! A revision is the feed position that was known to be applied, or is in the batch, when this process read the document; so the
//! higher of two revisions has newer or equal content. Hence any interleaving of two writers ends with the newer revision: the older
//! one overwrites nothing and removes what it added. After a crash the cursor is behind what was written; applying the batch again is
//! idempotent.
//!
//! Meanwhile a search may find chunks of two revisions of one document. The owner's confirmation drops those with a stale content
//! hash.

use std::collections::{BTreeMap, HashMap};

use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use qdrant_client::qdrant::points_update_operation::{DeletePoints, Operation, PointStructList};
use qdrant_client::qdrant::{Filter, PointStruct, PointsSelector, UpdateMode};
use uuid::Uuid;

use super::points::{self, CHUNKS, DOCUMENT, FEED, Head, MARK, POSITION, REVISION, Role, Row, WORKSPACE};
use super::read::{fields, no_vectors};
use super::tuning::{BYTES_PER_CALL, DOCUMENTS_PER_CLEANUP};
use super::{Error, Inner, filters};
use crate::{Cursor, Cursors};

/// The new version of a document; without rows the document is deleted.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) workspace: Uuid,
    pub(super) document: Uuid,
    pub(super) rows: Vec<Row>,
}

impl Replacement {
    /// The number of ordinals up to the last row.
    fn chunks(&self) -> u32 {
        self.rows.iter().map(|row| row.ordinal.saturating_add(1)).max().unwrap_or_default()
    }
}

/// Buffered upserts, sent in calls of limited size.
#[derive(Default)]
struct Upserts {
    operations: Vec<Operation>,
    bytes: usize,
}

impl Inner {
    /// Applies a batch as described above. Of several versions of one document the last one wins.
    pub(super) async fn apply(&self, documents: Vec<Replacement>, cursors: Vec<Cursor>) -> Result<(), Error> {
        self.ready().await?;
        // Read before any write: a cursor counts only in the collection that the documents were written into.
        let mark = self.mark().ok_or(Error::Gone)?;
        self.ensure_not_lost(&cursors).await?;
        let mut workspaces: BTreeMap<Uuid, HashMap<Uuid, Replacement>> = BTreeMap::new();
        for replacement in documents {
            let replacements = workspaces.entry(replacement.workspace).or_default();
            replacements.insert(replacement.document, replacement);
        }
        for (workspace, replacements) in workspaces {
            let revision = self.revision(workspace, &cursors);
            self.replace(workspace, revision, replacements.into_values().collect()).await?;
        }
        // Documents that were written into a lost collection are not in this one.
        self.ensure_not_lost(&cursors).await?;
        for cursor in cursors {
            self.advance(cursor, mark).await?;
        }
        Ok(())
    }

    /// Fails if the collection was lost after the caller read one of these cursors: the batch contains only changes from there on, and
    /// the new collection lacks everything before.
    async fn ensure_not_lost(&self, cursors: &[Cursor]) -> Result<(), Error> {
        if !self.cursor_reads.any_invalidated(cursors) {
            return Ok(());
        }
        for Cursor { feed, workspace, .. } in cursors {
            self.cursor_reads.record(feed, *workspace);
            self.refresh(feed, *workspace).await?;
        }
        Err(Error::CursorsBehind)
    }

    /// The revision of the documents in a batch with these cursors; `None` if none of them is of the workspace.
    ///
    /// The cursor of deferred vectors (`feed/vectors`) lags behind its feed's cursor, but its documents do not: they were read when the
    /// feed's cursor was already known.
    fn revision(&self, workspace: Uuid, cursors: &[Cursor]) -> Option<u64> {
        let moved = cursors.iter().filter(|cursor| cursor.workspace == workspace);
        let revision = |cursor: &Cursor| match cursor.feed.split_once('/') {
            Some((feed, _)) => cursor.position.max(self.cursor(feed, workspace)),
            None => cursor.position,
        };
        moved.map(revision).max()
    }

    async fn replace(
        &self,
        workspace: Uuid,
        revision: Option<u64>,
        replacements: Vec<Replacement>,
    ) -> Result<(), Error> {
        let documents: Vec<Uuid> = replacements.iter().map(|replacement| replacement.document).collect();
        // A batch without a cursor keeps the existing revisions.
        let present = match revision {
            Some(_) => HashMap::new(),
            None => self.heads(workspace, &documents).await?,
        };
        let mut upserts = Upserts::default();
        let mut heads: BTreeMap<u64, Vec<PointStruct>> = BTreeMap::new();
        for replacement in replacements {
            let document = replacement.document;
            let chunks = replacement.chunks();
            let revision = revision.unwrap_or_else(|| present.get(&document).map_or(0, |head| head.revision));
            let points =
                replacement.rows.into_iter().map(|row| row.into_point(workspace, document, revision));
            for point in points {
                if upserts.add(point, revision) {
                    self.send(&mut upserts).await?;
                }
            }
            heads
                .entry(revision)
                .or_default()
                .push(Head { document, revision, chunks }.into_point(workspace));
        }
        for (revision, points) in heads {
            upserts.operations.push(upsert_unless_newer(points, revision));
        }
        self.send(&mut upserts).await?;
        self.remove_stale_chunks(workspace, &documents).await
    }

    async fn send(&self, upserts: &mut Upserts) -> Result<(), Error> {
        let operations = std::mem::take(upserts).operations;
        if operations.is_empty() {
            return Ok(());
        }
        self.detect_loss(self.client.update(&self.collection, operations).await)
    }

    /// Deletes what the current heads do not cover.
    async fn remove_stale_chunks(&self, workspace: Uuid, documents: &[Uuid]) -> Result<(), Error> {
        for documents in documents.chunks(DOCUMENTS_PER_CLEANUP) {
            let heads: Vec<Head> = self.heads(workspace, documents).await?.into_values().collect();
            let removal = vec![delete(filters::stale_chunks(workspace, &heads))];
            self.detect_loss(self.client.update(&self.collection, removal).await)?;
        }
        Ok(())
    }

    async fn heads(&self, workspace: Uuid, documents: &[Uuid]) -> Result<HashMap<Uuid, Head>, Error> {
        let ids = documents.iter().map(|document| points::document_point(workspace, *document)).collect();
        let found = self.get(ids, &[DOCUMENT, REVISION, CHUNKS]).await?;
        let heads = found.into_values().map(|point| Head::read(&point.payload));
        heads.map(|head| head.map(|head| (head.document, head))).collect()
    }

    /// Advances a cursor, unless it is already further. `mark` identifies the collection that the batch was written into: it may be
    /// replaced before this call arrives, and the cursor must not count in the next one.
    async fn advance(&self, cursor: Cursor, mark: Uuid) -> Result<(), Error> {
        let Cursor { feed, workspace, position } = cursor;
        let from = self.cursor(&feed, workspace);
        let point = points::cursor(workspace, &feed, position, mark);
        let mut operations = Vec::new();
        if from == 0 {
            operations.push(Operation::Upsert(PointStructList {
                points: vec![point.clone()],
                update_mode: Some(UpdateMode::InsertOnly.into()),
                ..PointStructList::default()
            }));
        }
        operations.push(Operation::Upsert(PointStructList {
            points: vec![point],
            update_filter: Some(filters::may_advance(from, position, mark)),
            update_mode: Some(UpdateMode::UpdateOnly.into()),
            ..PointStructList::default()
        }));
        self.detect_loss(self.client.update(&self.collection, operations).await)?;
        if self.refresh(&feed, workspace).await? >= position {
            return Ok(());
        }
        // The workspace was forgotten, or the collection lost, since this process last read the cursor: everything before this batch
        // may be missing.
        self.cursor_reads.record(&feed, workspace);
        Err(Error::CursorsBehind)
    }

    /// Reads a cursor from Qdrant and caches it.
    pub(super) async fn refresh(&self, feed: &str, workspace: Uuid) -> Result<u64, Error> {
        self.ready().await?;
        let id = points::cursor_point(workspace, feed);
        let with = [FEED, WORKSPACE, POSITION];
        let (mut found, collection) = self.get_with_mark(vec![id], &with, no_vectors()).await?;
        let found = found.remove(&id);
        let foreign = found.as_ref().and_then(|point| points::foreign_mark(&point.payload, collection));
        let position = if let Some(mark) = foreign {
            // It would block the insert of the first valid cursor.
            let removal = vec![delete(filters::point_with_mark(id, mark))];
            self.detect_loss(self.client.update(&self.collection, removal).await)?;
            0
        } else {
            let cursor = found.and_then(|point| points::read_cursor(&point.payload));
            cursor.map_or(0, |(_, _, position)| position)
        };
        self.set_cursor(feed, workspace, position);
        Ok(position)
    }

    /// Reads all cursors that belong to the collection with this mark.
    pub(super) async fn read_cursors(&self, collection: Uuid) -> Result<Cursors, Error> {
        let filter = Filter::must([filters::role(Role::Cursor)]);
        let mut cursors = Cursors::new();
        for point in self.scroll(filter, fields(&[FEED, WORKSPACE, POSITION, MARK]), None).await? {
            if points::foreign_mark(&point.payload, Some(collection)).is_some() {
                continue;
            }
            if let Some((feed, workspace, position)) = points::read_cursor(&point.payload) {
                cursors.entry(feed).or_default().insert(workspace, position);
            }
        }
        Ok(cursors)
    }

    /// Deletes everything of a workspace.
    pub(super) async fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.ready().await?;
        let everything = vec![delete(Filter::must([filters::workspace(workspace)]))];
        self.detect_loss(self.client.update(&self.collection, everything).await)?;
        self.drop_cursors(workspace);
        Ok(())
    }
}

impl Upserts {
    /// Adds a point; returns whether the buffer is full.
    fn add(&mut self, point: PointStruct, revision: u64) -> bool {
        self.bytes += prost::Message::encoded_len(&point);
        match self.operations.last_mut() {
            Some(Operation::Upsert(list)) if list.update_filter == Some(filters::at_most(revision)) => {
                list.points.push(point);
            }
            _ => self.operations.push(upsert_unless_newer(vec![point], revision)),
        }
        self.bytes >= BYTES_PER_CALL
    }
}

/// Upserts points unless newer ones exist.
fn upsert_unless_newer(points: Vec<PointStruct>, revision: u64) -> Operation {
    Operation::Upsert(PointStructList {
        points,
        update_filter: Some(filters::at_most(revision)),
        ..PointStructList::default()
    })
}

fn delete(filter: Filter) -> Operation {
    let points = PointsSelector { points_selector_one_of: Some(PointsSelectorOneOf::Filter(filter)) };
    Operation::DeletePoints(DeletePoints { points: Some(points), shard_key_selector: None })
}
