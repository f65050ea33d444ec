//! The texts that orient an agent: what is here, and what to use when.

use std::fmt::Write as _;

use cairn_proto::content::v1::MemberKind;
use cairn_shell::tree::Node;

use super::base::{Base, Fixed, Slot};
use super::lens::Lens;
use super::memories::{MAX_FILES, MemoryContents, shown};
use super::rows::What;

/// Folders, memories and databases that are listed; `ls` lists the others.
const MAX_LISTED: usize = 30;
/// Characters of a guidance that a list shows.
const MAX_CHARS: usize = 200;

/// The numbers of folders and files below a folder.
#[derive(Debug, Clone, Copy, Default)]
struct Below {
    folders: usize,
    files: usize,
}

fn below(base: &Base, lens: &Lens, folder: Node) -> Below {
    let mut below = Below::default();
    let mut open = vec![folder];
    while let Some(next) = open.pop() {
        for child in lens.children(base, next) {
            if base.slot(*child).is_some_and(Slot::is_folder) {
                below.folders += 1;
                open.push(*child);
            } else {
                below.files += 1;
            }
        }
    }
    below
}

fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// A text on one line, not longer than a list bears.
fn line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let whole = words.join(" ");
    match whole.char_indices().nth(MAX_CHARS) {
        None => whole,
        Some((end, _)) => format!("{}…", whole.get(..end).unwrap_or(&whole)),
    }
}

fn records(base: &Base, database: Node) -> usize {
    base.children(database).len().saturating_sub(1)
}

/// The root's README.
pub(super) fn root(base: &Base, lens: &Lens) -> String {
    let files = Fixed::Files.node();
    let databases = lens.children(base, Fixed::Databases.node());
    let memories = base.children(Fixed::Memories.node());
    let held = below(base, lens, files);
    let is_connected = |node: &Node| {
        matches!(base.slot(*node).and_then(Slot::what), Some(What::SourceFolder(Some(_provider))))
    };
    let sources = source_folders(base, lens).iter().filter(|node| is_connected(node)).count();
    let documents = below(base, lens, Fixed::Sources.node()).files.saturating_sub(1);
    let held_records: usize = databases.iter().map(|database| records(base, *database)).sum();
    let mut text = String::from("# This workspace\n\n");
    let what = match lens.is_whole() {
        true => "Everything that this token may read",
        false => "What is in the folders of this token",
    };
    let when = match lens.is_past {
        true => "as it was then, without what was deleted since",
        false => "as it is now",
    };
    let _written = writeln!(text, "{what}, {when}. Nothing here can be changed by a script.\n");
    text.push_str("| Path | What | How much |\n|---|---|---|\n");
    let rows = [
        (
            "/files",
            "files in their folders",
            format!("{}, {}", count(held.files, "file"), count(held.folders, "folder")),
        ),
        (
            "/memories",
            "curated sets for a task: README.md says when to use one and what else belongs to it",
            match memories.len() {
                1 => "1 memory".to_owned(),
                several => format!("{several} memories"),
            },
        ),
        (
            "/databases",
            "typed tables: _schema.md tells the fields, each record is a Markdown file",
            match lens.is_past {
                true => OF_NOW.to_owned(),
                false => format!("{}, {}", count(databases.len(), "database"), count(held_records, "record")),
            },
        ),
        (
            "/sources",
            "documents from outside: what was ingested, and a folder for each connected source",
            match lens.is_past {
                true => OF_NOW.to_owned(),
                false => format!("{}, {}", count(documents, "document"), count(sources, "source")),
            },
        ),
    ];
    for (path, what, much) in rows {
        // Writing to a String cannot fail.
        let _written = writeln!(text, "| {path} | {what} | {much} |");
    }
    list_folders(&mut text, base, lens);
    list_memories(&mut text, base, memories);
    list_databases(&mut text, base, lens, databases);
    text.push_str(WHICH_TOOL);
    text
}

/// Stands for how much there was of what is not told of then.
const OF_NOW: &str = "known as they are now only";

const WHICH_TOOL: &str = "\n## What to use when\n\n\
    - You know a word, a name or an identifier: `grep -rn 'text' /files`, `rg -l 'pattern' /`, `find /files -name '*.md'`.\n\
    - You have a question and do not know its words: the tool search_context.\n\
    - You want records that meet a condition, sorted or counted: the tool query_database, with the database id of _schema.md.\n\
    - You begin a task that a memory is for: the tool get_memory loads it whole, or read its folder here.\n\
    - You want the id or the link of something: `stat` with its path.\n\n\
    Commands: `help`. Of siblings with the same name the newer ones are spelled with a mark, such as `Plan~3f2a91bc.md`.\n";

fn list_folders(text: &mut String, base: &Base, lens: &Lens) {
    let children = lens.children(base, Fixed::Files.node());
    let folders: Vec<Node> =
        children.iter().copied().filter(|node| base.slot(*node).is_some_and(Slot::is_folder)).collect();
    if folders.is_empty() {
        return;
    }
    text.push_str("\n## Folders\n\n");
    for folder in folders.iter().take(MAX_LISTED) {
        let files = below(base, lens, *folder).files;
        let _written = writeln!(text, "- {}/ ({})", line(&lens.path(base, *folder)), count(files, "file"));
    }
    more(text, folders.len(), "/files");
}

fn list_memories(text: &mut String, base: &Base, memories: &[Node]) {
    if memories.is_empty() {
        return;
    }
    text.push_str("\n## Memories\n\n");
    for node in memories.iter().take(MAX_LISTED) {
        let Some(memory) = base.memory(*node) else { continue };
        let guidance = match (&memory.use_when, &memory.description) {
            (Some(use_when), _) => format!(". Use when: {}", line(use_when)),
            (None, Some(description)) => format!(". {}", line(description)),
            (None, None) => String::new(),
        };
        let _written = writeln!(text, "- {}/: {}{guidance}", base.path(*node), line(&memory.name));
    }
    more(text, memories.len(), "/memories");
}

fn list_databases(text: &mut String, base: &Base, lens: &Lens, databases: &[Node]) {
    if databases.is_empty() {
        return;
    }
    text.push_str("\n## Databases\n\n");
    for node in databases.iter().take(MAX_LISTED) {
        let description = base.database(*node).and_then(|(description, ..)| description);
        let description = description.map_or_else(String::new, |text| format!(": {}", line(text)));
        let much = count(records(base, *node), "record");
        let _written = writeln!(text, "- {}/ ({much}){description}", line(&lens.path(base, *node)));
    }
    more(text, databases.len(), "/databases");
}

fn more(text: &mut String, all: usize, path: &str) {
    let rest = all.saturating_sub(MAX_LISTED);
    if rest > 0 {
        let _written = writeln!(text, "- and {rest} more: `ls {path}`");
    }
}

/// The folders below the sources.
fn source_folders(base: &Base, lens: &Lens) -> Vec<Node> {
    let children = lens.children(base, Fixed::Sources.node()).iter().copied();
    children.filter(|node| base.slot(*node).is_some_and(Slot::is_folder)).collect()
}

/// The README of the sources.
pub(super) fn sources(base: &Base, lens: &Lens) -> String {
    let mut text = String::from("# Documents from outside\n\n");
    let folders = source_folders(base, lens);
    if !lens.is_whole() {
        text.push_str("They are outside the folders of this token.\n");
        return text;
    }
    if lens.is_past {
        text.push_str("They are known as they are now only.\n");
        return text;
    }
    if folders.is_empty() {
        text.push_str("Nothing was ingested, and no source is connected.\n");
        return text;
    }
    text.push_str(
        "They can be read here, and are changed where they come from. An entry of a catalog is empty: the tool \
         fetch_source_document asks its provider for the text.\n\n",
    );
    for folder in folders {
        let documents = count(below(base, lens, folder).files, "document");
        let about = match base.slot(folder).and_then(Slot::what) {
            Some(What::SourceFolder(Some(provider))) => format!(": a connected source, {}", line(provider)),
            _ => ": sent by programs".to_owned(),
        };
        let _written = writeln!(text, "- {}/ ({documents}){about}", line(base.name(folder)));
    }
    text
}

/// The README of a memory.
pub(super) fn memory(base: &Base, lens: &Lens, place: usize, held: &MemoryContents) -> String {
    let node = base.children(Fixed::Memories.node()).get(place).copied();
    let Some((node, memory)) = node.and_then(|node| Some((node, base.memory(node)?))) else {
        return String::new();
    };
    let mut text = format!("# {}\n", line(&memory.name));
    if let Some(description) = &memory.description {
        let _written = writeln!(text, "\n{}", description.trim());
    }
    if let Some(use_when) = &memory.use_when {
        let _written = writeln!(text, "\nUse when: {}", use_when.trim());
    }
    let _written =
        writeln!(text, "\nThe tool get_memory loads it whole, with the slug `{}`.", base.name(node));
    list_held(&mut text, base, lens, (place, node), held);
    list_elsewhere(&mut text, base, lens, &memory.members);
    text
}

fn list_held(
    text: &mut String,
    base: &Base,
    lens: &Lens,
    (place, node): (usize, Node),
    held: &MemoryContents,
) {
    if shown(base, lens, node).is_empty() {
        return;
    }
    text.push_str("\n## Here\n\n");
    for child in &held.children {
        let own = super::memories::member_of(*child).filter(|(memory, _)| *memory == place);
        let Some(member) = own.and_then(|(_, own)| held.members.get(own)) else { continue };
        let path = line(&lens.path(base, member.target));
        if base.slot(member.target).is_some_and(Slot::is_folder) {
            let files = below(base, lens, member.target).files;
            let cut =
                if files > MAX_FILES { format!(", the first {MAX_FILES} are here") } else { String::new() };
            let _written = writeln!(
                text,
                "- {}/: the folder {path}/ ({}{cut})",
                line(&member.name),
                count(files, "file")
            );
        } else {
            let _written = writeln!(text, "- {}: the file {path}", line(&member.name));
        }
    }
}

fn list_elsewhere(text: &mut String, base: &Base, lens: &Lens, members: &[super::rows::Member]) {
    let lines: Vec<String> = members.iter().filter_map(|member| elsewhere(base, lens, member)).collect();
    if !lines.is_empty() {
        text.push_str("\n## Elsewhere\n\n");
        text.extend(lines);
    }
}

/// The line of a member that is not a file or folder, or that no longer exists; `None` for one that the caller may not see.
fn elsewhere(base: &Base, lens: &Lens, member: &super::rows::Member) -> Option<String> {
    if member.kind == MemberKind::SourceDocument && base.positions.outside.is_none() {
        // The tree has no documents from outside at the moment.
        return None;
    }
    if member.kind == MemberKind::Database && lens.is_past {
        let now = format!("- a database, which is known as it is now only (id {})\n", member.target);
        return lens.is_whole().then_some(now);
    }
    let found = base.entity(member.target);
    let noun = match member.kind {
        MemberKind::File => "file",
        MemberKind::Folder => "folder",
        MemberKind::Database => "database",
        MemberKind::SourceDocument => "source document",
        MemberKind::Unspecified => return None,
    };
    let Some((node, slot)) = found else {
        // Its folder is unknown, so only callers of the whole workspace see the line.
        let why = match lens.is_past {
            true => "was not there then, or is not now",
            false => "is in trash or deleted",
        };
        return lens.is_whole().then(|| format!("- a {noun} that {why} (id {})\n", member.target));
    };
    if let Some(What::Document(document)) = slot.what() {
        let entry = || format!("- an entry of a catalog: {}\n", line(&lens.path(base, node)));
        return (lens.is_whole() && document.text.is_none()).then(entry);
    }
    let Some(What::Database { folder, .. }) = slot.what() else { return None };
    if !lens.covers(base, *folder) {
        return None;
    }
    let much = match member.is_query {
        true => "some of its records, which get_memory finds".to_owned(),
        false => count(records(base, node), "record"),
    };
    Some(format!("- the database {}/ ({much})\n", line(&lens.path(base, node))))
}
