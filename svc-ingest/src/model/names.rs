//! Names of documents in the tree that scripts walk.

use cairn_proto::ids::DocumentId;

use super::FileType;

/// Where ingested documents stand.
pub(crate) const INGESTED_FOLDER: &str = "/sources/ingested";

/// Names are shown in lines of scripts, so a long title is cut.
const MAX_NAME_CHARS: usize = 180;
/// Digits of an id that tell twins apart: its end is random.
const TWIN_DIGITS: usize = 6;

/// The name of a document of that title: one segment of a path, with the ending of its format.
pub(crate) fn name_of(title: &str, format: FileType) -> String {
    let stem = stem_of(title);
    if has_ending(&stem, format) { stem } else { format!("{stem}.{}", ending(format)) }
}

/// The name when another document has that one.
pub(crate) fn twin_of(name: &str, id: DocumentId) -> String {
    let id = id.0.simple().to_string();
    let mark = id.get(id.len() - TWIN_DIGITS..).unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) => format!("{stem} {mark}.{ending}"),
        None => format!("{name} {mark}"),
    }
}

/// A title without what no segment may hold.
fn stem_of(title: &str) -> String {
    let replaced = title.chars().map(|one| if one == '/' || one.is_control() { '-' } else { one });
    let stem: String = replaced.take(MAX_NAME_CHARS).collect();
    let stem = stem.trim();
    // Dots alone mean folders.
    if stem.chars().all(|one| one == '.') { "untitled".to_owned() } else { stem.to_owned() }
}

const fn ending(format: FileType) -> &'static str {
    match format {
        FileType::Markdown => "md",
        FileType::Json => "json",
        FileType::Yaml => "yaml",
        FileType::Text => "txt",
    }
}

fn has_ending(stem: &str, format: FileType) -> bool {
    let Some((before, found)) = stem.rsplit_once('.') else { return false };
    let found = found.to_ascii_lowercase();
    let is_known = found == ending(format)
        || (format == FileType::Yaml && found == "yml")
        || (format == FileType::Markdown && found == "markdown");
    is_known && !before.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_name_is_the_title_with_an_ending() {
        for (title, format, name) in [
            ("Pricing", FileType::Markdown, "Pricing.md"),
            ("report.pdf", FileType::Markdown, "report.pdf.md"),
            ("notes.md", FileType::Markdown, "notes.md"),
            ("notes.md", FileType::Text, "notes.md.txt"),
            ("values.YML", FileType::Yaml, "values.YML"),
            (".md", FileType::Markdown, ".md.md"),
            ("a/b\nc", FileType::Json, "a-b-c.json"),
            ("..", FileType::Text, "untitled.txt"),
            ("  ", FileType::Text, "untitled.txt"),
        ] {
            assert_eq!(name_of(title, format), name);
        }
        let id = DocumentId(Uuid::from_u128(0xabc_def));
        assert_eq!(twin_of("Pricing.md", id), "Pricing abcdef.md");
    }

    proptest! {
        #[test]
        fn every_name_is_one_segment(title in any::<String>()) {
            for format in FileType::ALL {
                let name = name_of(&title, format);
                prop_assert!(!name.contains('/') && !name.contains(char::is_control));
                prop_assert!(name != "." && name != ".." && name.chars().count() <= MAX_NAME_CHARS + 5);
            }
        }
    }
}
