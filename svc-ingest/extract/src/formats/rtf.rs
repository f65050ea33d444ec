//! Rich Text Format: text in the file's charset, paragraphs, tables, and headings by outline level. Hidden text, headers, footers, fonts,
//! pictures and comments are skipped.

mod tokens;

use std::collections::HashMap;

use encoding_rs::{Encoding, WINDOWS_1252};

use self::tokens::{Token, Tokens};
use crate::markdown::{self, Markdown};
use crate::model::{Failure, Format, Raw, Text};

const MAX_DEPTH: usize = 1_000;
/// Destinations whose text is not part of the document, besides those marked as ignorable with `\*`.
const LEFT_OUT: [&str; 22] = [
    "fonttbl",
    "colortbl",
    "info",
    "pict",
    "object",
    "header",
    "headerl",
    "headerr",
    "headerf",
    "footer",
    "footerl",
    "footerr",
    "footerf",
    "annotation",
    "atnid",
    "atnauthor",
    "filetbl",
    "listtable",
    "revtbl",
    "xmlnstbl",
    "fldinst",
    "nonshppict",
];

pub(crate) fn read(raw: &Raw) -> Result<Text, Failure> {
    let mut reader = Reader::default();
    for token in Tokens::new(&raw.bytes) {
        reader.take(token)?;
        if reader.out.is_full() {
            break;
        }
    }
    reader.end_line();
    reader.end_table();
    Ok(Text {
        format: Format::Markdown,
        content: reader.out.into_text(),
        title: markdown_title(&reader.title),
    })
}

fn markdown_title(title: &str) -> Option<String> {
    Some(markdown::one_line(title)).filter(|title| !title.is_empty())
}

/// The destination of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The current paragraph.
    Line,
    /// Discarded.
    Out,
    /// The title in the document properties.
    Title,
    /// The style sheet.
    Styles,
    /// The number or bullet of a list item.
    Marker,
}

/// The state that is saved and restored per group.
#[derive(Debug, Clone, Copy)]
struct State {
    hidden: bool,
    /// The destination of its text.
    place: Place,
    /// How many fallback characters follow a Unicode character.
    fallback: usize,
}

impl Default for State {
    fn default() -> Self {
        Self { hidden: false, place: Place::Line, fallback: 1 }
    }
}

#[derive(Debug)]
struct Reader {
    out: Markdown,
    title: String,
    state: State,
    groups: Vec<State>,
    encoding: &'static Encoding,
    /// Undecoded bytes in the file's charset: characters may take two.
    bytes: Vec<u8>,
    /// A pending high surrogate.
    surrogate: Option<u16>,
    skipped: usize,
    line: String,
    level: Option<usize>,
    /// Heading levels by style, and the style whose name is being read.
    styles: HashMap<i32, usize>,
    style: i32,
    style_name: String,
    marker: String,
    depth: usize,
    in_table: bool,
    row: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            out: Markdown::default(),
            title: String::new(),
            state: State::default(),
            groups: Vec::new(),
            encoding: WINDOWS_1252,
            bytes: Vec::new(),
            surrogate: None,
            skipped: 0,
            line: String::new(),
            level: None,
            styles: HashMap::new(),
            style: 0,
            style_name: String::new(),
            marker: String::new(),
            depth: 0,
            in_table: false,
            row: Vec::new(),
            rows: Vec::new(),
        }
    }
}

impl Reader {
    fn take(&mut self, token: Token<'_>) -> Result<(), Failure> {
        match token {
            Token::Open => {
                if self.groups.len() >= MAX_DEPTH {
                    return Err(Failure::broken("RTF"));
                }
                self.flush();
                self.groups.push(self.state);
            }
            Token::Close => {
                self.flush();
                self.end_style();
                self.state = self.groups.pop().unwrap_or_default();
                self.skipped = 0;
            }
            Token::Ignorable => self.state.place = Place::Out,
            Token::Byte(byte) => self.byte(byte),
            Token::Symbol(symbol) => self.symbol(symbol),
            Token::Word(word, value) => self.word(word, value),
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.bytes.push(byte);
        }
    }

    fn symbol(&mut self, symbol: u8) {
        match symbol {
            b'~' => self.push('\u{a0}'),
            b'_' => self.push('-'),
            b'\n' | b'\r' => self.end_paragraph(),
            // An optional hyphen, and index entries.
            _ => {}
        }
    }

    fn word(&mut self, word: &str, value: Option<i32>) {
        self.flush();
        match word {
            "u" => self.unicode(value.unwrap_or_default()),
            "uc" => self.state.fallback = usize::try_from(value.unwrap_or(1)).unwrap_or_default().min(20),
            "ansicpg" => self.encoding = code_page(value.unwrap_or_default()).unwrap_or(self.encoding),
            "title" => self.state.place = Place::Title,
            "stylesheet" => self.state.place = Place::Styles,
            "listtext" | "pntext" => self.state.place = Place::Marker,
            "s" => self.style(value.unwrap_or_default()),
            "ilvl" => self.depth = value.and_then(|depth| usize::try_from(depth).ok()).unwrap_or_default(),
            "v" => self.state.hidden = value != Some(0),
            "deleted" => self.state.hidden = value != Some(0),
            "plain" => self.state.hidden = false,
            // List markers have their own formatting.
            "pard" if self.state.place == Place::Line => {
                self.level = None;
                self.depth = 0;
                self.in_table = false;
            }
            "intbl" => self.in_table = true,
            "outlinelevel" => self.outline_level(value),
            "par" | "sect" | "page" => self.end_paragraph(),
            "cell" | "nestcell" => self.row.push(std::mem::take(&mut self.line)),
            "row" | "nestrow" => self.rows.push(std::mem::take(&mut self.row)),
            "line" => self.push('\n'),
            "tab" => self.push('\t'),
            "emdash" => self.push('—'),
            "endash" => self.push('–'),
            "lquote" => self.push('‘'),
            "rquote" => self.push('’'),
            "ldblquote" => self.push('“'),
            "rdblquote" => self.push('”'),
            "bullet" => self.push('•'),
            _ if LEFT_OUT.contains(&word) => self.state.place = Place::Out,
            _ => {}
        }
    }

    /// A UTF-16 unit; RTF writes those above 32767 as negative numbers.
    fn unicode(&mut self, value: i32) {
        let unit = u16::try_from(value.rem_euclid(65_536)).unwrap_or_default();
        let units: Vec<u16> = self.surrogate.take().into_iter().chain([unit]).collect();
        if (0xD800..0xDC00).contains(&unit) {
            self.surrogate = Some(unit);
        } else {
            for character in char::decode_utf16(units).flatten() {
                self.push(character);
            }
        }
        self.skipped = self.state.fallback;
    }

    /// The style of a paragraph, or the one being defined.
    fn style(&mut self, number: i32) {
        if self.state.place == Place::Styles {
            self.style = number;
        } else {
            self.level = self.styles.get(&number).copied();
        }
    }

    fn outline_level(&mut self, value: Option<i32>) {
        let level = value.and_then(|level| usize::try_from(level).ok()).filter(|level| *level < 9);
        if self.state.place != Place::Styles {
            self.level = level;
        } else if let Some(level) = level {
            self.styles.insert(self.style, level);
        }
    }

    /// Styles are also recognized as headings by name.
    fn end_style(&mut self) {
        if self.state.place == Place::Styles {
            let name = std::mem::take(&mut self.style_name).trim().to_ascii_lowercase();
            let level = name
                .strip_prefix("heading ")
                .and_then(|level| level.trim_end_matches(';').parse::<usize>().ok());
            if let Some(level) = level.filter(|level| (1..=9).contains(level)) {
                self.styles.insert(self.style, level - 1);
            }
        }
    }

    fn push(&mut self, character: char) {
        self.flush();
        if let Some(place) = self.place() {
            place.push(character);
        }
    }

    fn flush(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let text = self.encoding.decode_without_bom_handling(&bytes).0;
        if let Some(place) = self.place() {
            place.push_str(&text);
        }
    }

    fn place(&mut self) -> Option<&mut String> {
        match self.state.place {
            Place::Line => (!self.state.hidden).then_some(&mut self.line),
            Place::Title => Some(&mut self.title),
            Place::Styles => Some(&mut self.style_name),
            Place::Marker => Some(&mut self.marker),
            Place::Out => None,
        }
    }

    fn end_paragraph(&mut self) {
        self.flush();
        if self.state.place != Place::Line {
            return;
        }
        if self.in_table {
            self.marker.clear();
            self.line.push('\n');
        } else {
            self.end_table();
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        self.flush();
        let line = std::mem::take(&mut self.line);
        let marker = std::mem::take(&mut self.marker);
        match self.level {
            Some(level) => self.out.heading(level + 1, &line),
            None if marker.trim().is_empty() => self.out.paragraph(&line),
            None => self.out.item(self.depth, &item_marker(marker.trim()), &line),
        }
    }

    fn end_table(&mut self) {
        if !self.row.is_empty() {
            self.rows.push(std::mem::take(&mut self.row));
        }
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.out.table(&rows);
        }
    }
}

/// The list marker: a number if the item has one, else a bullet.
fn item_marker(marker: &str) -> String {
    let digits: String = marker.chars().take_while(char::is_ascii_digit).collect();
    if digits.is_empty() { "-".to_owned() } else { format!("{digits}.") }
}

/// The charset of a Windows code page.
fn code_page(number: i32) -> Option<&'static Encoding> {
    let label = match number {
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        10_000 => "macintosh".to_owned(),
        65_001 => "utf-8".to_owned(),
        866 | 874 => format!("ibm{number}"),
        number => format!("windows-{number}"),
    };
    Encoding::for_label(label.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtf(text: &str) -> Text {
        let text = read(&Raw::file("a.rtf", text.to_owned()));
        text.unwrap()
    }

    #[test]
    fn paragraphs_headings_and_tables_of_the_text_alone() {
        let text = rtf(
            r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Times;}}{\info{\title The \'fcber title}{\author Me}}{\header Head}
{\*\generator Word;}\pard\outlinelevel0 Chapter\par\pard First {\b bold} line\line second\par {\v hidden}seen\par
\trowd\pard\intbl a\cell b\cell\row\pard\intbl 1\cell 2\cell\row\pard after{\pict 0102}\par}",
        );
        assert_eq!(text.title.as_deref(), Some("The über title"));
        let expected =
            "# Chapter\n\nFirst bold line\nsecond\n\nseen\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\nafter\n";
        assert_eq!(text.content, expected);
    }

    #[test]
    fn headings_by_their_style_and_items_by_their_markers() {
        let text = rtf(
            r"{\rtf1{\stylesheet{\s0 Normal;}{\s1\b Heading 1;}{\s2\outlinelevel1 Mine;}}\pard\s1 Part\par\pard\s2 Deeper\par
\pard\s0{\listtext\pard\plain \u8226\'95\tab}\ilvl0 one\par\pard{\listtext 1.\tab}\ilvl1 two\par\pard three\par}",
        );
        assert_eq!(text.content, "# Part\n\n## Deeper\n\n- one\n    1. two\n\nthree\n");
    }

    #[test]
    fn characters_of_any_charset() {
        assert_eq!(rtf(r"{\rtf1\ansicpg1251 \'cf\'f0\'e8\u8364 ?\u-10179?\u-8704?!}").content, "При€😀!\n");
        assert_eq!(rtf(r"{\rtf1\ansicpg932 \'93\'fa\'96\'7b}").content, "日本\n");
        assert_eq!(rtf(r"{\rtf1{\uc2\u233 ab}c\{\}\\}").content, "éc{}\\\n");
    }

    #[test]
    fn what_is_cut_or_nested_deep_ends() {
        assert_eq!(rtf(r"{\rtf1 words \'e").content, "words\n");
        assert!(read(&Raw::file("a.rtf", format!("{{\\rtf1 {}", "{".repeat(100_000)))).is_err());
        assert_eq!(rtf(r"{\rtf1\bin99999999 x").content, "");
    }
}
