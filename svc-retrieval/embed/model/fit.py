"""Fits the rows of a static embedder to a transformer: a text's sum of rows shall point where its vector does."""

import numpy as np
from scipy.sparse import csr_matrix, diags

# The penalty on leaving the prior, for rows whose mean norm is 1: .1 to 1 do alike.
PENALTY = 0.3
STEPS, ROUNDS = 8, 2
# The first component of the texts' vectors is what all texts have in common.
DROPPED_COMPONENTS = 1
# How far the components are evened out (soft whitening): each is scaled by its variance to the power of -1/4.
WHITENING = 0.25


def count_matrix(texts, rows):
    """How often each row's token stands in each text; `texts` are lists of row numbers."""
    numbers = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
    tokens = np.concatenate([np.asarray(text, dtype=np.int64) for text in texts])
    ones = np.ones(len(tokens), dtype=np.float32)
    return csr_matrix((ones, (numbers, tokens)), shape=(len(texts), rows))


def fit_rows(counts, targets, prior):
    """The rows nearest the prior with which the texts' normalised sums meet their targets.

    Rows of tokens that no text holds stay as they are. A row's direction is fitted; its norm, which says how much the
    token matters, is the geometric mean of the fitted one and the prior's.
    """
    rows = prior
    for _ in range(ROUNDS):
        lengths = np.linalg.norm(counts @ rows, axis=1)
        scaled = (diags(1 / np.where(lengths == 0, 1, lengths)) @ counts).tocsr().astype(np.float32)
        rows = prior + ridge(scaled, targets - scaled @ prior)
    fitted, before = np.linalg.norm(rows, axis=1), np.linalg.norm(prior, axis=1)
    factor = np.sqrt(fitted * before) / np.where(fitted == 0, 1, fitted)
    return rows * factor[:, None]


def ridge(matrix, targets):
    """Solves (MᵀM + λI) x = Mᵀt for each column of t by conjugate gradients with Jacobi's preconditioner."""
    transposed = matrix.T.tocsr()
    diagonal = np.asarray(matrix.multiply(matrix).sum(0)).ravel()[:, None] + PENALTY
    residual = transposed @ targets
    solution = np.zeros_like(residual)
    direction = residual / diagonal
    energy = (residual * direction).sum(0)
    for _ in range(STEPS):
        image = transposed @ (matrix @ direction) + PENALTY * direction
        step = energy / np.maximum((direction * image).sum(0), 1e-12)
        solution += step * direction
        residual -= step * image
        preconditioned = residual / diagonal
        next_energy = (residual * preconditioned).sum(0)
        direction = preconditioned + next_energy / np.maximum(energy, 1e-12) * direction
        energy = next_energy
    return solution


def project(rows, counts, dimensions):
    """The rows on the main components of the texts' vectors, with signs fixed so that a repeat gives the same file."""
    vectors = (counts @ rows).astype(np.float64)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    centred = vectors - vectors.mean(0)
    variances, components = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = slice(DROPPED_COMPONENTS, DROPPED_COMPONENTS + dimensions)
    variances, components = variances[::-1][kept], components[:, ::-1][:, kept]
    largest = components[np.abs(components).argmax(0), np.arange(dimensions)]
    return rows @ (components * np.sign(largest) * (variances / variances[0]) ** -WHITENING)
