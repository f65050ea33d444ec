use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization as _;

use super::*;

fn files(paths: &[&str]) -> Vec<TreeFile> {
    let mut paths = paths.to_vec();
    paths.sort_unstable();
    paths.dedup();
    paths.iter().map(|path| TreeFile { path: (*path).to_owned(), size: 0, entry: 0 }).collect()
}

/// What a wikilink leads to, and whether to that alone.
fn wiki(paths: &[&str], folder: &str, target: &str) -> Option<(String, bool)> {
    let files = files(paths);
    shown(&files, Resolver::of(&files).wikilink(&files, folder, target))
}

fn markdown(paths: &[&str], folder: &str, target: &str) -> Option<(String, bool)> {
    let files = files(paths);
    shown(&files, Resolver::of(&files).markdown(&files, folder, target))
}

fn shown(files: &[TreeFile], found: Resolution) -> Option<(String, bool)> {
    match found {
        Resolution::One(file) => Some((files[file].path.clone(), true)),
        Resolution::FirstOf(file) => Some((files[file].path.clone(), false)),
        Resolution::Several | Resolution::Nothing => None,
    }
}

fn one(path: &str) -> Option<(String, bool)> {
    Some((path.to_owned(), true))
}

fn first(path: &str) -> Option<(String, bool)> {
    Some((path.to_owned(), false))
}

#[test]
fn the_exact_path_from_the_root_comes_first() {
    let paths = ["Note.md", "x/Note.md", "x/d/Other.md", "d/Other.md"];
    assert_eq!(wiki(&paths, "x", "Note"), one("Note.md"));
    assert_eq!(wiki(&paths, "x", "d/Other"), one("d/Other.md"));
    assert_eq!(wiki(&paths, "x", "d/Other.md"), one("d/Other.md"));
    assert_eq!(wiki(&paths, "x", "/x/Note"), one("x/Note.md"));
}

#[test]
fn dots_lead_from_the_notes_folder_and_stop_at_the_root() {
    let paths = ["a.md", "x/a.md", "x/y/b.md"];
    assert_eq!(wiki(&paths, "x/y", "../a"), one("x/a.md"));
    assert_eq!(wiki(&paths, "x/y", "./b"), one("x/y/b.md"));
    assert_eq!(wiki(&paths, "x/y", "../../../../a"), one("a.md"));
    assert_eq!(wiki(&paths, "x", "./b"), None);
}

#[test]
fn else_the_only_path_that_ends_in_the_target_without_case() {
    let paths = ["x/Zoë.md", "x/y/pic.PNG", "other.md", "x/another.md"];
    assert_eq!(wiki(&paths, "", "ZOË"), one("x/Zoë.md"));
    assert_eq!(wiki(&paths, "", "Y/Pic.png"), one("x/y/pic.PNG"));
    assert_eq!(wiki(&paths, "", "pic"), None);
    assert_eq!(wiki(&paths, "x", "nother"), None);
    assert_eq!(wiki(&["x/Half.markdown"], "", "Half"), one("x/Half.markdown"));
}

#[test]
fn of_several_the_case_then_the_folder_then_the_shortest_then_the_first() {
    assert_eq!(wiki(&["b/NOTE.md", "c/d/Note.md"], "b", "Note"), first("c/d/Note.md"));
    assert_eq!(wiki(&["a/Note.md", "longer/Note.md"], "longer", "Note"), first("longer/Note.md"));
    assert_eq!(wiki(&["x/d/N.md", "y/z/d/N.md"], "y/z/d", "d/N"), first("y/z/d/N.md"));
    assert_eq!(wiki(&["aa/Note.md", "b/Note.md", "c/Note.md"], "x", "Note"), first("b/Note.md"));
    assert_eq!(wiki(&["x/NOTE.md", "y/note.md"], "y", "Note"), first("y/note.md"));
    assert_eq!(wiki(&["X/NOTE.md", "n/NOTE.md"], "x", "Note"), first("X/NOTE.md"));
    assert_eq!(wiki(&["A/éN.png", "éN.png"], "a", "én.png"), first("éN.png"));
}

#[test]
fn else_the_only_note_with_that_alias() {
    let files = files(&["a.md", "b.md"]);
    let mut resolver = Resolver::of(&files);
    resolver.add_alias("First", 0);
    resolver.add_alias("Both", 0);
    resolver.add_alias("Both", 1);
    resolver.add_alias("First", 0);
    resolver.add_alias("b", 0);
    assert_eq!(resolver.wikilink(&files, "", "FIRST"), Resolution::One(0));
    assert_eq!(resolver.wikilink(&files, "", "both"), Resolution::Several);
    assert_eq!(resolver.wikilink(&files, "", "b"), Resolution::One(1));
}

#[test]
fn a_markdown_link_tries_the_notes_folder_first() {
    let paths = ["a.md", "x/a.md", "x/y/b.md"];
    assert_eq!(markdown(&paths, "x", "a.md"), one("x/a.md"));
    assert_eq!(markdown(&paths, "x", "y/b.md"), one("x/y/b.md"));
    assert_eq!(markdown(&paths, "x", "b.md"), one("x/y/b.md"));
    assert_eq!(markdown(&paths, "x", "/a.md"), one("a.md"));
    assert_eq!(markdown(&paths, "x", "../b.md"), None);
}

/// The rules as they are written, over all files.
fn naive(files: &[TreeFile], folder: &str, target: &str) -> Resolution {
    let variants = |target: &str| EXTENSIONS.map(|variant| format!("{target}{variant}"));
    for path in variants(target) {
        if let Some(file) = files.iter().position(|file| file.path == path) {
            return Resolution::One(file);
        }
    }
    let ends = |path: &str, target: &str| path == target || path.ends_with(&format!("/{target}"));
    let matching = |is_folded: bool| -> Vec<usize> {
        let form = |text: &str| if is_folded { fold(text) } else { text.to_owned() };
        let all = 0..files.len();
        all.filter(|file| {
            variants(target).iter().any(|target| ends(&form(&files[*file].path), &form(target)))
        })
        .collect()
    };
    let all = matching(true);
    let same_case = matching(false);
    let chosen = if same_case.is_empty() { all.clone() } else { same_case };
    let here = |file: &&usize| files[**file].path.rsplit_once('/').map_or("", |(folder, _)| folder) == folder;
    let in_folder = chosen.iter().filter(here).min_by_key(|file| {
        let path = &files[**file].path;
        (EXTENSIONS.iter().rposition(|variant| path.ends_with(variant)), path.clone())
    });
    let shortest =
        chosen.iter().min_by_key(|file| (files[**file].path.chars().count(), files[**file].path.clone()));
    match (in_folder.or(shortest), all.len()) {
        (None, _) => Resolution::Nothing,
        (Some(file), 1) => Resolution::One(*file),
        (Some(file), _) => Resolution::FirstOf(*file),
    }
}

proptest! {
    #[test]
    fn it_finds_what_a_search_of_all_files_finds(
        paths in prop::collection::btree_set("([abAÉé]{1,2}/){0,3}[nNé]{1,2}(\\.md|\\.png)", 1..60),
        folder in "([abA]{1}/){0,2}[ab]{1}",
        target in "([abAÉ]{1,2}/){0,2}[nNé]{1,2}(\\.md|\\.png)?",
    ) {
        let paths: Vec<String> = paths.iter().map(|path| path.nfc().collect()).collect();
        let files = files(&paths.iter().map(String::as_str).collect::<Vec<_>>());
        let mut resolver = Resolver::of(&files);
        prop_assert_eq!(resolver.wikilink(&files, &folder, &target), naive(&files, &folder, &target));
        // Again, when the first of many is known.
        prop_assert_eq!(resolver.wikilink(&files, &folder, &target), naive(&files, &folder, &target));
    }
}
