//! What a client command prints: what was asked for on stdout, everything else on stderr.

use std::io::Write as _;

use serde_json::Value;

/// Prints a text with one line break at its end.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// Prints JSON for people and programs.
pub(super) fn print_json(value: &Value) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints JSON on a line of its own, for what goes on.
pub(super) fn print_json_line(value: &Value) -> anyhow::Result<()> {
    print(&value.to_string())
}

/// Tells whoever sits at the terminal.
pub(super) fn note(text: &str) {
    let mut out = std::io::stderr().lock();
    // Nobody listens: nothing is lost that was asked for.
    let _ = writeln!(out, "{}", text.trim_end());
}

/// A line without what a terminal would take for a command: a name may hold anything.
pub(super) fn visible(line: &str) -> String {
    line.replace(char::is_control, "\u{fffd}")
}
