//! The SQL text of one request, and its parameters.

use cairn_chassis::sql::{Engine, Tx, json_list};
use cairn_proto::ids::{FolderId, RecordId};

use crate::model::{Condition, Filter, Order, PropertyType, Selection, Test, Word};
use crate::store::page::below;

#[derive(Debug, Clone)]
pub(super) enum Bind {
    Text(String),
    Number(f64),
    Count(i64),
}

/// How a record is tested for being selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy<'a> {
    /// It is in the set that an index yields.
    Set,
    /// Its own cells decide.
    Probe,
    /// It is one of these, which are all selected records.
    Listed(&'a [RecordId]),
}

/// A statement under construction. `$1` is the workspace, `$2` the database.
#[derive(Debug)]
pub(super) struct Sql {
    pub(super) text: String,
    pub(super) binds: Vec<Bind>,
    is_sqlite: bool,
}

/// Above this number of records, a search scans them in the order of the table.
const MAX_INDEXED: u64 = 20_000;

/// The end of an EXISTS subquery. SQLite 3.51 turns one without a limit into a join, and OFFSET then counts each row
/// of the join: a record with three values is skipped as three. PostgreSQL removes the limit.
const END_OF_EXISTS: &str = " LIMIT 1)";

pub(super) const LIVE: &str = "WHERE r.workspace_id = $1 AND r.database_id = $2 AND r.deleted_at IS NULL";

impl Order {
    pub(super) const fn key(self) -> &'static str {
        if self.by_number { "number_key" } else { "text_key" }
    }

    pub(super) const fn direction(self) -> &'static str {
        if self.is_descending { "DESC" } else { "ASC" }
    }

    /// The operator for keys that come before a key in this order.
    pub(super) const fn before(self) -> &'static str {
        if self.is_descending { ">" } else { "<" }
    }

    /// Whether a condition is on the same cells that the order scans, so that it bounds the scan.
    fn is_bounded_by(self, filter: &Filter) -> bool {
        let Filter::Is(condition) = filter else { return false };
        condition.property == self.property && condition.is_plain() && condition.is_single
    }
}

impl Selection {
    /// The filters that must all hold, with nested conjunctions flattened.
    fn conjuncts(&self) -> Vec<&Filter> {
        fn flatten<'a>(filters: &'a [Filter], into: &mut Vec<&'a Filter>) {
            for filter in filters {
                match filter {
                    Filter::All(branches) => flatten(branches, into),
                    Filter::Any(_) | Filter::Is(_) => into.push(filter),
                }
            }
        }
        let mut all = Vec::new();
        flatten(&self.filters, &mut all);
        all
    }
}

impl Sql {
    pub(super) fn new(tx: &mut Tx, selection: &Selection) -> Self {
        let binds =
            vec![Bind::Text(selection.workspace.to_string()), Bind::Text(selection.database.to_string())];
        Self { text: String::new(), binds, is_sqlite: matches!(tx.engine(), Engine::Sqlite(_)) }
    }

    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub(super) fn bind(&mut self, bind: Bind) -> &mut Self {
        self.binds.push(bind);
        let placeholder = format!("${}", self.binds.len());
        self.push(&placeholder)
    }

    pub(super) fn bind_text(&mut self, text: impl ToString) -> &mut Self {
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

    /// Every selected record, with its `id` in the result. Cells exist for live records only, so where a condition is
    /// on cells, their index is scanned first and the rows of the records are not read.
    pub(super) fn matching(
        &mut self,
        selection: &Selection,
        result: impl Fn(&str, bool) -> String,
    ) -> &mut Self {
        let conjuncts = selection.conjuncts();
        let driver = conjuncts.iter().find_map(|filter| match filter {
            Filter::Is(condition) if condition.is_plain() => Some((*filter, condition)),
            Filter::Is(_) | Filter::All(_) | Filter::Any(_) => None,
        });
        let Some((filter, condition)) = driver else {
            let text = format!("SELECT {} FROM records r {LIVE}", result("r.id", true));
            return self.push(&text).conditions(selection, "r.id", Strategy::Set);
        };
        let text =
            format!("SELECT {} FROM record_cells d WHERE ", result("d.record_id", condition.is_single));
        self.push(&text).cells(condition, "d");
        self.rest(selection, "d.record_id", Strategy::Set, |other| std::ptr::eq(other, filter))
    }

    /// The cells `s` of the first order that have a key, of selected records.
    pub(super) fn valued(
        &mut self,
        selection: &Selection,
        first: Order,
        strategy: Strategy<'_>,
    ) -> &mut Self {
        // A list is without the database, so that SQLite uses the primary key of the cells and not the index of the
        // order.
        self.push(" WHERE s.workspace_id = $1 AND ");
        if !matches!(strategy, Strategy::Listed(_)) {
            self.push("s.database_id = $2 AND ");
        }
        self.push("s.property_id = ").bind_text(first.property);
        self.push(&format!(" AND s.{} IS NOT NULL AND s.place = 0", first.key()));
        if !matches!(strategy, Strategy::Listed(_)) {
            for filter in selection.conjuncts() {
                if let Filter::Is(condition) = filter
                    && first.is_bounded_by(filter)
                {
                    self.push(" AND ").test(&condition.test, "s");
                }
            }
        }
        self.rest(selection, "s.record_id", strategy, |filter| first.is_bounded_by(filter))
    }

    /// The selected records `r` that have no cell of the first order with a key.
    pub(super) fn unvalued(
        &mut self,
        selection: &Selection,
        first: Order,
        strategy: Strategy<'_>,
    ) -> &mut Self {
        match strategy {
            Strategy::Listed(_) => self.push(" WHERE r.workspace_id = $1 AND r.deleted_at IS NULL"),
            Strategy::Set | Strategy::Probe => self.push(" ").push(LIVE),
        };
        self.push(" AND NOT EXISTS (SELECT 1 FROM record_cells s WHERE s.workspace_id = $1 ");
        self.push("AND s.record_id = r.id AND s.place = 0 AND s.property_id = ").bind_text(first.property);
        self.push(&format!(" AND s.{} IS NOT NULL)", first.key())).conditions(selection, "r.id", strategy)
    }

    /// The conditions of the selection on `id`, starting with AND.
    pub(super) fn conditions(
        &mut self,
        selection: &Selection,
        id: &str,
        strategy: Strategy<'_>,
    ) -> &mut Self {
        self.rest(selection, id, strategy, |_| false)
    }

    /// [`Self::conditions`] without the filters that are expressed elsewhere.
    fn rest(
        &mut self,
        selection: &Selection,
        id: &str,
        strategy: Strategy<'_>,
        is_said: impl Fn(&Filter) -> bool,
    ) -> &mut Self {
        let is_probe = match strategy {
            Strategy::Listed(ids) => return self.listed(id, ids),
            Strategy::Set => false,
            Strategy::Probe => true,
        };
        for filter in selection.conjuncts() {
            if !is_said(filter) {
                self.push(" AND ").filter(filter, id, is_probe);
            }
        }
        for word in &selection.words {
            self.push(" AND ").word(word, id, is_probe, selection.total_records);
        }
        self
    }

    fn listed(&mut self, id: &str, ids: &[RecordId]) -> &mut Self {
        self.push(&format!(" AND {id} IN ")).json_list(ids)
    }

    /// A subquery of these ids, however many, in one parameter.
    fn json_list<T: std::fmt::Display>(&mut self, ids: &[T]) -> &mut Self {
        if self.is_sqlite {
            self.push("(SELECT value FROM json_each(").bind_text(json_list(ids)).push("))")
        } else {
            self.push("(SELECT jsonb_array_elements_text(CAST(CAST(");
            self.bind_text(json_list(ids)).push(" AS TEXT) AS JSONB)))")
        }
    }

    fn filter(&mut self, filter: &Filter, id: &str, is_probe: bool) -> &mut Self {
        let (branches, between, none) = match filter {
            Filter::Is(condition) => return self.condition(condition, id, is_probe),
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
            self.filter(branch, id, is_probe);
        }
        self.push(")")
    }

    fn condition(&mut self, condition: &Condition, id: &str, is_probe: bool) -> &mut Self {
        // PostgreSQL evaluates NOT IN element by element when the set exceeds its memory; never NOT EXISTS.
        if !is_probe && condition.is_plain() {
            self.push(&format!("{id} IN (SELECT f.record_id FROM record_cells f WHERE "));
            return self.cells(condition, "f").push(")");
        }
        let not = if condition.is_negated { "NOT " } else { "" };
        // Without the database: with it, SQLite would scan the index of the values for every record.
        self.push(&format!(
            "{not}EXISTS (SELECT 1 FROM record_cells f WHERE f.workspace_id = $1 AND f.record_id = {id} AND \
             f.property_id = "
        ));
        self.bind_text(condition.property).push(" AND ").test(&condition.test, "f").push(END_OF_EXISTS)
    }

    /// The cells that satisfy a condition.
    fn cells(&mut self, condition: &Condition, cell: &str) -> &mut Self {
        self.push(&format!("{cell}.workspace_id = $1 AND {cell}.database_id = $2 AND {cell}.property_id = "));
        self.bind_text(condition.property).push(" AND ").test(&condition.test, cell)
    }

    fn test(&mut self, test: &Test, cell: &str) -> &mut Self {
        match test {
            Test::Present { by_number: true } => self.push(&format!("{cell}.number_key IS NOT NULL")),
            Test::Present { by_number: false } => self.push(&format!("{cell}.text_key IS NOT NULL")),
            Test::Visible { kind, folders } => self.visible(*kind, folders, cell),
            Test::TextIs(texts) => self.texts(texts, cell),
            Test::TextHas(text) => {
                self.push(&format!("{cell}.text_key IS NOT NULL AND "));
                self.has(&format!("COALESCE({cell}.rest, {cell}.text_key)"), text)
            }
            Test::KeyIs(keys) if keys.is_empty() => self.push("1 = 0"),
            Test::KeyIs(keys) => {
                self.push(&format!("{cell}.text_key IN ")).list(keys, |key| Bind::Text(key.clone()))
            }
            Test::NumberIs(numbers) if numbers.is_empty() => self.push("1 = 0"),
            Test::NumberIs(numbers) => {
                self.push(&format!("{cell}.number_key IN ")).list(numbers, |number| Bind::Number(*number))
            }
            Test::Between { from, to } => {
                self.push(&format!("{cell}.number_key IS NOT NULL"));
                if let Some((number, is_inclusive)) = from {
                    let sign = if *is_inclusive { ">=" } else { ">" };
                    self.push(&format!(" AND {cell}.number_key {sign} "));
                    self.bind(Bind::Number(*number));
                }
                if let Some((number, is_inclusive)) = to {
                    let sign = if *is_inclusive { "<=" } else { "<" };
                    self.push(&format!(" AND {cell}.number_key {sign} "));
                    self.bind(Bind::Number(*number));
                }
                self
            }
        }
    }

    /// Whether the target of a cell is in some folders or below them. An asset is visible to whoever sees the record
    /// that refers to it. The text of a reference is the id of its target, and is in the index.
    pub(super) fn visible(&mut self, kind: PropertyType, folders: &[FolderId], cell: &str) -> &mut Self {
        self.push(&format!("{cell}.text_key IS NOT NULL AND EXISTS (SELECT 1 FROM "));
        let folder = match kind {
            PropertyType::AssetReference => {
                let asset = format!("assets v WHERE v.workspace_id = $1 AND v.id = {cell}.text_key");
                return self.push(&asset).push(END_OF_EXISTS);
            }
            PropertyType::Relation => {
                self.push("records v JOIN databases h ON h.workspace_id = $1 AND h.id = v.database_id ");
                self.push("AND h.deleted_at IS NULL ");
                "h.folder_id"
            }
            PropertyType::FileReference
            | PropertyType::Text
            | PropertyType::Number
            | PropertyType::Boolean
            | PropertyType::Date
            | PropertyType::Select
            | PropertyType::MultiSelect
            | PropertyType::Url => {
                self.push("files v ");
                "v.folder_id"
            }
        };
        self.push(&format!(
            "WHERE v.workspace_id = $1 AND v.id = {cell}.text_key AND v.deleted_at IS NULL AND {folder} IN "
        ));
        self.push("(WITH RECURSIVE below (id) AS (SELECT id FROM folders WHERE workspace_id = $1 ");
        self.push("AND deleted_at IS NULL AND id IN ").json_list(folders);
        self.push(concat!(below!(), " SELECT id FROM below)")).push(END_OF_EXISTS)
    }

    fn texts(&mut self, texts: &[(String, Option<String>)], cell: &str) -> &mut Self {
        if texts.is_empty() {
            return self.push("1 = 0");
        }
        self.push("(");
        for (place, (key, whole)) in texts.iter().enumerate() {
            if place > 0 {
                self.push(" OR ");
            }
            self.push(&format!("({cell}.text_key = ")).bind_text(key);
            match whole {
                None => self.push(&format!(" AND {cell}.rest IS NULL)")),
                Some(whole) => self.push(&format!(" AND {cell}.rest = ")).bind_text(whole).push(")"),
            };
        }
        self.push(")")
    }

    /// The searched text of a record may still contain the value of a deleted property, so the cells decide.
    fn word(&mut self, word: &Word, id: &str, is_probe: bool, total_records: u64) -> &mut Self {
        match is_probe {
            // SQLite would scan the whole workspace, which is right for a database that is most of it.
            false if self.is_sqlite && total_records <= MAX_INDEXED => self
                .push(&format!("({id} IN (SELECT w.id FROM records w INDEXED BY records_by_creation WHERE ")),
            false => self.push(&format!("({id} IN (SELECT w.id FROM records w WHERE ")),
            true => self.push(&format!("(EXISTS (SELECT 1 FROM records w WHERE w.id = {id} AND ")),
        };
        self.push("w.workspace_id = $1 AND w.database_id = $2 AND w.deleted_at IS NULL AND ");
        self.has("w.searched", &word.folded).push(" AND EXISTS (SELECT 1 FROM record_cells f ");
        self.push("WHERE f.workspace_id = $1 AND f.record_id = w.id AND ");
        // The ids of options and of targets are no text.
        self.push("f.target_id IS NULL AND (f.number_key IS NULL OR f.text_key IS NULL) AND ");
        self.has("COALESCE(f.rest, f.text_key)", &word.folded).push(END_OF_EXISTS);
        self.push(if is_probe { END_OF_EXISTS } else { ")" });
        if !word.option_ids.is_empty() {
            // Without the database in a probe, as in `condition`.
            match is_probe {
                false => self.push(&format!(
                    " OR {id} IN (SELECT f.record_id FROM record_cells f WHERE f.database_id = $2 AND "
                )),
                true => self
                    .push(&format!(" OR EXISTS (SELECT 1 FROM record_cells f WHERE f.record_id = {id} AND ")),
            };
            self.push("f.workspace_id = $1 AND f.number_key IS NOT NULL AND f.text_key IN ");
            self.list(&word.option_ids, |option| Bind::Text(option.clone())).push(")");
        }
        self.push(")")
    }

    /// Whether a text contains another one; both are folded. `LIKE` is equivalent, but its worst case is the product
    /// of the lengths: long, nearly matching texts would block a connection for minutes.
    fn has(&mut self, text: &str, part: &str) -> &mut Self {
        let place_of = if self.is_sqlite { "instr" } else { "strpos" };
        self.push(&format!("{place_of}({text}, ")).bind_text(part).push(") > 0")
    }

    /// Further orders as joins, each with the alias `o` and its number.
    pub(super) fn joins(&mut self, orders: &[Order], id: &str, first: usize) -> &mut Self {
        for (place, order) in orders.iter().enumerate().skip(first) {
            let join = format!(
                " LEFT JOIN record_cells o{place} ON o{place}.workspace_id = $1 AND o{place}.record_id = {id} \
                 AND o{place}.place = 0 AND o{place}.property_id = "
            );
            self.push(&join).bind_text(order.property);
        }
        self
    }

    pub(super) fn order_by(&mut self, orders: &[Order], first: usize) -> &mut Self {
        for (place, order) in orders.iter().enumerate().skip(first) {
            let key = order.key();
            self.push(&format!("o{place}.{key} IS NULL, o{place}.{key} {}, ", order.direction()));
        }
        self
    }
}
