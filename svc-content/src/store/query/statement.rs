//! The text of one request's statement, as it is written.

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

/// How a record is asked whether it is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy<'a> {
    /// It is in the set that an index yields.
    Set,
    /// Its own cells say it.
    Probe,
    /// It is one of these, which are known to be all.
    Listed(&'a [RecordId]),
}

/// A statement that is being written. $1 is the workspace, $2 the database.
#[derive(Debug)]
pub(super) struct Sql {
    pub(super) text: String,
    pub(super) binds: Vec<Bind>,
    is_sqlite: bool,
}

/// A search of more records than this reads them in the order in which they lie.
const MAX_INDEXED: u64 = 20_000;

/// Ends a subquery of EXISTS. SQLite 3.51 makes a join of one without a limit, and OFFSET then counts each row that the
/// join finds, so that a record with three values is skipped as three. PostgreSQL leaves the limit out.
const END_OF_EXISTS: &str = " LIMIT 1)";

pub(super) const LIVE: &str = "WHERE r.workspace_id = $1 AND r.database_id = $2 AND r.deleted_at IS NULL";

impl Order {
    pub(super) const fn key(self) -> &'static str {
        if self.by_number { "number_key" } else { "text_key" }
    }

    pub(super) const fn direction(self) -> &'static str {
        if self.is_descending { "DESC" } else { "ASC" }
    }

    /// What stands before a key, in this order.
    pub(super) const fn before(self) -> &'static str {
        if self.is_descending { ">" } else { "<" }
    }

    /// Whether a condition is one on the very cells that the order walks, so that it bounds the walk.
    fn is_bounded_by(self, filter: &Filter) -> bool {
        let Filter::Is(condition) = filter else { return false };
        condition.property == self.property && condition.is_plain() && condition.is_single
    }
}

impl Selection {
    /// The filters that must all hold, without the lists that say so.
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

    /// Every selected record: `id` of it in the result. Cells are those of live records, so where a condition names
    /// cells, their index is the beginning and the records' own rows are not read.
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
        // A list leaves the database out, so that SQLite takes the cells' primary key and not the order's index.
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

    /// The selected records `r` without a cell of the first order that has a key.
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

    /// What of `id` the selection asks, beginning with AND.
    pub(super) fn conditions(
        &mut self,
        selection: &Selection,
        id: &str,
        strategy: Strategy<'_>,
    ) -> &mut Self {
        self.rest(selection, id, strategy, |_| false)
    }

    /// The same without the filters that are said otherwise.
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
            self.push(" AND ").word(word, id, is_probe, selection.everything);
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
        // PostgreSQL compares NOT IN with each element of a set that outgrows its memory; NOT EXISTS it never does.
        if !is_probe && condition.is_plain() {
            self.push(&format!("{id} IN (SELECT f.record_id FROM record_cells f WHERE "));
            return self.cells(condition, "f").push(")");
        }
        let not = if condition.is_negated { "NOT " } else { "" };
        // The database is left out: with it, SQLite would walk the index of the values for every record.
        self.push(&format!(
            "{not}EXISTS (SELECT 1 FROM record_cells f WHERE f.workspace_id = $1 AND f.record_id = {id} AND \
             f.property_id = "
        ));
        self.bind_text(condition.property).push(" AND ").test(&condition.test, "f").push(END_OF_EXISTS)
    }

    /// The cells that fulfil a condition.
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

    /// Whether what a cell names lives in some folders or below them. An asset that a record names is seen by whoever sees
    /// the record. The text of a reference is the id that it names, and stands in the index.
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

    /// The text of a record may still hold what a property held that is no more, so the cells have the last word.
    fn word(&mut self, word: &Word, id: &str, is_probe: bool, everything: u64) -> &mut Self {
        match is_probe {
            // SQLite would read the whole workspace, which for a database that is most of it is right.
            false if self.is_sqlite && everything <= MAX_INDEXED => self
                .push(&format!("({id} IN (SELECT w.id FROM records w INDEXED BY records_by_creation WHERE ")),
            false => self.push(&format!("({id} IN (SELECT w.id FROM records w WHERE ")),
            true => self.push(&format!("(EXISTS (SELECT 1 FROM records w WHERE w.id = {id} AND ")),
        };
        self.push("w.workspace_id = $1 AND w.database_id = $2 AND w.deleted_at IS NULL AND ");
        self.has("w.searched", &word.folded).push(" AND EXISTS (SELECT 1 FROM record_cells f ");
        self.push("WHERE f.workspace_id = $1 AND f.record_id = w.id AND ");
        // Ids of options and of what a record names are no texts.
        self.push("f.target_id IS NULL AND (f.number_key IS NULL OR f.text_key IS NULL) AND ");
        self.has("COALESCE(f.rest, f.text_key)", &word.folded).push(END_OF_EXISTS);
        self.push(if is_probe { END_OF_EXISTS } else { ")" });
        if !word.option_ids.is_empty() {
            // The database is left out of a probe as in `condition`.
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

    /// Whether a text holds another one; both are folded. `LIKE` would say the same, but at worst it takes the product of
    /// their lengths, step by step: what is long and nearly alike would keep a connection for minutes.
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
