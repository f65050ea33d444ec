//! A database as columns in memory: what answers a page of records without a join.
//!
//! [`Columns`] holds the values of every live record of one database as they were at one position of its workspace's feed,
//! by property: numbers and places of options in arrays, texts in blocks with signatures of their trigrams, and the orders
//! of all of them. A selection is a set of bits, a page a walk along an order. They know nothing of SQL, of callers, and of
//! how they came to be: `records/columns.rs` builds them, has them follow the feed, and says when they may answer.
//!
//! [`Names`] holds the names of all live files of a workspace in the same way, and finds those that hold a text.
//!
//! A [`Shelf`] keeps those that were asked for last, within a budget of bytes.

mod bits;
mod blocks;
mod column;
mod groups;
mod index;
mod names;
mod order;
mod page;
mod remembered;
mod select;
mod selections;
mod shelf;
mod shown;
mod signatures;
mod texts;
mod words;

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cairn_chassis::clock::Timestamp;
use cairn_proto::ids::{DatabaseId, RecordId, WorkspaceId};

use self::bits::Bits;
use self::column::{Column, Described};
pub(crate) use self::names::{Found, NameChange, Named, Names, NamesWanted};
use self::order::Order;
pub(crate) use self::page::Place;
use self::selections::Selections;
pub(crate) use self::shelf::{Builder, Held, Shelf, Shelved, Standing};
use self::shown::ShownRecords;
use crate::model::{Cell, Database, Listed};

/// What a record is at a position.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) id: RecordId,
    pub(crate) created_at: Timestamp,
    pub(crate) cells: Vec<Cell>,
}

/// A record that has changed: what it is now, or that it is not of this database or not live.
#[derive(Debug, Clone)]
pub(crate) enum RowChange {
    Is(Row),
    IsGone(RecordId),
}

/// The live records of a database.
#[derive(Debug)]
pub(crate) struct Columns {
    position: u64,
    /// As it was at that position; it may stand in another folder since, and have another number of records.
    database: Arc<Database>,
    ids: Vec<u128>,
    created: Vec<i64>,
    live: Bits,
    /// Rows of records that are gone.
    free: Vec<u32>,
    described: Vec<Described>,
    columns: Vec<Column>,
    /// Of the rows with a value in the column, by it and then by id.
    orders: Vec<Order>,
    by_id: Order,
    by_creation: Order,
    /// Whether the orders are kept; while a database is read for the first time, they are not.
    is_ordered: bool,
    selections: Mutex<Selections>,
    shown: Mutex<ShownRecords>,
}

impl Shelved for Columns {
    type Key = (WorkspaceId, DatabaseId);

    fn rows(&self) -> usize {
        self.len()
    }

    fn size(&self) -> usize {
        self.bytes()
    }
}

impl Columns {
    /// No records, of a database with those properties, as of a position.
    pub(crate) fn new(database: &Database, position: u64) -> Self {
        let described: Vec<Described> = database.properties.iter().map(Described::of).collect();
        let columns: Vec<Column> = described.iter().map(|one| Column::of(one.kind)).collect();
        Self {
            position,
            database: Arc::new(database.clone()),
            ids: Vec::new(),
            created: Vec::new(),
            live: Bits::default(),
            free: Vec::new(),
            orders: vec![Order::default(); columns.len()],
            described,
            columns,
            by_id: Order::default(),
            by_creation: Order::default(),
            is_ordered: false,
            selections: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// Which position of the feed they are as of.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// The database as of that position, but for its folder and its number of records.
    pub(crate) const fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len() - self.free.len()
    }

    /// Adds records that are not there, while the database is read for the first time.
    pub(crate) fn fill(&mut self, rows: Vec<Row>) {
        for row in rows {
            let number = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
            self.write(number, &row);
        }
    }

    /// Puts the rows in order, once all are there.
    pub(crate) fn put_in_order(&mut self) {
        let rows: Vec<u32> = self.live.rows().collect();
        let mut sorted = rows.clone();
        sorted.sort_unstable_by(|one, other| self.by_id(*one, *other));
        self.by_id = Order::of_sorted(&sorted);
        sorted.sort_unstable_by(|one, other| self.by_creation(*one, *other));
        self.by_creation = Order::of_sorted(&sorted);
        for number in 0..self.columns.len() {
            let order = self.order_of(number, &rows);
            if let Some(place) = self.orders.get_mut(number) {
                *place = order;
            }
        }
        self.is_ordered = true;
        self.columns.iter_mut().for_each(Column::index);
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
        Order::of_sorted(&ranked.into_iter().map(|(_, row)| row).collect::<Vec<_>>())
    }

    /// Makes records what they are at a later position.
    pub(crate) fn follow(&mut self, changes: Vec<RowChange>, position: u64) {
        for change in changes {
            let id = match &change {
                RowChange::Is(row) => row.id,
                RowChange::IsGone(id) => *id,
            };
            self.shown_mut().forget(id);
            let known = self.row_of(id);
            if let Some(row) = known {
                self.take_out(row);
            }
            match change {
                RowChange::Is(row) => {
                    let new = || u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
                    let number = known.or_else(|| self.free.pop()).unwrap_or_else(new);
                    self.write(number, &row);
                    self.put_in(number);
                    self.note_change(number);
                }
                RowChange::IsGone(_) => {
                    if let Some(row) = known {
                        self.columns.iter_mut().for_each(|column| column.set(row, &[]));
                        self.live.remove(row);
                        self.free.push(row);
                        self.note_change(row);
                    }
                }
            }
        }
        self.columns.iter_mut().for_each(Column::index);
        self.position = position;
    }

    /// Makes the columns those of a database whose properties may have changed since. Answers whether that can be done:
    /// options that were moved or taken away have other places in every record.
    pub(crate) fn adapt(&mut self, database: &Database) -> bool {
        for known in &mut self.described {
            let Some(property) = database.property(known.property) else { continue };
            let now = Described::of(property);
            if !now.options.starts_with(&known.options) || now.kind != known.kind {
                return false;
            }
            *known = now;
        }
        let gone: Vec<bool> =
            self.described.iter().map(|known| database.property(known.property).is_none()).collect();
        for number in (0..gone.len()).rev().filter(|number| gone.get(*number) == Some(&true)) {
            self.described.remove(number);
            self.columns.remove(number);
            self.orders.remove(number);
        }
        for property in &database.properties {
            if self.number_of(property.id).is_none() {
                self.described.push(Described::of(property));
                self.columns.push(Column::of(property.kind));
                self.orders.push(Order::default());
            }
        }
        if self.database.updated_at != database.updated_at {
            self.database = Arc::new(database.clone());
            self.selections_mut().forget();
            *self.shown_mut() = ShownRecords::default();
        }
        true
    }

    /// Records as callers of the whole workspace see them, as far as they are remembered.
    pub(crate) fn shown(&self, ids: &[RecordId]) -> Vec<Option<Arc<Listed>>> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().map(|id| shown.get(*id)).collect()
    }

    /// Remembers records as callers of the whole workspace see them at the position and of the database that columns have.
    pub(crate) fn remember(&self, records: &[Arc<Listed>]) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            shown.put(record, self.ids.len());
        }
    }

    /// What they take, about.
    pub(crate) fn bytes(&self) -> usize {
        let orders: usize = self.orders.iter().map(Order::bytes).sum();
        let columns: usize = self.columns.iter().map(Column::bytes).sum();
        let rows = self.ids.capacity() * size_of::<u128>() + self.created.capacity() * size_of::<i64>();
        // Whether they are there already or not, so that columns take no more once they are asked.
        let selections = Selections::most_bytes(self.live.bytes(), self.ids.len());
        let shown = ShownRecords::most_bytes(self.ids.len());
        let all_rows = self.by_id.bytes() + self.by_creation.bytes() + self.live.bytes();
        orders + columns + rows + selections + shown + all_rows
    }

    fn selections(&self) -> MutexGuard<'_, Selections> {
        // Nothing under the lock can be left half done.
        self.selections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_change(&mut self, row: u32) {
        let rows = self.ids.len();
        self.selections_mut().follow(row, rows);
    }

    fn shown_mut(&mut self) -> &mut ShownRecords {
        self.shown.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn selections_mut(&mut self) -> &mut Selections {
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
        for (described, column) in self.described.iter().zip(&mut self.columns) {
            let of_property = row.cells.iter().filter(|cell| cell.property == described.property);
            column.set(number, &of_property.collect::<Vec<_>>());
        }
    }

    fn put_in(&mut self, row: u32) {
        self.each_order(row, |order, to| order.insert(row, to));
    }

    fn take_out(&mut self, row: u32) {
        self.each_order(row, |order, to| order.remove(row, to));
    }

    /// Does something with each order that a row stands in, which is told how another row compares with it.
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

    /// The order that is kept of a column.
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
        self.described.iter().position(|one| one.property == property)
    }
}
