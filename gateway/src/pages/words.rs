//! Phrases of several pages, and the formatting of messages.

use cairn_chassis::status::{Problem, Reason};
use cairn_proto::domain::{Permission, Role};

/// What to do when a plan's limit is reached.
pub(crate) const ROOM: &str =
    "What is in trash counts too: remove there what nobody needs, or ask an owner for another plan.";

/// A message as a sentence.
pub(crate) fn sentence(message: &str) -> String {
    let ended = message.trim_end_matches('.');
    format!("{}.", capital(ended))
}

pub(crate) fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// A problem for people: all violations, else the message.
pub(crate) fn describe(problem: &Problem) -> String {
    if problem.reason == Reason::ValidationError && !problem.violations.is_empty() {
        let each: Vec<String> = problem
            .violations
            .iter()
            .map(|broken| format!("{} {}.", capital(&broken.path), broken.message))
            .collect();
        return each.join(" ");
    }
    sentence(&problem.message)
}

/// Singular or plural with the number.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {many}", grouped(number)) }
}

/// A number with non-breaking thin spaces as thousands separators.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A size for people.
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    for (unit, size) in UNITS {
        if number >= size {
            let tenths = number / (size / 10);
            let (whole, rest) = (tenths / 10, tenths % 10);
            return if whole >= 10 || rest == 0 {
                format!("{} {unit}", grouped(whole))
            } else {
                format!("{whole}.{rest} {unit}")
            };
        }
    }
    count(number, "byte", "bytes")
}

/// What a role may do, in words.
pub(crate) const fn role(role: Role) -> &'static str {
    match role {
        Role::Owner => "Owner: everything, the plan and the workspace itself",
        Role::Admin => "Admin: everything but the plan and deleting the workspace",
        Role::Editor => "Editor: read, write, delete",
        Role::Contributor => "Contributor: read, write",
        Role::Viewer => "Viewer: read",
    }
}

/// What a permission allows, in words.
pub(crate) const fn permission(permission: Permission) -> &'static str {
    match permission {
        Permission::Read => "Read: search and read files, memories, databases and sources",
        Permission::Write => "Write: create and change files, folders, memories and records",
        Permission::Delete => "Delete: move things to trash, and remove members of memories",
    }
}

#[cfg(test)]
mod tests {
    use cairn_chassis::status::Violation;

    use super::*;

    #[test]
    fn messages_become_sentences() {
        assert_eq!(sentence("there is no such file"), "There is no such file.");
        assert_eq!(sentence("It ended."), "It ended.");
        let broken = Violation::new("name", "required", "is required");
        assert_eq!(describe(&Problem::validation(vec![broken])), "Name is required.");
    }

    #[test]
    fn numbers_are_for_people() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1000)),
            ("0".into(), "999".into(), "1\u{202f}000".into())
        );
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(
            (count(1, "file", "files"), count(2, "file", "files")),
            ("1 file".into(), "2 files".into())
        );
        for (number, text) in [(0, "0 bytes"), (1, "1 byte"), (999, "999 bytes"), (1_000, "1 kB")] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(
            (bytes(1_550), bytes(25_900_000), bytes(2_000_000_000)),
            ("1.5 kB".into(), "25 MB".into(), "2 GB".into())
        );
    }
}
