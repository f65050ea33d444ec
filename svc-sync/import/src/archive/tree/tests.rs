use std::io::Cursor;

use super::*;
use crate::archive::testing::{Raw, archive};

fn tree_of(entries: &[Raw]) -> Tree {
    Tree::of(&Archive::open(Cursor::new(archive(entries))).unwrap(), &[]).unwrap()
}

fn tree(names: &[&str]) -> Tree {
    tree_of(&names.iter().map(|name| Raw::new(name, "")).collect::<Vec<_>>())
}

fn paths(tree: &Tree) -> Vec<&str> {
    tree.files.iter().map(|file| file.path.as_str()).collect()
}

fn warned(tree: &Tree) -> Vec<(&str, &str)> {
    tree.warnings.iter().map(|warning| (warning.path.as_str(), warning.code.as_str())).collect()
}

#[test]
fn what_tools_and_systems_put_beside_notes_is_ignored_and_listed() {
    let tree = tree(&[
        "v/.obsidian/app.json",
        "v/.trash/a.md",
        "v/.git/HEAD",
        "v/.DS_Store",
        "__MACOSX/v/._a.md",
        "v/Thumbs.db",
        "v/Desktop.ini",
        "v/a.md",
    ]);
    assert_eq!(paths(&tree), ["v/a.md"]);
    let reasons: Vec<&str> = tree.ignored.iter().map(|ignored| ignored.reason.as_str()).collect();
    assert_eq!(
        reasons,
        ["hidden", "hidden", "hidden", "system_file", "system_file", "system_file", "system_file"]
    );
    assert!(tree.warnings.is_empty());
}

#[test]
fn paths_that_lead_out_are_left_out_with_a_warning() {
    let names =
        ["../a.md", "b/../../c.md", "/etc/passwd", "C:\\x.md", "d:/y.md", "..\\z.md", "\\\\host\\share"];
    let tree = tree(&[&names[..], &["ok/.../a", "ok/./b..c.md", "ok//d.md"]].concat());
    assert_eq!(paths(&tree), ["ok/b..c.md", "ok/d.md"]);
    assert!(tree.warnings.iter().all(|warning| warning.code == WarningCode::UnsafePath));
    assert_eq!(tree.warnings.len(), names.len());
}

#[test]
fn symbolic_links_are_left_out_with_a_warning() {
    let link = Raw { attributes: 0o120_777 << 16, ..Raw::new("link.md", "/etc/passwd") };
    let tree = tree_of(&[link, Raw::new("a.md", "")]);
    assert_eq!((paths(&tree), warned(&tree)), (vec!["a.md"], vec![("link.md", "symlink")]));
}

#[test]
fn of_one_path_twice_the_later_entry_counts() {
    let tree = tree(&["a.md", "b.md", "./a.md"]);
    assert_eq!(tree.files.iter().map(|file| file.entry).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(warned(&tree), [("a.md", "duplicate_path")]);
}

#[test]
fn paths_that_differ_in_case_only_are_both_there_with_a_warning() {
    let files = tree(&["Note.md", "note.md", "other.md"]);
    assert_eq!(paths(&files).len(), 3);
    assert_eq!(warned(&files), [("note.md", "case_clash")]);
    assert_eq!(warned(&tree(&["A/x.md", "a/y.md", "a/z.md"])), [("a", "case_clash")]);
    assert_eq!(warned(&tree(&["A/x.md", "a/x.md"])), [("a", "case_clash"), ("a/x.md", "case_clash")]);
}

#[test]
fn names_of_more_than_255_characters_are_shortened_and_keep_their_extension() {
    let long = format!("{}.md", "ä".repeat(300));
    let tree = tree(&[&format!("{}/{long}", "f".repeat(256))]);
    let (folder, file) = tree.files[0].path.split_once('/').unwrap();
    assert_eq!((folder.chars().count(), file.chars().count()), (255, 255));
    assert!(file.ends_with("ä.md"));
    assert_eq!(tree.warnings.len(), 1);
    assert_eq!(tree.warnings[0].code, WarningCode::NameShortened);
}

#[test]
fn characters_that_no_name_may_hold_are_replaced() {
    let tree = tree(&["a\nb.md", " /c.md"]);
    assert_eq!(paths(&tree), ["_/c.md", "a_b.md"]);
    assert_eq!(warned(&tree), [("a\nb.md", "name_encoding"), (" /c.md", "name_encoding")]);
}

#[test]
fn what_lies_deeper_than_folders_nest_is_left_out() {
    let (fits, deep) = ("d/".repeat(100) + "a.md", "d/".repeat(101) + "a.md");
    let mut tree = tree(&[&fits, &deep]);
    tree.limit_depth(100);
    assert_eq!(paths(&tree), [fits.as_str()]);
    assert_eq!(warned(&tree), [(deep.as_str(), "too_deep")]);
}

#[test]
fn a_single_top_folder_is_found_and_entered() {
    let mut single =
        tree(&["Vault/a.md", "Vault/b/c.md", "Vault/.obsidian/app.json", "__MACOSX/Vault/._a.md"]);
    assert_eq!(single.top().as_deref(), Some("Vault"));
    single.enter("Vault");
    assert_eq!(paths(&single), ["a.md", "b/c.md"]);
    assert_eq!(single.ignored[0].path, ".obsidian/app.json");
    assert_eq!(tree(&["Vault/a.md", "b.md"]).top(), None);
    assert_eq!(tree(&["a.md"]).top(), None);
}

#[test]
fn paths_that_name_more_folders_than_entries_may_be_are_refused() {
    let names: Vec<Raw> =
        (0..2_100).map(|number| Raw::new(format!("{number}/{}a", "d/".repeat(100)), "")).collect();
    let archive = Archive::open(Cursor::new(archive(&names))).unwrap();
    assert!(matches!(Tree::of(&archive, &[]), Err(ArchiveError::Bomb)));
}
