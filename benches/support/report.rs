//! What every bench takes, and its tables and verdicts on standard output.

use anyhow::bail;
use clap::Args;

/// The options of every bench.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Fail when a limit is missed.
    #[arg(long)]
    pub(crate) check: bool,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Run {
    /// Whether it is to measure; `cargo test` runs it, too, and is told that it does not.
    pub(crate) fn is_bench(&self) -> bool {
        if !self.bench {
            println!("this measures under `cargo bench` only");
        }
        self.bench
    }
}

/// Rows of text under a heading, each column as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column names.
    pub(crate) fn new(columns: &[&str]) -> Self {
        Self { rows: vec![columns.iter().map(|name| (*name).to_owned()).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Prints it: the first column to the left, numbers to the right.
    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(place, (cell, width))| match place {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            println!("{}", cells.collect::<Vec<_>>().join("  "));
        }
        println!();
    }
}

/// What was measured against its limits.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    missed: usize,
}

impl Verdicts {
    /// Prints whether a figure stays within its limit.
    pub(crate) fn at_most(&mut self, what: &str, figure: f64, limit: f64, unit: &str) {
        let kept = figure <= limit;
        let word = if kept { "within" } else { "MISSED" };
        println!("{word}  {what}: {figure:.2} {unit}, limit {limit:.1} {unit}");
        self.missed += usize::from(!kept);
    }

    /// With `check`, a missed limit is a failure.
    pub(crate) fn finish(&self, check: bool) -> anyhow::Result<()> {
        if check && self.missed > 0 {
            bail!("{} of the limits were missed", self.missed);
        }
        Ok(())
    }
}
