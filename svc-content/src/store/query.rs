//! Pages of records: statements that are written for the filters and orders of one request.
//!
//! A condition is asked in one of two ways. As a set (`id IN (…)`) an index yields every record that fulfils it, which
//! is right for counting and for few records. As a probe (`EXISTS (…)`) the primary key of the cells says it of one
//! record, which is right where many fulfil it and the index of the order is walked until the page is full. The number
//! of all, which a page needs anyway, decides.
//!
//! Texts are made of constants and numbered placeholders only; what a caller gives is bound.

use cairn_chassis::on_db;
use cairn_chassis::sql::{Db, Error, Text};
use cairn_proto::ids::{DatabaseId, PropertyId, RecordId, WorkspaceId};
use sqlx::AssertSqlSafe;

use super::page::{to_column, to_count};
use crate::records::filter::{Condition, Filter, Test};

/// With at most as many records, all of them are taken and put in order.
const FEW: u64 = 2_000;

/// A word of a search, folded, and the options whose names hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) folded: String,
    pub(crate) option_ids: Vec<String>,
}

/// An order by a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) property: PropertyId,
    pub(crate) by_number: bool,
    pub(crate) is_descending: bool,
}

/// Which records of a database, in which order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selection {
    pub(crate) workspace: WorkspaceId,
    pub(crate) database: DatabaseId,
    /// All hold.
    pub(crate) filters: Vec<Filter>,
    /// All are found.
    pub(crate) words: Vec<Word>,
    pub(crate) orders: Vec<Order>,
}

impl Selection {
    /// Whether every record of the database is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.words.is_empty() && self.filters.iter().all(|filter| *filter == Filter::All(Vec::new()))
    }
}

impl Order {
    const fn key(self) -> &'static str {
        if self.by_number { "number_key" } else { "text_key" }
    }

    const fn direction(self) -> &'static str {
        if self.is_descending { "DESC" } else { "ASC" }
    }
}

#[derive(Debug, Clone)]
enum Bind {
    Text(String),
    Number(f64),
    Count(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Set,
    Probe,
}

/// A statement that is being written. $1 is the workspace, $2 the database.
struct Sql {
    text: String,
    binds: Vec<Bind>,
}

impl Sql {
    fn new(selection: &Selection) -> Self {
        let binds =
            vec![Bind::Text(selection.workspace.to_string()), Bind::Text(selection.database.to_string())];
        Self { text: String::new(), binds }
    }

    fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    fn bind(&mut self, bind: Bind) -> &mut Self {
        self.binds.push(bind);
        let placeholder = format!("${}", self.binds.len());
        self.push(&placeholder)
    }

    fn bind_text(&mut self, text: impl ToString) -> &mut Self {
        self.bind(Bind::Text(text.to_string()))
    }

    fn list<T>(&mut self, items: &[T], one: impl Fn(&T) -> Bind) -> &mut Self {
        self.push("(");
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.push(", ");
            }
            self.bind(one(item));
        }
        self.push(")")
    }

    /// What of `id` the selection asks, beginning with AND.
    fn conditions(&mut self, selection: &Selection, id: &str, ask: Ask) -> &mut Self {
        for filter in &selection.filters {
            self.push(" AND ").filter(filter, id, ask);
        }
        for word in &selection.words {
            self.push(" AND ").word(word, id, ask);
        }
        self
    }

    fn filter(&mut self, filter: &Filter, id: &str, ask: Ask) -> &mut Self {
        let (branches, between, none) = match filter {
            Filter::Is(condition) => return self.condition(condition, id, ask),
            Filter::All(branches) => (branches, " AND ", "1 = 1"),
            Filter::Any(branches) => (branches, " OR ", "1 = 0"),
        };
        if branches.is_empty() {
            return self.push(none);
        }
        self.push("(");
        for (place, branch) in branches.iter().enumerate() {
            if place > 0 {
                self.push(between);
            }
            self.filter(branch, id, ask);
        }
        self.push(")")
    }

    fn condition(&mut self, condition: &Condition, id: &str, ask: Ask) -> &mut Self {
        let not = if condition.is_negated { "NOT " } else { "" };
        match ask {
            Ask::Set => self.push(&format!("{id} {not}IN (SELECT f.record_id FROM record_cells f WHERE ")),
            Ask::Probe => {
                let probe =
                    format!("{not}EXISTS (SELECT 1 FROM record_cells f WHERE f.record_id = {id} AND ");
                self.push(&probe)
            }
        };
        self.cells(condition).push(")")
    }

    /// The cells `f` that fulfil a condition.
    fn cells(&mut self, condition: &Condition) -> &mut Self {
        self.push("f.workspace_id = $1 AND f.database_id = $2 AND f.property_id = ");
        self.bind_text(condition.property).push(" AND ").test(&condition.test)
    }

    fn test(&mut self, test: &Test) -> &mut Self {
        match test {
            Test::Present { by_number: true } => self.push("f.number_key IS NOT NULL"),
            Test::Present { by_number: false } => self.push("f.text_key IS NOT NULL"),
            Test::TextIs(texts) => self.texts(texts),
            Test::TextHas(text) => {
                self.push("f.text_key IS NOT NULL AND COALESCE(f.rest, f.text_key) LIKE ");
                self.bind_text(pattern(text)).push(" ESCAPE '\\'")
            }
            Test::KeyIs(keys) if keys.is_empty() => self.push("1 = 0"),
            Test::KeyIs(keys) => self.push("f.text_key IN ").list(keys, |key| Bind::Text(key.clone())),
            Test::NumberIs(numbers) if numbers.is_empty() => self.push("1 = 0"),
            Test::NumberIs(numbers) => {
                self.push("f.number_key IN ").list(numbers, |number| Bind::Number(*number))
            }
            Test::Between { from, to } => {
                self.push("f.number_key IS NOT NULL");
                if let Some((number, is_inclusive)) = from {
                    self.push(if *is_inclusive { " AND f.number_key >= " } else { " AND f.number_key > " });
                    self.bind(Bind::Number(*number));
                }
                if let Some((number, is_inclusive)) = to {
                    self.push(if *is_inclusive { " AND f.number_key <= " } else { " AND f.number_key < " });
                    self.bind(Bind::Number(*number));
                }
                self
            }
        }
    }

    fn texts(&mut self, texts: &[(String, Option<String>)]) -> &mut Self {
        if texts.is_empty() {
            return self.push("1 = 0");
        }
        self.push("(");
        for (place, (key, whole)) in texts.iter().enumerate() {
            if place > 0 {
                self.push(" OR ");
            }
            self.push("(f.text_key = ").bind_text(key);
            match whole {
                None => self.push(" AND f.rest IS NULL)"),
                Some(whole) => self.push(" AND f.rest = ").bind_text(whole).push(")"),
            };
        }
        self.push(")")
    }

    /// The text of a record may still hold what a property held that is no more, so the cells have the last word.
    fn word(&mut self, word: &Word, id: &str, ask: Ask) -> &mut Self {
        let like = pattern(&word.folded);
        match ask {
            Ask::Set => self.push(&format!("({id} IN (SELECT w.id FROM records w WHERE ")),
            Ask::Probe => self.push(&format!("(EXISTS (SELECT 1 FROM records w WHERE w.id = {id} AND ")),
        };
        self.push("w.workspace_id = $1 AND w.database_id = $2 AND w.deleted_at IS NULL AND w.searched LIKE ");
        self.bind_text(&like).push(" ESCAPE '\\' AND EXISTS (SELECT 1 FROM record_cells f ");
        self.push("WHERE f.workspace_id = $1 AND f.record_id = w.id AND COALESCE(f.rest, f.text_key) LIKE ");
        self.bind_text(&like).push(" ESCAPE '\\'))");
        if !word.option_ids.is_empty() {
            match ask {
                Ask::Set => self.push(&format!(" OR {id} IN (SELECT f.record_id FROM record_cells f WHERE ")),
                Ask::Probe => self
                    .push(&format!(" OR EXISTS (SELECT 1 FROM record_cells f WHERE f.record_id = {id} AND ")),
            };
            self.push("f.workspace_id = $1 AND f.database_id = $2 AND f.text_key IN ");
            self.list(&word.option_ids, |option| Bind::Text(option.clone())).push(")");
        }
        self.push(")")
    }

    /// Further orders as joins, each with the alias `o` and its number.
    fn joins(&mut self, orders: &[Order], id: &str, first: usize) -> &mut Self {
        for (place, order) in orders.iter().enumerate().skip(first) {
            let join = format!(
                " LEFT JOIN record_cells o{place} ON o{place}.workspace_id = $1 AND o{place}.record_id = {id} \
                 AND o{place}.place = 0 AND o{place}.property_id = "
            );
            self.push(&join).bind_text(order.property);
        }
        self
    }

    fn order_by(&mut self, orders: &[Order], first: usize) -> &mut Self {
        for (place, order) in orders.iter().enumerate().skip(first) {
            let key = order.key();
            self.push(&format!("o{place}.{key} IS NULL, o{place}.{key} {}, ", order.direction()));
        }
        self
    }
}

/// The pattern of texts that hold a folded text.
fn pattern(folded: &str) -> String {
    format!("%{}%", folded.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"))
}

macro_rules! fetch {
    ($db:expr, $sql:expr, $query:ident, $fetch:ident) => {
        on_db!($db, |c| {
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

/// How many records are selected.
pub(crate) async fn count(db: &Db, selection: &Selection) -> Result<u64, Error> {
    let mut sql = Sql::new(selection);
    match (selection.filters.as_slice(), selection.words.as_slice()) {
        // Cells are those of live records, so their index alone knows.
        ([Filter::Is(only)], []) if !only.is_negated => {
            let counted = if only.is_single { "COUNT(*)" } else { "COUNT(DISTINCT f.record_id)" };
            sql.push(&format!("SELECT {counted} FROM record_cells f WHERE ")).cells(only);
        }
        _ => {
            sql.push("SELECT COUNT(*) FROM records r ").push(LIVE);
            sql.conditions(selection, "r.id", Ask::Set);
        }
    }
    let count: i64 = fetch!(db, sql, query_scalar, fetch_one)?;
    Ok(to_count(count))
}

const LIVE: &str = "WHERE r.workspace_id = $1 AND r.database_id = $2 AND r.deleted_at IS NULL";

/// The records of a page. Records without a value of the first order's property come last.
pub(crate) async fn page(
    db: &Db,
    selection: &Selection,
    total: u64,
    limit: u32,
    offset: u64,
) -> Result<Vec<RecordId>, Error> {
    if total == 0 || offset >= total {
        return Ok(Vec::new());
    }
    let ask = if total <= FEW { Ask::Set } else { Ask::Probe };
    let Some(first) = selection.orders.first().copied() else {
        let mut sql = Sql::new(selection);
        sql.push("SELECT r.id FROM records r ").push(LIVE).conditions(selection, "r.id", ask);
        sql.push(" ORDER BY r.created_at, r.id");
        return part(db, sql, limit, offset).await;
    };
    let with_value = part(db, valued(selection, first, ask), limit, offset).await?;
    let found = with_value.len() as u64;
    if found == u64::from(limit) {
        return Ok(with_value);
    }
    // The page ends among the records with a value, or begins behind them.
    let skipped = if found > 0 { offset + found } else { count_valued(db, selection, first).await? };
    let rest = u32::try_from(u64::from(limit) - found).unwrap_or(0);
    let from = (offset + found).saturating_sub(skipped);
    let mut ids = with_value;
    ids.extend(part(db, unvalued(selection, first, ask), rest, from).await?);
    Ok(ids)
}

fn valued(selection: &Selection, first: Order, ask: Ask) -> Sql {
    let mut sql = Sql::new(selection);
    let (key, direction) = (first.key(), first.direction());
    sql.push("SELECT s.record_id FROM record_cells s");
    sql.joins(&selection.orders, "s.record_id", 1);
    sql.push(" WHERE s.workspace_id = $1 AND s.database_id = $2 AND s.property_id = ");
    sql.bind_text(first.property).push(&format!(" AND s.{key} IS NOT NULL AND s.place = 0"));
    sql.conditions(selection, "s.record_id", ask);
    sql.push(&format!(" ORDER BY s.{key} {direction}, ")).order_by(&selection.orders, 1);
    sql.push(&format!("s.record_id {direction}"));
    sql
}

fn unvalued(selection: &Selection, first: Order, ask: Ask) -> Sql {
    let mut sql = Sql::new(selection);
    sql.push("SELECT r.id FROM records r").joins(&selection.orders, "r.id", 1);
    sql.push(" ").push(LIVE).push(" AND NOT EXISTS (SELECT 1 FROM record_cells s WHERE s.workspace_id = $1 ");
    sql.push("AND s.record_id = r.id AND s.place = 0 AND s.property_id = ").bind_text(first.property);
    sql.push(")").conditions(selection, "r.id", ask);
    sql.push(" ORDER BY ").order_by(&selection.orders, 1).push("r.created_at, r.id");
    sql
}

async fn count_valued(db: &Db, selection: &Selection, first: Order) -> Result<u64, Error> {
    let mut sql = Sql::new(selection);
    sql.push("SELECT COUNT(*) FROM record_cells s WHERE s.workspace_id = $1 AND s.database_id = $2 ");
    sql.push("AND s.property_id = ").bind_text(first.property);
    sql.push(&format!(" AND s.{} IS NOT NULL AND s.place = 0", first.key()));
    sql.conditions(selection, "s.record_id", Ask::Set);
    let count: i64 = fetch!(db, sql, query_scalar, fetch_one)?;
    Ok(to_count(count))
}

async fn part(db: &Db, mut sql: Sql, limit: u32, offset: u64) -> Result<Vec<RecordId>, Error> {
    sql.push(" LIMIT ").bind(Bind::Count(i64::from(limit)));
    sql.push(" OFFSET ").bind(Bind::Count(to_column(offset)));
    let rows: Vec<(Text<RecordId>,)> = fetch!(db, sql, query_as, fetch_all)?;
    Ok(rows.into_iter().map(|(id,)| id.0).collect())
}

/// At which place from 0 a record stands among the selected ones; `None` when it is not one of them.
pub(crate) async fn place_of(db: &Db, selection: &Selection, id: RecordId) -> Result<Option<u64>, Error> {
    let mut sql = Sql::new(selection);
    sql.push("SELECT CAST(all_of.place AS BIGINT) FROM (SELECT r.id, ROW_NUMBER() OVER (ORDER BY ");
    match selection.orders.first() {
        None => sql.push("r.created_at, r.id"),
        Some(first) => {
            // As the two parts of a page: those with a value by id at the end, the others by creation.
            let (key, direction) = (first.key(), first.direction());
            sql.push(&format!("o0.{key} IS NULL, o0.{key} {direction}, ")).order_by(&selection.orders, 1);
            sql.push(&format!("CASE WHEN o0.{key} IS NULL THEN r.created_at END, "));
            sql.push(&format!("CASE WHEN o0.{key} IS NULL THEN r.id END, r.id {direction}"))
        }
    };
    sql.push(") AS place FROM records r").joins(&selection.orders, "r.id", 0);
    sql.push(" ").push(LIVE).conditions(selection, "r.id", Ask::Set);
    sql.push(") all_of WHERE all_of.id = ").bind_text(id);
    let place: Option<i64> = fetch!(db, sql, query_scalar, fetch_optional)?;
    Ok(place.map(|place| to_count(place - 1)))
}
