//! Validation of names of workspaces, tokens and users.

use cairn_chassis::status::Violation;
use cairn_chassis::wording::{self, Unit};
use cairn_proto::domain::limits::LABEL_CHARS;

/// The trimmed name; adds violations to the list.
pub(crate) fn check(path: &str, given: &str, violations: &mut Vec<Violation>) -> String {
    let name = given.trim();
    if name.is_empty() {
        violations.push(Violation::new(path, "required", wording::from_to(1, LABEL_CHARS, Unit::Characters)));
    }
    if name.chars().count() > LABEL_CHARS {
        violations.push(Violation::new(path, "too_long", wording::at_most(LABEL_CHARS, Unit::Characters)));
    }
    if name.chars().any(char::is_control) {
        violations.push(Violation::new(path, "invalid", wording::NO_CONTROL_CHARACTERS));
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(name: &str) -> Vec<String> {
        let mut violations = Vec::new();
        check("name", name, &mut violations);
        violations.into_iter().map(|violation| violation.code).collect()
    }

    #[test]
    fn a_name_has_one_to_a_hundred_visible_characters() {
        assert_eq!(codes(" agent "), Vec::<String>::new());
        assert_eq!(codes(&"ä".repeat(100)), Vec::<String>::new());
        assert_eq!(codes(&"ä".repeat(101)), ["too_long"]);
        assert_eq!(codes(" \n"), ["required"]);
        assert_eq!(codes("a\0b"), ["invalid"]);
    }
}
