//! Pages of a sorted selection, and the page that a record is on.
//!
//! The order is that of the statements in `store/query.rs`: records with a value of the first property come first, sorted by
//! it, by the remaining properties, and by id in the direction of the first. Records without one follow, sorted by the
//! remaining properties and by creation.

use std::cmp::Ordering;
use std::sync::Arc;

use cairn_proto::ids::RecordId;

use super::Columns;
use super::bitmap::Bitmap;
use super::column::Column;
use super::order::Order;
use crate::model::Selection;

/// Sorting one selected row is assumed to cost as much as scanning this many rows of an order. An estimate, not measured.
const SORT_COST_PER_ROW: u64 = 16;

/// A page of a selection: its ids, its offset, and the total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) total: u64,
    pub(crate) offset: u64,
    pub(crate) ids: Vec<RecordId>,
}

/// One property to sort by.
#[derive(Clone, Copy)]
struct SortKey<'a> {
    number: usize,
    column: &'a Column,
    is_descending: bool,
}

/// A selection with its sort keys.
struct SortedSelection<'a> {
    columns: &'a Columns,
    keys: Vec<SortKey<'a>>,
    selected: Arc<Bitmap>,
    total: u64,
}

impl Columns {
    /// The page at an offset; `None` if the columns cannot answer.
    pub(crate) fn page(&self, selection: &Selection, limit: u32, offset: u64) -> Option<Place> {
        let sorted = self.sorted(selection)?;
        let ids = sorted.page(limit, offset);
        Some(Place { total: sorted.total, offset, ids })
    }

    /// The page that contains a record, `Some(None)` if the record is not selected; `None` if the columns cannot answer.
    pub(crate) fn page_of(&self, selection: &Selection, limit: u32, id: RecordId) -> Option<Option<Place>> {
        let sorted = self.sorted(selection)?;
        let Some(row) = self.row_of(id).filter(|row| sorted.selected.contains(*row)) else {
            return Some(None);
        };
        let before = sorted.before(row);
        let offset = before - before % u64::from(limit.max(1));
        let ids = sorted.page(limit, offset);
        Some(Some(Place { total: sorted.total, offset, ids }))
    }

    fn sorted(&self, selection: &Selection) -> Option<SortedSelection<'_>> {
        let mut keys = Vec::with_capacity(selection.orders.len());
        for order in &selection.orders {
            let number = self.number_of(order.property)?;
            keys.push(SortKey {
                number,
                column: self.columns.get(number)?,
                is_descending: order.is_descending,
            });
        }
        let selected = self.selected(selection)?;
        let total = selected.count();
        Some(SortedSelection { columns: self, keys, selected, total })
    }
}

impl SortedSelection<'_> {
    fn page(&self, limit: u32, offset: u64) -> Vec<RecordId> {
        let limit =
            (limit as usize).min(usize::try_from(self.total.saturating_sub(offset)).unwrap_or(usize::MAX));
        let Ok(offset) = usize::try_from(offset) else { return Vec::new() };
        if limit == 0 {
            return Vec::new();
        }
        let rows = match self.keys.first() {
            None => self.by_creation(offset, limit),
            Some(first) => self.by_value(*first, offset, limit),
        };
        rows.into_iter().map(|row| self.columns.record(row)).collect()
    }

    fn selects_all(&self) -> bool {
        self.total == self.columns.by_creation.len() as u64
    }

    /// Whether sorting all selected rows is cheaper than scanning an order up to the selected row at `end`.
    fn is_sort_cheaper(&self, end: usize) -> bool {
        let all_rows = self.columns.by_creation.len() as u64;
        let scanned = u128::from(all_rows) * end as u128 / u128::from(self.total.max(1));
        u128::from(self.total * SORT_COST_PER_ROW) <= scanned
    }

    fn by_creation(&self, offset: usize, limit: usize) -> Vec<u32> {
        let order = &self.columns.by_creation;
        if self.selects_all() {
            return order.rows_from(offset).take(limit).collect();
        }
        if self.is_sort_cheaper(offset + limit) {
            return sorted_window(self.selected.rows().collect(), offset, limit, |one, other| {
                self.columns.by_creation(one, other)
            });
        }
        let mut rows = Vec::with_capacity(limit);
        self.scan(order, false, offset, limit, &mut rows);
        rows
    }

    fn by_value(&self, first: SortKey<'_>, offset: usize, limit: usize) -> Vec<u32> {
        let order = self.columns.orders.get(first.number).filter(|_| first.column.is_ordered());
        if let Some(rows) = order.and_then(|order| self.scan_from_end(order, first, offset, limit)) {
            return rows;
        }
        let Some(order) = order.filter(|_| !self.is_sort_cheaper(offset + limit)) else {
            return sorted_window(self.selected.rows().collect(), offset, limit, |one, other| {
                self.compare(one, other)
            });
        };
        let mut rows = Vec::with_capacity(limit);
        let with_value = if self.keys.len() > 1 {
            let scan = order.rows();
            match first.is_descending {
                false => self.scan_runs(scan, first, offset, limit, &mut rows),
                true => self.scan_runs(scan.rev(), first, offset, limit, &mut rows),
            }
        } else if self.selects_all() {
            match first.is_descending {
                false => rows.extend(order.rows_from(offset).take(limit)),
                true => rows.extend(order.rows_back_from(offset).take(limit)),
            }
            order.len()
        } else {
            self.scan(order, first.is_descending, offset, limit, &mut rows)
        };
        let missing = limit - rows.len();
        if missing > 0 {
            rows.extend(self.without_value(first, offset.saturating_sub(with_value), missing));
        }
        rows
    }

    /// The page by a reverse scan from the last row with a value; `None` if that is not shorter, or if the page extends into the
    /// rows without a value.
    fn scan_from_end(
        &self,
        order: &Order,
        first: SortKey<'_>,
        offset: usize,
        limit: usize,
    ) -> Option<Vec<u32>> {
        let total = usize::try_from(self.total).ok()?;
        if self.keys.len() > 1 || self.selects_all() || offset < total / 2 {
            return None;
        }
        let has_value = |row: &u32| first.column.rank(*row).is_some();
        let all_have_value = order.len() == self.columns.by_creation.len();
        let with_value = if all_have_value { total } else { self.selected.rows().filter(has_value).count() };
        let behind = with_value.checked_sub(offset + limit)?;
        if behind >= offset || self.is_sort_cheaper(behind + limit) {
            return None;
        }
        let mut rows = Vec::with_capacity(limit);
        self.scan(order, !first.is_descending, behind, limit, &mut rows);
        rows.reverse();
        Some(rows)
    }

    /// Appends the page from an order. Returns how many selected rows were passed, which is all of them unless the page is full.
    fn scan(
        &self,
        order: &Order,
        is_backwards: bool,
        offset: usize,
        limit: usize,
        page: &mut Vec<u32>,
    ) -> usize {
        let (mut passed, mut chunks) = (0, order.chunks());
        let mut next = || if is_backwards { chunks.next_back() } else { chunks.next() };
        let is_selected = |row: &u32| self.selected.contains(*row);
        while let Some(chunk) = next() {
            // In chunks before the page, selected rows are only counted.
            let here = chunk.iter().copied().filter(is_selected).count();
            let begin = offset.saturating_sub(passed);
            passed += here;
            if here <= begin {
                continue;
            }
            let mut rows: Vec<u32> = chunk.iter().copied().filter(is_selected).collect();
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

    /// The same with several sort keys: runs of rows that are equal by the first key are sorted by the others.
    fn scan_runs(
        &self,
        rows: impl Iterator<Item = u32>,
        first: SortKey<'_>,
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
                page.extend(sorted_window(rows, from, wanted, |one, other| self.compare(one, other)));
            }
            page.len() == limit
        };
        for row in rows.filter(|row| self.selected.contains(*row)) {
            let of_row = first.column.rank(row);
            let is_same_run = rank == of_row
                && run.last().is_none_or(|last| first.column.tie(*last, row) == Ordering::Equal);
            if !is_same_run && finish(&mut run, page) {
                return passed;
            }
            rank = of_row;
            run.push(row);
        }
        finish(&mut run, page);
        passed
    }

    fn without_value(&self, first: SortKey<'_>, offset: usize, limit: usize) -> Vec<u32> {
        let has_no_value = |row: &u32| first.column.rank(*row).is_none();
        if self.keys.len() == 1 {
            let order = self.columns.by_creation.rows().filter(|row| self.selected.contains(*row));
            return order.filter(has_no_value).skip(offset).take(limit).collect();
        }
        let rows: Vec<u32> = self.selected.rows().filter(has_no_value).collect();
        sorted_window(rows, offset, limit, |one, other| self.compare(one, other))
    }

    /// How many selected rows precede one of them.
    fn before(&self, row: u32) -> u64 {
        let is_selected = |row: &u32| self.selected.contains(*row);
        let before = match self.in_order(row) {
            None => {
                let is_before = |other: &u32| self.compare(*other, row) == Ordering::Less;
                self.selected.rows().filter(is_before).count()
            }
            Some((order, place, false)) if self.selects_all() => place.min(order.len()),
            Some((order, place, true)) if self.selects_all() => order.len().saturating_sub(place + 1),
            Some((order, place, false)) => order.rows().take(place).filter(is_selected).count(),
            Some((order, place, true)) => order.rows_from(place + 1).filter(is_selected).count(),
        };
        before as u64
    }

    /// The maintained order that matches the sort keys, the row's offset in it, and whether the page reads it in reverse; `None`
    /// if there is none, or the row has no value.
    fn in_order(&self, row: u32) -> Option<(&Order, usize, bool)> {
        let columns = self.columns;
        match self.keys.as_slice() {
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
        for key in &self.keys {
            let order = match (key.column.rank(one), key.column.rank(other)) {
                (None, None) => Ordering::Equal,
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(a), Some(b)) => {
                    let order = a.cmp(&b).then_with(|| key.column.tie(one, other));
                    if key.is_descending { order.reverse() } else { order }
                }
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        match self.keys.first() {
            Some(first) if first.column.rank(one).is_some() => {
                let order = self.columns.by_id(one, other);
                if first.is_descending { order.reverse() } else { order }
            }
            _ => self.columns.by_creation(one, other),
        }
    }
}

/// A window of the sorted rows, by selection instead of a full sort.
fn sorted_window(
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
