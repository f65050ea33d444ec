//! Selected rows in order, a page of them, and where one stands.
//!
//! The order is that of the statements in `store/query.rs`: records with a value of the first property by it, then by
//! those that follow, then by id in the direction of the first; then those without one, by the properties that follow and
//! by their creation.

use std::cmp::Ordering;
use std::sync::Arc;

use cairn_proto::ids::RecordId;

use super::Columns;
use super::bits::Bits;
use super::column::Column;
use super::order::Order;
use crate::model::Selection;

/// To take a row and put it in order is reckoned to cost as much as to pass that many in a walk; it was not measured.
const STEPS_A_ROW: u64 = 16;

/// A page of a selection, where it begins, and how many are selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) total: u64,
    pub(crate) offset: u64,
    pub(crate) ids: Vec<RecordId>,
}

/// One property that orders.
#[derive(Clone, Copy)]
struct Level<'a> {
    number: usize,
    column: &'a Column,
    is_descending: bool,
}

/// How selected rows are in order.
struct Ordered<'a> {
    columns: &'a Columns,
    levels: Vec<Level<'a>>,
    selected: Arc<Bits>,
    total: u64,
}

impl Columns {
    /// The page at an offset; `None` when these columns cannot tell.
    pub(crate) fn page(&self, selection: &Selection, limit: u32, offset: u64) -> Option<Place> {
        let ordered = self.ordered(selection)?;
        let ids = ordered.page(limit, offset);
        Some(Place { total: ordered.total, offset, ids })
    }

    /// The page that a record stands on, none when it is not selected; `None` when these columns cannot tell.
    pub(crate) fn page_of(&self, selection: &Selection, limit: u32, id: RecordId) -> Option<Option<Place>> {
        let ordered = self.ordered(selection)?;
        let Some(row) = self.row_of(id).filter(|row| ordered.selected.has(*row)) else { return Some(None) };
        let before = ordered.before(row);
        let offset = before - before % u64::from(limit.max(1));
        let ids = ordered.page(limit, offset);
        Some(Some(Place { total: ordered.total, offset, ids }))
    }

    fn ordered(&self, selection: &Selection) -> Option<Ordered<'_>> {
        let mut levels = Vec::with_capacity(selection.orders.len());
        for order in &selection.orders {
            let number = self.number_of(order.property)?;
            levels.push(Level {
                number,
                column: self.columns.get(number)?,
                is_descending: order.is_descending,
            });
        }
        let selected = self.selected(selection)?;
        let total = selected.count();
        Some(Ordered { columns: self, levels, selected, total })
    }
}

impl Ordered<'_> {
    fn page(&self, limit: u32, offset: u64) -> Vec<RecordId> {
        let limit =
            (limit as usize).min(usize::try_from(self.total.saturating_sub(offset)).unwrap_or(usize::MAX));
        let Ok(offset) = usize::try_from(offset) else { return Vec::new() };
        if limit == 0 {
            return Vec::new();
        }
        let rows = match self.levels.first() {
            None => self.by_creation(offset, limit),
            Some(first) => self.by_value(*first, offset, limit),
        };
        rows.into_iter().map(|row| self.columns.record(row)).collect()
    }

    fn is_everything(&self) -> bool {
        self.total == self.columns.by_creation.len() as u64
    }

    /// Whether a walk of an order that ends with the selected row of that number costs more than to take all of them.
    fn is_few(&self, end: usize) -> bool {
        let everything = self.columns.by_creation.len() as u64;
        let walked = u128::from(everything) * end as u128 / u128::from(self.total.max(1));
        u128::from(self.total * STEPS_A_ROW) <= walked
    }

    fn by_creation(&self, offset: usize, limit: usize) -> Vec<u32> {
        let order = &self.columns.by_creation;
        if self.is_everything() {
            return order.rows_from(offset).take(limit).collect();
        }
        if self.is_few(offset + limit) {
            return window(self.selected.rows().collect(), offset, limit, |one, other| {
                self.columns.by_creation(one, other)
            });
        }
        let mut rows = Vec::with_capacity(limit);
        self.walk(order, false, offset, limit, &mut rows);
        rows
    }

    fn by_value(&self, first: Level<'_>, offset: usize, limit: usize) -> Vec<u32> {
        let order = self.columns.orders.get(first.number).filter(|_| first.column.is_ordered());
        if let Some(rows) = order.and_then(|order| self.walked_back(order, first, offset, limit)) {
            return rows;
        }
        let Some(order) = order.filter(|_| !self.is_few(offset + limit)) else {
            return window(self.selected.rows().collect(), offset, limit, |one, other| {
                self.compare(one, other)
            });
        };
        let mut rows = Vec::with_capacity(limit);
        let valued = if self.levels.len() > 1 {
            let walk = order.rows();
            match first.is_descending {
                false => self.walk_runs(walk, first, offset, limit, &mut rows),
                true => self.walk_runs(walk.rev(), first, offset, limit, &mut rows),
            }
        } else if self.is_everything() {
            match first.is_descending {
                false => rows.extend(order.rows_from(offset).take(limit)),
                true => rows.extend(order.rows_back_from(offset).take(limit)),
            }
            order.len()
        } else {
            self.walk(order, first.is_descending, offset, limit, &mut rows)
        };
        let missing = limit - rows.len();
        if missing > 0 {
            rows.extend(self.unvalued(first, offset.saturating_sub(valued), missing));
        }
        rows
    }

    /// The page by a walk from the end of the rows with a value; `None` where that is no shorter, and where others stand in it.
    fn walked_back(&self, order: &Order, first: Level<'_>, offset: usize, limit: usize) -> Option<Vec<u32>> {
        let total = usize::try_from(self.total).ok()?;
        if self.levels.len() > 1 || self.is_everything() || offset < total / 2 {
            return None;
        }
        let is_valued = |row: &u32| first.column.rank(*row).is_some();
        let is_all_valued = order.len() == self.columns.by_creation.len();
        let valued = if is_all_valued { total } else { self.selected.rows().filter(is_valued).count() };
        let behind = valued.checked_sub(offset + limit)?;
        if behind >= offset || self.is_few(behind + limit) {
            return None;
        }
        let mut rows = Vec::with_capacity(limit);
        self.walk(order, !first.is_descending, behind, limit, &mut rows);
        rows.reverse();
        Some(rows)
    }

    /// Answers how many selected rows it has passed, which are all if the page is not full.
    fn walk(
        &self,
        order: &Order,
        is_backwards: bool,
        offset: usize,
        limit: usize,
        page: &mut Vec<u32>,
    ) -> usize {
        let (mut passed, mut pieces) = (0, order.pieces());
        let mut next = || if is_backwards { pieces.next_back() } else { pieces.next() };
        let is_selected = |row: &u32| self.selected.has(*row);
        while let Some(piece) = next() {
            // Pieces before the page are only counted.
            let here = piece.iter().copied().filter(is_selected).count();
            let begin = offset.saturating_sub(passed);
            passed += here;
            if here <= begin {
                continue;
            }
            let mut rows: Vec<u32> = piece.iter().copied().filter(is_selected).collect();
            if is_backwards {
                rows.reverse();
            }
            page.extend(rows.into_iter().skip(begin).take(limit - page.len()));
            if page.len() == limit {
                break;
            }
        }
        passed
    }

    /// The same, where rows that are alike by the first property are in order by others.
    fn walk_runs(
        &self,
        rows: impl Iterator<Item = u32>,
        first: Level<'_>,
        offset: usize,
        limit: usize,
        page: &mut Vec<u32>,
    ) -> usize {
        let (mut passed, mut run, mut rank) = (0, Vec::new(), None);
        let mut finish = |run: &mut Vec<u32>, page: &mut Vec<u32>| {
            let (begin, len) = (passed, run.len());
            passed += len;
            let rows = std::mem::take(run);
            if passed > offset {
                let from = offset.saturating_sub(begin);
                let wanted = (limit - page.len()).min(len - from);
                page.extend(window(rows, from, wanted, |one, other| self.compare(one, other)));
            }
            page.len() == limit
        };
        for row in rows.filter(|row| self.selected.has(*row)) {
            let of_row = first.column.rank(row);
            let is_alike = rank == of_row
                && run.last().is_none_or(|last| first.column.tie(*last, row) == Ordering::Equal);
            if !is_alike && finish(&mut run, page) {
                return passed;
            }
            rank = of_row;
            run.push(row);
        }
        finish(&mut run, page);
        passed
    }

    fn unvalued(&self, first: Level<'_>, offset: usize, limit: usize) -> Vec<u32> {
        let is_unvalued = |row: &u32| first.column.rank(*row).is_none();
        if self.levels.len() == 1 {
            let order = self.columns.by_creation.rows().filter(|row| self.selected.has(*row));
            return order.filter(is_unvalued).skip(offset).take(limit).collect();
        }
        let rows: Vec<u32> = self.selected.rows().filter(is_unvalued).collect();
        window(rows, offset, limit, |one, other| self.compare(one, other))
    }

    /// How many selected rows stand before one of them.
    fn before(&self, row: u32) -> u64 {
        let is_selected = |row: &u32| self.selected.has(*row);
        let before = match self.in_order(row) {
            None => {
                let is_before = |other: &u32| self.compare(*other, row) == Ordering::Less;
                self.selected.rows().filter(is_before).count()
            }
            Some((order, place, false)) if self.is_everything() => place.min(order.len()),
            Some((order, place, true)) if self.is_everything() => order.len().saturating_sub(place + 1),
            Some((order, place, false)) => order.rows().take(place).filter(is_selected).count(),
            Some((order, place, true)) => order.rows_from(place + 1).filter(is_selected).count(),
        };
        before as u64
    }

    /// The kept order that is the page's, the row's place in it, and whether the page goes through it backwards; `None` where
    /// there is none, or the row has no value.
    fn in_order(&self, row: u32) -> Option<(&Order, usize, bool)> {
        let columns = self.columns;
        match self.levels.as_slice() {
            [] => {
                let order = &columns.by_creation;
                Some((order, order.place(|other| columns.by_creation(other, row)), false))
            }
            [only] if only.column.is_ordered() && only.column.rank(row).is_some() => {
                let order = columns.orders.get(only.number)?;
                let place = order.place(|other| columns.by_value(only.column, other, row));
                Some((order, place, only.is_descending))
            }
            _ => None,
        }
    }

    fn compare(&self, one: u32, other: u32) -> Ordering {
        for level in &self.levels {
            let order = match (level.column.rank(one), level.column.rank(other)) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(a), Some(b)) => {
                    let order = a.cmp(&b).then_with(|| level.column.tie(one, other));
                    if level.is_descending { order.reverse() } else { order }
                }
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        match self.levels.first() {
            Some(first) if first.column.rank(one).is_some() => {
                let order = self.columns.by_id(one, other);
                if first.is_descending { order.reverse() } else { order }
            }
            _ => self.columns.by_creation(one, other),
        }
    }
}

/// A part of what rows are when they are in order, without putting all of them in order.
fn window(
    mut rows: Vec<u32>,
    offset: usize,
    limit: usize,
    compare: impl Fn(u32, u32) -> Ordering,
) -> Vec<u32> {
    let end = offset.saturating_add(limit);
    if offset >= rows.len() || limit == 0 {
        return Vec::new();
    }
    if end < rows.len() {
        rows.select_nth_unstable_by(end, |one, other| compare(*one, *other));
        rows.truncate(end);
    }
    if offset > 0 {
        rows.select_nth_unstable_by(offset, |one, other| compare(*one, *other));
    }
    let mut page = rows.split_off(offset);
    page.sort_unstable_by(|one, other| compare(*one, *other));
    page
}
