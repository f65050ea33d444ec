use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use uuid::Uuid;

use super::{Composed, DocumentVectors, EmbeddedVectors, UnitVector, VectorQuery, VectorSource};
use crate::tuning::SIGNS_FROM_ROWS;
use crate::{ChunkId, Error};

/// Notes which workspaces are loaded.
#[derive(Debug, Default)]
struct Noting(Mutex<Vec<Uuid>>);

impl VectorSource for Noting {
    fn load(
        &self,
        workspace: Uuid,
        _each: &mut dyn FnMut(ChunkId, Option<Uuid>, Composed),
    ) -> Result<(), Error> {
        self.0.lock().unwrap().push(workspace);
        Ok(())
    }
}

#[test]
fn each_workspace_that_is_not_used_is_given_back() {
    let source = Arc::new(Noting::default());
    let index = EmbeddedVectors::from_source(NonZeroUsize::new(2).unwrap(), Arc::<Noting>::clone(&source));
    let search = |workspace| assert!(index.scores(workspace, &[1.0, 0.0], &[]).unwrap().is_empty());
    let [searched, written, idle] = [1, 2, 3].map(Uuid::from_u128);
    for workspace in [searched, written, idle] {
        search(workspace);
    }
    for _ in 0..=3 {
        search(searched);
        index.apply(&[(written, DocumentVectors { document: idle, container: None, rows: Vec::new() })]);
        index.release_idle(3);
    }
    for workspace in [searched, written, idle] {
        search(workspace);
    }
    assert_eq!(*source.0.lock().unwrap(), [searched, written, idle, idle]);
}

/// A repeatable source of numbers (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// About normal: the sum of uniform ones.
    fn normal(&mut self) -> f32 {
        let uniform = |bits: u64| (bits >> 40) as f32 / 16_777_216.0 - 0.5;
        (0..4).map(|_| uniform(self.next())).sum::<f32>() * 1.7
    }
}

/// Vectors as embedders make them of passages: topics within topics, a common direction, dimensions of unequal strength.
struct Passages {
    numbers: Numbers,
    strengths: Vec<f32>,
    common: Vec<f32>,
    topics: Vec<Vec<f32>>,
}

impl Passages {
    const DIMENSIONS: usize = 96;

    fn new() -> Self {
        let mut numbers = Numbers(11);
        let strengths: Vec<f32> =
            (0..Self::DIMENSIONS).map(|place| (1.0 + place as f32).powf(-0.25)).collect();
        let mut draw =
            |scale: f32| -> Vec<f32> { strengths.iter().map(|s| s * scale * numbers.normal()).collect() };
        let common = draw(0.7);
        let fields: Vec<Vec<f32>> = (0..12).map(|_| draw(0.8)).collect();
        let mut topics = Vec::new();
        for field in &fields {
            for _ in 0..25 {
                topics.push(field.iter().zip(draw(0.7)).map(|(field, own)| field + own).collect());
            }
        }
        Self { numbers, strengths, common, topics }
    }

    fn passage(&mut self, topic: usize) -> Vec<f32> {
        let topic = &self.topics[topic % self.topics.len()];
        let parts = self.common.iter().zip(topic).zip(&self.strengths);
        parts.map(|((common, topic), strength)| common + topic + strength * self.numbers.normal()).collect()
    }
}

#[test]
fn many_rows_are_found_as_an_exact_search_finds_them() {
    const ROWS: usize = SIGNS_FROM_ROWS + 2_000;
    let workspace = Uuid::from_u128(1);
    let mut passages = Passages::new();
    let index = EmbeddedVectors::in_memory(NonZeroUsize::new(Passages::DIMENSIONS).unwrap());
    let mut exact = Vec::new();
    for row in 0..ROWS {
        let vector = UnitVector::new(&passages.passage(row)).unwrap();
        exact.push(vector.to_f32());
        let document = Uuid::from_u128(u128::try_from(row).unwrap());
        index.apply(&[(
            workspace,
            DocumentVectors { document, container: None, rows: vec![(0, vector.into())] },
        )]);
    }
    // Some go and some are replaced, so that rows have changed their places.
    for row in (0..ROWS).step_by(7) {
        let document = Uuid::from_u128(u128::try_from(row).unwrap());
        if row % 2 == 0 {
            index.apply(&[(workspace, DocumentVectors { document, container: None, rows: Vec::new() })]);
            exact[row].fill(0.0);
            continue;
        }
        let vector = UnitVector::new(&passages.passage(row + 1)).unwrap();
        exact[row] = vector.to_f32();
        index.apply(&[(
            workspace,
            DocumentVectors { document, container: None, rows: vec![(0, vector.into())] },
        )]);
    }
    for (limit, least) in [(10, 0.98), (100, 0.95)] {
        let recall = recall(&index, &mut passages, &exact, limit);
        assert!(recall >= least, "recall@{limit} {recall}");
    }
}

fn recall(index: &EmbeddedVectors, passages: &mut Passages, exact: &[Vec<f32>], limit: usize) -> f32 {
    const QUERIES: usize = 20;
    let mut shared = 0;
    for topic in 0..QUERIES {
        let query = passages.passage(topic * 13);
        let workspace = Uuid::from_u128(1);
        let hits = index
            .search(&VectorQuery { workspace, vector: &query, containers: None, documents: None, limit })
            .unwrap();
        let product = |row: &Vec<f32>| row.iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
        let mut best: Vec<(f32, u128)> = exact.iter().map(product).zip(0..).collect();
        best.sort_by(|a, b| b.0.total_cmp(&a.0));
        best.truncate(limit);
        let best: HashSet<Uuid> = best.into_iter().map(|(_, row)| Uuid::from_u128(row)).collect();
        shared += hits.iter().filter(|hit| best.contains(&hit.chunk.document)).count();
    }
    shared as f32 / (QUERIES * limit) as f32
}
