//! Paths of documents below their source's folder.

/// Bytes of one segment; longer ones are truncated before their extension.
const MAX_SEGMENT_BYTES: usize = 200;
const MAX_SEGMENTS: usize = 64;

/// The path of a document: the provider's own, or its title as a Markdown file.
pub(crate) fn below(path: Option<&str>, title: &str) -> String {
    let own = path.map(normalized).filter(|path| !path.is_empty());
    own.unwrap_or_else(|| {
        let title = segment(title);
        let title = if title.is_empty() { "untitled".to_owned() } else { title };
        bounded(&title, ".md")
    })
}

/// A name as one path segment: without `/`, and without invisible characters, which would let one file pass for another. Empty for names
/// that are not valid segments.
pub(crate) fn segment(name: &str) -> String {
    let plain: String =
        name.chars().map(|letter| if letter == '/' || letter.is_control() { ' ' } else { letter }).collect();
    let plain = cairn_extract::visible(&plain);
    let words: Vec<&str> = plain.split_whitespace().collect();
    let segment = words.join(" ");
    if matches!(segment.as_str(), "." | "..") { String::new() } else { segment }
}

fn normalized(path: &str) -> String {
    let segments = path.split('/').map(segment).filter(|segment| !segment.is_empty());
    let kept: Vec<String> = segments.take(MAX_SEGMENTS).map(|segment| shortened(&segment)).collect();
    kept.join("/")
}

/// Truncates a long segment, but keeps its extension.
fn shortened(segment: &str) -> String {
    match segment.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= 16 => {
            bounded(stem, &format!(".{ending}"))
        }
        _ => bounded(segment, ""),
    }
}

fn bounded(stem: &str, ending: &str) -> String {
    let most = MAX_SEGMENT_BYTES.saturating_sub(ending.len());
    let end = stem.floor_char_boundary(most);
    format!("{}{ending}", stem.get(..end).unwrap_or_default().trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_kept_and_a_title_becomes_a_file() {
        assert_eq!(below(Some("docs/a b.md"), "x"), "docs/a b.md");
        assert_eq!(below(Some("/docs//./../a.md"), "x"), "docs/a.md");
        assert_eq!(below(None, "Plan: Q3/Q4"), "Plan: Q3 Q4.md");
        assert_eq!(below(Some("///"), "\u{7}"), "untitled.md");
        assert_eq!(below(Some("a\u{200B}/\u{202E}/txt\u{E0041}.md"), "x"), "a/txt.md");
        assert_eq!(below(None, "\u{FEFF}Plan\u{2066} 👩\u{200D}💻"), "Plan 👩\u{200D}💻.md");
        assert_eq!(below(Some("\u{200B}.\u{200B}./a.md"), "x"), "a.md", "it leads nowhere");
        assert!(below(None, &"ü".repeat(500)).len() <= MAX_SEGMENT_BYTES);
        let long = format!("{}.tar.gz", "x".repeat(500));
        assert!(below(Some(&long), "").ends_with(".gz"));
    }

    proptest! {
        #[test]
        fn no_path_leaves_its_folder(path in ".{0,80}", title in ".{0,40}") {
            let below = below(Some(&path), &title);
            prop_assert!(!below.is_empty());
            for segment in below.split('/') {
                prop_assert!(!segment.is_empty() && segment != "." && segment != "..");
                prop_assert!(!segment.contains(char::is_control));
            }
        }
    }
}
