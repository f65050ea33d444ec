//! Code blocks, in the languages that are highlighted.

use super::escape;
use super::source::{Language, Painter};

/// Writes a code block in the named language; unhighlighted if that is unknown.
pub(super) fn write(out: &mut String, language: &str, text: &str) {
    let language = match language.to_ascii_lowercase().as_str() {
        "json" => Language::Json,
        "yaml" | "yml" => Language::Yaml,
        "md" | "markdown" => Language::Markdown,
        _ => return escape(out, text),
    };
    let mut painter = Painter::new(language);
    for line in text.split_inclusive('\n') {
        painter.line(out, line);
    }
}
