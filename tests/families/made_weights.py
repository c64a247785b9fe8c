"""Weights by formula, which tests/families/made_folder.h computes again: a case needs only names and shapes.

Element i of a tensor is u = splitmix64(fnv1a64(name) + i) >> 40, as a number of [-1, 1), times a spread and about a
centre, in f64, rounded to f32 and then to bf16.
"""

import numpy as np


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def uniform(name, count):
    with np.errstate(over="ignore"):
        x = np.uint64(fnv1a(name)) + np.arange(count, dtype=np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(40)).astype(np.float64) / 2.0 ** 23 - 1.0


def is_table(name):
    return any(part in name for part in ("embed", "wte", "wpe"))


def made_values(name, count, centre, spread):
    values = (centre + spread * uniform(name, count)).astype(np.float32)
    bits = values.view(np.uint32).astype(np.uint64)
    bits = (bits + np.uint64(0x7FFF) + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def made_weight(name, shape):
    """A case's, by its name and shape alone."""
    count = int(np.prod(shape))
    is_vector = count == max(shape)
    if is_vector and name.endswith(("weight", "scale")):
        centre, spread = (0.5, 0.1875) if name.endswith(("q_norm.weight", "k_norm.weight")) else (1.0, 0.375)
    elif is_vector:
        centre, spread = 0.0, 0.375
    else:
        centre, spread = 0.0, 0.4375 if is_table(name) else 2.25 / np.sqrt(float(shape[-1]))
    return made_values(name, count, centre, spread).reshape(shape)
