//! Plans imports of Obsidian vaults.
//!
//! The first pass reads every entry once, leaves out unreadable ones, and collects aliases. The second reads the notes again and resolves
//! their links. No texts are held in memory between the two.

mod front_matter;
mod resolve;
mod tags;
mod wikilink;

use std::io::{Read, Seek};

use unicode_normalization::UnicodeNormalization as _;

use self::front_matter::FrontMatter;
use self::resolve::{Resolution, Resolver};
use self::tags::Tags;
use self::wikilink::Wikilink;
use crate::address::{heading, parameters, relative};
use crate::archive::{Archive, ArchiveError, Tree, TreeFile};
use crate::content::{Content, Lines, Link, Listed, reported};
use crate::kind::Kind;
use crate::markdown::{self, Inside, Linked, Places};
use crate::plan::{self, Builder, ItemKind, Limits, Plan};
use crate::report::{Ignored, UnresolvedReason, Warning, WarningCode};

/// Links that are replaced in one note.
const MAX_LINKS: usize = 50_000;

/// The state that the second pass needs to resolve links.
#[derive(Debug)]
pub(crate) struct Index {
    resolver: Resolver,
    /// The item of each file.
    items: Vec<usize>,
}

/// Plans the import of a vault. `file_name` is that of the archive.
///
/// # Errors
/// [`ArchiveError`] for an archive with nothing to import, or with too many folders.
pub fn obsidian<R: Read + Seek>(
    archive: &mut Archive<R>,
    file_name: &str,
    limits: &Limits,
) -> Result<Plan, ArchiveError> {
    let mut tree = Tree::of(archive, &[])?;
    let root = enter_vault(&mut tree).unwrap_or_else(|| plan::root_of_file(file_name));
    tree.limit_depth(limits.folders);
    let mut builder = Builder::default();
    let (mut kept, mut items, mut aliases) = (Vec::new(), Vec::new(), Vec::new());
    for file in std::mem::take(&mut tree.files) {
        let kind = Kind::of(&file.path);
        let checked = match kind.media_type() {
            Some(_) => plan::check_asset(archive, &file, limits).map(|()| Vec::new()),
            None => check_text(archive, &file, kind, &mut tree.warnings),
        };
        match checked {
            Err(code) => tree.warnings.push(Warning::new(file.path, code)),
            Ok(found) => {
                let at = kept.len();
                items.push(builder.add(&file.path, item(kind, at)));
                aliases.extend(found.into_iter().map(|alias| (alias, at)));
                kept.push(file);
            }
        }
    }
    plan::not_empty(&builder)?;
    let mut resolver = Resolver::of(&kept);
    aliases.into_iter().for_each(|(alias, note)| resolver.add_alias(&alias, note));
    builder.counts.ignored = tree.ignored.len();
    let mut plan = Plan {
        root,
        items: builder.items,
        ignored: tree.ignored,
        warnings: tree.warnings,
        unresolved: Vec::new(),
        counts: builder.counts,
        files: kept,
        index: plan::Index::Obsidian(Index { resolver, items }),
    };
    plan.follow(archive);
    Ok(plan)
}

fn item(kind: Kind, file: usize) -> ItemKind {
    match kind.media_type() {
        Some(media_type) => ItemKind::Asset { media_type, file },
        None => ItemKind::File { kind, file },
    }
}

/// Makes the paths relative to the vault. Its root is the folder that contains `.obsidian`, else the only top folder, which also names the
/// import.
fn enter_vault(tree: &mut Tree) -> Option<String> {
    let vault = vault_of(&tree.ignored);
    if vault.as_deref() == Some("") {
        return None;
    }
    let top = tree.top()?;
    let inside = |vault: &String| {
        tree.files.iter().all(|file| file.path.strip_prefix(vault).is_some_and(|rest| rest.starts_with('/')))
    };
    let vault = vault.filter(inside).unwrap_or_else(|| top.clone());
    tree.enter(&vault);
    Some(top)
}

/// The outermost folder that holds `.obsidian`; empty for the archive's root.
fn vault_of(ignored: &[Ignored]) -> Option<String> {
    let folders = ignored.iter().filter_map(|ignored| {
        let (folder, _) = ignored.path.split_once(".obsidian/")?;
        (folder.is_empty() || folder.ends_with('/')).then(|| folder.trim_end_matches('/'))
    });
    folders
        .min_by_key(|folder| folder.matches('/').count() + usize::from(!folder.is_empty()))
        .map(str::to_owned)
}

/// Checks a text and adds warnings; returns the aliases of a note.
fn check_text<R: Read + Seek>(
    archive: &mut Archive<R>,
    file: &TreeFile,
    kind: Kind,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<String>, WarningCode> {
    let (text, is_clean) = archive.text(file.entry).map_err(|error| plan::unread(&error))?;
    let mut warn = |code| warnings.push(Warning::new(&file.path, code));
    if !is_clean {
        warn(WarningCode::TextEncoding);
    }
    if kind != Kind::Markdown {
        return Ok(Vec::new());
    }
    let note = Parsed::of(&text);
    if note.front_matter.is_invalid {
        warn(WarningCode::FrontMatterInvalid);
    }
    let links = note.places.as_ref().map(|(places, wikilinks)| places.links.len() + wikilinks.len());
    if links.is_none_or(|links| links > MAX_LINKS) {
        warn(WarningCode::LinksTruncated);
    }
    if note.tags.is_truncated {
        warn(WarningCode::TagsTruncated);
    }
    Ok(note.front_matter.aliases.iter().map(|alias| alias.nfc().collect()).collect())
}

/// A parsed note.
struct Parsed<'a> {
    front_matter: FrontMatter,
    tags: Tags,
    /// `None` for a text that is too complex to tell code from text.
    places: Option<(Places, Vec<Wikilink<'a>>)>,
}

impl<'a> Parsed<'a> {
    fn of(text: &'a str) -> Self {
        let front_matter = front_matter::read(text);
        let begin = front_matter.end;
        let mut tags = Tags::default();
        front_matter.tags.iter().for_each(|tag| tags.add(tag));
        let places = markdown::places(text, begin).map(|places| {
            let wikilinks = wikilink::find(text, begin, &places.code);
            let mut opaque = places.opaque.clone();
            opaque.extend(wikilinks.iter().map(|link| link.range.clone()));
            opaque.sort_unstable_by_key(|range| range.start);
            tags.add_inline(text, begin, &opaque);
            (places, wikilinks)
        });
        Self { front_matter, tags, places }
    }
}

impl Index {
    /// The content of a note, with tags and the ranges of its links.
    pub(crate) fn content(&mut self, files: &[TreeFile], file: usize, text: String) -> Content {
        let note = Parsed::of(&text);
        let tags = note.tags.kept;
        let (places, wikilinks) = note.places.unwrap_or_default();
        let folder =
            files.get(file).and_then(|file| file.path.rsplit_once('/')).map_or("", |(folder, _)| folder);
        let mut note = Note {
            index: self,
            files,
            folder: folder.to_owned(),
            lines: Lines::of(&text),
            in_table: Inside::of(&places.tables),
            content: Content { tags, ..Content::default() },
        };
        for place in in_order(wikilinks, places.links) {
            match place {
                Place::Wikilink(link) => note.wikilink(&link),
                Place::Linked(link) => note.linked(&text, link),
            }
        }
        let content = note.content;
        Content { text, ..content }
    }
}

/// A link that may be replaced.
enum Place<'a> {
    Wikilink(Wikilink<'a>),
    Linked(Linked),
}

impl Place<'_> {
    fn begin(&self) -> usize {
        match self {
            Self::Wikilink(link) => link.range.start,
            Self::Linked(link) => link.target.start,
        }
    }

    fn end(&self) -> usize {
        match self {
            Self::Wikilink(link) => link.range.end,
            Self::Linked(link) => link.target.end,
        }
    }
}

/// All links of a text that may be replaced, in order and without overlap. The text of a link may contain an embed and no other link;
/// `[[a]](b)` is a wikilink followed by a parenthesis.
fn in_order(wikilinks: Vec<Wikilink<'_>>, mut links: Vec<Linked>) -> Vec<Place<'_>> {
    let begins: std::collections::HashSet<usize> =
        wikilinks.iter().filter(|link| !link.is_embed).map(|link| link.range.start).collect();
    links.retain(|link| !begins.contains(&link.whole.start));
    let mut texts: Vec<_> =
        links.iter().filter(|link| !link.is_image).map(|link| link.whole.clone()).collect();
    texts.sort_unstable_by_key(|range| range.start);
    let mut in_text = Inside::of(&texts);
    let free = wikilinks.into_iter().filter(|link| !in_text.holds(link.range.start) || link.is_embed);
    let mut places: Vec<Place<'_>> = free.map(Place::Wikilink).collect();
    places.extend(links.into_iter().map(Place::Linked));
    places.sort_by_key(Place::begin);
    let mut end = 0;
    places.retain(|place| {
        let is_apart = place.begin() >= end;
        end = if is_apart { place.end() } else { end };
        is_apart
    });
    places.truncate(MAX_LINKS);
    places
}

/// Resolves the links of a note.
struct Note<'a> {
    index: &'a mut Index,
    files: &'a [TreeFile],
    folder: String,
    lines: Lines<'a>,
    in_table: Inside<'a>,
    content: Content,
}

impl Note<'_> {
    fn wikilink(&mut self, link: &Wikilink<'_>) {
        let in_table = self.in_table.holds(link.range.start);
        self.content.found += 1;
        let (path, last) = (link.path(), link.headings().next_back());
        let mark = if link.is_embed { "!" } else { "" };
        if path.is_empty() {
            let title = label(link.alias.unwrap_or(&link.title()), in_table);
            let before = format!("{mark}[{title}](#{})", last.map(heading).unwrap_or_default());
            self.replace(link.range.clone(), before, None, String::new());
            return;
        }
        let path: String = path.nfc().collect();
        let found = self.index.resolver.wikilink(self.files, &self.folder, &path);
        let Some((file, target)) = self.found(found, link.range.start, link.target) else { return };
        let is_asset = self.is_asset(file);
        let fragment = last.map(if is_asset { parameters } else { heading });
        let title = match link.alias {
            Some(alias) => alias.to_owned(),
            None if link.is_embed && is_asset => path.rsplit('/').next().unwrap_or(&path).to_owned(),
            None => link.title(),
        };
        let before = format!("{mark}[{}](", label(&title, in_table));
        self.replace(link.range.clone(), before, Some(target), format!("{})", behind(fragment)));
    }

    fn linked(&mut self, text: &str, link: Linked) {
        let Some(to) = relative(&link.to) else { return };
        if to.path.is_empty() {
            return;
        }
        self.content.found += 1;
        let mut found = self.index.resolver.markdown(self.files, &self.folder, &to.path);
        if found == Resolution::Nothing && to.raw != to.path {
            found = self.index.resolver.markdown(self.files, &self.folder, &to.raw);
        }
        let written = text.get(link.target.clone()).unwrap_or_default();
        let Some((file, target)) = self.found(found, link.target.start, written) else { return };
        let encoded = if self.is_asset(file) { parameters } else { heading };
        let fragment = to.fragment.as_deref().map(encoded);
        self.replace(link.target, String::new(), Some(target), behind(fragment));
    }

    /// The file and the item of a target; an unresolved one is added to the report.
    fn found(&mut self, found: Resolution, place: usize, written: &str) -> Option<(usize, usize)> {
        let (file, reason) = match found {
            Resolution::One(file) => (Some(file), None),
            Resolution::FirstOf(file) => (Some(file), Some(UnresolvedReason::Ambiguous)),
            Resolution::Several => (None, Some(UnresolvedReason::Ambiguous)),
            Resolution::Nothing => (None, Some(UnresolvedReason::NotFound)),
        };
        if let Some(reason) = reason {
            let line = self.lines.at(place);
            self.content.unresolved.push(Listed { line, target: reported(written), reason });
        }
        let file = file?;
        Some((file, *self.index.items.get(file)?))
    }

    fn is_asset(&self, file: usize) -> bool {
        self.files.get(file).is_some_and(|file| Kind::of(&file.path).media_type().is_some())
    }

    fn replace(
        &mut self,
        range: std::ops::Range<usize>,
        before: String,
        target: Option<usize>,
        after: String,
    ) {
        self.content.links.push(Link { range, before, target, after });
    }
}

fn behind(fragment: Option<String>) -> String {
    fragment
        .filter(|fragment| !fragment.is_empty())
        .map(|fragment| format!("#{fragment}"))
        .unwrap_or_default()
}

/// Escapes the text of a Markdown link: brackets, and bars in table cells.
fn label(text: &str, in_table: bool) -> String {
    let is_balanced = {
        let mut depth = 0_i64;
        let ends = text.chars().all(|char| {
            depth += i64::from(char == '[') - i64::from(char == ']');
            depth >= 0
        });
        ends && depth == 0
    };
    let mut label = String::with_capacity(text.len());
    let mut is_escaped = false;
    for char in text.chars() {
        let escapes = (matches!(char, '[' | ']') && !is_balanced) || (char == '|' && in_table);
        if escapes && !is_escaped {
            label.push('\\');
        }
        label.push(char);
        is_escaped = char == '\\' && !is_escaped;
    }
    if is_escaped {
        label.push('\\');
    }
    label
}

#[cfg(test)]
mod tests;
