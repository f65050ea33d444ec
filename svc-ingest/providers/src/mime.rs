//! Media types by file name. Only hints: the content decides.

const UNKNOWN: &str = "application/octet-stream";

const BY_ENDING: &[(&str, &str)] = &[
    ("csv", "text/csv"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("eml", "message/rfc822"),
    ("epub", "application/epub+zip"),
    ("gif", "image/gif"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ipynb", "application/x-ipynb+json"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("json", "application/json"),
    ("markdown", "text/markdown"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("rtf", "application/rtf"),
    ("svg", "image/svg+xml"),
    ("txt", "text/plain"),
    ("webp", "image/webp"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("yaml", "text/yaml"),
    ("yml", "text/yaml"),
    ("zip", "application/zip"),
];

/// Guesses a media type from a file name.
pub(crate) fn of_name(name: &str) -> &'static str {
    let ending = name.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
    let known = |ending: &str| {
        BY_ENDING.iter().find(|(known, _)| known.eq_ignore_ascii_case(ending)).map(|(_, mime)| *mime)
    };
    ending.and_then(known).unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_suggests_a_type() {
        assert_eq!(of_name("a/b.MD"), "text/markdown");
        assert_eq!(of_name("x.tar.pdf"), "application/pdf");
        for unknown in ["", "Makefile", "a.md/b", "a.", ".", "a.xyz"] {
            assert_eq!(of_name(unknown), UNKNOWN, "{unknown}");
        }
    }
}
