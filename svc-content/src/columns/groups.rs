//! Group-by over selected rows, with aggregates of other columns.

use std::collections::HashMap;
use std::sync::Arc;

use cairn_proto::domain::GroupOrder;
use cairn_proto::ids::RecordId;
use uuid::Uuid;

use super::Columns;
use super::bitmap::Bitmap;
use super::column::{Column, ColumnSchema, Key};
use crate::model::{
    Counted, Group, GroupBy, GroupKey, Grouped, Grouping, Others, Ranked, Selection, Tally, keep_first,
};

/// With this many groups collected, those that cannot be in the answer are dropped.
const MAX_KEPT: usize = 4_096;

/// The input of a group-by.
struct Rows<'a> {
    columns: &'a Columns,
    number: usize,
    column: &'a Column,
    by: &'a GroupBy,
    selected: Arc<Bitmap>,
}

/// Collects complete groups, and no more of them than an answer needs.
struct GroupCollector<'a> {
    groups: Vec<Counted<Key<'a>>>,
    order: GroupOrder,
    others: Others,
}

impl<'a> GroupCollector<'a> {
    fn push(&mut self, group: Counted<Key<'a>>) {
        self.groups.push(group);
        if self.groups.len() >= MAX_KEPT {
            self.prune();
        }
    }

    fn prune(&mut self) {
        let dropped = keep_first(&mut self.groups, self.order);
        self.others.groups += dropped.groups;
        self.others.records += dropped.records;
    }

    /// Collects rows with their keys; rows with equal keys must be adjacent.
    fn take_sorted(&mut self, columns: &Columns, keyed: impl Iterator<Item = (Key<'a>, u32)>) {
        let mut open: Option<Counted<Key<'a>>> = None;
        for (key, row) in keyed {
            let record = columns.record(row);
            if let Some(whole) = open.take_if(|group| group.key != key) {
                self.push(whole);
            }
            join(open.get_or_insert(Counted { key, count: 0, example: record }), record);
        }
        open.into_iter().for_each(|whole| self.push(whole));
    }
}

impl Columns {
    /// The groups of a selection; `None` if the columns cannot answer.
    pub(crate) fn groups(&self, selection: &Selection, grouping: &Grouping) -> Option<Grouped> {
        // Whether a scope hides a reference depends on other tables.
        if matches!(grouping.by, GroupBy::Visible { .. }) {
            return None;
        }
        let number = self.number_of(grouping.property)?;
        let (column, schema) = (self.columns.get(number)?, self.schemas.get(number)?);
        let summed = grouping.summed.iter().map(|property| self.columns.get(self.number_of(*property)?));
        let summed: Vec<&Column> = summed.collect::<Option<_>>()?;
        let selected = self.selected(selection)?;
        let rows = Rows { columns: self, number, column, by: &grouping.by, selected };
        let GroupCollector { groups: counted, others, .. } = rows.counted(grouping.order)?;
        let places = counted.iter().enumerate().map(|(place, one)| (one.key, place)).collect();
        let mut groups: Vec<Group> = counted.into_iter().map(|one| group(one, schema)).collect();
        // The group without a value comes last; it needs an index even if it is empty.
        groups.push(rows.without());
        let tallies = summed.into_iter().map(|column| rows.sum_up(column, &places, &mut groups)).collect();
        groups.retain(|group| group.count > 0);
        Some(Grouped { groups, others, total: rows.selected.count(), tallies })
    }
}

impl<'a> Rows<'a> {
    /// The groups in order, each with its count.
    fn counted(&self, order: GroupOrder) -> Option<GroupCollector<'a>> {
        let mut collector = GroupCollector { groups: Vec::new(), order, others: Others::default() };
        match self.column {
            Column::Text(_) | Column::Number { .. } => {
                let rows = self.columns.orders.get(self.number)?.rows();
                let rows = rows.filter(|row| self.selected.contains(*row));
                collector.take_sorted(self.columns, rows.filter_map(|row| Some((self.key(row)?, row))));
            }
            Column::Choice(_) | Column::Choices(_) => {
                let of_options = self.of_options();
                of_options.into_iter().flatten().for_each(|group| collector.push(group));
            }
            Column::References(_) => {
                let mut keyed = Vec::new();
                for row in self.selected.rows() {
                    self.column.keys(row, self.by, &mut |key| keyed.push((key, row)));
                }
                keyed.sort_unstable();
                collector.take_sorted(self.columns, keyed.into_iter());
            }
        }
        collector.prune();
        Some(collector)
    }

    /// The key of a row in a column with at most one key per row.
    fn key(&self, row: u32) -> Option<Key<'a>> {
        let mut found = None;
        self.column.keys(row, self.by, &mut |key| found = Some(key));
        found
    }

    /// The groups of options, indexed by option code.
    fn of_options(&self) -> Vec<Option<Counted<Key<'a>>>> {
        let mut groups: Vec<Option<Counted<Key<'a>>>> = Vec::new();
        for row in self.selected.rows() {
            let record = self.columns.record(row);
            self.column.keys(row, self.by, &mut |key| {
                let Key::Place(place) = key else { return };
                let place = usize::from(place);
                if place >= groups.len() {
                    groups.resize(place + 1, None);
                }
                if let Some(group) = groups.get_mut(place) {
                    join(group.get_or_insert(Counted { key, count: 0, example: record }), record);
                }
            });
        }
        groups
    }

    /// The rows without a value.
    fn without(&self) -> Group {
        let mut rows = Bitmap::clone(&self.selected);
        rows.subtract(&self.column.present(&self.selected));
        let example = rows.rows().map(|row| self.columns.record(row)).min();
        Group { key: None, count: rows.count(), example, tallies: Vec::new() }
    }

    /// Aggregates a numeric column per group, where the last group has the rows without a value; returns the tally of all rows.
    fn sum_up(&self, summed: &Column, places: &HashMap<Key<'a>, usize>, groups: &mut [Group]) -> Tally {
        let mut all = Tally::default();
        let mut of_groups = vec![Tally::default(); groups.len()];
        let last = groups.len().saturating_sub(1);
        for row in self.selected.rows() {
            let Some(number) = summed.number(row) else { continue };
            all.add(number, 1);
            let mut has_value = false;
            let mut add = |place: usize| {
                if let Some(tally) = of_groups.get_mut(place) {
                    tally.add(number, 1);
                }
            };
            self.column.keys(row, self.by, &mut |key| {
                has_value = true;
                places.get(&key).copied().into_iter().for_each(&mut add);
            });
            if !has_value {
                add(last);
            }
        }
        for (group, tally) in groups.iter_mut().zip(of_groups) {
            group.tallies.push(tally);
        }
        all
    }
}

fn join<K>(group: &mut Counted<K>, record: RecordId) {
    group.count += 1;
    group.example = group.example.min(record);
}

fn group(counted: Counted<Key<'_>>, schema: &ColumnSchema) -> Group {
    let key = match counted.key {
        Key::Place(place) => match schema.options.get(usize::from(place)) {
            Some(id) => GroupKey::Option(place, id.clone()),
            // A truth value: the column has no options.
            None => GroupKey::Number(Ranked::of(place.into())),
        },
        Key::Number(number) => GroupKey::Number(number),
        Key::Text(text) => GroupKey::Text(String::from_utf8_lossy(text).into_owned()),
        Key::Id(id) => GroupKey::Text(Uuid::from_u128(id).to_string()),
    };
    Group { key: Some(key), count: counted.count, example: Some(counted.example), tallies: Vec::new() }
}
