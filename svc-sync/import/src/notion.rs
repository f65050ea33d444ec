//! Exports of Notion: Markdown & CSV, and HTML, which is converted to the same Markdown.
//!
//! The first pass reads every entry once for the titles of pages and the columns of tables. Then pages are matched with rows and links are
//! resolved, which determines the types of columns. The second pass reads pages and tables again for their content.

mod columns;
mod dates;
mod html;
mod layout;
mod links;
mod names;
mod rows;
mod table;

use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek};

use self::layout::Layout;
pub(crate) use self::links::Index;
use self::links::{Database, Targets};
use self::names::ExportName;
use self::table::Table;
use crate::archive::{Archive, ArchiveError, EntryError, Tree, TreeFile};
use crate::kind::{Kind, extension};
use crate::plan::{self, Builder, ItemKind, Limits, Plan};
use crate::report::{Ignored, IgnoredReason, Warning, WarningCode};
use crate::text;

/// The file name of an export's table of contents.
const INDEX: &str = "index.html";
/// Bytes of a table.
const MAX_TABLE_BYTES: u64 = 20 * 1024 * 1024;
/// Property types that are collected from the pages of a folder.
const MAX_TYPES: usize = 200;
/// Records of an import.
const MAX_RECORDS: usize = 200_000;

/// An importable file of the export.
#[derive(Debug)]
struct Part {
    /// Its index in the plan's files.
    file: usize,
    /// Its folder in the archive.
    folder: String,
    /// Its name in the archive.
    name: String,
    named: ExportName,
    content: PartContent,
}

#[derive(Debug)]
enum PartContent {
    /// A page, with its title.
    Page(String),
    /// A table, with its columns and number of rows.
    Table {
        columns: Vec<String>,
        rows: usize,
        is_all: bool,
    },
    /// Other text.
    Text,
    Asset(&'static str),
}

/// Plans the import of an export. `file_name` is the name of the archive; `parts` are the entries whose nested archives were added.
///
/// # Errors
/// [`ArchiveError`] for an archive without importable files, or with too many folders.
pub fn notion<R: Read + Seek>(
    archive: &mut Archive<R>,
    parts: &[usize],
    file_name: &str,
    limits: &Limits,
) -> Result<Plan, ArchiveError> {
    let mut tree = Tree::of(archive, parts)?;
    tree.warnings.extend(archive.missing_parts(parts, file_name));
    let root = enter_export(&mut tree, !parts.is_empty(), file_name);
    let root = root.or_else(|| workspace(archive, &tree)).unwrap_or_else(|| "Notion".to_owned());
    let Export { files, parts, types } = read(archive, &mut tree, limits);
    let databases = databases(&parts, &mut tree.ignored, &files);
    let layout = Layout::of(&parts, &databases.owners);
    let mut planner = ItemPlanner {
        archive,
        files: &files,
        parts: &parts,
        layout: &layout,
        limits,
        builder: Builder::default(),
        targets: Targets::of(files.len()),
        warnings: tree.warnings,
        types,
        taken: HashSet::new(),
    };
    planner.files();
    let made = planner.databases(&databases);
    plan::not_empty(&planner.builder)?;
    let ItemPlanner { mut builder, targets, warnings, .. } = planner;
    builder.counts.ignored = tree.ignored.len();
    let mut plan = Plan {
        root,
        items: builder.items,
        ignored: tree.ignored,
        warnings,
        unresolved: Vec::new(),
        counts: builder.counts,
        files,
        index: plan::Index::Notion(Index::new(targets, made)),
    };
    links::type_columns(&mut plan, archive);
    plan.follow(archive);
    Ok(plan)
}

/// Strips folders that the export added, and names the import.
fn enter_export(tree: &mut Tree, is_in_parts: bool, file_name: &str) -> Option<String> {
    let mut top = None;
    let mut entered = is_in_parts;
    for file in &mut tree.files {
        if let Some((first, rest)) = file.path.split_once('/')
            && first.starts_with("Export-")
        {
            entered = true;
            file.path = rest.to_owned();
        }
    }
    // Two parts may contain the same path.
    tree.files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut twice = Vec::new();
    tree.files.dedup_by(|later, first| {
        let is_same = later.path == first.path;
        if is_same {
            twice.push(Warning::new(&first.path, WarningCode::DuplicatePath));
            first.entry = first.entry.max(later.entry);
            first.size = if first.entry == later.entry { later.size } else { first.size };
        }
        is_same
    });
    tree.warnings.extend(twice);
    if let Some(folder) = tree.top()
        && ExportName::of(&folder).id.is_none()
        && tree.files.iter().any(|file| file.path.matches('/').count() > 0)
        && !is_owned(tree, &folder)
    {
        tree.enter(&folder);
        // In an export, it is "Private & Shared" in some language; otherwise somebody zipped a folder of their own.
        top = Some(folder).filter(|folder| !entered && !names::is_technical(folder));
    }
    let of_file = plan::root_of_file(file_name);
    let of_file = Some(of_file).filter(|name| !names::is_technical(name));
    top.or(of_file)
}

/// The name of the workspace, from the table of contents.
fn workspace<R: Read + Seek>(archive: &mut Archive<R>, tree: &Tree) -> Option<String> {
    let index = tree.files.iter().find(|file| file.path == INDEX)?;
    let (html, _) = archive.text(index.entry).ok()?;
    let name = html::workspace(&html)?.replace('/', "-");
    Some(crate::archive::shortened(&name).unwrap_or(name)).filter(|name| name != "." && name != "..")
}

/// The importable files of an export.
struct Export {
    files: Vec<TreeFile>,
    parts: Vec<Part>,
    /// Property types that pages mention, by the folder of the pages.
    types: HashMap<String, HashMap<String, String>>,
}

/// Whether a folder belongs to a sibling page.
fn is_owned(tree: &Tree, folder: &str) -> bool {
    tree.files.iter().any(|file| file.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('.')))
}

/// The first pass over all entries; warns about those that cannot be imported.
fn read<R: Read + Seek>(archive: &mut Archive<R>, tree: &mut Tree, limits: &Limits) -> Export {
    let (mut files, mut parts) = (Vec::new(), Vec::new());
    let mut types: HashMap<String, HashMap<String, String>> = HashMap::new();
    let mut rows_left = MAX_RECORDS;
    for file in std::mem::take(&mut tree.files) {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
        if folder.is_empty() && name == INDEX {
            tree.ignored.push(Ignored { path: file.path, reason: IgnoredReason::Index });
            continue;
        }
        let is_all = extension(&name) == "csv" && stem.ends_with("_all");
        let named = ExportName::of(stem.strip_suffix("_all").filter(|_| is_all).unwrap_or(stem));
        let kind = Kind::of(&name);
        let content = match kind {
            Kind::Markdown => page(archive, &file, &named, &mut tree.warnings),
            Kind::Asset(_) if named.id.is_some() && html::is_page(&name) => {
                let of_folder = types.entry(folder.clone()).or_default();
                html_page(archive, &file, &named, &mut tree.warnings, of_folder)
            }
            Kind::Text if named.id.is_some() && extension(&name) == "csv" => {
                table(archive, &file, is_all, &mut rows_left, &mut tree.warnings)
            }
            // Attached files are attachments, whatever their type.
            Kind::Text | Kind::Json | Kind::Yaml | Kind::Asset(_) => {
                plan::check_asset(archive, &file, limits).map(|()| PartContent::Asset(media_type(kind)))
            }
        };
        match content {
            Err(code) => tree.warnings.push(Warning::new(file.path, code)),
            Ok(content) => {
                parts.push(Part { file: files.len(), folder, name, named, content });
                files.push(file);
            }
        }
    }
    Export { files, parts, types }
}

fn media_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Markdown => "text/markdown",
        Kind::Json => "application/json",
        Kind::Yaml => "application/yaml",
        Kind::Text => "text/plain",
        Kind::Asset(media_type) => media_type,
    }
}

fn page<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
    named: &ExportName,
    warnings: &mut Vec<Warning>,
) -> Result<PartContent, WarningCode> {
    let (text, is_clean) = archive.text(file.entry).map_err(|error| plan::unread(&error))?;
    if !is_clean {
        warnings.push(Warning::new(&file.path, WarningCode::TextEncoding));
    }
    Ok(titled(&text, file, named, warnings))
}

fn html_page<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
    named: &ExportName,
    warnings: &mut Vec<Warning>,
    types: &mut HashMap<String, String>,
) -> Result<PartContent, WarningCode> {
    let (html, is_clean) = archive.text(file.entry).map_err(|error| plan::unread(&error))?;
    if !is_clean {
        warnings.push(Warning::new(&file.path, WarningCode::TextEncoding));
    }
    let page = html::page(&html).ok_or(WarningCode::EntryCorrupt)?;
    if page.markdown.len() > text::MAX_TEXT_BYTES {
        return Err(WarningCode::TooLarge);
    }
    if types.len() < MAX_TYPES {
        types.extend(page.types);
    }
    Ok(titled(&page.markdown, file, named, warnings))
}

/// Reads a page as Markdown.
fn markdown_of(path: &str, text: String) -> String {
    if !html::is_page(path) {
        return text;
    }
    // The first pass could read it.
    html::page(&text).map(|page| page.markdown).unwrap_or_default()
}

fn titled(text: &str, file: &TreeFile, named: &ExportName, warnings: &mut Vec<Warning>) -> PartContent {
    if links::holds_too_much(text) {
        warnings.push(Warning::new(&file.path, WarningCode::LinksTruncated));
    }
    PartContent::Page(names::title(&named.title, names::heading(text).0))
}

fn table<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
    is_all: bool,
    rows_left: &mut usize,
    warnings: &mut Vec<Warning>,
) -> Result<PartContent, WarningCode> {
    let (table, is_clean) = match read_table(archive, file) {
        Ok(read) => read,
        Err(EntryError::TooLarge) => return Err(WarningCode::TooLarge),
        Err(error) => return Err(plan::unread(&error)),
    };
    if !is_clean {
        warnings.push(Warning::new(&file.path, WarningCode::TextEncoding));
    }
    match table.filter(|table| table.rows.len() <= *rows_left) {
        Some(table) => {
            *rows_left -= table.rows.len();
            Ok(PartContent::Table { rows: table.rows.len(), columns: table.columns, is_all })
        }
        None => {
            warnings.push(Warning::new(&file.path, WarningCode::TableInvalid));
            // Imported as a text file, it has the limit of one.
            archive.text(file.entry).map(|_| PartContent::Text).map_err(|error| plan::unread(&error))
        }
    }
}

/// Reads a table, and whether its text was valid UTF-8.
fn read_table<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
) -> Result<(Option<Table>, bool), EntryError> {
    let (text, is_clean) = text::decode(archive.read(file.entry, MAX_TABLE_BYTES)?);
    Ok((Table::read(&text), is_clean))
}

/// Distinguishes databases from views.
#[derive(Debug, Default)]
struct Databases {
    /// The databases, sorted by path.
    owners: Vec<usize>,
    /// Views, each with its database.
    views: Vec<(usize, usize)>,
}

/// A view is a table next to one with all rows, or a table with the title and columns of another.
fn databases(parts: &[Part], ignored: &mut Vec<Ignored>, files: &[TreeFile]) -> Databases {
    let folders: HashSet<&str> = parts.iter().map(|part| part.folder.as_str()).collect();
    let mut tables: Vec<(usize, &Part, &[String], usize, bool)> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        if let PartContent::Table { columns, rows, is_all } = &part.content {
            tables.push((place, part, columns, *rows, *is_all));
        }
    }
    let has_pages =
        |part: &Part| layout::folders_of(part).iter().any(|folder| folders.contains(folder.as_str()));
    tables.sort_by_key(|(place, part, columns, rows, is_all)| {
        use std::cmp::Reverse;
        (Reverse(*is_all), Reverse(columns.len()), Reverse(has_pages(part)), Reverse(*rows), *place)
    });
    let mut found = Databases::default();
    // Databases by title; by id.
    let mut titles: HashMap<&str, Vec<(usize, HashSet<&str>)>> = HashMap::new();
    let mut ids: HashMap<&str, usize> = HashMap::new();
    for (place, part, columns, _, is_all) in tables {
        let id = part.named.id.as_deref().unwrap_or_default();
        let same = ids.get(id).copied().filter(|_| !id.is_empty());
        let known = titles.entry(&part.named.title).or_default();
        let among = known.iter().find(|(_, of)| columns.iter().all(|column| of.contains(column.as_str())));
        let database = same.or_else(|| among.filter(|_| !is_all).map(|(database, _)| *database));
        match database {
            Some(database) => {
                let path = files.get(part.file).map(|file| file.path.clone()).unwrap_or_default();
                ignored.push(Ignored { path, reason: IgnoredReason::LinkedView });
                found.views.push((place, database));
            }
            None => {
                ids.insert(id, place);
                known.push((place, columns.iter().map(String::as_str).collect()));
                found.owners.push(place);
            }
        }
    }
    found.owners.sort_unstable();
    found
}

/// Creates the items of the plan.
struct ItemPlanner<'a, R> {
    archive: &'a mut Archive<R>,
    files: &'a [TreeFile],
    parts: &'a [Part],
    layout: &'a Layout,
    limits: &'a Limits,
    builder: Builder,
    targets: Targets,
    warnings: Vec<Warning>,
    types: HashMap<String, HashMap<String, String>>,
    /// Assigned ids, with the kind of the item.
    taken: HashSet<(u8, String)>,
}

impl<R: Read + Seek> ItemPlanner<'_, R> {
    /// Adds the item of a part, if the folder depth allows.
    fn add(&mut self, part: &Part, path: &str, kind: ItemKind, mark: u8) -> Option<usize> {
        if path.matches('/').count() > self.limits.folders {
            let source = self.files.get(part.file).map_or(path, |file| &file.path);
            self.warnings.push(Warning::new(source, WarningCode::TooDeep));
            return None;
        }
        let item = self.builder.add(path, kind);
        self.name(item, part.named.id.clone(), mark);
        self.targets.set(part.file, item, part.named.id.as_deref());
        Some(item)
    }

    /// Assigns an id to an item, unless another of its kind has it.
    fn name(&mut self, item: usize, id: Option<String>, mark: u8) {
        let id = id.filter(|id| self.taken.insert((mark, id.clone())));
        if let Some(item) = self.builder.items.get_mut(item) {
            item.id = id;
        }
    }

    /// Adds pages, attachments, and tables that are not databases.
    fn files(&mut self) {
        for (place, part) in self.parts.iter().enumerate() {
            let path = self.layout.path(place);
            let file = part.file;
            match part.content {
                PartContent::Page(_) => {
                    _ = self.add(part, path, ItemKind::File { kind: Kind::Markdown, file }, 0);
                }
                PartContent::Text => _ = self.add(part, path, ItemKind::File { kind: Kind::Text, file }, 0),
                PartContent::Asset(media_type) => {
                    _ = self.add(part, path, ItemKind::Asset { media_type, file }, 1);
                }
                PartContent::Table { .. } => {}
            }
        }
    }

    /// Adds databases with their records; column types follow once all items exist.
    fn databases(&mut self, found: &Databases) -> HashMap<usize, Database> {
        let mut in_folder: HashMap<&str, Vec<&Part>> = HashMap::new();
        for part in self.parts.iter().filter(|part| matches!(part.content, PartContent::Page(_))) {
            in_folder.entry(&part.folder).or_default().push(part);
        }
        let mut items = HashMap::new();
        for place in &found.owners {
            let Some(part) = self.parts.get(*place) else { continue };
            let kind = ItemKind::Database { properties: Vec::new(), file: part.file };
            if let Some(item) = self.add(part, self.layout.path(*place), kind, 2) {
                items.insert(*place, item);
            }
        }
        for (view, database) in &found.views {
            if let (Some(part), Some(item)) = (self.parts.get(*view), items.get(database)) {
                self.targets.set(part.file, *item, part.named.id.as_deref());
            }
        }
        let mut made = HashMap::new();
        for place in &found.owners {
            let (Some(part), Some(item)) = (self.parts.get(*place), items.get(place)) else { continue };
            let pages =
                layout::folders_of(part).into_iter().find_map(|folder| in_folder.get(folder.as_str()));
            let database = self.records(part, *item, pages.map_or(&[][..], Vec::as_slice));
            made.insert(*item, database);
        }
        made
    }

    /// Adds the records of a database.
    fn records(&mut self, part: &Part, database: usize, pages: &[&Part]) -> Database {
        let read = self.files.get(part.file).and_then(|file| read_table(self.archive, file).ok());
        // The first pass could read it.
        let table = read.and_then(|(table, _)| table).unwrap_or_default();
        let candidates: Vec<rows::Candidate> = pages
            .iter()
            .filter_map(|page| match &page.content {
                PartContent::Page(title) => Some(rows::Candidate { file: page.file, title: title.clone() }),
                PartContent::Table { .. } | PartContent::Text | PartContent::Asset(_) => None,
            })
            .collect();
        let matched = rows::pages(&table, &candidates, |file| {
            let file = self.files.get(file)?;
            self.archive.text(file.entry).ok().map(|(text, _)| markdown_of(&file.path, text))
        });
        let with_row: HashSet<usize> = matched.values().copied().collect();
        for page in pages.iter().filter(|page| !with_row.contains(&page.file)) {
            let path = self.files.get(page.file).map_or("", |file| &file.path);
            self.warnings.push(Warning::new(path, WarningCode::RowPageWithoutRow));
        }
        let ids: HashMap<usize, &Part> = pages.iter().map(|page| (page.file, *page)).collect();
        let first = self.builder.items.len();
        let mut repeated: HashMap<String, usize> = HashMap::new();
        for (row, record) in table.rows.iter().enumerate() {
            let title = Table::cell(record, 0).to_owned();
            let page = matched.get(&row).and_then(|file| ids.get(file));
            let body = page.and_then(|page| self.targets.of_file(page.file));
            let record = self.builder.add("", ItemKind::Record { database, body });
            if let Some(item) = self.builder.items.get_mut(record) {
                item.name.clone_from(&title);
            }
            if let Some(body) = body {
                self.targets.rows.insert(body, (database, record));
            }
            // A row without a page is identified by its title, and its number among rows with that title.
            let of = part.named.id.as_deref().unwrap_or_default();
            let number = repeated.entry(title.clone()).and_modify(|number| *number += 1).or_insert(1);
            let unnamed = || format!("{of}/{title}/{number}");
            let id = page.and_then(|page| page.named.id.clone()).unwrap_or_else(unnamed);
            self.name(record, Some(id), 3);
        }
        for page in &with_row {
            self.targets.columns.insert(*page, database);
        }
        let types =
            layout::folders_of(part).iter().find_map(|folder| self.types.remove(folder)).unwrap_or_default();
        let (names, folder) = (table.columns, part.folder.clone());
        Database { folder, file: part.file, names, types, columns: Vec::new(), first }
    }
}

#[cfg(test)]
mod tests;
