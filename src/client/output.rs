//! The output of client commands: the result on stdout, everything else on stderr.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;
use serde_json::Value;

/// Prints a text with exactly one line break at its end.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}

/// Prints JSON, indented.
pub(super) fn print_json(value: &Value) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints JSON on one line, for a stream of values.
pub(super) fn print_json_line(value: &Value) -> anyhow::Result<()> {
    print(&value.to_string())
}

/// Prints a message to the terminal.
pub(super) fn note(text: &str) {
    let mut out = std::io::stderr().lock();
    // The result went to stdout, so a closed stderr loses nothing.
    let _ = writeln!(out, "{}", text.trim_end());
}

/// A line without control characters, which a name may contain.
pub(super) fn visible(line: &str) -> String {
    line.replace(char::is_control, "\u{fffd}")
}

/// Asks for confirmation on the terminal.
pub(super) fn confirmed() -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        bail!("nobody is there to ask: add --yes to have it done, or --dry-run to see it only");
    }
    let mut out = std::io::stderr().lock();
    write!(out, "Do this? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
