//! Pages of records: SQL generated for the filters and orders of one request.
//!
//! A condition is generated in one of two forms. As a set (`id IN (…)`) an index yields every matching record, which
//! is right for counting. As a probe (`EXISTS (…)`) the primary key of the cells decides for one record, which is
//! right when many match and the index of the order is scanned until the page is full. When few records match, they
//! are read first and then sorted: scanning the index would pass nearly all records to find them. The total, which a
//! page needs anyway, decides between the two.
//!
//! Texts consist of constants and numbered placeholders only; everything from a caller is bound.

mod groups;
mod statement;

use cairn_chassis::clock::Timestamp;
use cairn_chassis::on_db;
use cairn_chassis::sql::{Error, Text, Tx};
use cairn_proto::ids::RecordId;
use sqlx::AssertSqlSafe;

pub(crate) use self::groups::groups;
use self::statement::{Bind, LIVE, Sql, Strategy};
use super::page::{to_column, to_count};
use crate::model::{Order, Selection};

/// Above this number of matches, records are never all read and sorted.
const MAX_LISTED: u64 = 5_000;
/// Reading and sorting a record costs as much as this many steps of an index scan (measured on both engines).
const SCAN_STEPS_PER_RECORD: u64 = 4;

macro_rules! run {
    ($tx:expr, $sql:expr, $query:ident, $fetch:ident) => {
        on_db!($tx, |c| {
            let mut query = sqlx::$query(AssertSqlSafe($sql.text.clone()));
            for bind in &$sql.binds {
                query = match bind {
                    Bind::Text(text) => query.bind(text.clone()),
                    Bind::Number(number) => query.bind(*number),
                    Bind::Count(count) => query.bind(*count),
                };
            }
            query.$fetch(c).await
        })
    };
}

/// The number of selected records.
pub(crate) async fn count(tx: &mut Tx, selection: &Selection) -> Result<u64, Error> {
    let mut sql = Sql::new(tx, selection);
    sql.matching(selection, |id, is_single| match is_single {
        true => "COUNT(*)".to_owned(),
        false => format!("COUNT(DISTINCT {id})"),
    });
    counted(tx, sql).await
}

/// Whether an index scan up to the selected record of that number costs more than reading all selected records.
fn is_few(selection: &Selection, total: u64, end: u64) -> bool {
    let walked = u128::from(selection.total_records) * u128::from(end.min(total)) / u128::from(total.max(1));
    total <= MAX_LISTED && u128::from(total * SCAN_STEPS_PER_RECORD) <= walked
}

/// The records of a page. Records without a value of the first order come last.
pub(crate) async fn page(
    tx: &mut Tx,
    selection: &Selection,
    total: u64,
    limit: u32,
    offset: u64,
) -> Result<Vec<RecordId>, Error> {
    if offset >= total {
        return Ok(Vec::new());
    }
    if !is_few(selection, total, offset.saturating_add(limit.into())) {
        return part_of(tx, selection, Strategy::Probe, limit, offset).await;
    }
    let ids = listed(tx, selection).await?;
    part_of(tx, selection, Strategy::Listed(&ids), limit, offset).await
}

/// All selected records, in no particular order. A record with several values occurs several times.
async fn listed(tx: &mut Tx, selection: &Selection) -> Result<Vec<RecordId>, Error> {
    let mut sql = Sql::new(tx, selection);
    sql.matching(selection, |id, _| id.to_owned());
    read_ids(tx, sql).await
}

async fn part_of(
    tx: &mut Tx,
    selection: &Selection,
    strategy: Strategy<'_>,
    limit: u32,
    offset: u64,
) -> Result<Vec<RecordId>, Error> {
    let Some(first) = selection.orders.first().copied() else {
        let mut sql = Sql::new(tx, selection);
        sql.push("SELECT r.id FROM records r ");
        match strategy {
            Strategy::Listed(_) => sql.push("WHERE r.workspace_id = $1 AND r.deleted_at IS NULL"),
            Strategy::Set | Strategy::Probe => sql.push(LIVE),
        };
        sql.conditions(selection, "r.id", strategy).push(" ORDER BY r.created_at, r.id");
        return part(tx, sql, limit, offset).await;
    };
    let sql = valued(tx, selection, first, strategy);
    let with_value = part(tx, sql, limit, offset).await?;
    let found = with_value.len() as u64;
    if found == u64::from(limit) {
        return Ok(with_value);
    }
    // The page ends among the records with a value, or starts after them.
    let skipped =
        if found > 0 { offset + found } else { count_valued(tx, selection, first, strategy).await? };
    let rest = u32::try_from(u64::from(limit) - found).unwrap_or(0);
    let from = (offset + found).saturating_sub(skipped);
    let mut ids = with_value;
    let sql = unvalued(tx, selection, first, strategy);
    ids.extend(part(tx, sql, rest, from).await?);
    Ok(ids)
}

fn valued(tx: &mut Tx, selection: &Selection, first: Order, strategy: Strategy<'_>) -> Sql {
    let mut sql = Sql::new(tx, selection);
    let (key, direction) = (first.key(), first.direction());
    sql.push("SELECT s.record_id FROM record_cells s").joins(&selection.orders, "s.record_id", 1);
    sql.valued(selection, first, strategy).push(&format!(" ORDER BY s.{key} {direction}, "));
    sql.order_by(&selection.orders, 1).push(&format!("s.record_id {direction}"));
    sql
}

fn unvalued(tx: &mut Tx, selection: &Selection, first: Order, strategy: Strategy<'_>) -> Sql {
    let mut sql = Sql::new(tx, selection);
    sql.push("SELECT r.id FROM records r").joins(&selection.orders, "r.id", 1);
    sql.unvalued(selection, first, strategy).push(" ORDER BY ");
    sql.order_by(&selection.orders, 1).push("r.created_at, r.id");
    sql
}

async fn count_valued(
    tx: &mut Tx,
    selection: &Selection,
    first: Order,
    strategy: Strategy<'_>,
) -> Result<u64, Error> {
    let mut sql = Sql::new(tx, selection);
    let strategy = if strategy == Strategy::Probe { Strategy::Set } else { strategy };
    sql.push("SELECT COUNT(*) FROM record_cells s").valued(selection, first, strategy);
    counted(tx, sql).await
}

async fn part(tx: &mut Tx, mut sql: Sql, limit: u32, offset: u64) -> Result<Vec<RecordId>, Error> {
    sql.push(" LIMIT ").bind(Bind::Count(i64::from(limit)));
    sql.push(" OFFSET ").bind(Bind::Count(to_column(offset)));
    read_ids(tx, sql).await
}

async fn read_ids(tx: &mut Tx, sql: Sql) -> Result<Vec<RecordId>, Error> {
    let rows: Vec<(Text<RecordId>,)> = run!(tx, sql, query_as, fetch_all)?;
    Ok(rows.into_iter().map(|(id,)| id.0).collect())
}

async fn counted(tx: &mut Tx, sql: Sql) -> Result<u64, Error> {
    let count: i64 = run!(tx, sql, query_scalar, fetch_one)?;
    Ok(to_count(count))
}

/// The rank of a record among the selected ones, from 0; `None` when it is not selected.
pub(crate) async fn place_of(
    tx: &mut Tx,
    selection: &Selection,
    total: u64,
    id: RecordId,
) -> Result<Option<u64>, Error> {
    if is_few(selection, total, total) {
        let ids = listed(tx, selection).await?;
        let all = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let ordered = part_of(tx, selection, Strategy::Listed(&ids), all, 0).await?;
        return Ok(ordered.iter().position(|one| *one == id).map(|place| place as u64));
    }
    let Some(target) = target(tx, selection, id).await? else { return Ok(None) };
    let Some(first) = selection.orders.first().copied() else {
        let mut sql = Sql::new(tx, selection);
        sql.push("SELECT COUNT(*) FROM records r ").push(LIVE).conditions(selection, "r.id", Strategy::Set);
        target.push_created_before(&mut sql);
        return counted(tx, sql).await.map(Some);
    };
    let Some(key) = target.key.clone() else {
        let valued = count_valued(tx, selection, first, Strategy::Set).await?;
        return Ok(Some(valued + count_unvalued_before(tx, selection, first, &target).await?));
    };
    let mut sql = Sql::new(tx, selection);
    sql.push("SELECT COUNT(*) FROM record_cells s").valued(selection, first, Strategy::Set);
    sql.push(&format!(" AND s.{} {} ", first.key(), first.before())).bind(key.clone());
    let before = counted(tx, sql).await?;
    Ok(Some(before + count_equal_before(tx, selection, first, (&target, key)).await?))
}

/// A selected record whose rank is computed.
struct Target {
    id: RecordId,
    created_at: Timestamp,
    /// The key of the first order.
    key: Option<Bind>,
}

impl Target {
    fn push_created_before(&self, sql: &mut Sql) {
        sql.push(" AND (r.created_at, r.id) < (").bind(Bind::Count(self.created_at.as_micros()));
        sql.push(", ").bind_text(self.id).push(")");
    }
}

async fn target(tx: &mut Tx, selection: &Selection, id: RecordId) -> Result<Option<Target>, Error> {
    let first = selection.orders.get(..1).unwrap_or_default();
    let mut sql = Sql::new(tx, selection);
    sql.push("SELECT r.created_at, ");
    sql.push(match first {
        [] => "CAST(NULL AS DOUBLE PRECISION), CAST(NULL AS TEXT)",
        _ => "o0.number_key, o0.text_key",
    });
    sql.push(" FROM records r")
        .joins(first, "r.id", 0)
        .push(" ")
        .push(LIVE)
        .push(" AND r.id = ")
        .bind_text(id);
    sql.conditions(selection, "r.id", Strategy::Probe);
    let found: Option<(Timestamp, Option<f64>, Option<String>)> = run!(tx, sql, query_as, fetch_optional)?;
    Ok(found.map(|(created_at, number, text)| {
        let key = match first.first() {
            Some(order) if order.by_number => number.map(Bind::Number),
            _ => text.map(Bind::Text),
        };
        Target { id, created_at, key }
    }))
}

/// The number of records with the same key that come before it.
async fn count_equal_before(
    tx: &mut Tx,
    selection: &Selection,
    first: Order,
    (target, key): (&Target, Bind),
) -> Result<u64, Error> {
    let mut sql = Sql::new(tx, selection);
    if selection.orders.len() == 1 {
        sql.push("SELECT COUNT(*) FROM record_cells s").valued(selection, first, Strategy::Set);
        sql.push(&format!(" AND s.{} = ", first.key())).bind(key);
        sql.push(&format!(" AND s.record_id {} ", first.before())).bind_text(target.id);
        return counted(tx, sql).await;
    }
    sql.push("SELECT CAST(a.place AS BIGINT) FROM (SELECT s.record_id AS id, ROW_NUMBER() OVER (ORDER BY ");
    sql.order_by(&selection.orders, 1)
        .push(&format!("s.record_id {}) AS place FROM record_cells s", first.direction()));
    sql.joins(&selection.orders, "s.record_id", 1).valued(selection, first, Strategy::Set);
    sql.push(&format!(" AND s.{} = ", first.key())).bind(key);
    ranked(tx, sql, target).await
}

/// The number of records without a key that come before it.
async fn count_unvalued_before(
    tx: &mut Tx,
    selection: &Selection,
    first: Order,
    target: &Target,
) -> Result<u64, Error> {
    let mut sql = Sql::new(tx, selection);
    if selection.orders.len() == 1 {
        sql.push("SELECT COUNT(*) FROM records r").unvalued(selection, first, Strategy::Set);
        target.push_created_before(&mut sql);
        return counted(tx, sql).await;
    }
    sql.push("SELECT CAST(a.place AS BIGINT) FROM (SELECT r.id AS id, ROW_NUMBER() OVER (ORDER BY ");
    sql.order_by(&selection.orders, 1).push("r.created_at, r.id) AS place FROM records r");
    sql.joins(&selection.orders, "r.id", 1).unvalued(selection, first, Strategy::Set);
    ranked(tx, sql, target).await
}

async fn ranked(tx: &mut Tx, mut sql: Sql, target: &Target) -> Result<u64, Error> {
    sql.push(") a WHERE a.id = ").bind_text(target.id);
    let place: Option<i64> = run!(tx, sql, query_scalar, fetch_optional)?;
    Ok(to_count(place.unwrap_or(1) - 1))
}
