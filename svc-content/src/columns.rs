//! A column store in memory: answers pages of a database's records without a join.
//!
//! [`Columns`] is a snapshot of every live record of one database at one position of its workspace's feed, by property:
//! numbers and option codes in arrays, texts in blocks with trigram signatures, and a sorted order per column. A selection is
//! a bitmap, a page is a scan of an order. This module knows nothing of SQL, of callers, or of how a snapshot is built:
//! `records/columns.rs` builds it, applies the feed to it, and decides when it may answer.
//!
//! [`Names`] holds the names of all live files of a workspace in the same way, and answers substring searches on them.
//!
//! [`SnapshotCache`] is the cache of both, evicting the least recently used within a budget of bytes.

mod bitmap;
mod blocks;
mod cache;
mod column;
mod groups;
mod index;
mod name_match_cache;
mod names;
mod order;
mod page;
mod record_cache;
mod select;
mod selection_cache;
mod signatures;
mod texts;
mod words;

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, RecordId, WorkspaceId};

use self::bitmap::Bitmap;
use self::cache::Cacheable;
pub(crate) use self::cache::{Builder, CacheLookup, SharedSnapshot, SnapshotCache};
use self::column::{Column, ColumnSchema};
pub(crate) use self::names::{NameChange, NameQuery, NameSearchResult, Named, Names};
use self::order::Order;
pub(crate) use self::page::Place;
use self::record_cache::RecordCache;
use self::selection_cache::SelectionCache;
use crate::model::{Cell, Database, Listed};

/// A record as of a position of the feed.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: RecordId,
    pub(crate) created_at: Timestamp,
    pub(crate) cells: Vec<Cell>,
}

/// A record that has changed. One that moved to trash or is of another database is a delete.
#[derive(Debug, Clone)]
pub(crate) enum RowChange {
    Upsert(Row),
    Delete(RecordId),
}

/// A snapshot of the live records of a database.
#[derive(Debug)]
pub(crate) struct Columns {
    position: u64,
    /// As of that position, except for its folder and its record count, which may be stale.
    database: Arc<Database>,
    ids: Vec<u128>,
    created: Vec<i64>,
    live: Bitmap,
    /// Rows of deleted records, to be reused.
    free: Vec<u32>,
    schemas: Vec<ColumnSchema>,
    columns: Vec<Column>,
    /// For each column the rows that have a value in it, sorted by value, then by id.
    orders: Vec<Order>,
    by_id: Order,
    by_creation: Order,
    /// Whether the orders are maintained; they are not during the initial load.
    is_ordered: bool,
    selections: Mutex<SelectionCache>,
    records: Mutex<RecordCache>,
}

impl Cacheable for Columns {
    type Key = (WorkspaceId, DatabaseId);

    fn rows(&self) -> usize {
        self.len()
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

impl Columns {
    /// An empty snapshot of a database as of a position.
    pub(crate) fn new(database: &Database, position: u64) -> Self {
        let schemas: Vec<ColumnSchema> = database.properties.iter().map(ColumnSchema::of).collect();
        let columns: Vec<Column> = schemas.iter().map(|one| Column::of(one.kind)).collect();
        Self {
            position,
            database: Arc::new(database.clone()),
            ids: Vec::new(),
            created: Vec::new(),
            live: Bitmap::default(),
            free: Vec::new(),
            orders: vec![Order::default(); columns.len()],
            schemas,
            columns,
            by_id: Order::default(),
            by_creation: Order::default(),
            is_ordered: false,
            selections: Mutex::default(),
            records: Mutex::default(),
        }
    }

    /// The position of the feed that the snapshot is as of.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// The database as of that position, except for its folder and its record count.
    pub(crate) const fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len() - self.free.len()
    }

    /// Appends records during the initial load; none may be present already.
    pub(crate) fn fill(&mut self, rows: Vec<Row>) {
        for row in rows {
            let number = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
            self.write(number, &row);
        }
    }

    /// Builds the orders and text indexes, once all rows are loaded.
    pub(crate) fn build_indexes(&mut self) {
        let rows: Vec<u32> = self.live.rows().collect();
        let mut sorted = rows.clone();
        sorted.sort_unstable_by(|one, other| self.by_id(*one, *other));
        self.by_id = Order::from_sorted(&sorted);
        sorted.sort_unstable_by(|one, other| self.by_creation(*one, *other));
        self.by_creation = Order::from_sorted(&sorted);
        for number in 0..self.columns.len() {
            let order = self.order_of(number, &rows);
            if let Some(place) = self.orders.get_mut(number) {
                *place = order;
            }
        }
        self.is_ordered = true;
        self.columns.iter_mut().for_each(Column::update_index);
    }

    fn order_of(&self, number: usize, rows: &[u32]) -> Order {
        let Some(column) = self.columns.get(number).filter(|column| column.is_ordered()) else {
            return Order::default();
        };
        let mut ranked: Vec<(u64, u32)> =
            rows.iter().filter_map(|row| column.rank(*row).map(|rank| (rank, *row))).collect();
        ranked.sort_unstable_by(|(one_rank, one), (other_rank, other)| {
            let by_value = one_rank.cmp(other_rank).then_with(|| column.tie(*one, *other));
            by_value.then_with(|| self.by_id(*one, *other))
        });
        Order::from_sorted(&ranked.into_iter().map(|(_, row)| row).collect::<Vec<_>>())
    }

    /// Applies changes up to a later position.
    pub(crate) fn apply(&mut self, changes: Vec<RowChange>, position: u64) {
        for change in changes {
            let id = match &change {
                RowChange::Upsert(row) => row.id,
                RowChange::Delete(id) => *id,
            };
            self.records_mut().invalidate(id);
            let existing = self.row_of(id);
            if let Some(row) = existing {
                self.remove_from_orders(row);
            }
            match change {
                RowChange::Upsert(row) => {
                    let new = || u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
                    let number = existing.or_else(|| self.free.pop()).unwrap_or_else(new);
                    self.write(number, &row);
                    self.insert_into_orders(number);
                    self.mark_changed(number);
                }
                RowChange::Delete(_) => {
                    if let Some(row) = existing {
                        self.columns.iter_mut().for_each(|column| column.set(row, &[]));
                        self.live.remove(row);
                        self.free.push(row);
                        self.mark_changed(row);
                    }
                }
            }
        }
        self.columns.iter_mut().for_each(Column::update_index);
        self.position = position;
    }

    /// Adapts the columns to a changed schema. Returns `false` when they must be rebuilt instead: reordering or removing options
    /// changes the option codes in every record.
    pub(crate) fn adapt(&mut self, database: &Database) -> bool {
        for schema in &mut self.schemas {
            let Some(property) = database.property(schema.property) else { continue };
            let now = ColumnSchema::of(property);
            if !now.options.starts_with(&schema.options) || now.kind != schema.kind {
                return false;
            }
            *schema = now;
        }
        let removed: Vec<bool> =
            self.schemas.iter().map(|schema| database.property(schema.property).is_none()).collect();
        for number in (0..removed.len()).rev().filter(|number| removed.get(*number) == Some(&true)) {
            self.schemas.remove(number);
            self.columns.remove(number);
            self.orders.remove(number);
        }
        for property in &database.properties {
            if self.number_of(property.id).is_none() {
                self.schemas.push(ColumnSchema::of(property));
                self.columns.push(Column::of(property.kind));
                self.orders.push(Order::default());
            }
        }
        if self.database.updated_at != database.updated_at {
            self.database = Arc::new(database.clone());
            self.selections_mut().clear();
            *self.records_mut() = RecordCache::default();
        }
        true
    }

    /// The cached records with these ids, rendered for a caller who sees the whole workspace.
    pub(crate) fn cached_records(&self, ids: &[RecordId]) -> Vec<Option<Arc<Listed>>> {
        let cache = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().map(|id| cache.get(*id)).collect()
    }

    /// Caches records as of this position and schema, rendered for a caller who sees the whole workspace.
    pub(crate) fn cache_records(&self, records: &[Arc<Listed>]) {
        let mut cache = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            cache.insert(record, self.ids.len());
        }
    }

    /// Approximate memory use in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let orders: usize = self.orders.iter().map(Order::bytes).sum();
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        let rows = self.ids.capacity() * size_of::<u128>() + self.created.capacity() * size_of::<i64>();
        // The caches count at their maximum, so that answering queries does not exceed the budget later.
        let selections = SelectionCache::max_bytes(self.live.bytes(), self.ids.len());
        let records = RecordCache::max_bytes(self.ids.len());
        let all_rows = self.by_id.bytes() + self.by_creation.bytes() + self.live.bytes();
        orders + columns + rows + selections + records + all_rows
    }

    fn selections(&self) -> MutexGuard<'_, SelectionCache> {
        // No critical section can panic between two writes, so a poisoned lock still guards consistent data.
        self.selections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark_changed(&mut self, row: u32) {
        let rows = self.ids.len();
        self.selections_mut().mark_changed(row, rows);
    }

    fn records_mut(&mut self) -> &mut RecordCache {
        self.records.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn selections_mut(&mut self) -> &mut SelectionCache {
        self.selections.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&mut self, number: u32, row: &Row) {
        let place = number as usize;
        if place >= self.ids.len() {
            self.ids.resize(place + 1, 0);
            self.created.resize(place + 1, 0);
        }
        if let (Some(id), Some(created)) = (self.ids.get_mut(place), self.created.get_mut(place)) {
            (*id, *created) = (row.id.0.as_u128(), row.created_at.as_micros());
        }
        self.live.add(number);
        for (schema, column) in self.schemas.iter().zip(&mut self.columns) {
            let of_property = row.cells.iter().filter(|cell| cell.property == schema.property);
            column.set(number, &of_property.collect::<Vec<_>>());
        }
    }

    fn insert_into_orders(&mut self, row: u32) {
        self.each_order(row, |order, to| order.insert(row, to));
    }

    fn remove_from_orders(&mut self, row: u32) {
        self.each_order(row, |order, to| order.remove(row, to));
    }

    /// Calls `act` with each order that contains the row, and with a function that compares another row with it.
    fn each_order(&mut self, row: u32, act: impl Fn(&mut Order, &dyn Fn(u32) -> Ordering)) {
        let mut by_id = std::mem::take(&mut self.by_id);
        act(&mut by_id, &|other| self.by_id(other, row));
        self.by_id = by_id;
        let mut by_creation = std::mem::take(&mut self.by_creation);
        act(&mut by_creation, &|other| self.by_creation(other, row));
        self.by_creation = by_creation;
        let mut orders = std::mem::take(&mut self.orders);
        for (order, column) in orders.iter_mut().zip(&self.columns) {
            if column.is_ordered() && column.rank(row).is_some() {
                act(order, &|other| self.by_value(column, other, row));
            }
        }
        self.orders = orders;
    }

    /// The comparison by which the order of a column is sorted.
    fn by_value(&self, column: &Column, one: u32, other: u32) -> Ordering {
        let by_rank = column.rank(one).cmp(&column.rank(other));
        by_rank.then_with(|| column.tie(one, other)).then_with(|| self.by_id(one, other))
    }

    fn id(&self, row: u32) -> u128 {
        self.ids.get(row as usize).copied().unwrap_or_default()
    }

    fn record(&self, row: u32) -> RecordId {
        RecordId(uuid::Uuid::from_u128(self.id(row)))
    }

    fn row_of(&self, id: RecordId) -> Option<u32> {
        let wanted = id.0.as_u128();
        let row = self.by_id.first_from(|row| self.id(row).cmp(&wanted)).next()?;
        (self.id(row) == wanted).then_some(row)
    }

    fn by_id(&self, one: u32, other: u32) -> Ordering {
        self.id(one).cmp(&self.id(other))
    }

    fn by_creation(&self, one: u32, other: u32) -> Ordering {
        let created = |row: u32| self.created.get(row as usize);
        created(one).cmp(&created(other)).then_with(|| self.by_id(one, other))
    }

    fn number_of(&self, property: cairn_proto::ids::PropertyId) -> Option<usize> {
        self.schemas.iter().position(|one| one.property == property)
    }
}
