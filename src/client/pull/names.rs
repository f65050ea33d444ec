//! Makes names valid on this machine's file system.

use std::borrow::Cow;
use std::collections::HashSet;

use unicode_normalization::UnicodeNormalization as _;

/// The limit of file systems is 255 bytes; this leaves room for a number.
const MAX_BYTES: usize = 240;
/// Longer file extensions are cut with the name.
const MAX_EXTENSION_BYTES: usize = 20;
/// Windows opens these as devices, whatever extension follows.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// The next git command would run hooks from it.
const REPOSITORY: &str = ".git";

/// The restrictions of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// Whether names must be valid on Windows too.
    pub(super) portable: bool,
    /// Whether names that differ only in case or Unicode normalization are the same.
    pub(super) folds_case: bool,
}

/// Assigns the paths of one pull, each only once.
#[derive(Debug)]
pub(super) struct Paths {
    rules: Rules,
    taken: HashSet<String>,
}

impl Paths {
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, taken: HashSet::new() }
    }

    /// The path of a folder, which folders of the same name share; no file gets this path.
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

    /// A path for a file in a folder that [`Self::folder`] returned; a number is added if the name is taken.
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
    /// A name that cannot leave its folder and that the file system accepts.
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
        if safe.len() > MAX_BYTES { Cow::Owned(cut(&safe)) } else { safe }
    }

    /// A path in the form that the file system compares.
    fn folded(self, path: &str) -> String {
        if self.folds_case {
            path.nfc().flat_map(char::to_lowercase).nfc().collect()
        } else {
            path.to_owned()
        }
    }
}

/// Also rejects names for file systems that ignore invisible characters or trailing blanks.
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

/// Truncated at a character boundary; the extension stays.
fn cut(name: &str) -> String {
    let (stem, ending) = split(name);
    let ending = if ending.len() <= MAX_EXTENSION_BYTES { ending } else { "" };
    let mut room = MAX_BYTES.saturating_sub(ending.len()).min(stem.len());
    while !stem.is_char_boundary(room) {
        room -= 1;
    }
    format!("{}{ending}", stem.get(..room).unwrap_or_default())
}

/// Splits before the last dot.
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
        assert!(safe.len() <= MAX_BYTES && safe.ends_with("ä.md"), "{safe}");
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
