//! Cuts a document into the passages that are indexed, found and cited.
//!
//! A chunk is a range of whole lines, so that it can be cited and read again. Chunks follow the document's structure (headings, keys,
//! paragraphs) and do not overlap.

mod json;
mod lines;
mod markdown;
mod outline;
mod pack;
#[cfg(test)]
mod properties;
mod table;
mod yaml;

use lines::Lines;

/// The target size of a chunk. Of chunkers by heading and by size, those by heading with at most 200 to 250 words returned the most of
/// the relevant section for the same budget of words.
const MAX_WORDS: usize = 250;

/// Adjacent sections under one heading that are shorter than this are merged: alone they contain too few words to be found.
const SMALL_WORDS: usize = 50;

/// A paragraph, table or fenced block up to this size stays whole, because half of one is hard to read.
const MAX_BLOCK_WORDS: usize = 600;

/// The hard limit of a chunk's text, so that a result always fits into a response.
const MAX_BYTES: usize = 8 * 1024;

/// Text counts as at least one word per this many bytes without whitespace. This is more than the mean word of prose; it applies to text
/// without spaces: Chinese, Thai, long URLs, encoded data.
const BYTES_PER_WORD: usize = 8;

/// Longer runs of blank lines between two chunks are not stored.
const MAX_GAP_BYTES: usize = 256;

/// Longer headings are truncated in the heading path, which every chunk below them repeats.
const MAX_HEADING_BYTES: usize = 256;

/// A longer table header is not repeated: it would make up most of each passage of the table.
const MAX_TABLE_HEADER_BYTES: usize = 1_024;

/// The number of heading levels of Markdown; deeper keys belong to the chunk of their parent key.
const MAX_DEPTH: usize = 6;

/// The format of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// CommonMark with tables and YAML front matter. The heading path consists of the headings.
    Markdown,
    /// The heading path consists of the keys. Invalid JSON is cut like [`Format::Text`].
    Json,
    /// The heading path consists of the keys, recognised by indentation, so that templates work, too.
    Yaml,
    /// Delimited values (CSV, TSV); the first row is the header. The heading path is empty. A file with one column is cut like
    /// [`Format::Text`].
    Table,
    /// Anything else, cut at blank lines. The heading path is empty.
    Text,
}

/// One passage of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The lines of the document without the last line break. A line of more than 8 KiB is split into several chunks with the same line
    /// range.
    pub text: String,
    /// The headings or keys above the passage, outermost first. For merged sections, their common prefix.
    pub heading_path: Vec<String>,
    /// The header of the table that the passage starts within, in Markdown with the delimiter row; otherwise empty.
    pub table_header: String,
    /// The first line, counted from 1.
    pub start_line: u32,
    /// The last line, counted from 1 and part of the chunk.
    pub end_line: u32,
    /// The text between this chunk and the next one: a line break and blank lines, so that adjacent chunks can be joined again. After the
    /// last chunk a single line break, regardless of the document's end. `None` for a piece of a line, and before a gap of more than 256
    /// bytes.
    pub gap: Option<String>,
}

/// Cuts a document into chunks, in document order. Every non-blank line is in a chunk; a document of blank lines has none. Lines end with
/// `\n` or `\r\n`; a byte order mark is not part of the first line.
pub fn split(format: Format, content: &str) -> Vec<Chunk> {
    let content = content.strip_prefix('\u{feff}').unwrap_or(content);
    let mut lines = Lines::new(content);
    let (marks, whole_up_to) = match format {
        Format::Markdown => (markdown::marks(&mut lines), 0),
        // A key reads best together with its whole value, whereas the subsections of a heading can be read on their own.
        Format::Json => (json::marks(content), MAX_WORDS),
        Format::Yaml => (yaml::marks(&lines), MAX_WORDS),
        Format::Table => {
            table::scan(&mut lines);
            (Vec::new(), 0)
        }
        Format::Text => (Vec::new(), 0),
    };
    let mut chunks = Vec::new();
    for section in outline::sections(&lines, &marks, whole_up_to) {
        pack::pack(&lines, &section, &mut chunks);
    }
    fill_gaps(&lines, &mut chunks);
    chunks
}

fn fill_gaps(lines: &Lines<'_>, chunks: &mut [Chunk]) {
    let mut next_line = None;
    for chunk in chunks.iter_mut().rev() {
        let following = next_line.map_or("\n", |next| lines.between(chunk.end_line, next));
        next_line = Some(chunk.start_line);
        // The line break after the last line must not turn a lone \r into a line break.
        let is_clear = following.len() <= MAX_GAP_BYTES && !chunk.text.ends_with('\r');
        chunk.gap = chunk.gap.take().filter(|_| is_clear).map(|_| following.to_owned());
    }
}

/// The indexed text of a chunk: the file's stem, the heading path, the header of the table that it continues, and the text, each on its
/// own line. Headings say what a passage is about; only the passage itself is returned.
pub fn index_text(file_name: &str, chunk: &Chunk) -> String {
    text_under(stem(file_name), &chunk.heading_path, &chunk.table_header, &chunk.text)
}

/// As [`index_text`], from the stored parts.
pub fn text_under(stem: &str, heading_path: &[String], table_header: &str, passage: &str) -> String {
    let mut text = String::new();
    let header = Some(table_header).filter(|header| !header.is_empty());
    for part in std::iter::once(stem).chain(heading_path.iter().map(String::as_str)).chain(header) {
        text.push_str(part);
        text.push('\n');
    }
    text.push_str(passage);
    text
}

/// A file's name without its folders and its last extension. A name that is only an extension, such as `.env`, is kept.
pub fn stem(file_name: &str) -> &str {
    let name = file_name.rsplit('/').next().unwrap_or(file_name);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_blank_documents_have_no_chunks() {
        for format in [Format::Markdown, Format::Json, Format::Yaml, Format::Table, Format::Text] {
            for content in ["", "\n", " \r\n\t\n", "\u{feff}", "\u{feff}\n\n"] {
                assert_eq!(split(format, content), [], "{format:?} {content:?}");
            }
        }
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_do_not_move_lines() {
        let chunks = split(Format::Text, "\u{feff}\r\none\r\ntwo\r\n\r\n");
        let expected = Chunk {
            text: "one\r\ntwo".into(),
            heading_path: Vec::new(),
            table_header: String::new(),
            start_line: 2,
            end_line: 3,
            gap: Some("\n".into()),
        };
        assert_eq!(chunks, [expected]);
    }

    #[test]
    fn text_is_cut_at_blank_lines_into_even_parts() {
        let paragraph = "word ".repeat(100);
        let chunks =
            split(Format::Text, &format!("{paragraph}\n\n{paragraph}\n\n{paragraph}\n\n{paragraph}"));
        let ranges: Vec<(u32, u32)> = chunks.iter().map(|chunk| (chunk.start_line, chunk.end_line)).collect();
        assert_eq!(ranges, [(1, 3), (5, 7)]);
    }

    #[test]
    fn a_giant_line_gives_pieces_with_the_same_range() {
        let giant = "lorem ipsum ".repeat(2000);
        let chunks = split(Format::Text, &format!("before\n{giant}\nafter"));
        let pieces: Vec<&Chunk> = chunks.iter().filter(|chunk| chunk.start_line == 2).collect();
        assert!(pieces.iter().all(|chunk| chunk.end_line == 2 && chunk.text.len() <= MAX_BYTES));
        assert_eq!(pieces.iter().map(|chunk| chunk.text.as_str()).collect::<String>(), giant);
        assert_eq!(chunks.first().unwrap().text, "before");
        assert_eq!(chunks.last().unwrap().text, "after");
    }

    #[test]
    fn text_without_blanks_is_measured_by_its_bytes() {
        let line = "検索拡張生成".repeat(20);
        let chunks = split(Format::Text, &vec![line; 40].join("\n\n"));
        assert!(chunks.len() > 5, "{}", chunks.len());
    }

    #[test]
    fn the_index_text_names_the_file_and_the_headings() {
        let mut chunk = Chunk {
            text: "Body.".into(),
            heading_path: vec!["Guide".into(), "Setup".into()],
            table_header: String::new(),
            start_line: 1,
            end_line: 1,
            gap: None,
        };
        assert_eq!(
            index_text("docs/getting-started.v2.md", &chunk),
            "getting-started.v2\nGuide\nSetup\nBody."
        );
        chunk.table_header = "| a |\n|---|".into();
        assert_eq!(index_text(".env", &chunk), ".env\nGuide\nSetup\n| a |\n|---|\nBody.");
    }
}
