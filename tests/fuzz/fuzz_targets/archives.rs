//! Imports any archive as a vault of Obsidian and as an export of Notion: ZIP, front matter, Markdown, wiki links, tables, HTML.
//!
//! To run it: `tests/fuzz/run.sh archives`.
#![no_main]

use std::io::Cursor;

use cairn_fuzz::parts;
use cairn_import::{
    Archive, ArchiveError, Content, Item, ItemKind, Limits, MAX_TEXT_BYTES, Plan, notion, obsidian,
};
use libfuzzer_sys::fuzz_target;

type Bytes = Cursor<Vec<u8>>;

const LIMITS: Limits = Limits { folders: 10, asset_bytes: 1 << 20 };
const MAX_NAME_CHARS: usize = 255;
/// An archive of a few kilobytes says at most that its entries hold so much; what they hold is read, and never more.
const MAX_READ: u64 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let [kind, rest @ ..] = input else { return };
    // One that is whole reaches what is behind the directory, which no input finds by chance.
    let bytes = if kind % 4 == 0 { rest.to_vec() } else { parts::archive(rest) };
    let Ok(mut archive) = Archive::open(Cursor::new(bytes)) else { return };
    read_all(&mut archive);
    if kind % 2 == 0 {
        check(obsidian(&mut archive, "Vault.zip", &LIMITS), &mut archive);
    } else {
        let inner = archive.parts();
        for index in &inner {
            // The part of an export is an archive itself.
            let Ok(part) = archive.read(*index, MAX_READ) else { continue };
            if archive.add_part(Cursor::new(part)).is_err() {
                return;
            }
        }
        check(notion(&mut archive, &inner, "Export.zip", &LIMITS), &mut archive);
    }
});

/// No entry holds more than it says, whatever it is packed as.
fn read_all(archive: &mut Archive<Bytes>) {
    for index in 0..archive.entries().len() {
        let size = archive.entries()[index].size;
        let mut copied = 0;
        let mut sink = |chunk: &[u8]| -> std::io::Result<()> {
            copied += chunk.len() as u64;
            assert!(copied <= size, "{copied} bytes of {size}");
            if copied > MAX_READ { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        };
        if let Ok(count) = archive.copy(index, &mut sink) {
            assert!(count == copied && count == size);
        }
        if let Ok((text, _)) = archive.text(index) {
            assert!(text.len() <= MAX_TEXT_BYTES && !text.contains('\0'));
        }
    }
}

fn check(plan: Result<Plan, ArchiveError>, archive: &mut Archive<Bytes>) {
    let Ok(mut plan) = plan else { return };
    assert!(!plan.root.trim().is_empty());
    for (place, item) in plan.items.iter().enumerate() {
        check_item(&plan, place, item);
    }
    for place in 0..plan.items.len() {
        if let Ok(Some(content)) = plan.content(archive, place) {
            check_content(&content, plan.items.len());
        }
        check_records(&plan, archive, place);
    }
}

/// Each item stands behind what it needs, under a name that the workspace takes.
fn check_item(plan: &Plan, place: usize, item: &Item) {
    let is_name =
        (1..=MAX_NAME_CHARS).contains(&item.name.chars().count()) && !item.name.contains(['/', '\0']);
    // A record is called by its primary value.
    assert!(is_name || matches!(item.kind, ItemKind::Record { .. }), "a name {:?}", item.name);
    if let Some(parent) = item.parent {
        assert!(parent < place && plan.items[parent].kind == ItemKind::Folder);
    }
    match &item.kind {
        ItemKind::Record { database, body } => {
            assert!(*database < place && matches!(plan.items[*database].kind, ItemKind::Database { .. }));
            if let Some(body) = body {
                assert!(*body < place && matches!(plan.items[*body].kind, ItemKind::File { .. }));
            }
        }
        ItemKind::Database { properties, .. } => assert!(!properties.is_empty()),
        ItemKind::Folder | ItemKind::File { .. } | ItemKind::Asset { .. } => {}
    }
}

/// Links stand in the order of the text on whole characters, and filling them in changes nothing else.
fn check_content(content: &Content, items: usize) {
    let (mut done, mut kept) = (0, 0);
    for link in &content.links {
        assert!(done <= link.range.start && link.range.start <= link.range.end);
        assert!(content.text.get(link.range.clone()).is_some(), "{:?} cuts a character", link.range);
        assert!(link.target.is_none_or(|target| target < items));
        kept += link.range.start - done + link.before.len() + link.after.len();
        done = link.range.end;
    }
    kept += content.text.len() - done;
    let filled = content.fill(|_| Some(String::new()));
    assert_eq!(filled.len(), kept);
    let tags: std::collections::BTreeSet<&String> = content.tags.iter().collect();
    assert!(tags.len() == content.tags.len() && content.tags.iter().all(|tag| !tag.is_empty()));
    let lines = content.text.split('\n').count();
    assert!(content.unresolved.iter().all(|listed| (1..=lines).contains(&listed.line)));
}

/// Values are of properties that the database has.
fn check_records(plan: &Plan, archive: &mut Archive<Bytes>, database: usize) {
    let ItemKind::Database { properties, .. } = &plan.items[database].kind else { return };
    let mut each = |record: usize, values: Vec<(usize, cairn_import::Value)>| {
        assert!(matches!(plan.items[record].kind, ItemKind::Record { database: of, .. } if of == database));
        assert!(values.iter().all(|(property, _)| *property < properties.len()));
    };
    // A table that could be read once is read again.
    plan.records(archive, database, &mut each).expect("the table");
}
