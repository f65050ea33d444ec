//! Writes: how a batch is applied without transactions, and by several replicas at once.
//!
//! A batch goes in four steps, each finished before the next begins:
//! 1. The chunks of each document, over what is there unless that is newer.
//! 2. The document's head: this revision is whole and has so many chunks. Also over what is there unless that is newer.
//! 3. What the heads do not name is removed: chunks of older revisions, and those behind the last one.
//! 4. The cursors, forward only, only from where this process knew them to be, and with the mark of the collection that the rest
//!    was written into: in one that has taken its place they do not count.
//!
//! A revision is the position of the owner's feed that this process knew to be applied or in the batch when it read the
//! document; so of two revisions the one with the greater number has the newer content, or the same. That is why any
//! order of any two writers ends with the newer one: the older overwrites nothing, and removes what it added. A crash
//! leaves a cursor behind what was written; the batch is applied again, with the same end.
//!
//! Meanwhile a search may find chunks of two revisions of one document. The owner's confirmation takes out those whose
//! content hash is not the document's.

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

/// A document as it is to stand: without rows it is gone.
#[derive(Debug)]
pub(super) struct Replacement {
    pub(super) workspace: Uuid,
    pub(super) document: Uuid,
    pub(super) rows: Vec<Row>,
}

impl Replacement {
    /// Places up to the last row's.
    fn chunks(&self) -> u32 {
        self.rows.iter().map(|row| row.ordinal.saturating_add(1)).max().unwrap_or_default()
    }
}

/// Points on their way, in calls of a bearable size.
#[derive(Default)]
struct Upserts {
    operations: Vec<Operation>,
    bytes: usize,
}

impl Inner {
    /// Applies a batch as the module says. Of a document given twice the later stays.
    pub(super) async fn apply(&self, documents: Vec<Replacement>, cursors: Vec<Cursor>) -> Result<(), Error> {
        self.ready().await?;
        // Before anything is written: a cursor counts only in the collection that the documents went into.
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
        // What was written into a collection that is gone by now is not in this one.
        self.ensure_not_lost(&cursors).await?;
        for cursor in cursors {
            self.advance(cursor, mark).await?;
        }
        Ok(())
    }

    /// Fails where the collection was lost after the caller had asked for one of these cursors: the batch is of changes from
    /// there on, and what stands before them is missing in the collection that was made meanwhile.
    async fn ensure_not_lost(&self, cursors: &[Cursor]) -> Result<(), Error> {
        if !self.cursor_reads.any_invalidated(cursors) {
            return Ok(());
        }
        for Cursor { feed, workspace, .. } in cursors {
            self.cursor_reads.record(feed, *workspace);
            self.refresh(feed, *workspace).await?;
        }
        Err(Error::Outrun)
    }

    /// The revision of what a batch with these cursors brings; none where no cursor of the workspace is among them.
    ///
    /// A cursor of vectors that come later (`feed/vectors`) is behind its feed's, and its documents are not: they were
    /// read when this process knew the feed's to be applied.
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
        // What moves no cursor stands beside what is there.
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

    /// Removes what the heads, as they are by now, do not name.
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

    /// Moves a cursor forward; one that is further already stays. `mark` is that of the collection that the batch was written
    /// into: another one may take its place before this call arrives, and no cursor may count there.
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
        // Somebody forgot the workspace, or the collection, since this process looked last: what stands before this
        // batch may be missing.
        self.cursor_reads.record(&feed, workspace);
        Err(Error::Outrun)
    }

    /// Asks for a cursor as it is in Qdrant, and remembers it.
    pub(super) async fn refresh(&self, feed: &str, workspace: Uuid) -> Result<u64, Error> {
        self.ready().await?;
        let id = points::cursor_point(workspace, feed);
        let with = [FEED, WORKSPACE, POSITION];
        let (mut found, collection) = self.get_with_mark(vec![id], &with, no_vectors()).await?;
        let found = found.remove(&id);
        let foreign = found.as_ref().and_then(|point| points::foreign_mark(&point.payload, collection));
        let position = if let Some(mark) = foreign {
            // It would be in the way of the first cursor that counts.
            let removal = vec![delete(filters::point_with_mark(id, mark))];
            self.detect_loss(self.client.update(&self.collection, removal).await)?;
            0
        } else {
            let cursor = found.and_then(|point| points::read_cursor(&point.payload));
            cursor.map_or(0, |(_, _, position)| position)
        };
        self.remember(feed, workspace, position);
        Ok(position)
    }

    /// All cursors of the collection with that mark as they are in Qdrant.
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

    /// Removes all that there is of a workspace.
    pub(super) async fn forget(&self, workspace: Uuid) -> Result<(), Error> {
        self.ready().await?;
        let everything = vec![delete(Filter::must([filters::workspace(workspace)]))];
        self.detect_loss(self.client.update(&self.collection, everything).await)?;
        self.drop_cursors(workspace);
        Ok(())
    }
}

impl Upserts {
    /// Takes a point in; true when it is time to send.
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

/// Inserts points, and replaces those that are not newer.
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
