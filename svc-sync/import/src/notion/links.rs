//! Resolves links within an export, and the second pass: pages with links, tables with values.

use std::collections::HashMap;
use std::io::{Read, Seek};

use super::columns::{self, Column, LinkResolver};
use super::names::id_of_link;
use super::table::Table;
use super::{read_table, rows};
use crate::address::{self, heading, joined, parameters};
use crate::archive::{Archive, EntryError, TreeFile};
use crate::content::{Content, Lines, Link, Listed, reported};
use crate::kind::Kind;
use crate::markdown::{self, Linked};
use crate::plan::{ItemKind, Plan, Property, Value};
use crate::report::UnresolvedReason;

/// Links that are replaced per page.
const MAX_LINKS: usize = 50_000;

/// Items by path and by id.
#[derive(Debug, Default)]
pub(super) struct Targets {
    by_file: Vec<Option<usize>>,
    by_id: HashMap<String, usize>,
    /// The database and record of a row's body.
    pub(super) rows: HashMap<usize, (usize, usize)>,
    /// The database whose properties are at the top of a row's page, by file.
    pub(super) columns: HashMap<usize, usize>,
}

impl Targets {
    pub(super) fn of(files: usize) -> Self {
        Self { by_file: vec![None; files], ..Self::default() }
    }

    /// Records the item of a file.
    pub(super) fn set(&mut self, file: usize, item: usize, id: Option<&str>) {
        if let Some(place) = self.by_file.get_mut(file) {
            *place = Some(item);
        }
        if let Some(id) = id {
            self.by_id.entry(id.to_owned()).or_insert(item);
        }
    }

    pub(super) fn of_file(&self, file: usize) -> Option<usize> {
        self.by_file.get(file).copied().flatten()
    }

    /// Resolves a decoded path relative to a folder, else to the root, else by the id in it.
    fn follow(&self, files: &[TreeFile], folder: &str, path: &str) -> Option<usize> {
        let at = |path: String| {
            let place = files.binary_search_by(|file| file.path.as_str().cmp(&path)).ok()?;
            self.of_file(place)
        };
        let by_id = || self.by_id.get(&id_of_link(path)?).copied();
        at(joined(folder, path)).or_else(|| at(joined("", path))).or_else(by_id)
    }
}

/// A database in the second pass.
#[derive(Debug)]
pub(super) struct Database {
    /// The folder of its CSV file.
    pub(super) folder: String,
    pub(super) file: usize,
    /// The column names.
    pub(super) names: Vec<String>,
    /// Notion's names for column types, as far as pages mention them.
    pub(super) types: HashMap<String, String>,
    pub(super) columns: Vec<Column>,
    /// The index of its first record's item.
    pub(super) first: usize,
}

/// The input of the second pass.
#[derive(Debug)]
pub(crate) struct Index {
    targets: Targets,
    /// By item.
    databases: HashMap<usize, Database>,
}

/// Resolves links in values, relative to the folder of their table.
struct TableLinks<'a> {
    targets: &'a Targets,
    files: &'a [TreeFile],
    items: &'a [crate::plan::Item],
    folder: &'a str,
}

impl TableLinks<'_> {
    fn item(&self, path: &str) -> Option<usize> {
        let to = address::relative(path)?;
        let found = self.targets.follow(self.files, self.folder, &to.path);
        found.or_else(|| self.targets.follow(self.files, self.folder, &to.raw))
    }
}

impl LinkResolver for TableLinks<'_> {
    fn row(&self, path: &str) -> Option<(usize, usize)> {
        self.targets.rows.get(&self.item(path)?).copied()
    }

    fn asset(&self, path: &str) -> Option<usize> {
        let is_asset = |item: &usize| {
            self.items.get(*item).is_some_and(|item| matches!(item.kind, ItemKind::Asset { .. }))
        };
        self.item(path).filter(is_asset)
    }
}

/// Infers the types of all columns, once links in values can be resolved.
pub(super) fn type_columns<R: Read + Seek>(plan: &mut Plan, archive: &mut Archive<R>) {
    let crate::plan::Index::Notion(index) = &mut plan.index else { return };
    let mut places: Vec<usize> = index.databases.keys().copied().collect();
    places.sort_unstable();
    for place in places {
        let Some(database) = index.databases.get(&place) else { continue };
        let file = plan.files.get(database.file);
        // The first pass could read it.
        let Some(table) = file.and_then(|file| read_table(archive, file).ok()?.0) else { continue };
        let follow = TableLinks {
            targets: &index.targets,
            files: &plan.files,
            items: &plan.items,
            folder: &database.folder,
        };
        let columns = columns::types(&table, &database.types, &follow);
        let mut made: Vec<Property> = Vec::new();
        for column in &columns {
            made.push(column.property.clone());
            made.extend(
                column.end.clone().map(|name| Property { name, kind: crate::plan::PropertyKind::Date }),
            );
        }
        plan.counts.properties += made.len();
        if let Some(ItemKind::Database { properties, .. }) =
            plan.items.get_mut(place).map(|item| &mut item.kind)
        {
            *properties = made;
        }
        if let Some(database) = index.databases.get_mut(&place) {
            database.columns = columns;
        }
    }
}

/// Whether a page exceeds the limit of links.
pub(super) fn holds_too_much(text: &str) -> bool {
    markdown::places(text, 0).is_none_or(|places| places.links.len() > MAX_LINKS)
}

impl Index {
    pub(super) fn new(targets: Targets, databases: HashMap<usize, Database>) -> Self {
        Self { targets, databases }
    }

    /// The content of a page, without the properties of its row, and with links as placeholders.
    pub(crate) fn content(&self, files: &[TreeFile], file: usize, mut text: String) -> Content {
        text = super::markdown_of(files.get(file).map_or("", |file| &file.path), text);
        let database = self.targets.columns.get(&file).and_then(|database| self.databases.get(database));
        if let Some(database) = database {
            let range = rows::properties(&text, &database.names).range;
            text.replace_range(range, "");
        }
        let folder =
            files.get(file).and_then(|file| file.path.rsplit_once('/')).map_or("", |(folder, _)| folder);
        let mut content = Content::default();
        let mut lines = Lines::of(&text);
        let mut links = markdown::places(&text, 0).unwrap_or_default().links;
        links.truncate(MAX_LINKS);
        let mut end = 0;
        for link in links {
            if link.target.start < end {
                continue;
            }
            end = link.target.end;
            self.link(files, folder, &text, link, &mut lines, &mut content);
        }
        Content { text, ..content }
    }

    fn link(
        &self,
        files: &[TreeFile],
        folder: &str,
        text: &str,
        link: Linked,
        lines: &mut Lines<'_>,
        content: &mut Content,
    ) {
        let Some(to) = address::relative(&link.to) else {
            // A notion.so URL is an internal link if the export contains the page.
            if let Some(target) = is_of_notion(&link.to).then(|| self.by_id(&link.to)).flatten() {
                content.found += 1;
                content.links.push(Link {
                    range: link.target,
                    before: String::new(),
                    target: Some(target),
                    after: String::new(),
                });
            }
            return;
        };
        if to.path.is_empty() {
            return;
        }
        content.found += 1;
        let found = self.targets.follow(files, folder, &to.path);
        let Some(target) = found.or_else(|| self.targets.follow(files, folder, &to.raw)) else {
            let target = reported(text.get(link.target.clone()).unwrap_or_default());
            content.unresolved.push(Listed {
                line: lines.at(link.target.start),
                target,
                reason: UnresolvedReason::NotFound,
            });
            return;
        };
        let is_asset = Kind::of(&to.path).media_type().is_some();
        let fragment = to.fragment.as_deref().filter(|fragment| !fragment.is_empty());
        let fragment = fragment.map(if is_asset { parameters } else { heading });
        let after = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
        content.links.push(Link { range: link.target, before: String::new(), target: Some(target), after });
    }

    fn by_id(&self, address: &str) -> Option<usize> {
        let path = address.split(['?', '#']).next()?;
        self.targets.by_id.get(&id_of_link(path)?).copied()
    }

    /// Reads the values of a database's records.
    pub(crate) fn records<R: Read + Seek>(
        &self,
        files: &[TreeFile],
        items: &[crate::plan::Item],
        archive: &mut Archive<R>,
        database: usize,
        each: &mut dyn FnMut(usize, Vec<(usize, Value)>),
    ) -> Result<(), EntryError> {
        let Some(database) = self.databases.get(&database) else { return Ok(()) };
        let file = files.get(database.file).ok_or(EntryError::Corrupt)?;
        let table = read_table(archive, file)?.0.ok_or(EntryError::Corrupt)?;
        let follow = TableLinks { targets: &self.targets, files, items, folder: &database.folder };
        for (row, record) in table.rows.iter().enumerate() {
            let mut values = Vec::new();
            let mut property = 0;
            for (place, column) in database.columns.iter().enumerate() {
                let value = columns::value(column, Table::cell(record, place), &follow);
                let (value, end) = value.map_or((None, None), |(value, end)| (Some(value), end));
                values.extend(value.map(|value| (property, value)));
                values.extend(end.map(|end| (property + 1, end)));
                property += if column.end.is_some() { 2 } else { 1 };
            }
            each(database.first + row, values);
        }
        Ok(())
    }
}

fn is_of_notion(address: &str) -> bool {
    ["https://www.notion.so/", "https://notion.so/"].iter().any(|host| address.starts_with(host))
}
