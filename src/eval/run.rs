//! A run that can be saved: what each strategy found for each question.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::api::MAX_RESULTS;
use super::metrics;

/// The cutoff of nDCG and of the first recall: the number of results that an agent gets by default.
const DEPTH: usize = 10;

/// The measurements. Serialized by `--save` and `--json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    /// The collection or the questions.
    pub(super) source: String,
    /// The version of Cairn.
    pub(super) version: String,
    /// The embedder; unknown if the service does not report it, and in older saved runs.
    #[serde(default)]
    pub(super) embedder: Option<String>,
    pub(super) strategies: BTreeMap<String, Measured>,
}

/// The measurements of one strategy.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measured {
    pub(super) figures: Figures,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    /// By the question's id; for golden questions that is the question.
    pub(super) questions: BTreeMap<String, Figures>,
}

/// The figures of one question, or their means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Figures {
    #[serde(rename = "ndcg@10")]
    pub(super) ndcg: f64,
    #[serde(rename = "recall@10")]
    pub(super) recall: f64,
    /// At the maximum depth of the API.
    #[serde(rename = "recall@50")]
    pub(super) deep_recall: f64,
    pub(super) mrr: f64,
}

impl Figures {
    pub(super) fn of(gains: &[f64], judged: &[f64]) -> Self {
        Self {
            ndcg: metrics::ndcg(gains, judged, DEPTH),
            recall: metrics::recall(gains, judged, DEPTH),
            deep_recall: metrics::recall(gains, judged, MAX_RESULTS),
            mrr: metrics::reciprocal_rank(gains),
        }
    }

    fn mean<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let mean = |figure: fn(&Self) -> f64| metrics::mean(all.clone().map(figure));
        Self {
            ndcg: mean(|figures| figures.ndcg),
            recall: mean(|figures| figures.recall),
            deep_recall: mean(|figures| figures.deep_recall),
            mrr: mean(|figures| figures.mrr),
        }
    }
}

impl Measured {
    pub(super) fn new(questions: BTreeMap<String, Figures>, times: &[Duration]) -> Self {
        let milliseconds = |percent| metrics::percentile(times, percent).as_secs_f64() * 1_000.0;
        Self {
            figures: Figures::mean(questions.values()),
            p50_ms: milliseconds(50),
            p95_ms: milliseconds(95),
            questions,
        }
    }

    /// The change of nDCG since `before`, for each question that both runs contain.
    pub(super) fn changes<'a>(&'a self, before: &'a Self) -> Vec<(&'a str, f64, f64)> {
        let asked_twice = self.questions.iter().filter_map(|(id, now)| {
            before.questions.get(id).map(|before| (id.as_str(), before.ndcg, now.ndcg))
        });
        asked_twice.collect()
    }
}

impl Run {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path)?;
        serde_json::from_str(&text)
            .with_context(|| format!("{} is not a run that --save wrote", path.display()))
    }

    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(fs::write(path, text)?)
    }

    /// Fails if the other run has other questions: its figures cannot be compared with these.
    pub(super) fn ensure_comparable(&self, before: &Self) -> anyhow::Result<()> {
        let shares = |name: &String| {
            let pair = self.strategies.get(name).zip(before.strategies.get(name));
            pair.is_some_and(|(now, before)| !now.changes(before).is_empty())
        };
        ensure!(
            self.strategies.keys().any(shares),
            "the saved run (of {}) shares no question and strategy with this one (of {})",
            before.source,
            self.source
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ndcgs: &[(&str, f64)]) -> Measured {
        let figures = |ndcg| Figures { ndcg, ..Figures::default() };
        let questions = ndcgs.iter().map(|(id, ndcg)| ((*id).to_owned(), figures(*ndcg))).collect();
        Measured::new(questions, &[Duration::from_millis(2)])
    }

    fn run(ndcgs: &[(&str, f64)]) -> Run {
        let strategies = BTreeMap::from([("hybrid".to_owned(), measured(ndcgs))]);
        Run { source: "s".to_owned(), version: "0".to_owned(), embedder: None, strategies }
    }

    #[test]
    fn figures_are_means_over_the_questions() {
        let measured = measured(&[("a", 0.5), ("b", 1.0)]);
        assert_eq!(measured.figures.ndcg, 0.75);
        assert_eq!((measured.p50_ms, measured.p95_ms), (2.0, 2.0));
    }

    #[test]
    fn a_kept_run_reads_back_the_same() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let kept = run(&[("a", 0.5)]);
        kept.write(file.path()).unwrap();
        let read = Run::read(file.path()).unwrap();
        assert_eq!(read.strategies["hybrid"].questions, kept.strategies["hybrid"].questions);
        fs::write(file.path(), "{}").unwrap();
        assert!(format!("{:#}", Run::read(file.path()).unwrap_err()).contains("not a run"));
    }

    #[test]
    fn only_runs_of_the_same_questions_are_compared() {
        let now = run(&[("a", 0.5), ("b", 1.0)]);
        assert!(now.ensure_comparable(&run(&[("b", 0.0)])).is_ok());
        assert!(now.ensure_comparable(&run(&[("x", 0.0)])).is_err());
        let before = measured(&[("b", 0.25), ("x", 1.0)]);
        assert_eq!(now.strategies["hybrid"].changes(&before), [("b", 0.25, 1.0)]);
    }
}
