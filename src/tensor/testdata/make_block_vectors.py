#!/usr/bin/env python3
"""Writes block_vectors.txt: known answers for the block formats, from an independent implementation.

Needs the PyPI packages gguf (tested with 0.19.0), torch and numpy. Blocks are seeded random bytes whose f16 scales are
replaced by finite ones, so that every field takes all its values; one scale in four is subnormal. Each line is
  decode NAME BLOCK_HEX F32_HEX      gguf's dequantize of the block (little-endian bytes)
  encode NAME F32_HEX BLOCK_HEX      gguf's quantize of the values
"""
import pathlib

import gguf
import numpy as np
import torch

# Byte offsets of f16 fields in a block.
F16_FIELDS = {
    "F16": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
    "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
    "IQ1_S": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0], "TQ1_0": [52],
    "TQ2_0": [64],
}
DECODED = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
           "IQ4_XS", "MXFP4",
           "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0"]
ENCODED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4", "TQ1_0", "TQ2_0"]
BLOCKS_EACH = 3


def random_f16(rng):
    if rng.integers(4) == 0:
        bits = int(rng.integers(1, 0x400)) | (int(rng.integers(2)) << 15)
        return np.array([bits], dtype="<u2").tobytes()
    return np.array([rng.normal() * 0.05], dtype="<f2").tobytes()


def random_block(name, n_bytes, rng):
    block = bytearray(rng.bytes(n_bytes))
    for at in F16_FIELDS.get(name, []):
        block[at:at + 2] = random_f16(rng)
    if name == "IQ1_M":  # its f16, a nibble in each of four words
        scale = int.from_bytes(random_f16(rng), "little")
        for i in range(4):
            block[49 + 2 * i] = (block[49 + 2 * i] & 0x0F) | (((scale >> (4 * i)) & 15) << 4)
    if name == "BF16":
        block[1] &= 0xBF  # no NaN, no infinity
    return bytes(block)


def w8a8_lines():
    """Our own type: an f32 scale, then a row of int8."""
    rng = np.random.default_rng(7)
    lines = []
    for scale in (1e-3, 0.1, 40.0):
        codes = rng.integers(-128, 128, size=64).astype(np.int8)
        d = np.float32(rng.normal() * scale)
        lines.append(f"decode W8A8 {(d.tobytes() + codes.tobytes()).hex()} {(d * codes.astype('<f4')).tobytes().hex()}")
        values = (rng.normal(size=64) * scale).astype("<f4")
        d = np.float32(np.abs(values).max() / np.float32(127))
        scaled = values * (np.float32(1) / d)
        codes = (np.sign(scaled) * np.floor(np.abs(scaled) + np.float32(0.5))).astype(np.int8)
        lines.append(f"encode W8A8 {values.tobytes().hex()} {(d.tobytes() + codes.tobytes()).hex()}")
    return lines


def fp8_lines():
    """Our own type: an f32 scale, then 128 codes E4M3. torch converts both ways."""
    rng = np.random.default_rng(11)
    lines = []
    for scale in (1e-3, 0.1, 40.0):
        codes = rng.permutation(np.delete(np.arange(256, dtype=np.uint8), [0x7f, 0xff]))[:128]
        d = np.float32(rng.normal() * scale)
        values = torch.from_numpy(codes).view(torch.float8_e4m3fn).float() * torch.tensor(d)
        lines.append(f"decode FP8 {(d.tobytes() + codes.tobytes()).hex()} {values.numpy().tobytes().hex()}")
        values = (rng.normal(size=128) * scale * np.exp2(-rng.integers(0, 20, size=128))).astype("<f4")
        d = np.float32(np.abs(values).max() / np.float32(448))
        codes = torch.from_numpy(values * (np.float32(1) / d)).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
        lines.append(f"encode FP8 {values.tobytes().hex()} {(d.tobytes() + codes.tobytes()).hex()}")
    return lines


def fp4_lines():
    """Our own type: an f32 scale, 8 scales E4M3, then 128 codes E2M1. torch knows the scales."""
    rng = np.random.default_rng(17)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype="<f4")
    lines = []
    for scale in (1e-3, 0.1, 40.0):
        d = np.float32(rng.normal() * scale)
        scales = rng.permutation(np.arange(0x7f, dtype=np.uint8))[:8]
        codes = np.frombuffer(rng.bytes(64), dtype=np.uint8)
        each = table[np.stack([codes & 15, codes >> 4], axis=1).reshape(8, 16)]
        values = d * (each * torch.from_numpy(scales).view(torch.float8_e4m3fn).float().numpy()[:, None])
        block = d.tobytes() + scales.tobytes() + codes.tobytes()
        lines.append(f"decode FP4 {block.hex()} {values.astype('<f4').tobytes().hex()}")
    return lines


def few_bits_lines():
    """Q1_0 and Q2_0, which gguf 0.19.0 does not decode: by their definition."""
    rng = np.random.default_rng(13)
    lines = []
    for name, n, bits in (("Q1_0", 128, 1), ("Q2_0", 64, 2)):
        for _ in range(BLOCKS_EACH):
            block = random_f16(rng) + rng.bytes(16)
            d = np.frombuffer(block[:2], dtype="<f2").astype("<f4")
            codes = np.unpackbits(np.frombuffer(block[2:], dtype=np.uint8), bitorder="little").reshape(n, bits)
            q = (codes * (1 << np.arange(bits))).sum(axis=1)
            values = d * (2 * q - 1 if bits == 1 else q - 1).astype("<f4")
            lines.append(f"decode {name} {block.hex()} {values.astype('<f4').tobytes().hex()}")
    return lines


def main():
    rng = np.random.default_rng(20240611)
    lines = []
    for name in DECODED:
        qtype = gguf.GGMLQuantizationType[name]
        n_elements, n_bytes = gguf.GGML_QUANT_SIZES[qtype]
        for _ in range(BLOCKS_EACH if n_elements > 1 else 16):
            block = random_block(name, n_bytes, rng)
            data = np.frombuffer(block, dtype=np.float16 if name == "F16" else np.uint8)
            values = gguf.dequantize(data, qtype).astype("<f4").reshape(-1)
            assert values.size == n_elements
            lines.append(f"decode {name} {block.hex()} {values.tobytes().hex()}")
    for name in ENCODED:
        qtype = gguf.GGMLQuantizationType[name]
        for scale in (1e-3, 0.1, 40.0):
            n_elements, _ = gguf.GGML_QUANT_SIZES[qtype]
            values = (rng.normal(size=n_elements) * scale).astype("<f4")
            block = gguf.quantize(values, qtype).tobytes()
            lines.append(f"encode {name} {values.tobytes().hex()} {block.hex()}")
    lines += w8a8_lines()
    lines += fp8_lines()
    lines += few_bits_lines()
    lines += fp4_lines()
    path = pathlib.Path(__file__).with_name("block_vectors.txt")
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
