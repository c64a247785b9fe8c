#!/usr/bin/env python3
"""What the `tokenizers` library (0.23, whose expressions have the tables of Unicode 16) takes for a letter, a number, a
word, by asking its expressions about every code point.

    python3 make_unicode_cases.py classes > char_classes.json    {class: [first, last, first, last, ...]}
    python3 make_unicode_cases.py splits > split_cases.json      {rule: [[text, [word, ...]], ...]}
    python3 make_unicode_cases.py splits --cases 3000            more of them
    python3 make_unicode_cases.py later                          the rows of src/text/tokenizer/later_categories.h:
                                                                 what utf8proc 2.8 (Unicode 15) has no category for
"""

import argparse
import ctypes
import json
import random

from tokenizers import Regex, normalizers, pre_tokenizers

ALL = "".join(chr(c) for c in range(1, 0x110000) if not 0xD800 <= c <= 0xDFFF)
CLASSES = {"upper": r"\p{Lu}", "title": r"\p{Lt}", "lower": r"\p{Ll}", "modifier": r"\p{Lm}", "other": r"\p{Lo}",
           "mark": r"\p{M}", "number": r"\p{N}", "punctuation": r"\p{P}", "symbol": r"\p{S}", "space": r"\s",
           "decimal": r"\d", "word": r"\w", "han": r"\p{Han}"}

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT4O = (CASED + "*" + LOWER + "+" + CONTRACTIONS + "?|" + CASED + "+" + LOWER + "*" + CONTRACTIONS +
         r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL)
DEEPSEEK3 = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
             r"| ?[\p{P}\p{S}]+[\r\n]*|" + TAIL]
RULES = {
    "gpt-2": [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"],
    "llama-bpe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL],
    "qwen2": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL],
    "qwen35": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + TAIL],
    "gpt-4o": [GPT4O],
    "starcoder": [r"\p{N}", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"],
    "deepseek-v3": DEEPSEEK3,
    "hunyuan-dense": DEEPSEEK3,
    "joyai-llm": DEEPSEEK3,
    "tiny_aya": [r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O],
    "cohere2moe": [r"\d{1,3}(?=(?:\d{3})*\b)", GPT4O],
}
SPECIAL = ("0123456789\u0660\u0661\u0966\u0967\uff10\uff11\U0001d7ce\u00b2\u00b3\u00b9\u00bc\u00bd\u2070\u2081\u2160\u2460"
           "\u24b6\u24d0\U0001f130\u3007\u3021\u4e00\u5341\u3042\u30a2\u0301\u0903\u20dd_'-.,!$+~ \u00a0\u3000\n\r\t"
           "\u1c89\ua7cb\U00010d40\U00010d50\U00016130\U0001e5f1\U00016d70\U0001ccf0\U0001cc00\U00011bc0\U0002ebf0")


def members(expression):
    """Its characters, by what is left when they are taken away."""
    left = set(normalizers.Replace(Regex(expression), "").normalize_str(ALL))
    return [ord(c) for c in ALL if c not in left]


def ranges(codes):
    result = []
    for code in codes:
        if result and result[-1][1] == code - 1:
            result[-1][1] = code
        else:
            result.append([code, code])
    return result


def print_classes():
    rows = {name: [code for pair in ranges(members(expression)) for code in pair]
            for name, expression in CLASSES.items()}
    print("{" + ",\n".join(f"{json.dumps(name)}:{json.dumps(row, separators=(',', ':'))}"
                           for name, row in rows.items()) + "}")


def random_text(rng):
    parts = []
    for _ in range(rng.randint(1, 8)):
        kind = rng.random()
        if kind < 0.45:
            parts.append("".join(rng.choice(SPECIAL) for _ in range(rng.randint(1, 6))))
        elif kind < 0.6:
            parts.append(str(rng.randint(0, 10 ** rng.randint(1, 12))))
        elif kind < 0.8:
            parts.append(rng.choice([" the", "Hello", " don't", "I'LL", "x=1;", "  ", "\n\n", " \u00c9t\u00e9", "#abc"]))
        else:
            parts.append("".join(rng.choice(ALL[:0x3200]) for _ in range(rng.randint(1, 4))))
    return "".join(parts)


def print_splits(n_cases):
    result = []
    for name, expressions in RULES.items():
        steps = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in expressions]
        words = pre_tokenizers.Sequence(steps)
        rng = random.Random(name)
        texts = [random_text(rng) for _ in range(n_cases)]
        rows = [[text, [word for word, _ in words.pre_tokenize_str(text)]] for text in texts]
        result.append(f"{json.dumps(name)}:{json.dumps(rows, separators=(',', ':'))}")
    print("{" + ",\n".join(result) + "}")


def print_later():
    library = ctypes.CDLL("libutf8proc.so.2")
    library.utf8proc_category_string.restype = ctypes.c_char_p
    unknown = {code for code in map(ord, ALL) if library.utf8proc_category_string(code) == b"Cn"}
    flags = {"upper": "kUpper | kWordChar", "lower": "kLower | kWordChar", "modifier": "kModifier | kWordChar",
             "other": "kOtherLetter | kWordChar", "mark": "kMark | kWordChar", "decimal": "kNumber | kDecimal | kWordChar",
             "punctuation": "kPunctuation", "symbol": "kSymbol"}
    rows = [(first, last, flag) for name, flag in flags.items()
            for first, last in ranges([code for code in members(CLASSES[name]) if code in unknown])]
    for first, last, flag in sorted(rows):
        print(f"    {{0x{first:04X}, 0x{last:04X}, {flag}}},")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["classes", "splits", "later"])
    parser.add_argument("--cases", type=int, default=60)
    options = parser.parse_args()
    if options.what == "classes":
        print_classes()
    elif options.what == "splits":
        print_splits(options.cases)
    else:
        print_later()


if __name__ == "__main__":
    main()
