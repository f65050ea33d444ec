//! Formats sync runs for people.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

/// How many lines of a kind are printed.
const MAX_LINES: usize = 40;

/// The plan of a previewed run.
pub(super) fn told(run: &Value) -> String {
    let mut text = format!(
        "{}: {} new, {} changed, {} unchanged, {} in conflict, {} no longer there{}",
        word(run, "name"),
        number(run, "wouldCreate"),
        number(run, "wouldUpdate"),
        number(run, "wouldSkip"),
        number(run, "wouldConflict"),
        prunable(run).len(),
        if is_pruning(run) { "" } else { " (kept without --prune)" },
    );
    let changes = list(run, "changes");
    for (action, sign) in [("created", '+'), ("updated", '~'), ("conflict", '!')] {
        let of_kind = changes.iter().filter(|change| word(change, "action") == action);
        lines(&mut text, sign, of_kind.map(|change| word(change, "path")).collect());
    }
    if is_pruning(run) {
        lines(&mut text, '-', prunable(run));
    }
    warnings(&mut text, run);
    text
}

/// The result of a run.
pub(super) fn ended(run: &Value) -> String {
    let counter = |name: &str| run.get("counters").map_or(0, |counters| number(counters, name));
    let mut text = format!(
        "{}: {} created, {} updated, {} unchanged, {} in conflict, {} pruned",
        word(run, "status").replace('_', " "),
        counter("created"),
        counter("updated"),
        counter("skipped"),
        counter("conflicts"),
        counter("pruned"),
    );
    warnings(&mut text, run);
    text
}

/// Whether applying it would write anything.
pub(super) fn changes_anything(run: &Value) -> bool {
    number(run, "wouldCreate") + number(run, "wouldUpdate") > 0
        || (is_pruning(run) && !prunable(run).is_empty())
}

/// The paths of documents whose workspace version differs from the local one.
pub(super) fn left_alone(run: &Value) -> HashSet<&str> {
    let is_left = |result: &&Value| matches!(word(result, "action").as_str(), "conflict" | "failed");
    let left = list(run, "results").iter().filter(is_left);
    left.filter_map(|result| result.get("path").and_then(Value::as_str)).collect()
}

fn warnings(text: &mut String, run: &Value) {
    let found = list(run, "warnings");
    for warning in found.iter().take(MAX_LINES) {
        line(text, &format!("  warning {}: {}", word(warning, "path"), word(warning, "message")));
    }
    more(text, found.len());
}

fn lines(text: &mut String, sign: char, paths: Vec<String>) {
    let found = paths.len();
    for path in paths.iter().take(MAX_LINES) {
        line(text, &format!("  {sign} {path}"));
    }
    more(text, found);
}

fn more(text: &mut String, found: usize) {
    if found > MAX_LINES {
        line(text, &format!("    and {} more", found - MAX_LINES));
    }
}

fn line(text: &mut String, more: &str) {
    // A name may contain control characters, which a terminal would interpret.
    let plain = more.replace(char::is_control, "\u{fffd}");
    let _infallible = write!(text, "\n{plain}");
}

fn is_pruning(run: &Value) -> bool {
    run.get("prune").and_then(Value::as_bool).unwrap_or_default()
}

fn prunable(run: &Value) -> Vec<String> {
    list(run, "wouldPrune").iter().map(|item| word(item, "path")).collect()
}

fn list<'a>(run: &'a Value, field: &str) -> &'a [Value] {
    run.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

fn word(value: &Value, field: &str) -> String {
    value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_reads_as_one_says_it() {
        let many: Vec<Value> =
            (0..42).map(|number| json!({"path": format!("n{number}"), "action": "created"})).collect();
        let mut run = json!({
            "name": "docs", "prune": false, "wouldCreate": 42, "wouldUpdate": 0, "wouldSkip": 3, "wouldConflict": 0,
            "wouldPrune": [{"kind": "file", "id": "1", "path": "old\u{1b}[31m.md"}],
            "changes": many, "warnings": [{"path": "a", "code": "c", "message": "is odd"}],
        });
        let text = told(&run);
        let head = "docs: 42 new, 0 changed, 3 unchanged, 0 in conflict, 1 no longer there (kept without --prune)\n  + n0\n";
        assert!(text.starts_with(head), "{text}");
        assert!(text.ends_with("\n    and 2 more\n  warning a: is odd"), "{text}");
        assert!(changes_anything(&run));
        run["prune"] = json!(true);
        run["wouldCreate"] = json!(0);
        assert!(told(&run).contains("  - old\u{fffd}[31m.md") && changes_anything(&run));
        let done =
            json!({"results": [{"path": "a", "action": "conflict"}, {"path": "b", "action": "skipped"}]});
        assert_eq!(left_alone(&done), HashSet::from(["a"]));
        run["wouldPrune"] = json!([]);
        assert!(!changes_anything(&run));
        let done = json!({"status": "completed_with_warnings", "counters": {"created": 1, "conflicts": 2}});
        assert_eq!(
            ended(&done),
            "completed with warnings: 1 created, 0 updated, 0 unchanged, 2 in conflict, 0 pruned"
        );
    }
}
