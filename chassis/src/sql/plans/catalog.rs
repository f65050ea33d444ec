//! The tables of a service, as an engine's catalog has them.

use sqlx::FromRow;

use crate::on_db;
use crate::sql::{Db, Dialect, Error};

/// The column that the keys of workspace data begin with.
pub(super) const TENANT: &str = "workspace_id";

const COLUMNS: Dialect = Dialect {
    sqlite: "SELECT t.name AS of_table, c.name AS name, c.type AS kind, c.\"notnull\" = 1 OR c.pk > 0 AS is_required \
         FROM sqlite_schema t, pragma_table_info(t.name) c \
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name <> 'migrations' ORDER BY t.name, c.cid",
    postgres: "SELECT CAST(t.relname AS TEXT) AS of_table, CAST(c.attname AS TEXT) AS name, \
             UPPER(format_type(c.atttypid, NULL)) AS kind, c.attnotnull AS is_required \
         FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid \
         WHERE t.relkind = 'r' AND t.relnamespace = CAST(current_schema() AS regnamespace) \
             AND c.attnum > 0 AND NOT c.attisdropped AND t.relname <> 'migrations' \
         ORDER BY t.relname, c.attnum",
};
/// The columns are a JSON array, with null for an expression.
const INDEXES: Dialect = Dialect {
    sqlite: "SELECT t.name AS of_table, i.name AS name, i.\"unique\" AS is_unique, \
             (SELECT json_group_array(c.name) FROM pragma_index_info(i.name) c) AS columns \
         FROM sqlite_schema t, pragma_index_list(t.name) i WHERE t.type = 'table'",
    postgres: "SELECT CAST(t.relname AS TEXT) AS of_table, CAST(x.relname AS TEXT) AS name, i.indisunique AS is_unique, \
             CAST((SELECT json_agg(c.attname ORDER BY k.place) \
                 FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place) \
                 LEFT JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum = k.number) AS TEXT) AS columns \
         FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid \
         WHERE t.relnamespace = CAST(current_schema() AS regnamespace)",
};

/// A real table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    pub(super) indexes: Vec<Index>,
}

#[derive(Debug, FromRow)]
pub(super) struct Column {
    of_table: String,
    pub(super) name: String,
    /// In capitals.
    pub(super) kind: String,
    pub(super) is_required: bool,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) name: String,
    pub(super) is_unique: bool,
    pub(super) columns: Vec<Option<String>>,
}

#[derive(Debug, FromRow)]
struct IndexRow {
    of_table: String,
    name: String,
    is_unique: bool,
    columns: String,
}

impl Table {
    /// The columns of each key.
    pub(super) fn keys(&self) -> impl Iterator<Item = &[Option<String>]> {
        self.indexes.iter().filter(|index| index.is_unique).map(|index| index.columns.as_slice())
    }

    /// Whether a column is a key by itself.
    pub(super) fn is_key(&self, column: &str) -> bool {
        self.keys().any(|key| matches!(key, [Some(only)] if only == column))
    }

    /// Whether a workspace has one row there at most.
    pub(super) fn is_single(&self) -> bool {
        self.is_key(TENANT)
    }

    /// What an index is in the order of, unless that is an expression.
    pub(super) fn leading_column(&self, index: &str) -> Option<&str> {
        let index = self.indexes.iter().find(|known| known.name == index)?;
        index.columns.first()?.as_deref()
    }
}

/// Every table of a service but that of its migrations.
pub(super) async fn read(db: &Db) -> Result<Vec<Table>, Error> {
    let columns: Vec<Column> = on_db!(db, |c| sqlx::query_as(COLUMNS.of(db.engine())).fetch_all(c).await)?;
    let rows: Vec<IndexRow> = on_db!(db, |c| sqlx::query_as(INDEXES.of(db.engine())).fetch_all(c).await)?;
    let mut tables: Vec<Table> = Vec::new();
    for column in columns {
        match tables.last_mut() {
            Some(table) if table.name == column.of_table => table.columns.push(column),
            _ => {
                let name = column.of_table.clone();
                tables.push(Table { name, columns: vec![column], indexes: Vec::new() });
            }
        }
    }
    for IndexRow { of_table, name, is_unique, columns } in rows {
        let columns = serde_json::from_str(&columns).unwrap_or_default();
        if let Some(table) = tables.iter_mut().find(|table| table.name == of_table) {
            table.indexes.push(Index { name, is_unique, columns });
        }
    }
    Ok(tables)
}
