//! Exports of Notion: Markdown & CSV, and HTML, whose pages become the same Markdown.
//!
//! The first pass reads every entry once: titles of pages, columns of tables. Then it is known which page belongs to which
//! row and what leads where, so columns get their types. The second pass reads pages and tables again for what they hold.

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
use self::names::Named;
use self::table::Table;
use crate::archive::{Archive, ArchiveError, EntryError, Tree, TreeFile};
use crate::kind::{Kind, extension};
use crate::plan::{self, Builder, ItemKind, Limits, Plan};
use crate::report::{Ignored, IgnoredReason, Warning, WarningCode};
use crate::text;

/// The table of contents of an export.
const INDEX: &str = "index.html";
/// The largest table that is read.
const MOST_TABLE_BYTES: u64 = 20 * 1024 * 1024;
/// Types of properties that are kept of the pages of a folder.
const MOST_TYPES: usize = 200;
/// Records of an import.
const MOST_RECORDS: usize = 200_000;

/// A file of the export that can be imported.
#[derive(Debug)]
struct Part {
    /// Its place in the plan's files.
    file: usize,
    /// The folder in the archive.
    folder: String,
    /// Its name in the archive.
    name: String,
    named: Named,
    what: What,
}

#[derive(Debug)]
enum What {
    /// A page, with its title.
    Page(String),
    /// A table, with its columns and how many rows it has.
    Table {
        columns: Vec<String>,
        rows: usize,
        is_all: bool,
    },
    /// Text that is neither.
    Text,
    Asset(&'static str),
}

/// What becomes of an export. `file_name` is what the archive is called; `parts` are the entries whose archives were added.
///
/// # Errors
/// [`ArchiveError`] for an archive that holds nothing that can be imported, or that names too many folders.
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
    let mut maker = Maker {
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
    maker.files();
    let made = maker.databases(&databases);
    plan::not_empty(&maker.builder)?;
    let Maker { mut builder, targets, warnings, .. } = maker;
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

/// Takes away the folders that only the export made, and names the import.
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
    // Two parts may have brought the same path.
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
        && Named::of(&folder).id.is_none()
        && tree.files.iter().any(|file| file.path.matches('/').count() > 0)
        && !is_owned(tree, &folder)
    {
        tree.enter(&folder);
        // Of an export, it is "Private & Shared" in some language; else somebody packed a folder of theirs.
        top = Some(folder).filter(|folder| !entered && !names::is_technical(folder));
    }
    let of_file = plan::root_of_file(file_name);
    let of_file = Some(of_file).filter(|name| !names::is_technical(name));
    top.or(of_file)
}

/// The name of the workspace in the export's table of contents.
fn workspace<R: Read + Seek>(archive: &mut Archive<R>, tree: &Tree) -> Option<String> {
    let index = tree.files.iter().find(|file| file.path == INDEX)?;
    let (html, _) = archive.text(index.entry).ok()?;
    let name = html::workspace(&html)?.replace('/', "-");
    Some(crate::archive::shortened(&name).unwrap_or(name)).filter(|name| name != "." && name != "..")
}

/// The files of an export that can be imported.
struct Export {
    files: Vec<TreeFile>,
    parts: Vec<Part>,
    /// Types of properties that pages name, by the folder that the pages are in.
    types: HashMap<String, HashMap<String, String>>,
}

/// Whether a folder belongs to a page beside it.
fn is_owned(tree: &Tree, folder: &str) -> bool {
    tree.files.iter().any(|file| file.path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('.')))
}

/// Reads every entry once: what cannot be imported is warned of.
fn read<R: Read + Seek>(archive: &mut Archive<R>, tree: &mut Tree, limits: &Limits) -> Export {
    let (mut files, mut parts) = (Vec::new(), Vec::new());
    let mut types: HashMap<String, HashMap<String, String>> = HashMap::new();
    let mut rows_left = MOST_RECORDS;
    for file in std::mem::take(&mut tree.files) {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let (folder, name) = (folder.to_owned(), name.to_owned());
        let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
        if folder.is_empty() && name == INDEX {
            tree.ignored.push(Ignored { path: file.path, reason: IgnoredReason::Index });
            continue;
        }
        let is_all = extension(&name) == "csv" && stem.ends_with("_all");
        let named = Named::of(stem.strip_suffix("_all").filter(|_| is_all).unwrap_or(stem));
        let kind = Kind::of(&name);
        let what = match kind {
            Kind::Markdown => page(archive, &file, &named, &mut tree.warnings),
            Kind::Asset(_) if named.id.is_some() && html::is_page(&name) => {
                let of_folder = types.entry(folder.clone()).or_default();
                html_page(archive, &file, &named, &mut tree.warnings, of_folder)
            }
            Kind::Text if named.id.is_some() && extension(&name) == "csv" => {
                table(archive, &file, is_all, &mut rows_left, &mut tree.warnings)
            }
            // What somebody attached is an attachment, whatever it is.
            Kind::Text | Kind::Json | Kind::Yaml | Kind::Asset(_) => {
                plan::check_asset(archive, &file, limits).map(|()| What::Asset(media_type(kind)))
            }
        };
        match what {
            Err(code) => tree.warnings.push(Warning::new(file.path, code)),
            Ok(what) => {
                parts.push(Part { file: files.len(), folder, name, named, what });
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
    named: &Named,
    warnings: &mut Vec<Warning>,
) -> Result<What, WarningCode> {
    let (text, is_clean) = archive.text(file.entry).map_err(|error| plan::unread(&error))?;
    if !is_clean {
        warnings.push(Warning::new(&file.path, WarningCode::TextEncoding));
    }
    Ok(titled(&text, file, named, warnings))
}

fn html_page<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
    named: &Named,
    warnings: &mut Vec<Warning>,
    types: &mut HashMap<String, String>,
) -> Result<What, WarningCode> {
    let (html, is_clean) = archive.text(file.entry).map_err(|error| plan::unread(&error))?;
    if !is_clean {
        warnings.push(Warning::new(&file.path, WarningCode::TextEncoding));
    }
    let page = html::page(&html).ok_or(WarningCode::EntryCorrupt)?;
    if page.markdown.len() > text::MOST_TEXT_BYTES {
        return Err(WarningCode::TooLarge);
    }
    if types.len() < MOST_TYPES {
        types.extend(page.types);
    }
    Ok(titled(&page.markdown, file, named, warnings))
}

/// The text of a page as Markdown.
fn markdown_of(path: &str, text: String) -> String {
    if !html::is_page(path) {
        return text;
    }
    // It could be read a moment ago.
    html::page(&text).map(|page| page.markdown).unwrap_or_default()
}

fn titled(text: &str, file: &TreeFile, named: &Named, warnings: &mut Vec<Warning>) -> What {
    if links::holds_too_much(text) {
        warnings.push(Warning::new(&file.path, WarningCode::LinksTruncated));
    }
    What::Page(names::title(&named.title, names::heading(text).0))
}

fn table<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
    is_all: bool,
    rows_left: &mut usize,
    warnings: &mut Vec<Warning>,
) -> Result<What, WarningCode> {
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
            Ok(What::Table { rows: table.rows.len(), columns: table.columns, is_all })
        }
        None => {
            warnings.push(Warning::new(&file.path, WarningCode::TableInvalid));
            // As a text file it is bounded as one.
            archive.text(file.entry).map(|_| What::Text).map_err(|error| plan::unread(&error))
        }
    }
}

/// Reads a table, and whether its text was clean.
fn read_table<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
) -> Result<(Option<Table>, bool), EntryError> {
    let (text, is_clean) = text::decode(archive.read(file.entry, MOST_TABLE_BYTES)?);
    Ok((Table::read(&text), is_clean))
}

/// Which tables are databases.
#[derive(Debug, Default)]
struct Databases {
    /// The parts that are, in the order of their paths.
    owners: Vec<usize>,
    /// Tables that are views, each with the database.
    views: Vec<(usize, usize)>,
}

/// Tells databases from views: a table beside that of all rows, and one without, whose title and columns another has.
fn databases(parts: &[Part], ignored: &mut Vec<Ignored>, files: &[TreeFile]) -> Databases {
    let folders: HashSet<&str> = parts.iter().map(|part| part.folder.as_str()).collect();
    let mut tables: Vec<(usize, &Part, &[String], usize, bool)> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        if let What::Table { columns, rows, is_all } = &part.what {
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
    // Databases of a title; of an id.
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

/// Makes the items.
struct Maker<'a, R> {
    archive: &'a mut Archive<R>,
    files: &'a [TreeFile],
    parts: &'a [Part],
    layout: &'a Layout,
    limits: &'a Limits,
    builder: Builder,
    targets: Targets,
    warnings: Vec<Warning>,
    types: HashMap<String, HashMap<String, String>>,
    /// Ids that items have, with the kind of the item.
    taken: HashSet<(u8, String)>,
}

impl<R: Read + Seek> Maker<'_, R> {
    /// Adds the item of a part, where folders nest that deep.
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

    /// Gives an item its id, unless another of its kind has it.
    fn name(&mut self, item: usize, id: Option<String>, mark: u8) {
        let id = id.filter(|id| self.taken.insert((mark, id.clone())));
        if let Some(item) = self.builder.items.get_mut(item) {
            item.id = id;
        }
    }

    /// Pages, attachments, and tables that are no databases.
    fn files(&mut self) {
        for (place, part) in self.parts.iter().enumerate() {
            let path = self.layout.path(place);
            let file = part.file;
            match part.what {
                What::Page(_) => _ = self.add(part, path, ItemKind::File { kind: Kind::Markdown, file }, 0),
                What::Text => _ = self.add(part, path, ItemKind::File { kind: Kind::Text, file }, 0),
                What::Asset(media_type) => _ = self.add(part, path, ItemKind::Asset { media_type, file }, 1),
                What::Table { .. } => {}
            }
        }
    }

    /// Databases with their records; types of columns come when all are there.
    fn databases(&mut self, found: &Databases) -> HashMap<usize, Database> {
        let mut in_folder: HashMap<&str, Vec<&Part>> = HashMap::new();
        for part in self.parts.iter().filter(|part| matches!(part.what, What::Page(_))) {
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
        // It could be read a moment ago.
        let table = read.and_then(|(table, _)| table).unwrap_or_default();
        let candidates: Vec<rows::Candidate> = pages
            .iter()
            .filter_map(|page| match &page.what {
                What::Page(title) => Some(rows::Candidate { file: page.file, title: title.clone() }),
                What::Table { .. } | What::Text | What::Asset(_) => None,
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
            // Without a page, a row is known by its title, and by which of those it is.
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
