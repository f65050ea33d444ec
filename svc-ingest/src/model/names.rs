//! Names of ingested documents in the tree that scripts see.

use cairn_proto::ids::DocumentId;

use super::FileType;

/// The folder of ingested documents.
pub(crate) const INGESTED_FOLDER: &str = "/sources/ingested";

/// Names appear in the output of scripts, so long titles are truncated.
const MAX_NAME_CHARS: usize = 180;
/// Digits of an id that distinguish documents with the same title; the end of an id is random.
const SUFFIX_DIGITS: usize = 6;

/// The name for a title: one path segment, with the extension of its format.
pub(crate) fn name_of(title: &str, format: FileType) -> String {
    let stem = stem_of(title);
    if has_extension(&stem, format) { stem } else { format!("{stem}.{}", extension(format)) }
}

/// The name with a suffix from the id, for when another document has that name.
pub(crate) fn with_id_suffix(name: &str, id: DocumentId) -> String {
    let id = id.0.simple().to_string();
    let mark = id.get(id.len() - SUFFIX_DIGITS..).unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem} {mark}.{extension}"),
        None => format!("{name} {mark}"),
    }
}

/// The title without characters that are not allowed in a path segment.
fn stem_of(title: &str) -> String {
    let replaced = title.chars().map(|one| if one == '/' || one.is_control() { '-' } else { one });
    let stem: String = replaced.take(MAX_NAME_CHARS).collect();
    let stem = stem.trim();
    // `.` and `..` are relative path segments.
    if stem.chars().all(|one| one == '.') { "untitled".to_owned() } else { stem.to_owned() }
}

const fn extension(format: FileType) -> &'static str {
    match format {
        FileType::Markdown => "md",
        FileType::Json => "json",
        FileType::Yaml => "yaml",
        FileType::Text => "txt",
    }
}

fn has_extension(stem: &str, format: FileType) -> bool {
    let Some((before, found)) = stem.rsplit_once('.') else { return false };
    let found = found.to_ascii_lowercase();
    let is_known = found == extension(format)
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
        assert_eq!(with_id_suffix("Pricing.md", id), "Pricing abcdef.md");
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
