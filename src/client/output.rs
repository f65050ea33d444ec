//! What a client command prints.

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
