//! Normalisation of vectors.

/// Gives a vector length 1; a zero vector stays as it is.
pub(super) fn normalise(vector: &mut [f32]) {
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|value| *value /= norm);
    }
}
