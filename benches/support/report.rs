//! The common options of all benches, and their tables and verdicts on standard output.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};

/// The options of every bench.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Fail when a limit is missed.
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the figures that have a limit as JSON there, for benches/compare.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Given by `cargo bench`.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Run {
    /// Whether to measure: `cargo test` runs benches, too, which skip the measurement then.
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

/// The measured figures and their limits.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    missed: usize,
    figures: Vec<Value>,
}

impl Verdicts {
    /// Prints whether a figure is within its limit.
    pub(crate) fn at_most(&mut self, what: &str, figure: f64, limit: f64, unit: &str) {
        let kept = figure <= limit;
        let word = if kept { "within" } else { "MISSED" };
        println!("{word}  {what}: {figure:.2} {unit}, limit {limit:.1} {unit}");
        self.missed += usize::from(!kept);
        self.figures.push(json!({"what": what, "figure": figure, "limit": limit, "unit": unit}));
    }

    /// Writes the figures to the file of `--json`; with `--check`, a missed limit is a failure.
    pub(crate) fn finish(&self, run: &Run) -> anyhow::Result<()> {
        if let Some(file) = &run.json {
            self.write(file)?;
        }
        if run.check && self.missed > 0 {
            bail!("{} of the limits were missed", self.missed);
        }
        Ok(())
    }

    fn write(&self, file: &Path) -> anyhow::Result<()> {
        let program = std::env::current_exe()?;
        // Cargo appends a hash to the name.
        let name = program.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let bench = name.rsplit_once('-').map_or(name, |(bench, _)| bench);
        let text = serde_json::to_string_pretty(&json!({"bench": bench, "figures": self.figures}))?;
        fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
    }
}
