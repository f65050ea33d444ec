//! A resolved memory as Markdown.

use std::fmt::Write as _;

use super::ResolvedMemory;

impl ResolvedMemory {
    /// The memory's own description, then the whole text of each document under its path and link, then the
    /// omissions.
    pub(crate) fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n", one_line(&self.name));
        // Writing to a String cannot fail.
        let when = self.use_when.as_ref().map(|when| format!("Use when: {when}"));
        for said in [&self.description, &when].into_iter().flatten() {
            let _ = write!(text, "\n{}\n", said.trim_end());
        }
        for entry in self.members.iter().flat_map(|member| &member.entries) {
            let (path, link) = (one_line(&entry.path), one_line(&entry.citation.url));
            let _ = write!(text, "\n---\nSource: {path} ({link})\n\n{}\n", entry.content.trim_end());
        }
        if !self.coverage.is_empty() {
            text.push_str("\n---\nLeft out:\n");
        }
        for note in &self.coverage {
            let _ = writeln!(text, "- {}: {}", note.code, note.message);
        }
        text
    }
}

/// Removes line breaks from a name, so that it cannot pass for a line of ours.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use cairn_proto::content::v1 as proto;

    use super::*;
    use crate::answers::Links;

    #[test]
    fn it_holds_every_document_and_says_what_it_does_not() {
        let memory = proto::Memory {
            name: "How we\nrelease".to_owned(),
            use_when: Some("releasing".to_owned()),
            ..Default::default()
        };
        let file = proto::File {
            path: "/ops/release.md".to_owned(),
            content: Some("# Steps\n\nOne.\n".to_owned()),
            ..Default::default()
        };
        let member = proto::ResolvedMember {
            entries: vec![proto::ResolvedEntry { file: Some(file), ..Default::default() }],
            ..Default::default()
        };
        let note = proto::MemoryNote {
            code: "target_deleted".to_owned(),
            message: "one file is gone".to_owned(),
            ..Default::default()
        };
        let resolved =
            proto::ResolvedMemory { memory: Some(memory), members: vec![member], coverage: vec![note] };
        let text = ResolvedMemory::read(resolved, &Links::new(Some("https://c.example"))).to_markdown();
        assert!(text.starts_with("# How we release\n\nUse when: releasing\n"), "{text}");
        assert!(text.contains("\n---\nSource: /ops/release.md (https://c.example/"), "{text}");
        assert!(text.contains("\n\n# Steps\n\nOne.\n"), "{text}");
        assert!(text.ends_with("Left out:\n- target_deleted: one file is gone\n"), "{text}");
    }
}
