//! Token classes of syntax highlighting, as in the style sheet.

use super::escape;

/// The class of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Key,
    Text,
    Number,
    Literal,
    Comment,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Key => "k",
            Self::Text => "t",
            Self::Number => "n",
            Self::Literal => "l",
            Self::Comment => "c",
        }
    }
}

/// Writes a token of that class.
pub(super) fn word(out: &mut String, class: Class, text: &str) {
    if text.is_empty() {
        return;
    }
    out.push_str("<span class=\"");
    out.push_str(class.name());
    out.push_str("\">");
    escape(out, text);
    out.push_str("</span>");
}
