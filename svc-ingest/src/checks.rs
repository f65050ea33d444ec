//! The rules that single fields obey; every violation of a request is gathered before it is refused.

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};

use crate::Error;

/// A list of documents is narrowed by so long a part of their titles at most.
const MAX_TITLE_CHARS: usize = 255;

/// The pattern of titles that hold a text, as `LIKE` takes it with `\` before what is meant as it stands; empty for any title.
pub(crate) fn titles_with(text: &str) -> Result<String, Error> {
    let text = text.trim();
    let mut checks = Checks::default();
    if text.chars().count() > MAX_TITLE_CHARS {
        checks.violation("title", "too_long", wording::at_most(MAX_TITLE_CHARS, Unit::Characters));
    }
    if text.contains(char::is_control) {
        checks.violation("title", "invalid", wording::NO_CONTROL_CHARACTERS);
    }
    checks.finish()?;
    if text.is_empty() {
        return Ok(String::new());
    }
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    Ok(pattern)
}

/// Gathers violations.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    violations: Vec<Violation>,
}

impl Checks {
    /// Notes what is wrong.
    pub(crate) fn violation(&mut self, path: &str, code: &str, message: impl Into<String>) {
        self.violations.push(Violation::new(path, code, message));
    }

    /// Ends the checks.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if self.violations.is_empty() { Ok(()) } else { Err(Error::Invalid(self.violations)) }
    }

    /// A text of one line.
    pub(crate) fn line(&mut self, path: &str, text: &str, most_chars: usize) {
        if text.trim().is_empty() {
            return self.violation(path, "required", wording::EMPTY);
        }
        if text.chars().count() > most_chars {
            self.violation(path, "too_long", wording::at_most(most_chars, Unit::Characters));
        }
        if text.contains(char::is_control) {
            self.violation(path, "invalid", wording::NO_CONTROL_CHARACTERS);
        }
    }
}
