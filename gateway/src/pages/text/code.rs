//! Code within a text, in the languages that have colours.

use super::escape;
use super::source::{Language, Painter};

/// Adds a block of code in the language that its author names; of one that is not known, as it is.
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
