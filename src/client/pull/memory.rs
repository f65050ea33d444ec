//! The Markdown page of a memory: its purpose and its members.

use std::fmt::Write as _;

use super::remote::Memory;

/// A member on the page.
pub(super) struct MemberLink {
    pub(super) kind: &'static str,
    pub(super) name: String,
    /// Relative to the memory's folder; `None` if it is not in the directory.
    pub(super) target: Option<String>,
}

/// As Markdown.
pub(super) fn page(memory: &Memory, members: &[MemberLink]) -> String {
    let mut text = format!("# {}\n", line(&memory.name));
    // Writing to a String cannot fail.
    if let Some(description) = memory.description.as_deref().filter(|text| !text.is_empty()) {
        let _ = write!(text, "\n{}\n", description.trim_end());
    }
    if let Some(use_when) = memory.use_when.as_deref().filter(|text| !text.is_empty()) {
        let _ = write!(text, "\nUse when: {}\n", use_when.trim_end());
    }
    if !members.is_empty() {
        text.push_str("\n## Members\n\n");
    }
    for MemberLink { kind, name, target } in members {
        let name = line(name).replace(['[', ']'], "_");
        let _ = match target {
            Some(target) => writeln!(text, "- [{name}](<{}>) ({kind})", target.replace(['<', '>'], "_")),
            None => writeln!(text, "- {name} ({kind}, not in this directory)"),
        };
    }
    text
}

fn line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_says_what_a_memory_is_for_and_where_its_members_are() {
        let memory = json!({"id": "m", "name": "Release\n", "slug": "release", "description": "How we do it",
            "useWhen": "Before a release", "members": []});
        let memory = serde_json::from_value(memory).unwrap();
        let members = [
            MemberLink { kind: "file", name: "a [b].md".into(), target: Some("a b.md".into()) },
            MemberLink { kind: "source document", name: "id".into(), target: None },
        ];
        let expected = "# Release \n\nHow we do it\n\nUse when: Before a release\n\n## Members\n\n\
            - [a _b_.md](<a b.md>) (file)\n- id (source document, not in this directory)\n";
        assert_eq!(page(&memory, &members), expected);
    }
}
