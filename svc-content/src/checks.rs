//! The validation of single fields. All violations of a request are collected before it is rejected.

use std::str::FromStr;

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::{FILE_DESCRIPTION_CHARS, NAME_CHARS, TAG_CHARS, TAGS};

use crate::Error;
use crate::model::{MAX_CONTENT_BYTES, fold};

const MAX_VIOLATIONS: usize = 51;

/// A search text for names, folded as names are compared.
pub(crate) fn part_of_name(query: &str) -> Result<String, Error> {
    if query.trim().is_empty() {
        return Err(Error::invalid("query", "required", "give a part of the name"));
    }
    if query.contains('\0') {
        return Err(Error::invalid("query", "invalid", wording::NO_NUL));
    }
    if query.chars().count() > NAME_CHARS {
        return Err(Error::invalid("query", "too_long", wording::at_most(NAME_CHARS, Unit::Characters)));
    }
    Ok(fold(query))
}

/// Collects violations.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    violations: Vec<Violation>,
}

impl Checks {
    /// Adds a violation; the number of reported ones is bounded.
    pub(crate) fn violation(&mut self, path: &str, code: &str, message: impl Into<String>) {
        if self.violations.len() < MAX_VIOLATIONS {
            self.violations.push(Violation::new(path, code, message));
        }
    }

    /// Fails if there are violations.
    pub(crate) fn finish(self) -> Result<(), Error> {
        if self.violations.is_empty() { Ok(()) } else { Err(Error::Invalid(self.violations)) }
    }

    /// Returns the checked value, or fails; `None` means that a rule was broken.
    pub(crate) fn passed<T>(self, checked: Option<T>) -> Result<T, Error> {
        match checked {
            Some(checked) if self.violations.is_empty() => Ok(checked),
            Some(_) | None => Err(Error::Invalid(self.violations)),
        }
    }

    /// Rejects the unknown fields of an update mask.
    pub(crate) fn mask(&mut self, unknown_fields: &[String]) {
        for message in unknown_fields {
            self.violation("updateMask", "invalid", message);
        }
    }

    /// A name is one path segment, for people and for the virtual filesystem.
    pub(crate) fn name(&mut self, name: &str) {
        if name.trim().is_empty() {
            return self.violation("name", "required", "give a name");
        }
        if name.chars().count() > NAME_CHARS {
            self.violation("name", "too_long", wording::at_most(NAME_CHARS, Unit::Characters));
        }
        if name == "." || name == ".." {
            self.violation("name", "invalid", "'.' and '..' mean folders in a path and cannot be names");
        }
        if name.contains('/') {
            self.violation(
                "name",
                "invalid",
                "may not hold a '/': that parts the steps of a path; make a folder for each step",
            );
        }
        if name.contains(char::is_control) {
            self.violation("name", "invalid", wording::NO_CONTROL_CHARACTERS);
        }
    }

    /// Content is text of at most 5 MiB.
    pub(crate) fn content(&mut self, content: &str) {
        if content.len() > MAX_CONTENT_BYTES {
            let message =
                format!("{}; it has {}", wording::at_most(MAX_CONTENT_BYTES, Unit::Bytes), content.len());
            self.violation("content", "too_long", message);
        }
        if content.contains('\0') {
            self.violation("content", "invalid", wording::NO_NUL);
        }
    }

    /// The description of a file, of a few words; an empty one is absent.
    pub(crate) fn description(&mut self, text: Option<String>) -> Option<String> {
        let text = text.filter(|text| !text.is_empty())?;
        if text.chars().count() > FILE_DESCRIPTION_CHARS {
            let message = wording::at_most(FILE_DESCRIPTION_CHARS, Unit::Characters);
            self.violation("description", "too_long", message);
        }
        if text.contains('\0') {
            self.violation("description", "invalid", "text has no NUL character");
        }
        Some(text)
    }

    /// Tags without duplicates, in their order.
    pub(crate) fn tags(&mut self, tags: Vec<String>) -> Vec<String> {
        let mut kept: Vec<String> = Vec::with_capacity(tags.len().min(TAGS));
        let mut is_too_many = false;
        for (place, tag) in tags.into_iter().enumerate() {
            let path = format!("tags[{place}]");
            if tag.trim().is_empty() {
                self.violation(&path, "required", wording::EMPTY);
            } else if tag.chars().count() > TAG_CHARS {
                self.violation(&path, "too_long", wording::at_most(TAG_CHARS, Unit::Characters));
            } else if tag.contains(char::is_control) {
                self.violation(&path, "invalid", wording::NO_CONTROL_CHARACTERS);
            } else if kept.contains(&tag) {
                continue;
            } else if kept.len() == TAGS {
                is_too_many = true;
                break;
            } else {
                kept.push(tag);
            }
        }
        if is_too_many {
            self.violation("tags", "too_long", wording::at_most(TAGS, Unit::Tags));
        }
        kept
    }

    /// An id in a field.
    pub(crate) fn id<T: FromStr>(&mut self, path: &str, text: &str) -> Option<T> {
        let id = text.parse().ok();
        if id.is_none() {
            self.violation(path, "invalid", wording::ID);
        }
        id
    }

    /// An id in an optional field.
    pub(crate) fn optional_id<T: FromStr>(&mut self, path: &str, text: Option<&str>) -> Option<T> {
        text.and_then(|text| self.id(path, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(check: impl FnOnce(&mut Checks)) -> Vec<(String, String)> {
        let mut checks = Checks::default();
        check(&mut checks);
        checks.violations.into_iter().map(|violation| (violation.path, violation.code)).collect()
    }

    #[test]
    fn parts_of_names_are_no_longer_than_names() {
        for good in ["a", " A/b", &"é".repeat(255)] {
            assert!(part_of_name(good).is_ok(), "{good}");
        }
        for bad in ["", "  ", "a\0", &"é".repeat(256)] {
            assert!(part_of_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_have_limits() {
        for good in ["a", "ä b.md", &"é".repeat(255), "...", ".hidden", "a\\b"] {
            assert_eq!(codes(|checks| checks.name(good)), [], "{good}");
        }
        for (bad, code) in [
            ("", "required"),
            ("  ", "required"),
            (".", "invalid"),
            ("..", "invalid"),
            ("a/b", "invalid"),
            ("a\0", "invalid"),
            ("a\nb", "invalid"),
            ("a\u{85}b", "invalid"),
            (&"é".repeat(256), "too_long"),
        ] {
            assert_eq!(codes(|checks| checks.name(bad)), [("name".to_owned(), code.to_owned())], "{bad:?}");
        }
    }

    #[test]
    fn content_has_limits() {
        assert_eq!(codes(|checks| checks.content("")), []);
        assert_eq!(codes(|checks| checks.content(&"x".repeat(5_242_880))), []);
        assert_eq!(codes(|checks| checks.content(&"x".repeat(5_242_881))).len(), 1);
        assert_eq!(codes(|checks| checks.content("a\0b")).len(), 1);
    }

    #[test]
    fn tags_keep_their_order_once() {
        let texts = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        let mut checks = Checks::default();
        assert_eq!(checks.tags(texts(&["b", "a", "b", "c", "a"])), ["b", "a", "c"]);
        assert!(checks.finish().is_ok());

        let fifty: Vec<_> = (0..50).map(|number| number.to_string()).collect();
        assert_eq!(codes(|checks| assert_eq!(checks.tags(fifty.clone()).len(), 50)), []);
        let repeated: Vec<_> = fifty.iter().chain(&fifty).cloned().collect();
        assert_eq!(codes(|checks| assert_eq!(checks.tags(repeated).len(), 50)), []);
        let more: Vec<_> = (0..51).map(|number| number.to_string()).collect();
        assert_eq!(codes(|checks| drop(checks.tags(more))), [("tags".into(), "too_long".into())]);
        let odd = texts(&["", &"x".repeat(100), &"x".repeat(101), "a\0"]);
        let found = codes(|checks| drop(checks.tags(odd)));
        assert_eq!(
            found,
            [
                ("tags[0]".into(), "required".into()),
                ("tags[2]".into(), "too_long".into()),
                ("tags[3]".into(), "invalid".into())
            ]
        );
    }
}
