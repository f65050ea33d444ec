//! Groups of records, for databases without in-memory columns.
//!
//! The engine counts, by index where it can, and sorts the groups. Sums are added here: numbers are fetched as they
//! are, with their frequency in a group, since a sum of doubles depends on the order of additions. They are streamed
//! row by row, so memory is bounded by the groups of the answer.

use std::collections::{BTreeMap, HashMap};

use cairn_chassis::on_db;
use cairn_chassis::sql::{Error, Text, Tx};
use cairn_proto::domain::limits::RECORD_GROUPS;
use cairn_proto::domain::{DateUnit, GroupOrder};
use cairn_proto::ids::{PropertyId, RecordId};
use futures::TryStreamExt as _;
use sqlx::AssertSqlSafe;

use super::statement::{Bind, Sql};
use crate::model::{
    Counted, Group, GroupBy, GroupKey, Grouped, Grouping, Others, Ranked, Selection, Tally, keep_first,
    units_of,
};
use crate::store::page::to_count;

/// The day of a date key, rounded down in integer arithmetic, which both engines evaluate alike.
const DAY: &str = "CAST((CAST(k.number_key AS BIGINT) - (CAST(k.number_key AS BIGINT) % 86400000000 + 86400000000) \
     % 86400000000) / 86400000000 AS DOUBLE PRECISION)";
const NO_NUMBER: &str = "CAST(NULL AS DOUBLE PRECISION)";
const NO_TEXT: &str = "CAST(NULL AS TEXT)";

/// A key as the engine returns it.
type KeyColumns = (Option<f64>, Option<String>);
/// The key, count and example of a group, the number of groups, and the number of records, each counted once a group.
type CountRow = (Option<f64>, Option<String>, i64, Text<RecordId>, i64, i64);
/// A key, a number, and its frequency in the group.
type NumberRow = (Option<f64>, Option<String>, f64, i64);

/// Runs a block for each row of a statement as it is streamed.
macro_rules! each_row {
    ($tx:expr, $sql:expr, $row:ty, $each:expr) => {
        on_db!($tx, |c| {
            let mut query = sqlx::query_as::<_, $row>(AssertSqlSafe($sql.text.clone()));
            for bind in &$sql.binds {
                query = match bind {
                    Bind::Text(text) => query.bind(text.clone()),
                    Bind::Number(number) => query.bind(*number),
                    Bind::Count(count) => query.bind(*count),
                };
            }
            let mut rows = query.fetch(c);
            let each: &mut (dyn FnMut($row) + Send) = &mut $each;
            while let Some(row) = rows.try_next().await? {
                each(row);
            }
            Ok::<(), sqlx::Error>(())
        })
    };
}

impl Grouping {
    /// The number and the text of the cells `k` that make the key of a group.
    const fn columns(&self) -> (&'static str, &'static str) {
        match self.by {
            GroupBy::Number => ("k.number_key", NO_TEXT),
            GroupBy::Date(_) => (DAY, NO_TEXT),
            GroupBy::Option => ("k.number_key", "k.text_key"),
            GroupBy::Text | GroupBy::Reference | GroupBy::Visible { .. } => (NO_NUMBER, "k.text_key"),
        }
    }

    /// What the engine groups by, without constants.
    const fn keys(&self) -> &'static [&'static str] {
        match self.by {
            GroupBy::Number => &["k.number_key"],
            GroupBy::Date(_) => &[DAY],
            GroupBy::Option => &["k.number_key", "k.text_key"],
            GroupBy::Text | GroupBy::Reference | GroupBy::Visible { .. } => &["k.text_key"],
        }
    }

    /// Months and years are computed from the days that the engine returns.
    fn key(&self, (number, text): KeyColumns) -> Option<GroupKey> {
        match (number, text) {
            (Some(place), Some(id)) => Some(GroupKey::Option(place as u16, id)),
            (None, Some(text)) => Some(GroupKey::Text(text)),
            (Some(number), None) => Some(GroupKey::Number(Ranked::of(match self.unit() {
                Some(unit) => units_of(number as i64, unit) as f64,
                None => number,
            }))),
            (None, None) => None,
        }
    }

    /// Whether several groups of the engine are merged into one.
    fn is_folded(&self) -> bool {
        self.unit().is_some_and(|unit| unit != DateUnit::Day)
    }
}

/// The groups of a selection of `total` records.
pub(crate) async fn groups(
    tx: &mut Tx,
    selection: &Selection,
    grouping: &Grouping,
    total: u64,
) -> Result<Grouped, Error> {
    let (mut groups, others) = counted(tx, selection, grouping).await?;
    let places: HashMap<Option<GroupKey>, usize> =
        groups.iter().enumerate().map(|(place, group)| (group.key.clone(), place)).collect();
    let mut tallies = Vec::with_capacity(grouping.summed.len());
    for property in &grouping.summed {
        let (mut all, mut of_groups) = (Tally::default(), vec![Tally::default(); groups.len()]);
        let sql = numbers(tx, selection, grouping, *property);
        each_row!(tx, sql, NumberRow, |(number, text, summed, times)| {
            let place = places.get(&grouping.key((number, text)));
            if let Some(tally) = place.and_then(|place| of_groups.get_mut(*place)) {
                tally.add(summed, to_times(times));
            }
            if grouping.is_single {
                all.add(summed, to_times(times));
            }
        })?;
        if !grouping.is_single {
            // A record can be in several groups, but is summed once.
            let sql = all_numbers(tx, selection, *property);
            each_row!(tx, sql, NumberRow, |(_, _, summed, times)| all.add(summed, to_times(times)))?;
        }
        groups.iter_mut().zip(of_groups).for_each(|(group, tally)| group.tallies.push(tally));
        tallies.push(all);
    }
    Ok(Grouped { groups, others, total, tallies })
}

/// The groups in their order, the records without a value after them, and what is left out.
async fn counted(
    tx: &mut Tx,
    selection: &Selection,
    grouping: &Grouping,
) -> Result<(Vec<Group>, Others), Error> {
    let sql = counts(tx, selection, grouping);
    let (mut folded, mut without, mut all) = (BTreeMap::<GroupKey, Counted<()>>::new(), None, (0, 0));
    each_row!(tx, sql, CountRow, |(number, text, count, example, of_groups, of_records): CountRow| {
        all = (to_count(of_groups), to_count(of_records));
        let one = Counted { key: (), count: to_count(count), example: example.0 };
        let Some(key) = grouping.key((number, text)) else {
            without = Some(one);
            return;
        };
        let group = folded.entry(key).or_insert(Counted { count: 0, ..one });
        group.count += one.count;
        group.example = group.example.min(one.example);
    })?;
    let found: u64 = folded.values().chain(&without).map(|one| one.count).sum();
    let found = Others { groups: folded.len() as u64 + u64::from(without.is_some()), records: found };
    let keyed = folded.into_iter().map(|(key, one)| Counted { key, count: one.count, example: one.example });
    let mut counted: Vec<Counted<GroupKey>> = keyed.collect();
    let mut others = keep_first(&mut counted, grouping.order);
    if !grouping.is_folded() {
        others.groups += all.0.saturating_sub(found.groups);
        others.records += all.1.saturating_sub(found.records);
    }
    let group = |key: Option<GroupKey>, count, example| Group {
        key,
        count,
        example: Some(example),
        tallies: Vec::new(),
    };
    let groups = counted.into_iter().map(|one| group(Some(one.key), one.count, one.example));
    Ok((groups.chain(without.map(|one| group(None, one.count, one.example))).collect(), others))
}

fn counts(tx: &mut Tx, selection: &Selection, grouping: &Grouping) -> Sql {
    let mut sql = Sql::new(tx, selection);
    let ((number, text), keys) = (grouping.columns(), grouping.keys());
    sql.push(&format!("SELECT {number}, {text}, COUNT(*), MIN(s.id), COUNT(*) OVER (), "));
    sql.push("CAST(SUM(COUNT(*)) OVER () AS BIGINT) FROM ");
    members(&mut sql, selection, grouping);
    sql.push(&format!(" GROUP BY {}", keys.join(", ")));
    if grouping.is_folded() {
        return sql;
    }
    // The records without a value are one group more, whatever the order.
    let (by_count, direction) = match grouping.order {
        GroupOrder::Count => ("COUNT(*) DESC, ", "ASC"),
        GroupOrder::Asc => ("", "ASC"),
        GroupOrder::Desc => ("", "DESC"),
    };
    let first = keys.first().copied().unwrap_or_default();
    sql.push(&format!(" ORDER BY CASE WHEN {first} IS NULL THEN 0 ELSE 1 END, {by_count}"));
    let keys: Vec<String> = keys.iter().map(|key| format!("{key} {direction}")).collect();
    sql.push(&format!("{} LIMIT ", keys.join(", ")));
    sql.bind(Bind::Count(i64::try_from(RECORD_GROUPS + 1).unwrap_or(i64::MAX)));
    sql
}

fn numbers(tx: &mut Tx, selection: &Selection, grouping: &Grouping, summed: PropertyId) -> Sql {
    let mut sql = Sql::new(tx, selection);
    let (number, text) = grouping.columns();
    sql.push(&format!("SELECT {number}, {text}, v.number_key, COUNT(*) FROM "));
    members(&mut sql, selection, grouping);
    summed_cells(&mut sql, summed);
    sql.push(&format!(" GROUP BY {}, v.number_key", grouping.keys().join(", ")));
    sql
}

fn all_numbers(tx: &mut Tx, selection: &Selection, summed: PropertyId) -> Sql {
    let mut sql = Sql::new(tx, selection);
    sql.push(&format!("SELECT {NO_NUMBER}, {NO_TEXT}, v.number_key, COUNT(*) FROM "));
    selected(&mut sql, selection);
    summed_cells(&mut sql, summed);
    sql.push(" GROUP BY v.number_key");
    sql
}

/// The selected records `s`, each once.
fn selected(sql: &mut Sql, selection: &Selection) {
    sql.push("(").matching(selection, |id, is_single| match is_single {
        true => format!("{id} AS id"),
        false => format!("DISTINCT {id} AS id"),
    });
    sql.push(") s");
}

/// [`selected`] left-joined with the cells `k` of the grouping.
fn members(sql: &mut Sql, selection: &Selection, grouping: &Grouping) {
    selected(sql, selection);
    // Without the database, so that SQLite uses the primary key of the cells.
    sql.push(" LEFT JOIN record_cells k ON k.workspace_id = $1 AND k.record_id = s.id AND k.property_id = ");
    sql.bind_text(grouping.property);
    if let GroupBy::Visible { kind, folders } = &grouping.by {
        sql.push(" AND ").visible(*kind, folders, "k");
    }
}

/// The cells `v` of a summed property.
fn summed_cells(sql: &mut Sql, summed: PropertyId) {
    sql.push(" JOIN record_cells v ON v.workspace_id = $1 AND v.record_id = s.id AND v.place = 0 ");
    sql.push("AND v.number_key IS NOT NULL AND v.property_id = ").bind_text(summed);
}

fn to_times(count: i64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
