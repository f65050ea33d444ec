//! The report on a pull.

use std::fmt::Write as _;

use serde::Serialize;

use crate::client::output::visible;

/// How many lines of a kind are printed.
const MAX_LINES: usize = 40;

/// An item whose name was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Renamed {
    /// Its path in the workspace.
    pub(super) from: String,
    /// Its path below the directory.
    pub(super) to: String,
}

/// An item that was skipped, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Skipped {
    pub(super) path: String,
    pub(super) why: &'static str,
}

/// All paths are relative to the directory.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) written: u64,
    pub(super) unchanged: u64,
    pub(super) removed: u64,
    /// Edited locally, and unchanged in the workspace.
    pub(super) edited: Vec<String>,
    /// Not written.
    pub(super) conflicts: Vec<Skipped>,
    pub(super) renamed: Vec<Renamed>,
    /// Deleted in the workspace, but still here.
    pub(super) gone: Vec<String>,
}

impl Report {
    /// Whether the directory has all that the workspace has.
    pub(super) fn is_whole(&self) -> bool {
        self.conflicts.is_empty()
    }

    /// Formatted for people.
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "{} written, {} unchanged, {} removed, {} edited here, {} in conflict",
            self.written,
            self.unchanged,
            self.removed,
            self.edited.len(),
            self.conflicts.len(),
        );
        lines(&mut text, self.conflicts.iter().map(|left| format!("! {}: {}", left.path, left.why)));
        lines(&mut text, self.renamed.iter().map(|renamed| format!("> {} is {}", renamed.from, renamed.to)));
        lines(&mut text, self.gone.iter().map(|path| format!("? {path}: no longer in the workspace")));
        text
    }
}

fn lines(text: &mut String, all: impl ExactSizeIterator<Item = String>) {
    let found = all.len();
    for line in all.take(MAX_LINES) {
        let _infallible = write!(text, "\n  {}", visible(&line));
    }
    if found > MAX_LINES {
        let _infallible = write!(text, "\n    and {} more", found - MAX_LINES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_tells_what_was_left_and_renamed() {
        let mut report = Report { written: 2, ..Report::default() };
        assert!(report.is_whole());
        assert_eq!(report.text(), "2 written, 0 unchanged, 0 removed, 0 edited here, 0 in conflict");
        report.conflicts.push(Skipped { path: "files/a\u{1b}.md".into(), why: "it was edited here" });
        report.renamed.push(Renamed { from: "/..".into(), to: "files/_..".into() });
        report.gone = (0..42).map(|number| format!("files/{number}")).collect();
        let text = report.text();
        assert!(
            text.contains("\n  ! files/a\u{fffd}.md: it was edited here\n  > /.. is files/_..\n  ? files/0"),
            "{text}"
        );
        assert!(text.ends_with("and 2 more") && !report.is_whole());
    }
}
