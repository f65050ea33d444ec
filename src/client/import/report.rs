//! Formats imports for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::session::text;
use crate::client::output::visible;

/// How many lines of a kind are printed.
const MAX_LINES: usize = 40;

/// The plan of an import, and what it would skip.
pub(super) fn told(run: &Value, report: &Value) -> String {
    let count = |name: &str| number(&report["counts"], name);
    let mut said = format!(
        "{}: {} new, {} changed, {} unchanged, {} in conflict\n  {} files, {} assets, {} databases with {} records, in {} folders\n  \
         {} links, of which {} lead nowhere; {} names left out",
        text(run, "fileName"),
        number(run, "wouldCreate"),
        number(run, "wouldUpdate"),
        number(run, "wouldSkip"),
        number(run, "wouldConflict"),
        count("files"),
        count("assets"),
        count("databases"),
        count("records"),
        count("folders"),
        count("links"),
        count("linksUnresolved"),
        count("ignored"),
    );
    let root = text(&report["root"], "path");
    if !root.is_empty() {
        let _infallible = write!(said, "\n  into {}", visible(root));
    }
    let items = report["items"].as_array().map_or(&[][..], Vec::as_slice);
    for (action, sign) in [("updated", '~'), ("conflict", '!'), ("failed", 'x')] {
        let of_kind: Vec<&Value> = items.iter().filter(|item| text(item, "action") == action).collect();
        lines(&mut said, &of_kind, |item| format!("{sign} {}", text(item, "path")));
    }
    lines(&mut said, &all(report, "unresolvedLinks"), |link| {
        let line = number(link, "line");
        format!("link {}:{line} {} ({})", text(link, "path"), text(link, "target"), text(link, "reason"))
    });
    lines(&mut said, &all(report, "ignored"), |one| {
        format!("left out {}: {}", text(one, "path"), text(one, "reason"))
    });
    warnings(&mut said, report);
    said
}

/// The result of a run.
pub(super) fn ended(run: &Value) -> String {
    let counter = |name: &str| number(&run["counters"], name);
    let mut said = format!(
        "{} (run {}): {} created, {} updated, {} unchanged, {} in conflict",
        text(run, "status").replace('_', " "),
        text(run, "id"),
        counter("created"),
        counter("updated"),
        counter("skipped"),
        counter("conflicts"),
    );
    let error = text(run, "error");
    if !error.is_empty() {
        let _infallible = write!(said, "\n  {}", visible(error));
    }
    warnings(&mut said, run);
    said
}

/// The confirmation before a rollback.
pub(super) fn rollback_question(run: &Value) -> String {
    let counter = |name: &str| number(&run["counters"], name);
    visible(&format!(
        "The import of {} made {} objects and changed {}: what nobody has touched since is taken back.",
        text(run, "fileName"),
        counter("created"),
        counter("updated"),
    ))
}

fn warnings(said: &mut String, of: &Value) {
    lines(said, &all(of, "warnings"), |warning| {
        format!("warning {}: {}", text(warning, "path"), text(warning, "message"))
    });
}

fn lines(said: &mut String, found: &[&Value], line: impl Fn(&Value) -> String) {
    for one in found.iter().take(MAX_LINES) {
        let _infallible = write!(said, "\n  {}", visible(&line(one)));
    }
    if found.len() > MAX_LINES {
        let _infallible = write!(said, "\n    and {} more", found.len() - MAX_LINES);
    }
}

fn all<'a>(of: &'a Value, field: &str) -> Vec<&'a Value> {
    of.get(field).and_then(Value::as_array).into_iter().flatten().collect()
}

fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_preview_tells_what_becomes_what_and_what_does_not() {
        let run = json!({"fileName": "vault.zip", "wouldCreate": 3, "wouldUpdate": 1});
        let report = json!({
            "root": {"folderId": "f", "path": "/vault"},
            "counts": {"files": 3, "assets": 1, "links": 9, "linksUnresolved": 2},
            "items": [{"path": "a.md", "kind": "file", "action": "updated"}, {"path": "n.md", "action": "created"}],
            "unresolvedLinks": [{"path": "a.md", "line": 4, "target": "No\u{1b}where", "reason": "not_found"}],
            "ignored": [{"path": ".obsidian", "reason": "hidden"}],
            "warnings": [{"path": "b.md", "code": "c", "message": "is odd"}],
        });
        let said = told(&run, &report);
        for part in [
            "vault.zip: 3 new, 1 changed, 0 unchanged, 0 in conflict\n  3 files, 1 assets,",
            "9 links, of which 2 lead nowhere",
            "\n  into /vault\n  ~ a.md\n  link a.md:4 No\u{fffd}where (not_found)\n  left out .obsidian: hidden\n  warning b.md: is odd",
        ] {
            assert!(said.contains(part), "{part} is not in {said}");
        }
        let done = json!({"id": "r", "status": "completed_with_warnings", "counters": {"created": 3}});
        assert_eq!(
            ended(&done),
            "completed with warnings (run r): 3 created, 0 updated, 0 unchanged, 0 in conflict"
        );
    }
}
