use std::collections::HashSet;
use std::num::NonZeroUsize;

use uuid::Uuid;

use super::{DocumentVectors, EmbeddedVectors, UnitVector, VectorIndex, VectorQuery, contract};

/// A repeatable source of numbers (Knuth's MMIX multiplier and increment).
struct Numbers(u64);

impl Numbers {
    /// Uniform in -1 to 1.
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f32 / 8_388_608.0 - 1.0
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.next()).collect()
    }

    /// `center` with noise of the given strength.
    fn near(&mut self, center: &[f32], noise: f32) -> Vec<f32> {
        center.iter().map(|number| number + noise * self.next()).collect()
    }
}

#[test]
fn keeps_the_contract() {
    for (name, check) in contract::CHECKS {
        println!("{name}");
        check(&EmbeddedVectors::in_memory(NonZeroUsize::new(2).unwrap()));
    }
}

#[test]
fn finds_what_an_exact_search_finds() {
    const DIMENSIONS: usize = 64;
    const LIMIT: usize = 10;
    let workspace = Uuid::from_u128(1);
    let mut numbers = Numbers(42);
    let centers: Vec<Vec<f32>> = (0..30).map(|_| numbers.vector(DIMENSIONS)).collect();
    let index = EmbeddedVectors::in_memory(NonZeroUsize::new(DIMENSIONS).unwrap());
    let mut vectors = Vec::new();
    for number in 0..3_000 {
        let vector = numbers.near(&centers[number % centers.len()], 0.5);
        let document = Uuid::from_u128(u128::try_from(number).unwrap());
        let rows = vec![(0, UnitVector::new(&vector).unwrap())];
        index.upsert(workspace, DocumentVectors { document, container: None, rows }).unwrap();
        vectors.push((document, vector));
    }

    let mut shared = 0;
    for center in &centers {
        let query = numbers.near(center, 0.5);
        let hits =
            index.search(&VectorQuery { workspace, vector: &query, containers: None, limit: LIMIT }).unwrap();
        let exact = exact_best(&vectors, &query, LIMIT);
        shared += hits.iter().filter(|hit| exact.contains(&hit.chunk.document)).count();
    }
    let recall = shared as f32 / (centers.len() * LIMIT) as f32;
    assert!(recall >= 0.98, "recall {recall}");
}

fn exact_best(vectors: &[(Uuid, Vec<f32>)], query: &[f32], limit: usize) -> HashSet<Uuid> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let mut scored: Vec<(f32, Uuid)> = vectors
        .iter()
        .map(|(document, vector)| (dot(vector, query) / dot(vector, vector).sqrt(), *document))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(limit).map(|(_, document)| document).collect()
}
