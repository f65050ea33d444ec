//! Names as the file system of this machine takes them.

use std::borrow::Cow;
use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;

/// What file systems take of a name, in bytes; less than 255, so that a number still has room.
const MOST_BYTES: usize = 240;
/// The longest ending that a name keeps when it is cut.
const LONGEST_ENDING: usize = 20;
/// What Windows opens as a device, whatever ending follows.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// What would be run as a part of a repository by the next command of git.
const REPOSITORY: &str = ".git";

/// What a file system asks of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// Names that Windows takes as well.
    pub(super) portable: bool,
    /// Names that differ in case or in normal form only are one.
    pub(super) folds_case: bool,
}

/// The paths of one pull, each given once.
#[derive(Debug)]
pub(super) struct Paths {
    rules: Rules,
    taken: HashSet<String>,
}

impl Paths {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, taken: HashSet::new() }
    }

    /// The path of a folder, which several folders of the same name share; files get none of these.
    pub(super) fn folder<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> String {
        let mut path = String::new();
        for name in names {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&self.rules.safe(name));
            self.taken.insert(self.rules.folded(&path));
        }
        path
    }

    /// A path in a folder that [`Self::folder`] gave, for a file of that name: with a number when the name is taken.
    pub(super) fn file(&mut self, folder: &str, name: &str) -> String {
        let name = self.rules.safe(name);
        let (stem, ending) = split(&name);
        let mut path = format!("{folder}/{name}");
        let mut number = 2_u64;
        while !self.taken.insert(self.rules.folded(&path)) {
            path = format!("{folder}/{stem} ({number}){ending}");
            number += 1;
        }
        path
    }
}

impl Rules {
    /// A name that stays in its folder and that the file system takes.
    pub(super) fn safe(self, name: &str) -> Cow<'_, str> {
        let is_bad = |letter: char| {
            letter.is_control() || letter == '/' || (self.portable && "<>:\"\\|?*".contains(letter))
        };
        let mut safe =
            if name.contains(is_bad) { Cow::Owned(name.replace(is_bad, "_")) } else { Cow::Borrowed(name) };
        if safe.is_empty() || safe.chars().all(|letter| letter == '.') || is_repository(&safe) {
            safe = Cow::Owned(format!("_{safe}"));
        }
        if self.portable {
            safe = portable(safe);
        }
        if safe.len() > MOST_BYTES { Cow::Owned(cut(&safe)) } else { safe }
    }

    /// A path as the file system compares it.
    fn folded(self, path: &str) -> String {
        if self.folds_case {
            path.nfc().flat_map(char::to_lowercase).nfc().collect()
        } else {
            path.to_owned()
        }
    }
}

/// Also as file systems that pass over invisible letters, or end names at a blank, read it.
fn is_repository(name: &str) -> bool {
    let is_read = |letter: &char| !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let plain: String = name.chars().filter(is_read).flat_map(char::to_lowercase).collect();
    let plain = plain.trim_end_matches(['.', ' ']);
    plain == REPOSITORY || plain == "git~1"
}

fn portable(name: Cow<'_, str>) -> Cow<'_, str> {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let numbered = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let is_port = numbered.is_some_and(|rest| {
        let mut letters = rest.chars();
        letters.next().is_some_and(|letter| "123456789¹²³".contains(letter)) && letters.next().is_none()
    });
    if is_port || DEVICES.contains(&stem.as_str()) {
        return Cow::Owned(format!("_{name}"));
    }
    match name.ends_with(['.', ' ']) {
        true => Cow::Owned(format!("{}_", name.trim_end_matches(['.', ' ']))),
        false => name,
    }
}

/// Shortened where a letter begins, with its ending.
fn cut(name: &str) -> String {
    let (stem, ending) = split(name);
    let ending = if ending.len() <= LONGEST_ENDING { ending } else { "" };
    let mut room = MOST_BYTES.saturating_sub(ending.len()).min(stem.len());
    while !stem.is_char_boundary(room) {
        room -= 1;
    }
    format!("{}{ending}", stem.get(..room).unwrap_or_default())
}

/// Before the last dot, and from there on.
fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(place) if place > 0 => name.split_at(place),
        Some(_) | None => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Rules = Rules { portable: false, folds_case: false };
    const PORTABLE: Rules = Rules { portable: true, folds_case: true };

    #[test]
    fn a_name_stays_as_it_is_where_it_may() {
        for name in ["a.md", "What is it?.md", "con.txt", "ä ö.md", ".hidden", "a..b", ".gitignore"] {
            assert_eq!(PLAIN.safe(name), name);
        }
    }

    #[test]
    fn what_leads_out_or_runs_something_is_renamed() {
        for (name, safe) in [
            ("", "_"),
            (".", "_."),
            ("..", "_.."),
            ("a/b", "a_b"),
            ("a\0b\n", "a_b_"),
            (".git", "_.git"),
            (".GIT", "_.GIT"),
            (".g\u{200d}it", "_.g\u{200d}it"),
            ("git~1", "_git~1"),
        ] {
            assert_eq!(PLAIN.safe(name), safe);
        }
    }

    #[test]
    fn portable_names_are_those_that_windows_takes() {
        for (name, safe) in [
            ("What: is it?.md", "What_ is it_.md"),
            ("CON", "_CON"),
            ("nul.tar.gz", "_nul.tar.gz"),
            ("Com¹.md", "_Com¹.md"),
            ("com10.md", "com10.md"),
            ("a. ", "a_"),
            ("console.md", "console.md"),
        ] {
            assert_eq!(PORTABLE.safe(name), safe);
        }
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_its_ending() {
        let safe = PLAIN.safe(&format!("{}.md", "ä".repeat(255))).into_owned();
        assert!(safe.len() <= MOST_BYTES && safe.ends_with("ä.md"), "{safe}");
    }

    #[test]
    fn every_path_is_given_once() {
        let mut paths = Paths::new(PLAIN);
        assert_eq!(paths.folder(["files", "a"]), "files/a");
        assert_eq!(paths.file("files", "a"), "files/a (2)", "a folder has that name");
        assert_eq!(paths.file("files/a", "b.md"), "files/a/b.md");
        assert_eq!(paths.file("files/a", "b.md"), "files/a/b (2).md");
        assert_eq!(paths.file("files/a", "B.md"), "files/a/B.md");
        let mut paths = Paths::new(PORTABLE);
        assert_eq!(paths.file("files", "caf\u{e9}.md"), "files/caf\u{e9}.md");
        assert_eq!(paths.file("files", "CAFE\u{301}.md"), "files/CAFE\u{301} (2).md");
    }

    proptest! {
        #[test]
        fn no_name_leaves_its_folder(name in ".{0,300}", portable: bool) {
            let safe = Rules { portable, folds_case: false }.safe(&name).into_owned();
            prop_assert!(!safe.is_empty() && safe != "." && safe != ".." && safe.len() <= 255);
            prop_assert!(!safe.contains(['/', '\0']));
            prop_assert!(!portable || !safe.contains('\\'));
        }
    }
}
