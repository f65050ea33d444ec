//! Parses Obsidian's links and embeds: `[[target#heading|text]]` and `![[target]]`.

use std::ops::Range;

use crate::markdown::Inside;

/// Bytes of a wikilink: enough for a path and a text.
const MAX_BYTES: usize = 2_000;

/// A wikilink in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wikilink<'a> {
    /// The range from its `[[`, or the `!` before it, to its end.
    pub(super) range: Range<usize>,
    pub(super) is_embed: bool,
    /// The raw path and fragment.
    pub(super) target: &'a str,
    /// The part after the `|`: a text, or the size of an image.
    pub(super) alias: Option<&'a str>,
}

impl<'a> Wikilink<'a> {
    /// The path without the fragment.
    pub(super) fn path(&self) -> &'a str {
        self.target.split_once('#').map_or(self.target, |(path, _)| path).trim()
    }

    /// The parts after the first `#`, without blank ones.
    pub(super) fn headings(&self) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        let fragment = self.target.split_once('#').map_or("", |(_, fragment)| fragment);
        fragment.split('#').map(str::trim).filter(|heading| !heading.is_empty())
    }

    /// The target for people: `Note > Heading`.
    pub(super) fn title(&self) -> String {
        let path = Some(self.path()).filter(|path| !path.is_empty());
        path.into_iter().chain(self.headings()).collect::<Vec<_>>().join(" > ")
    }
}

/// The wikilinks of a text from `begin` on, outside code.
pub(super) fn find<'a>(text: &'a str, begin: usize, code: &[Range<usize>]) -> Vec<Wikilink<'a>> {
    let (mut in_code, mut found) = (Inside::of(code), Vec::new());
    let mut from = begin;
    while let Some(place) = text.get(from..).and_then(|rest| rest.find("[[")) {
        let open = from + place;
        // Of more than two brackets, the last two open the link.
        if text.get(open + 2..).is_some_and(|rest| rest.starts_with('[')) {
            from = open + 1;
            continue;
        }
        from = open + 2;
        if in_code.holds(open) || is_escaped(text, open) {
            continue;
        }
        let Some(inner) = inner(text, open + 2) else { continue };
        let end = open + 2 + inner.len() + 2;
        let is_embed =
            open > begin && text.as_bytes().get(open - 1) == Some(&b'!') && !is_escaped(text, open - 1);
        let (target, alias) = match inner.split_once('|') {
            // In tables, the `|` is escaped.
            Some((target, alias)) => (target.strip_suffix('\\').unwrap_or(target), Some(alias.trim())),
            None => (inner, None),
        };
        let target = target.trim();
        if !target.is_empty() {
            let range = if is_embed { open - 1 } else { open }..end;
            let alias = alias.filter(|alias| !alias.is_empty());
            found.push(Wikilink { range, is_embed, target, alias });
            from = end;
        }
    }
    found
}

/// The text between the brackets, if it is on one line and contains no other link.
fn inner(text: &str, begin: usize) -> Option<&str> {
    let rest = text.as_bytes().get(begin..)?;
    let rest = rest.get(..MAX_BYTES).unwrap_or(rest);
    let line = rest.split(|byte| *byte == b'\n').next()?;
    let end = line.windows(2).position(|pair| pair == b"]]" || pair == b"[[")?;
    let is_closed = line.get(end) == Some(&b']');
    text.get(begin..begin + end).filter(|_| is_closed)
}

/// Whether an offset is preceded by an odd number of backslashes.
fn is_escaped(text: &str, place: usize) -> bool {
    let before = text.as_bytes().get(..place).unwrap_or_default();
    before.iter().rev().take(MAX_BYTES).take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(&str, bool, &str, Option<&str>)> {
        let code = crate::markdown::places(text, 0).unwrap().code;
        let found = find(text, 0, &code).into_iter();
        found.map(|link| (&text[link.range], link.is_embed, link.target, link.alias)).collect()
    }

    #[test]
    fn links_and_embeds_are_found_with_their_parts() {
        assert_eq!(
            all("a [[Note]] ![[p.png|100]] [[d/N#H|text]]"),
            [
                ("[[Note]]", false, "Note", None),
                ("![[p.png|100]]", true, "p.png", Some("100")),
                ("[[d/N#H|text]]", false, "d/N#H", Some("text")),
            ]
        );
        assert_eq!(all("| [[A\\|b]] |"), [("[[A\\|b]]", false, "A", Some("b"))]);
        assert_eq!(all("[[[A]]]"), [("[[A]]", false, "A", None)]);
    }

    #[test]
    fn what_is_code_or_escaped_or_open_is_none() {
        let text = "`[[a]]` \\[[b]] [[c\nd]] [[]] [[ | x]] [[\n```\n[[e]]\n```\n    [[f]]\n";
        assert_eq!(all(&format!("{text}\n\n    [[g]]\n")), []);
    }

    #[test]
    fn titles_show_headings_as_steps() {
        let title = |text: &str| find(text, 0, &[])[0].title();
        assert_eq!(title("[[Note#One#Two]]"), "Note > One > Two");
        assert_eq!(title("[[#One]]"), "One");
        assert_eq!(title("[[Note#^block]]"), "Note > ^block");
    }

    #[test]
    fn open_brackets_without_end_take_no_time() {
        assert_eq!(find(&"[[".repeat(500_000), 0, &[]), []);
        assert_eq!(find(&"[[a".repeat(300_000), 0, &[]), []);
        assert_eq!(find(&format!("{}[[a]]", "\\".repeat(1_000_000)), 0, &[]).len(), 1);
    }
}
