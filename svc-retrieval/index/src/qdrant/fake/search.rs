//! Exact searches by a dense or a sparse vector.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use qdrant_client::qdrant::query::Variant;
use qdrant_client::qdrant::vector_input::Variant as Input;
use qdrant_client::qdrant::{
    DenseVector, Filter, PointId, Query, QueryPoints, ScoredPoint, SearchParams, SparseVector, vector,
};
use tonic::Status;

use super::collection::{Collection, Point};
use super::unsupported;

/// The limit of a request without one.
const DEFAULT_LIMIT: u64 = 10;

/// One stage of a query.
struct Stage<'a> {
    query: Option<&'a Query>,
    using: Option<&'a str>,
    filter: Option<&'a Filter>,
    params: Option<&'a SearchParams>,
    limit: Option<u64>,
    /// The results of the prefetch; `None` without one.
    among: Option<HashSet<&'a str>>,
}

impl Collection {
    /// The best points of a query, best first; ties by id, on which nothing may rely.
    pub(super) fn query(&self, request: &QueryPoints) -> Result<Vec<ScoredPoint>, Status> {
        let mut among = None;
        for prefetch in &request.prefetch {
            if !prefetch.prefetch.is_empty() {
                return Err(unsupported("stages before a stage"));
            }
            let chosen = self.best(&Stage {
                query: prefetch.query.as_ref(),
                using: prefetch.using.as_deref(),
                filter: prefetch.filter.as_ref(),
                params: prefetch.params.as_ref(),
                limit: prefetch.limit,
                among: None,
            })?;
            among.get_or_insert_with(HashSet::new).extend(chosen.into_iter().map(|(_, id, _)| id));
        }
        let best = self.best(&Stage {
            query: request.query.as_ref(),
            using: request.using.as_deref(),
            filter: request.filter.as_ref(),
            params: request.params.as_ref(),
            limit: request.limit,
            among,
        })?;
        let scored = best.into_iter().map(|(score, id, point)| ScoredPoint {
            id: Some(PointId::from(id.to_owned())),
            score,
            payload: point.shown_payload(request.with_payload.as_ref()),
            vectors: point.shown_vectors(request.with_vectors.as_ref()),
            ..ScoredPoint::default()
        });
        Ok(scored.collect())
    }

    fn best<'a>(&'a self, stage: &Stage<'_>) -> Result<Vec<(f32, &'a str, &'a Point)>, Status> {
        let most = usize::try_from(stage.limit.unwrap_or(DEFAULT_LIMIT)).unwrap_or(usize::MAX);
        let mut points = self.passing(stage.filter)?;
        points.retain(|(id, _)| stage.among.as_ref().is_none_or(|among| among.contains(id)));
        let Some(query) = stage.query else {
            // In the order of their ids.
            return Ok(points.into_iter().take(most).map(|(id, point)| (0.0, id, point)).collect());
        };
        let Some(Variant::Nearest(input)) = query.variant.as_ref() else {
            return Err(unsupported("this kind of query"));
        };
        let name = stage.using.unwrap_or_default();
        let scored = points.into_iter().map(|(id, point)| (id, point, point.vectors.get(name)));
        let mut best: Vec<(f32, &str, &Point)> = if let Some(Input::Dense(wanted)) = &input.variant {
            let score = |(id, point, held): (_, _, Option<&vector::Vector>)| {
                let Some(vector::Vector::Dense(held)) = held else { return None };
                Some((cosine(wanted, held), id, point))
            };
            scored.filter_map(score).collect()
        } else if let Some(Input::Sparse(wanted)) = &input.variant {
            let weights = self.query_weights(name, wanted, stage.params)?;
            let score = |(id, point, held): (_, _, Option<&vector::Vector>)| {
                let Some(vector::Vector::Sparse(held)) = held else { return None };
                Some((product(&weights, held)?, id, point))
            };
            scored.filter_map(score).collect()
        } else {
            return Err(unsupported("this kind of vector"));
        };
        best.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
        best.truncate(most);
        Ok(best)
    }

    /// The weight of each dimension of a query: `modifier: idf` over the corpus of the query.
    fn query_weights(
        &self,
        name: &str,
        wanted: &SparseVector,
        params: Option<&SearchParams>,
    ) -> Result<HashMap<u32, f32>, Status> {
        let corpus = params.and_then(|params| params.idf.as_ref()?.corpus.as_ref());
        let mut weights: HashMap<u32, f32> =
            wanted.indices.iter().copied().zip(wanted.values.iter().copied()).collect();
        let points = self.passing(corpus)?;
        let mut document_frequencies: HashMap<u32, u32> = HashMap::new();
        for (_, point) in &points {
            let Some(vector::Vector::Sparse(held)) = point.vectors.get(name) else { continue };
            for dimension in held.indices.iter().filter(|dimension| weights.contains_key(dimension)) {
                *document_frequencies.entry(*dimension).or_default() += 1;
            }
        }
        let all = points.len() as f32;
        for (dimension, weight) in &mut weights {
            let frequency = document_frequencies.get(dimension).copied().unwrap_or_default() as f32;
            *weight *= ((all - frequency + 0.5) / (frequency + 0.5) + 1.0).ln();
        }
        Ok(weights)
    }
}

/// `None` if they share no dimension: such a point is not a hit.
fn product(weights: &HashMap<u32, f32>, held: &SparseVector) -> Option<f32> {
    let shared = held.indices.iter().zip(&held.values);
    let shared = shared.filter_map(|(dimension, value)| Some(weights.get(dimension)? * value));
    shared.reduce(|sum, part| sum + part)
}

fn cosine(one: &DenseVector, other: &DenseVector) -> f32 {
    let length = |vector: &DenseVector| vector.data.iter().map(|value| value * value).sum::<f32>().sqrt();
    let product: f32 = one.data.iter().zip(&other.data).map(|(a, b)| a * b).sum();
    product / (length(one) * length(other)).max(f32::MIN_POSITIVE)
}
