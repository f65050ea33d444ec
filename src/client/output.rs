//! What a client command prints: what was asked for on stdout, everything else on stderr.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::bail;
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

/// Asks whoever sits at the terminal.
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
