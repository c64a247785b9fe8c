#!/usr/bin/env python3
"""Writes tests/sampler/cases.json: random sampler chains and what they leave, computed here with NumPy in doubles, by full
sorts and in the words of each stage's definition. Nothing of the C++ code is used. Needs numpy; run by hand."""
import json
from pathlib import Path

import numpy as np

OUT = Path(__file__).resolve().parent.parent / "tests" / "sampler" / "cases.json"
N_CASES = 1000
STAGES = ["penalties", "dry", "temperature", "top_k", "typical_p", "top_p", "min_p", "xtc"]
MARGIN = 1e-6  # cases whose outcome hangs on less than this are drawn again
MASK64 = (1 << 64) - 1


class Close(Exception):
    """A comparison too close for another precision to decide alike."""


def splitmix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK64
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK64
    return x ^ (x >> 31)


def make_logits(seed, n):
    return np.array([(splitmix(seed + i) % 16001 - 8000) / 1000 for i in range(n)], dtype=np.float64)


def make_history(seed, n, vocab, period):
    text = [splitmix(seed + 100000 + i) % vocab for i in range(n)]
    return [text[i % period] if i % 7 else text[i] for i in range(n)]  # with repetitions


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def far(a, b):
    if np.any((np.abs(np.asarray(a) - b) < MARGIN)):
        raise Close


def order_of(z):
    return np.lexsort((np.arange(len(z)), -z))


def window(text, n):
    return text if n < 0 else text[len(text) - min(n, len(text)):]


def penalties(z, p, text, n_output):
    for token in set(window(text, p["repeat_last_n"])):
        z[token] = z[token] / p["repetition_penalty"] if z[token] > 0 else z[token] * p["repetition_penalty"]
    said = window(text[len(text) - n_output:], p["repeat_last_n"])
    for token in set(said):
        z[token] -= said.count(token) * p["frequency_penalty"] + p["presence_penalty"]


def dry(z, p, text):
    text = window(text, p["dry_penalty_last_n"])
    longest = {}
    for at in range(len(text)):  # `at` is the place of the token that once went on
        n = 0
        while n < at and text[at - 1 - n] == text[len(text) - 1 - n] and text[at - 1 - n] not in p["breakers"]:
            n += 1
        longest[text[at]] = max(longest.get(text[at], 0), n)
    for token, n in longest.items():
        if n >= p["dry_allowed_length"] and token not in p["breakers"]:
            z[token] -= p["dry_multiplier"] * p["dry_base"] ** (n - p["dry_allowed_length"])


def cut(z, keep):
    out = np.full_like(z, -np.inf)
    out[list(keep)] = z[list(keep)]
    return out


def crossing(q, order, share):
    sums = np.cumsum(q[order])
    far(sums, share)
    return order[: int(np.searchsorted(sums, share)) + 1]


def run_stage(stage, z, p, text, n_output, word1):
    alive = np.isfinite(z)
    q = softmax(z)
    if stage == "penalties":
        penalties(z, p, text, n_output)
    elif stage == "dry" and p["dry_multiplier"] > 0:
        dry(z, p, text)
    elif stage == "temperature" and (p["temperature"] != 1 or p["dynatemp_range"] > 0):
        t = p["temperature"]
        if p["dynatemp_range"] > 0:
            entropy = -np.sum(q[alive] * np.log(q[alive]))
            low, high = max(0.0, t - p["dynatemp_range"]), t + p["dynatemp_range"]
            t = low + (high - low) * (entropy / np.log(max(2, alive.sum()))) ** p["dynatemp_exponent"]
        z = (z - z.max()) / max(t, 1e-6)
    elif stage == "top_k" and p["top_k"] > 0:
        z = cut(z, [i for i in order_of(z)[: p["top_k"]] if alive[i]])
    elif stage == "typical_p" and p["typical_p"] < 1:
        entropy = -np.sum(q[alive] * np.log(q[alive]))
        distance = np.where(alive, np.abs(-np.log(np.where(alive, q, 1)) - entropy), np.inf)
        ranked = np.sort(distance[alive])
        order = np.lexsort((np.arange(len(z)), distance))
        keep = crossing(q, order, p["typical_p"])
        if len(keep) < len(ranked) and ranked[len(keep)] - ranked[len(keep) - 1] < 1e-5:
            raise Close
        z = cut(z, keep)
    elif stage == "top_p" and p["top_p"] < 1:
        z = cut(z, crossing(q, order_of(z), p["top_p"]))
    elif stage == "min_p" and p["min_p"] > 0:
        far(q / q.max(), p["min_p"])
        z = cut(z, np.flatnonzero(q >= p["min_p"] * q.max()))
    elif stage == "xtc" and p["xtc_probability"] > 0 and (word1 >> 8) / 2**24 < p["xtc_probability"]:
        far(q, p["xtc_threshold"])
        top = [i for i in order_of(z) if q[i] >= p["xtc_threshold"]]
        z = cut(z, [i for i in np.flatnonzero(alive) if i not in top[:-1]])
    return z


def apply_bans(z, p, text, n_output):
    if p["allowed"]:
        z[[i for i in range(len(z)) if i not in p["allowed"]]] = -np.inf
    for token, bias in p["logit_bias"]:
        z[token] += bias
    banned = set(p["banned"])
    for word in p["bad_words"]:
        if text[len(text) - len(word) + 1:] == word[:-1] if len(word) > 1 else True:
            banned.add(word[-1])
    n = p["no_repeat_ngram_size"]
    if n > 0:
        grams = {tuple(text[i:i + n]) for i in range(len(text) - n + 1)}
        banned |= {t for t in range(len(z)) if tuple(text[len(text) - n + 1:] + [t]) in grams}
    if n_output < p["min_tokens"]:
        banned |= set(p["ends"])
    z[list(banned)] = -np.inf


def random_params(random, vocab):
    def maybe(value, off, chance=0.35):
        return value if random.random() < chance else off

    def real(low, high):
        return round(float(random.uniform(low, high)), 3)

    def tokens(most):
        return sorted({int(t) for t in random.integers(0, vocab, random.integers(1, most))})

    p = {
        "temperature": maybe(real(0.2, 2.5), 1.0, 0.7),
        "dynatemp_range": maybe(real(0.05, 1.5), 0.0, 0.2),
        "dynatemp_exponent": real(0.3, 3),
        "top_k": maybe(int(random.integers(1, vocab + 5)), 0),
        "typical_p": maybe(real(0.05, 0.99), 1.0),
        "top_p": maybe(real(0.05, 0.99), 1.0),
        "min_p": maybe(real(0.01, 0.5), 0.0),
        "xtc_probability": maybe(real(0.1, 1), 0.0, 0.3),
        "xtc_threshold": real(0.02, 0.5),
        "repetition_penalty": maybe(real(0.5, 2), 1.0),
        "frequency_penalty": maybe(real(-2, 2), 0.0),
        "presence_penalty": maybe(real(-2, 2), 0.0),
        "repeat_last_n": maybe(int(random.integers(0, 40)), -1),
        "dry_multiplier": maybe(real(0.1, 3), 0.0),
        "dry_base": real(1, 3),
        "dry_allowed_length": int(random.integers(1, 4)),
        "dry_penalty_last_n": maybe(int(random.integers(0, 40)), -1),
        "no_repeat_ngram_size": maybe(int(random.integers(1, 5)), 0, 0.2),
        "min_tokens": maybe(int(random.integers(0, 30)), 0, 0.2),
        "breakers": maybe(tokens(4), []),
        "logit_bias": [[t, real(-5, 5)] for t in maybe(tokens(5), [])],
        "banned": maybe(tokens(4), [], 0.2),
        "allowed": maybe(tokens(vocab), [], 0.15),
        "bad_words": [[int(t) for t in random.integers(0, vocab, random.integers(1, 3))]] if random.random() < 0.2 else [],
        "ends": tokens(3),
    }
    if random.random() < 0.5:
        p["samplers"] = [STAGES[i] for i in random.permutation(len(STAGES))]
    return p


OFF = {"temperature": 1.0, "dynatemp_range": 0.0, "top_k": 0, "typical_p": 1.0, "top_p": 1.0, "min_p": 0.0, "xtc_probability": 0.0,
       "repetition_penalty": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0, "repeat_last_n": -1,
       "dry_multiplier": 0.0, "dry_penalty_last_n": -1, "no_repeat_ngram_size": 0, "min_tokens": 0}
NEEDED_BY = {"dynatemp_exponent": "dynatemp_range", "xtc_threshold": "xtc_probability", "dry_base": "dry_multiplier",
             "dry_allowed_length": "dry_multiplier", "breakers": "dry_multiplier", "ends": "min_tokens"}


def without_defaults(p):
    """What is off is left out of the file."""
    kept = {key: value for key, value in p.items() if value != [] and value != OFF.get(key)}
    return {key: value for key, value in kept.items() if key not in NEEDED_BY or NEEDED_BY[key] in kept}


def make_case(random):
    vocab = int(random.integers(5, 200))
    case = {"seed": int(random.integers(1 << 40)), "vocab": vocab, "n_text": int(random.integers(1, 60)),
            "period": int(random.integers(2, 12)), "params": random_params(random, vocab),
            "words": [int(w) for w in random.integers(0, 1 << 32, 2)]}
    case["n_output"] = int(random.integers(0, case["n_text"] + 1))
    p, n_output = case["params"], case["n_output"]
    z = make_logits(case["seed"], vocab)
    text = make_history(case["seed"], case["n_text"], vocab, case["period"])
    apply_bans(z, p, text, n_output)
    if not np.isfinite(z).any():
        raise Close
    for stage in p.get("samplers", STAGES):
        z = run_stage(stage, z, p, text, n_output, case["words"][1])
    q = softmax(z)
    order = order_of(z)
    sums = np.cumsum(q[order])
    u = (case["words"][0] >> 8) / 2**24
    far(sums, u)
    case["n_left"] = int(np.isfinite(z).sum())
    case["token"] = int(order[int(np.searchsorted(sums, u, side="right"))])
    case["best"] = [[int(i), float(f"{q[i]:.8g}")] for i in order[: min(4, case["n_left"])]]
    case["params"] = without_defaults(p)
    return case


def main():
    random = np.random.default_rng(20240817)
    cases = []
    while len(cases) < N_CASES:
        try:
            cases.append(make_case(random))
        except Close:
            continue
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    OUT.write_text("[\n" + lines + "\n]\n")
    print(f"{len(cases)} cases, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
