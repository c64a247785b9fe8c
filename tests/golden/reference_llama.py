#!/usr/bin/env python3
"""An independent Llama in NumPy, f32 throughout: where the expected values of tests/golden come from.

Shares nothing with the engine: its own GGUF reader, its own SentencePiece merge loop, its own forward pass (whole
sequence at once, no K/V cache). Needs NumPy alone.

    reference_llama.py tiny expected_tiny.json               the generated models of tests/support/tiny_model.h
    reference_llama.py stories MODEL.gguf expected_stories.json

Shapes: T tokens, D model dim, H heads, Hk K/V heads, Dh head dim, F ffn, V vocab.
"""
import json
import math
import struct
import sys

import numpy as np

F32 = np.float32

# ---- GGUF ------------------------------------------------------------------------------------------------------------

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class GgufReader:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.at = 0
        magic, version = self.scalar("I"), self.scalar("I")
        assert magic == 0x46554747 and version in (2, 3), "not GGUF v2 or v3"
        n_tensors, n_keys = self.scalar("Q"), self.scalar("Q")
        self.meta = {}
        for _ in range(n_keys):
            key = self.string()
            self.meta[key] = self.value(self.scalar("I"))
        directory = [self.directory_entry() for _ in range(n_tensors)]
        alignment = self.meta.get("general.alignment", 32)
        start = (self.at + alignment - 1) // alignment * alignment
        self.tensors = {name: self.tensor(shape, dtype, start + offset) for name, shape, dtype, offset in directory}

    def scalar(self, code):
        value = struct.unpack_from("<" + code, self.bytes, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        length = self.scalar("Q")
        self.at += length
        return self.bytes[self.at - length:self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, count = self.scalar("I"), self.scalar("Q")
            return [self.value(element) for _ in range(count)]
        return self.scalar(SCALARS[kind])

    def directory_entry(self):
        name = self.string()
        dims = [self.scalar("Q") for _ in range(self.scalar("I"))]
        return name, dims[::-1], self.scalar("I"), self.scalar("Q")

    def tensor(self, shape, dtype, begin):
        count = math.prod(shape)
        if dtype == 0:
            flat = np.frombuffer(self.bytes, "<f4", count, begin)
        elif dtype == 1:
            flat = np.frombuffer(self.bytes, "<f2", count, begin).astype(F32)
        elif dtype == 8:
            blocks = np.frombuffer(self.bytes, np.dtype([("d", "<f2"), ("q", "i1", 32)]), count // 32, begin)
            flat = (blocks["d"].astype(F32)[:, None] * blocks["q"].astype(F32)).ravel()
        else:
            raise SystemExit(f"dtype {dtype}: this script reads F32, F16 and Q8_0")
        return flat.reshape(shape)


# ---- The transformer -------------------------------------------------------------------------------------------------

def inverse_frequencies(config):
    """[n_rot / 2] in double, after the published descriptions of each scaling."""
    n = config["n_rot"]
    rope = config["rope"]
    freqs = np.array([config["rope_base"] ** (-i / n) for i in range(0, n, 2)])
    if config.get("rope_factors"):
        freqs = freqs / np.array(config["rope_factors"], F32).astype(np.float64)
    kind = rope.get("type", "none")
    if kind == "linear":
        return freqs / rope["factor"]
    if kind == "llama3":
        return np.array([llama3_frequency(f, rope) for f in freqs])
    if kind == "yarn":
        return yarn_frequencies(freqs, n, config["rope_base"], rope)
    return freqs


def llama3_frequency(freq, rope):
    wavelength = 2 * math.pi / freq
    low, high, original = rope["low"], rope["high"], rope["original"]
    if wavelength > original / low:
        return freq / rope["factor"]
    if wavelength < original / high:
        return freq
    smooth = (original / wavelength - low) / (high - low)
    return (1 - smooth) * freq / rope["factor"] + smooth * freq


def yarn_frequencies(freqs, n, base, rope):
    def dimension(rotations):
        return n * math.log(rope["original"] / (rotations * 2 * math.pi)) / (2 * math.log(base))
    low = max(math.floor(dimension(32.0)), 0)
    high = min(math.ceil(dimension(1.0)), n - 1)
    if low == high:
        high += 0.001
    keep = 1 - np.clip((np.arange(n // 2) - low) / (high - low), 0, 1)
    return freqs / rope["factor"] * (1 - keep) + freqs * keep


def rotate(x, config):
    """x: [T, heads, Dh]; pairs are (2i, 2i + 1) of the first n_rot dimensions."""
    n = config["n_rot"]
    rope = config["rope"]
    gain = 0.1 * math.log(rope["factor"]) + 1 if rope.get("type") == "yarn" else 1.0
    angles = np.outer(np.arange(x.shape[0]), inverse_frequencies(config))
    cos = (np.cos(angles) * gain).astype(F32)[:, None, :]
    sin = (np.sin(angles) * gain).astype(F32)[:, None, :]
    out = x.copy()
    even, odd = x[..., 0:n:2], x[..., 1:n:2]
    out[..., 0:n:2] = even * cos - odd * sin
    out[..., 1:n:2] = even * sin + odd * cos
    return out


def rms_norm(x, gain, epsilon):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + F32(epsilon)) * gain


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def linear(x, weights, name):
    y = x @ weights[name + ".weight"].T
    return y + weights[name + ".bias"] if name + ".bias" in weights else y


def attention(x, weights, prefix, config):
    n_tokens, width = x.shape[0], config["head_dim"]
    q = rotate(linear(x, weights, prefix + "attn_q").reshape(n_tokens, -1, width), config)
    k = rotate(linear(x, weights, prefix + "attn_k").reshape(n_tokens, -1, width), config)
    v = linear(x, weights, prefix + "attn_v").reshape(n_tokens, -1, width)
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    distance = np.arange(n_tokens)[:, None] - np.arange(n_tokens)[None, :]
    visible = distance >= 0
    if config["window"]:
        visible &= distance < config["window"]
    scores = np.einsum("thd,shd->hts", q, k) * F32(1 / math.sqrt(width))
    probabilities = softmax(np.where(visible, scores, F32(-np.inf)))
    heads = np.einsum("hts,shd->thd", probabilities, v).reshape(n_tokens, -1)
    return linear(heads, weights, prefix + "attn_output")


def feed_forward(x, weights, prefix):
    gate = linear(x, weights, prefix + "ffn_gate")
    up = linear(x, weights, prefix + "ffn_up")
    return linear(gate / (1 + np.exp(-gate)) * up, weights, prefix + "ffn_down")


def forward(config, weights, ids):
    """Logits [T, V]."""
    x = weights["token_embd.weight"][np.array(ids)]
    for layer in range(config["n_layers"]):
        prefix = f"blk.{layer}."
        x = x + attention(rms_norm(x, weights[prefix + "attn_norm.weight"], config["eps"]), weights, prefix, config)
        x = x + feed_forward(rms_norm(x, weights[prefix + "ffn_norm.weight"], config["eps"]), weights, prefix)
    x = rms_norm(x, weights["output_norm.weight"], config["eps"])
    logits = x @ weights.get("output.weight", weights["token_embd.weight"]).T
    assert logits.dtype == F32
    return logits


def rows_of(logits, rows):
    return [{"row": int(r), "logits": [float(f"{x:.7g}") for x in logits[r]]} for r in rows]


# ---- Generated models (tests/support/tiny_model.h states the rule) ---------------------------------------------------

TINY = {"dim": 64, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "head_dim": 16, "ffn_dim": 96, "vocab": 96,
        "tied": False, "biases": False, "window": 0, "rope_base": 10000.0, "rope_factors": [], "rope": {}, "seed": 1}

VARIANTS = {
    "plain": {},
    "tied": {"tied": True, "seed": 2},
    "linear_scaling": {"rope": {"type": "linear", "factor": 4.0}, "seed": 3},
    "llama3_scaling": {"rope": {"type": "llama3", "factor": 8.0, "low": 1.0, "high": 4.0, "original": 256}, "seed": 4},
    "yarn_scaling": {"rope": {"type": "yarn", "factor": 4.0, "original": 128}, "seed": 5},
    "frequency_factors": {"rope_factors": [1.0, 1.0, 1.5, 2.25, 3.5, 8.0, 8.0, 8.0], "seed": 6},
    "sliding_window": {"window": 7, "seed": 7},
    "biases": {"biases": True, "seed": 8},
    "partial_rotation": {"n_rot": 8, "rope_base": 500000.0, "seed": 9},
    "one_kv_head_of_128": {"head_dim": 128, "n_heads": 2, "n_kv_heads": 1, "n_layers": 1, "seed": 10},
    "heads_of_80": {"head_dim": 80, "n_heads": 3, "n_kv_heads": 3, "n_layers": 1, "seed": 11},
}


def tiny_tensors(config):
    dim, ffn, vocab = config["dim"], config["ffn_dim"], config["vocab"]
    heads, kv = config["n_heads"] * config["head_dim"], config["n_kv_heads"] * config["head_dim"]
    tensors = [("token_embd.weight", (vocab, dim)), ("output_norm.weight", (dim,))]
    if not config["tied"]:
        tensors.append(("output.weight", (vocab, dim)))
    for layer in range(config["n_layers"]):
        prefix = f"blk.{layer}."
        tensors.append((prefix + "attn_norm.weight", (dim,)))
        tensors.append((prefix + "ffn_norm.weight", (dim,)))
        for name, rows, cols in (("attn_q", heads, dim), ("attn_k", kv, dim), ("attn_v", kv, dim),
                                 ("attn_output", dim, heads), ("ffn_gate", ffn, dim), ("ffn_up", ffn, dim),
                                 ("ffn_down", dim, ffn)):
            tensors.append((f"{prefix}{name}.weight", (rows, cols)))
            if config["biases"]:
                tensors.append((f"{prefix}{name}.bias", (rows,)))
    return tensors


def tiny_values(seed, number, name, shape):
    with np.errstate(over="ignore"):
        z = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64((seed * 1000 + number) << 32)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    unit = ((z >> np.uint64(40)).astype(np.int64) - (1 << 23)) * 2.0 ** -23
    if name.endswith("norm.weight"):
        values = 1.0 + unit * 0.25
    elif name.endswith(".bias"):
        values = unit * 0.125
    elif name in ("token_embd.weight", "output.weight"):
        values = unit * 0.25
    else:
        values = unit * 2.0 ** math.floor(math.log2(1.5 / math.sqrt(shape[1])))
    return values.astype(F32).reshape(shape)


def tiny_weights(config):
    return {name: tiny_values(config["seed"], number, name, shape)
            for number, (name, shape) in enumerate(tiny_tensors(config))}


def make_tiny_goldens():
    goldens = []
    for name, changes in VARIANTS.items():
        config = {**TINY, "n_rot": changes.get("head_dim", TINY["head_dim"]), "eps": 1e-5, **changes}
        weights = tiny_weights(config)
        ids = [(7 * i * i + 3 * i + config["seed"]) % config["vocab"] for i in range(70)]
        logits = forward(config, weights, ids)
        first = weights["blk.0.attn_q.weight"].ravel()[:4]
        goldens.append({"name": name, "config": config, "ids": ids, "first_weights": [float(x) for x in first],
                        "rows": rows_of(logits, [0, 33, 69])})
    return {"models": goldens}


# ---- stories260K -----------------------------------------------------------------------------------------------------

PROMPTS = [
    "Once upon a time", "One day, a little girl named Lily", "Tom and his dog went to the park", "The sun was hot",
    "\"Can I play with you?\" asked", "There was a big red ball", "Mom said, \"It is time for bed.\"", "A small bird sat",
    "Ben was sad because", "The cat saw a mouse and", "It was raining, so they", "Sara had a new toy. She",
    "In the forest there lived a bear", "Dad made a cake", "\"Look!\" said Max. \"A boat!\"", "The wind blew and",
    "They were best friends.", "He ran home and told", "Anna likes to draw", "At night the moon",
    "Lily saw a big dog", "One day, Tim found a shiny rock", "The little fish swam", "Once there was a king",
    "Mia and Sam went to the beach", "\"Thank you,\" said the", "Jack was very happy", "She opened the box and",
    "The boy was scared of the dark", "A frog jumped into", "Every day, Max went to", "There was a small house",
    "Sue wanted to help her mom", "\"Don't cry,\" said", "The duck had a yellow hat", "One morning, Ben woke up",
    "They played all day", "Lucy lost her doll", "The train was very loud", "In the garden, a bee",
    "He wanted to eat", "The old man smiled", "A little boy named Tim", "The bunny hopped", "Her name was Jane.",
    "It was a sunny day", "The children were playing", "Grandma gave her a cookie", "He could not find his shoes",
    "Once upon a time, there was a tree", "The birds were singing", "She was so proud", "Billy had a red car",
    "A girl named Amy loved to dance", "They saw a rainbow", "The dog barked at the cat",
]


def encode(meta, text):
    """SentencePiece as the Llama vocabulary uses it: repeatedly merge the pair of best score; bytes for the rest."""
    ids = {piece: i for i, piece in enumerate(meta["tokenizer.ggml.tokens"])}
    scores = meta["tokenizer.ggml.scores"]
    pieces = list("\u2581" + text.replace(" ", "\u2581"))
    while True:
        pairs = [(scores[ids[a + b]], -i) for i, (a, b) in enumerate(zip(pieces, pieces[1:])) if a + b in ids]
        if not pairs:
            break
        at = -max(pairs)[1]
        pieces[at:at + 2] = [pieces[at] + pieces[at + 1]]
    result = [meta["tokenizer.ggml.bos_token_id"]]
    for piece in pieces:
        result += [ids[piece]] if piece in ids else [ids[f"<0x{byte:02X}>"] for byte in piece.encode()]
    return result


def config_of(meta):
    heads = meta["llama.attention.head_count"]
    head_dim = meta["llama.embedding_length"] // heads
    return {"n_layers": meta["llama.block_count"], "head_dim": head_dim, "window": 0, "rope": {},
            "n_rot": meta.get("llama.rope.dimension_count", head_dim),
            "rope_base": meta.get("llama.rope.freq_base", 10000.0),
            "eps": meta["llama.attention.layer_norm_rms_epsilon"]}


def greedy(config, weights, ids, count):
    ids = list(ids)
    gaps = []
    for _ in range(count):
        last = forward(config, weights, ids)[-1]
        best = np.argsort(-last, kind="stable")[:2]
        gaps.append(float(last[best[0]] - last[best[1]]))
        ids.append(int(best[0]))
    return ids[-count:], min(gaps)


def make_stories_goldens(path):
    file = GgufReader(path)
    config = config_of(file.meta)
    prompts = []
    for number, text in enumerate(PROMPTS):
        ids = encode(file.meta, text)
        tokens, gap = greedy(config, file.tensors, ids, 64)
        entry = {"text": text, "ids": ids, "greedy": tokens, "smallest_gap": round(gap, 6)}
        if number < 6:
            whole = ids + tokens
            entry["rows"] = rows_of(forward(config, file.tensors, whole), [len(ids) - 1, len(whole) - 1])
        prompts.append(entry)
        print(f"{text!r}: smallest gap {gap:.5f}", file=sys.stderr)
    return {"prompts": prompts}


def write_json(path, document):
    """One line for each model or prompt, so that changes show."""
    (key, entries), = document.items()
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    with open(path, "w", encoding="ascii") as file:
        file.write(f'{{"{key}": [\n{lines}\n]}}\n')


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "tiny":
        write_json(arguments[1], make_tiny_goldens())
    elif len(arguments) == 3 and arguments[0] == "stories":
        write_json(arguments[2], make_stories_goldens(arguments[1]))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
