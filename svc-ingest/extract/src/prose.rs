//! Strips invisible content from untrusted Markdown: comments and hidden elements of embedded HTML. Line breaks stay, so that line numbers
//! stay valid; code stays as it is, since it is visible.

use std::collections::HashMap;

use crate::formats::html::hides;

/// Bytes of a tag.
const MAX_TAG_BYTES: usize = 4 * 1024;
/// Backticks that open a code span.
const MAX_TICKS: usize = 8;
/// Elements whose content is never rendered.
const NEVER_SHOWN: [&str; 4] = ["script", "style", "template", "noscript"];
/// Void elements.
const VOID: [&str; 5] = ["br", "hr", "img", "input", "wbr"];

/// Removes the hidden parts of Markdown.
pub(crate) fn without_hidden(text: &str) -> String {
    let mut scan = Scan { text, at: 0, kept: String::with_capacity(text.len()), last_end: text.rfind("-->") };
    let (mut is_line_start, mut is_indent) = (true, true);
    while scan.at < text.len() {
        if is_line_start && scan.keep_fenced() {
            continue;
        }
        let next = scan.rest().chars().next().unwrap_or_default();
        let is_done = match next {
            '`' => scan.keep_code(),
            '<' => scan.skip_comment(is_indent) || scan.skip_element(),
            _ => false,
        };
        if is_done {
            (is_line_start, is_indent) = (false, false);
            continue;
        }
        is_line_start = next == '\n';
        is_indent = is_line_start || (is_indent && matches!(next, ' ' | '>'));
        scan.keep(next.len_utf8());
    }
    scan.kept
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    kept: String,
    /// The end of the last comment: no `-->` follows it.
    last_end: Option<usize>,
}

impl<'a> Scan<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn keep(&mut self, bytes: usize) {
        self.kept.push_str(self.rest().get(..bytes).unwrap_or_default());
        self.at += bytes;
    }

    /// Skips bytes, except for their line breaks.
    fn skip(&mut self, bytes: usize) {
        let skipped = self.rest().get(..bytes).unwrap_or_default();
        self.kept.extend(skipped.chars().filter(|letter| *letter == '\n'));
        self.at += bytes;
    }

    /// Copies a fenced code block that starts on this line.
    fn keep_fenced(&mut self) -> bool {
        let rest = self.rest();
        let Some((mark, length)) = fence_of(rest) else { return false };
        let mut bytes = 0;
        for (number, line) in rest.split_inclusive('\n').enumerate() {
            bytes += line.len();
            let is_end = number > 0
                && fence_of(line).is_some_and(|(other, others)| other == mark && others >= length)
                && line.trim_start_matches([' ', '>']).trim_start_matches(mark).trim().is_empty();
            if is_end {
                break;
            }
        }
        self.keep(bytes);
        true
    }

    /// Copies a code span, or backticks that open none.
    fn keep_code(&mut self) -> bool {
        let rest = self.rest();
        let ticks = ticks_of(rest);
        let mut at = ticks;
        while ticks <= MAX_TICKS
            && let Some(found) = rest.get(at..).and_then(|rest| rest.find(['`', '\n']))
        {
            at += found;
            let behind = rest.get(at..).unwrap_or_default();
            // A code span cannot extend beyond its paragraph.
            if behind.starts_with("\n\n") {
                break;
            }
            let run = ticks_of(behind);
            at += run.max(1);
            if run == ticks {
                self.keep(at);
                return true;
            }
        }
        self.keep(ticks);
        true
    }

    fn skip_comment(&mut self, is_indent: bool) -> bool {
        let rest = self.rest();
        if !rest.starts_with("<!--") {
            return false;
        }
        let is_closed = self.last_end.is_some_and(|end| end > self.at);
        match is_closed.then(|| rest.find("-->")).flatten() {
            Some(end) => self.skip(end + "-->".len()),
            // An unclosed block extends to the end of the text.
            None if is_indent => self.skip(rest.len()),
            None => return false,
        }
        true
    }

    fn skip_element(&mut self) -> bool {
        let Some(tag) = Tag::of(self.rest()).filter(Tag::is_hidden) else { return false };
        let mut at = tag.bytes;
        let mut depth = usize::from(!tag.is_closed && !VOID.contains(&tag.name.as_str()));
        let rest = self.rest();
        while depth > 0 {
            let Some(found) = rest.get(at..).and_then(|rest| rest.find('<')) else {
                at = rest.len();
                break;
            };
            at += found;
            let behind = rest.get(at..).unwrap_or_default();
            if let Some(closing) = behind.strip_prefix("</") {
                if begins_with_name(closing, &tag.name) {
                    depth -= 1;
                    at += behind.find('>').map_or(behind.len(), |end| end + 1);
                    continue;
                }
            } else if let Some(inner) = Tag::of(behind).filter(|inner| inner.name == tag.name) {
                depth += usize::from(!inner.is_closed);
            }
            at += 1;
        }
        self.skip(at);
        true
    }
}

/// The character and length of the fence at the start of a line.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start_matches([' ', '>']);
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    let info = line.lines().next().unwrap_or_default().get(length..).unwrap_or_default();
    (length >= 3 && (mark == '~' || !info.contains('`'))).then_some((mark, length))
}

fn ticks_of(text: &str) -> usize {
    text.len() - text.trim_start_matches('`').len()
}

fn begins_with_name(text: &str, name: &str) -> bool {
    let is_same = text.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    let behind = text.get(name.len()..).and_then(|behind| behind.chars().next());
    is_same && behind.is_none_or(|behind| !behind.is_ascii_alphanumeric() && behind != '-')
}

/// Parses the tag at the start of a text.
struct Tag {
    name: String,
    attributes: HashMap<String, String>,
    is_closed: bool,
    bytes: usize,
}

impl Tag {
    fn of(text: &str) -> Option<Self> {
        let inside = text.strip_prefix('<')?;
        let length = inside.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')?;
        let name = inside.get(..length)?.to_ascii_lowercase();
        if length > 40 || !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let (mut quote, mut end) = (None, None);
        for (at, byte) in inside.bytes().enumerate().skip(length).take(MAX_TAG_BYTES) {
            match (quote, byte) {
                (None, b'>') => {
                    end = Some(at);
                    break;
                }
                (None, b'<') => return None,
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(open), byte) if open == byte => quote = None,
                _ => {}
            }
        }
        let end = end?;
        let written = inside.get(length..end)?;
        let is_closed = written.ends_with('/');
        Some(Self { name, attributes: attributes(written), is_closed, bytes: end + 2 })
    }

    fn is_hidden(&self) -> bool {
        NEVER_SHOWN.contains(&self.name.as_str())
            || self.attributes.contains_key("hidden")
            || self.attributes.get("style").is_some_and(|style| hides(style))
    }
}

fn attributes(written: &str) -> HashMap<String, String> {
    let mut attributes = HashMap::new();
    let mut rest = written.trim_end_matches('/');
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
        let end = rest.find(|letter: char| letter.is_whitespace() || matches!(letter, '=' | '/'));
        let (name, behind) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or_default();
        if name.is_empty() && behind.is_empty() {
            return attributes;
        }
        let behind = behind.trim_start();
        let Some(value) = behind.strip_prefix('=').map(str::trim_start) else {
            attributes.insert(name.to_ascii_lowercase(), String::new());
            rest = behind;
            continue;
        };
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''));
        let (value, behind) = match quote {
            Some(quote) => {
                let inside = value.get(1..).unwrap_or_default();
                inside.split_once(quote).unwrap_or((inside, ""))
            }
            None => value
                .split_at_checked(value.find(char::is_whitespace).unwrap_or(value.len()))
                .unwrap_or_default(),
        };
        attributes.entry(name.to_ascii_lowercase()).or_insert_with(|| value.to_owned());
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_does_not_see_goes_and_lines_stay() {
        for (text, seen) in [
            ("a <!-- IGNORE --> b", "a  b"),
            ("a\n<!-- one\ntwo -->\nb", "a\n\n\nb"),
            ("a\n\n<!-- never closed\nb", "a\n\n\n"),
            ("<div style=\"display:none\">x<div>y</div>\nz</div>b", "\nb"),
            ("<p HIDDEN>x</p>b<span style='font-size:0'>y</span>", "b"),
            ("<script>x</script><img hidden>b", "b"),
            ("<div hidden>to the end", ""),
        ] {
            assert_eq!(without_hidden(text), seen, "{text}");
        }
    }

    #[test]
    fn code_and_what_is_seen_stay() {
        for text in [
            "`<!-- shown -->` and ``a ` <!-- b -->``",
            "```html\n<!-- shown -->\n<div hidden>x</div>\n```\nb",
            "~~~~\n```\n<!-- shown -->\n~~~~",
            "> ```\n> <!-- shown -->\n> ```",
            "a < b, a <!-- b, 1 <2> 3, <b>bold</b>, <details>x</details>",
            "<https://a.example> <p class=hidden-thing style='color:red'>x</p>",
            "a ` b\n\n` c",
            "",
        ] {
            assert_eq!(without_hidden(text), text);
        }
    }

    #[test]
    fn hostile_text_takes_no_time() {
        let began = std::time::Instant::now();
        for part in [
            "<!--",
            "a <!-- ",
            "<div hidden>",
            "<a ",
            "`",
            "``` ",
            "` `` ",
            "<p style=\"",
            " ",
            "\n\n`",
            "<!-->",
        ] {
            drop(without_hidden(&part.repeat(1_000_000 / part.len())));
        }
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }
}
