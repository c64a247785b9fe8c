#!/usr/bin/env python3
"""Random strings and their normal forms by Python's unicodedata, for src/text/tokenizer/normal_form_test.cpp:
[[text, NFC, NFD, NFKC, NFKD], ...]. Only characters that Unicode 9 had: later ones are left as they are there.

    python3 make_normal_form_cases.py > normal_form_cases.json
"""

import json
import pathlib
import random
import re
import unicodedata

HERE = pathlib.Path(__file__).resolve().parent
FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def later_characters():
    """As the tokenizer lists them."""
    source = (HERE.parents[1] / "src/text/tokenizer/code_point_ranges.h").read_text()
    block = source[source.index("kNormalizedLaterRanges"):source.index("constexpr bool contains")]
    pairs = re.findall(r"\{0x([0-9A-F]+), 0x([0-9A-F]+)\}", block)
    return {code for first, last in pairs for code in range(int(first, 16), int(last, 16) + 1)}


def random_text(rng, marks, others):
    text = ""
    for _ in range(rng.randint(1, 4)):
        text += rng.choice(others) if rng.random() < 0.5 else rng.choice("aeouAEOUcCsyK=<\u00e7\u1e69\uac00\u1100")
        n_marks = rng.choice([0, 1, 2, 3, 8, 40])
        pool = rng.sample(marks, rng.randint(1, 6))
        text += "".join(rng.choice(pool) for _ in range(n_marks))
    return text


def main():
    later = later_characters()
    known = [chr(c) for c in range(1, 0x30000)
             if c not in later and unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    marks = [c for c in known if unicodedata.combining(c)]
    decomposed = [c for c in known if unicodedata.decomposition(c)]
    rng = random.Random(16)
    texts = [random_text(rng, marks, decomposed if rng.random() < 0.6 else known) for _ in range(250)]
    rows = [[text] + [unicodedata.normalize(form, text) for form in FORMS] for text in texts]
    print("[" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "]")


if __name__ == "__main__":
    main()
