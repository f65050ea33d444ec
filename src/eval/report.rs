//! Renders figures as text.

use std::fmt::Write as _;

use super::metrics;
use super::run::{Figures, Measured, Run};

const COLUMNS: [&str; 7] = ["strategy", "nDCG@10", "recall@10", "recall@50", "MRR", "p50 ms", "p95 ms"];
/// How many changed questions are listed in each direction.
const MAX_NAMED: usize = 5;
/// Longer questions are truncated.
const MAX_NAME_CHARS: usize = 80;

/// The table of a run, compared with an earlier run if there is one.
pub(super) fn render(run: &Run, before: Option<&Run>) -> String {
    let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
    for (name, measured) in &run.strategies {
        rows.push(row(name, measured));
        if let Some(before) = before.and_then(|before| before.strategies.get(name)) {
            rows.push(change_row(measured, before));
        }
    }
    let mut text = table(&rows);
    if let Some(embedder) = &run.embedder {
        let _written = writeln!(text, "meaning by {embedder}");
    }
    for (name, measured) in &run.strategies {
        if let Some(before) = before.and_then(|before| before.strategies.get(name)) {
            text.push_str(&changes(name, measured, before));
        }
    }
    text
}

fn row(name: &str, measured: &Measured) -> Vec<String> {
    let Figures { ndcg, recall, deep_recall, mrr } = measured.figures;
    let mut cells = vec![name.to_owned()];
    cells.extend([ndcg, recall, deep_recall, mrr].map(|figure| format!("{figure:.3}")));
    cells.extend([measured.p50_ms, measured.p95_ms].map(|time| format!("{time:.1}")));
    cells
}

fn change_row(now: &Measured, before: &Measured) -> Vec<String> {
    let (figures, was) = (now.figures, before.figures);
    let differences = [
        figures.ndcg - was.ndcg,
        figures.recall - was.recall,
        figures.deep_recall - was.deep_recall,
        figures.mrr - was.mrr,
    ];
    let mut cells = vec!["  change".to_owned()];
    cells.extend(differences.map(|difference| format!("{difference:+.3}")));
    cells.extend([now.p50_ms - before.p50_ms, now.p95_ms - before.p95_ms].map(|time| format!("{time:+.1}")));
    cells
}

/// The first column is left-aligned, numbers are right-aligned.
fn table(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:<width$}", width = width(0)),
            _ => format!("{cell:>width$}", width = width(column)),
        });
        text.push_str(&cells.collect::<Vec<_>>().join("  "));
        text.push('\n');
    }
    text
}

/// How many questions improved and regressed, and which changed most.
fn changes(name: &str, now: &Measured, before: &Measured) -> String {
    let mut changes = now.changes(before);
    let (better, worse, same) = metrics::outcomes(changes.iter().map(|(_, was, is)| is - was));
    let mut text = format!("\n{name}: better {better}, worse {worse}, the same {same}\n");
    changes.sort_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)));
    let most_worse = changes.iter().take(MAX_NAMED).filter(|(_, was, is)| is < was);
    let most_better = changes.iter().rev().take(MAX_NAMED).filter(|(_, was, is)| is > was);
    for (question, was, is) in most_worse.chain(most_better) {
        // Writing to a string cannot fail.
        let _written = writeln!(text, "  {was:.3} -> {is:.3}  {}", shortened(question));
    }
    text
}

fn shortened(question: &str) -> String {
    let mut text: String = question.chars().take(MAX_NAME_CHARS).collect();
    if text.len() < question.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn run(questions: &[(&str, f64)]) -> Run {
        let figures = |ndcg| Figures { ndcg, ..Figures::default() };
        let questions = questions.iter().map(|(id, ndcg)| ((*id).to_owned(), figures(*ndcg))).collect();
        let measured = Measured::new(questions, &[Duration::from_micros(1_500)]);
        let strategies = BTreeMap::from([("hybrid".to_owned(), measured)]);
        Run { source: "s".to_owned(), version: "0".to_owned(), embedder: None, strategies }
    }

    #[test]
    fn a_run_alone_is_a_table() {
        let text = render(&run(&[("a", 0.5), ("b", 1.0)]), None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "strategy  nDCG@10  recall@10  recall@50    MRR  p50 ms  p95 ms");
        assert_eq!(lines[1], "hybrid      0.750      0.000      0.000  0.000     1.5     1.5");
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn what_has_changed_is_said() {
        let text = render(
            &run(&[("a", 0.5), ("b", 1.0), ("c", 0.2)]),
            Some(&run(&[("a", 0.75), ("b", 0.25), ("c", 0.2)])),
        );
        assert!(text.contains("  change   +0.167"), "{text}");
        assert!(text.contains("hybrid: better 1, worse 1, the same 1"), "{text}");
        assert!(text.contains("0.750 -> 0.500  a\n  0.250 -> 1.000  b\n"), "{text}");
    }
}
