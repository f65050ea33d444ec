//! The headings that lines of a passage stand under. A chunk names those above all of it; small sections that were put
//! together have headings of their own within its text.

use crate::search::page::Passage;

/// Headings by their lines.
pub(super) struct Outline {
    /// From which line on which headings hold, in ascending order; the first is the passage's first line.
    paths: Vec<(u32, Vec<String>)>,
}

impl Outline {
    pub(super) fn of(passage: &Passage<'_>) -> Self {
        let mut paths = Vec::new();
        for part in passage.chunks() {
            let mut above = Above::new(&part.heading_path);
            paths.push((part.start_line, above.path()));
            if !is_markdown(passage.path()) || !part.text.contains('#') {
                continue;
            }
            let mut fence = None;
            for (line, text) in (part.start_line..).zip(part.text.lines()) {
                if is_fenced(text, &mut fence) {
                    continue;
                }
                if let Some((level, label)) = heading(text) {
                    above.enter(level, label);
                    paths.push((line, above.path()));
                }
            }
        }
        Self { paths }
    }

    /// The headings above a line, outermost first.
    pub(super) fn path_at(&self, line: u32) -> Vec<String> {
        let above = self.paths.iter().take_while(|(from, _)| *from <= line).last();
        above.or(self.paths.first()).map(|(_, path)| path.clone()).unwrap_or_default()
    }
}

/// The stack of headings during the scan.
struct Above {
    /// Each with its level; `None` for those of the chunk's heading path, of which only the text is known.
    headings: Vec<(Option<usize>, String)>,
}

impl Above {
    fn new(path: &[String]) -> Self {
        Self { headings: path.iter().map(|label| (None, label.clone())).collect() }
    }

    /// Enters a heading: one that the path already has is that one; any other one closes those of its level and below.
    fn enter(&mut self, level: usize, label: String) {
        let same = self
            .headings
            .iter()
            .position(|(known, other)| known.is_none() && letters(other) == letters(&label));
        if let Some(place) = same {
            if let Some(known) = self.headings.get_mut(place) {
                known.0 = Some(level);
            }
            return;
        }
        let ended = self.headings.iter().position(|(known, _)| known.is_some_and(|known| known >= level));
        self.headings.truncate(ended.unwrap_or(self.headings.len()));
        self.headings.push((Some(level), label));
    }

    fn path(&self) -> Vec<String> {
        self.headings.iter().map(|(_, label)| label.clone()).collect()
    }
}

/// By its name: what has no extension is read as Markdown, as records and memories are.
fn is_markdown(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, extension)) if !extension.contains(' ') => {
            ["md", "markdown", "mdx"].iter().any(|known| extension.eq_ignore_ascii_case(known))
        }
        Some(_) | None => true,
    }
}

/// Whether a line begins, ends or stands in a fenced block.
fn is_fenced(line: &str, fence: &mut Option<char>) -> bool {
    let text = line.trim_start();
    let mark =
        ["```", "~~~"].iter().find(|mark| text.starts_with(**mark)).and_then(|mark| mark.chars().next());
    match (*fence, mark) {
        (None, Some(mark)) => {
            *fence = Some(mark);
            true
        }
        (Some(open), Some(mark)) if open == mark => {
            *fence = None;
            true
        }
        (open, _) => open.is_some(),
    }
}

/// The level and the label of a heading of Markdown.
fn heading(line: &str) -> Option<(usize, String)> {
    let line = line.trim();
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    if !(1..=6).contains(&level) || !(text.is_empty() || text.starts_with([' ', '\t'])) {
        return None;
    }
    let label = text.trim().trim_end_matches('#').trim_end();
    let label: String =
        without_targets(label).chars().filter(|character| !matches!(character, '`' | '*')).collect();
    (!label.is_empty()).then_some((level, label))
}

/// Strips the targets of links.
fn without_targets(label: &str) -> String {
    let mut text = String::with_capacity(label.len());
    let mut rest = label;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((_, behind)) = after.split_once(')') else { break };
        let (head, name) = before.rsplit_once('[').unwrap_or((before, ""));
        text.push_str(head);
        text.push_str(name);
        rest = behind;
    }
    text.push_str(rest);
    text
}

fn letters(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_read_as_they_are_shown() {
        assert_eq!(
            heading("## The `foo` of [bar](https://e.org/x) ##"),
            Some((2, "The foo of bar".to_owned()))
        );
        assert_eq!(heading("#!shebang"), None);
        assert_eq!(heading("####### seven"), None);
        assert_eq!(heading("#"), None);
    }

    #[test]
    fn own_headings_of_a_chunk_are_told_from_those_within() {
        let mut above = Above::new(&["Guide".to_owned(), "Keys".to_owned()]);
        above.enter(2, "Keys".to_owned());
        above.enter(3, "Rotation".to_owned());
        assert_eq!(above.path(), ["Guide", "Keys", "Rotation"]);
        above.enter(3, "Loss".to_owned());
        assert_eq!(above.path(), ["Guide", "Keys", "Loss"]);
        above.enter(2, "Tokens".to_owned());
        assert_eq!(above.path(), ["Guide", "Tokens"]);
    }

    #[test]
    fn what_is_fenced_is_no_heading() {
        let mut fence = None;
        let fenced: Vec<bool> = ["# a", "```sh", "# b", "~~~", "```", "# c"]
            .iter()
            .map(|line| is_fenced(line, &mut fence))
            .collect();
        assert_eq!(fenced, [false, true, true, true, true, false]);
    }

    #[test]
    fn names_tell_what_is_markdown() {
        for (path, expected) in [
            ("/a/b.md", true),
            ("/a/b.MDX", true),
            ("/a/b.py", false),
            ("/a/note", true),
            ("/a/v1. plan", true),
        ] {
            assert_eq!(is_markdown(path), expected, "{path}");
        }
    }
}
