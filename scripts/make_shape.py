#!/usr/bin/env python3
"""Writes a model file of a published shape with random weights, for timing. Weights have no mean, as trained ones:
the rows of a model whose weights share a sign turn into rows of one sign, and those take longer here (docs/numerics.md).

    python3 scripts/make_shape.py llama-3.2-1b Q4_K_M out.gguf

Shapes: llama-3.2-1b, qwen2.5-0.5b (as a Llama: the same matrices without its biases), llama-3.1-8b, gpt-oss-20b,
qwen3-30b-a3b, qwen3.5-35b-a3b, deepseek-v2-lite, qwen3.5-2b, lfm2-1.2b, granite-4.0-h-1b, and tiny ones. With --layers N a
shape has its first N blocks alone, for machines that do not hold all. Types: F32, F16, BF16, Q8_0, Q4_0, Q4_K_M (Q6_K where
llama.cpp's mix has it), every other GGUF type in which weights are stored (those below 4 bits with the output matrix in Q6_K),
MXFP4 (experts; all else Q8_0), FP8 and FP4 (embedding and output matrix in BF16, as published), W8A8 (embedding and output
matrix in Q8_0, as `candor quantize` makes it).
Weights are made and written a few rows at a time. Needs numpy; uses no network.
"""
import argparse
import struct
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ALIGNMENT = 32
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


@dataclass(frozen=True)
class ModelShape:
    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_dim: int
    vocab: int
    tied: bool
    context: int = 131072
    rope_base: float = 500000.0
    family: str = "llama"
    n_experts: int = 0
    n_used: int = 0
    window: int = 0
    dense_ffn: int = 0  # of the first block, where it has no experts
    n_shared: int = 0
    latent: int = 0     # with it, head_dim is a head's width without the rotated part, and that of its value
    rotated: int = 0
    query_rank: int = 0
    attending: tuple = ()  # the blocks that attend; others have one of these
    delta: tuple = ()   # key heads, value heads, width of both
    ssm: tuple = ()     # heads, width of one, groups, state
    taps: int = 0       # of their convolution, or of a gated one alone

    def keeps_state(self, layer):
        return bool(self.taps) and layer not in self.attending


SHAPES = {
    "llama-3.2-1b": ModelShape(2048, 16, 32, 8, 64, 8192, 128256, True),
    "llama-3.1-8b": ModelShape(4096, 32, 32, 8, 128, 14336, 128256, False),
    "qwen2.5-0.5b": ModelShape(896, 24, 14, 2, 64, 4864, 151936, True, 32768, 1e6),
    "gpt-oss-20b": ModelShape(2880, 24, 64, 8, 64, 2880, 201088, False, 131072, 150000.0, "gpt-oss", 32, 4, 128),
    "qwen3-30b-a3b": ModelShape(2048, 48, 32, 4, 128, 768, 151936, False, 40960, 1e6, "qwen3moe", 128, 8),
    "deepseek-v2-lite": ModelShape(2048, 27, 16, 1, 128, 1408, 102400, False, 163840, 10000.0, "deepseek2", 64, 6,
                                   dense_ffn=10944, n_shared=2, latent=512, rotated=64),
    "qwen3.5-2b": ModelShape(2048, 24, 8, 2, 256, 6144, 151936, True, 262144, 1e7, "qwen35", rotated=64,
                             attending=tuple(range(3, 24, 4)), delta=(16, 16, 128), taps=4),
    "qwen3.5-35b-a3b": ModelShape(2048, 40, 16, 2, 256, 512, 248320, False, 262144, 1e7, "qwen35moe", 256, 8, n_shared=1,
                                  rotated=64, attending=tuple(range(3, 40, 4)), delta=(16, 32, 128), taps=4),
    "lfm2-1.2b": ModelShape(2048, 16, 32, 8, 64, 8192, 65536, True, 128000, 1e6, "lfm2", attending=(2, 5, 8, 10, 12, 14),
                            taps=3),
    "granite-4.0-h-1b": ModelShape(1536, 40, 12, 4, 128, 4096, 100352, True, 131072, 10000.0, "granitehybrid",
                                   attending=(5, 15, 25, 35), ssm=(48, 64, 1, 128), taps=4),
    "tiny-qwen3.5": ModelShape(512, 4, 4, 2, 64, 1024, 1024, True, 4096, 1e7, "qwen35", rotated=16, attending=(3,),
                               delta=(4, 8, 64), taps=4),
    "tiny-qwen3.5-moe": ModelShape(512, 4, 4, 2, 64, 256, 1024, False, 4096, 1e7, "qwen35moe", 16, 4, n_shared=1, rotated=16,
                                   attending=(3,), delta=(4, 8, 64), taps=4),
    "tiny-lfm2": ModelShape(512, 4, 8, 2, 64, 1024, 1024, True, 4096, 1e6, "lfm2", attending=(2,), taps=3),
    "tiny-granite-4": ModelShape(512, 4, 8, 2, 64, 1024, 1024, True, 4096, 10000.0, "granitehybrid", attending=(2,),
                                 ssm=(16, 64, 1, 128), taps=4),
    "tiny-deepseek": ModelShape(256, 4, 4, 1, 64, 256, 1024, False, 4096, 10000.0, "deepseek2", 8, 3, dense_ffn=512,
                                n_shared=1, latent=256, rotated=32, query_rank=256),
    "tiny-gpt-oss": ModelShape(256, 4, 8, 2, 64, 256, 1024, False, 4096, 150000.0, "gpt-oss", 8, 4, 128),
    "tiny-qwen3-moe": ModelShape(512, 4, 8, 2, 64, 256, 1024, False, 4096, 1e6, "qwen3moe", 16, 4),
    "tiny": ModelShape(512, 4, 8, 2, 64, 1024, 1024, True, 4096),
}
# name: (number in the file, elements of a block, bytes of a block, offset of its f16 scale)
TYPES = {
    "F32": (0, 1, 4, None), "F16": (1, 1, 2, None), "BF16": (30, 1, 2, None),
    "Q4_0": (2, 32, 18, 0), "Q4_1": (3, 32, 20, 0), "Q5_0": (6, 32, 22, 0), "Q5_1": (7, 32, 24, 0), "Q8_0": (8, 32, 34, 0),
    "Q2_K": (10, 256, 84, 80), "Q3_K": (11, 256, 110, 108), "Q4_K": (12, 256, 144, 0), "Q5_K": (13, 256, 176, 0),
    "Q6_K": (14, 256, 210, 208), "IQ4_NL": (20, 32, 18, 0), "IQ4_XS": (23, 256, 136, 0),
    "MXFP4": (39, 32, 17, None), "FP8": (121, 128, 132, None), "FP4": (123, 128, 76, None), "W8A8": (120, 32, 32, None),
    "IQ1_S": (19, 256, 50, 0), "IQ1_M": (29, 256, 56, None), "IQ2_XXS": (16, 256, 66, 0), "IQ2_XS": (17, 256, 74, 0),
    "IQ2_S": (22, 256, 82, 0), "IQ3_XXS": (18, 256, 98, 0), "IQ3_S": (21, 256, 110, 0), "TQ1_0": (34, 256, 54, 52),
    "TQ2_0": (35, 256, 66, 64), "Q1_0": (41, 128, 18, 0), "Q2_0": (42, 64, 18, 0),
}
# Scales with which values spread by about 0.02.
SCALES = {
    "Q4_0": 0.004, "Q4_1": 0.004, "Q5_0": 0.002, "Q5_1": 0.002, "Q8_0": 0.0003, "Q2_K": 0.0016, "Q3_K": 0.0003, "Q4_K": 0.0001,
    "Q5_K": 0.00005, "Q6_K": 0.00002, "IQ4_NL": 0.0002, "IQ4_XS": 0.00001, "IQ1_S": 0.002, "IQ1_M": 0.002, "IQ2_XXS": 0.0003,
    "IQ2_XS": 0.0003, "IQ2_S": 0.0003, "IQ3_XXS": 0.0001, "IQ3_S": 0.0001, "TQ1_0": 0.015, "TQ2_0": 0.015, "Q1_0": 0.013,
    "Q2_0": 0.011,
}
# Codes that have a mean: their scales have signs.
WITH_MEAN = ("Q4_0", "Q5_0", "Q3_K", "IQ4_NL", "IQ4_XS", "TQ1_0", "TQ2_0", "Q2_0")
# Where the f16 minimum stands, and the middle of the codes in scales, which it takes away.
MINIMA = {"Q4_1": (2, -7.5), "Q5_1": (2, -15.5), "Q2_K": (82, 1.5), "Q4_K": (2, 7.5), "Q5_K": (2, 15.5)}
# A row's f32 scale stands before its codes.
ROW_HEADER = {"W8A8": 4}
# Where rows have few bits, the output matrix keeps Q6_K.
FEW_BITS = ("Q2_K", "Q3_K", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0", "Q1_0", "Q2_0")


def random_rows(rng, dtype, n_rows, n_cols):
    """Bytes of rows of random weights with a spread of about 0.02."""
    _, block, size, scale_at = TYPES[dtype]
    n_elements = n_rows * n_cols
    if dtype == "F32":
        return rng.standard_normal(n_elements, dtype=np.float32) * np.float32(0.02)
    if dtype == "F16":
        return (rng.standard_normal(n_elements, dtype=np.float32) * np.float32(0.02)).astype(np.float16)
    if dtype == "BF16":
        return ((rng.standard_normal(n_elements, dtype=np.float32) * np.float32(0.02)).view(np.uint32) >> 16).astype(np.uint16)
    if dtype == "W8A8":
        rows = rng.integers(-127, 128, (n_rows, 4 + n_cols), dtype=np.int8)
        rows[:, :4] = np.full((n_rows, 1), 0.0003, dtype=np.float32).view(np.int8)
        return rows
    blocks = rng.integers(0, 256, (n_elements // block, size), dtype=np.uint8)
    if dtype == "MXFP4":
        blocks[:, 0] = 119 + blocks[:, 0] % 3  # exponents; codes have no mean
        return blocks
    if dtype == "FP8":
        blocks[:, 4:][(blocks[:, 4:] & 0x7f) == 0x7f] = 0
        blocks[:, :4] = np.full((len(blocks), 1), 0.0002, dtype=np.float32).view(np.uint8)
        return blocks
    if dtype == "FP4":
        blocks[:, :4] = np.full((len(blocks), 1), 0.006, dtype=np.float32).view(np.uint8)
        blocks[:, 4:12] = 0x30 + (blocks[:, 4:12] & 15)  # scales of 0.5 to 1.9
        return blocks
    scale = SCALES[dtype] * (1 + rng.random(len(blocks), dtype=np.float32))
    if dtype in WITH_MEAN:
        scale *= rng.choice(np.array([-1, 1], dtype=np.float32), len(blocks))
    if dtype in MINIMA:
        center(blocks, dtype, scale)
    if dtype == "IQ1_M":
        spread_f16(blocks, scale)
    else:
        write_f16(blocks, scale_at, scale)
    return blocks


def write_f16(blocks, offset, numbers):
    blocks[:, offset:offset + 2] = numbers.astype(np.float16).view(np.uint8).reshape(-1, 2)


def center(blocks, dtype, scale):
    """A block's minima are its scales, and one of them weighs as much as the middle of the codes."""
    offset, middle = MINIMA[dtype]
    write_f16(blocks, offset, scale * np.float32(middle))
    if dtype == "Q2_K":
        blocks[:, :16] = (blocks[:, :16] & 15) * 17
    if dtype in ("Q4_K", "Q5_K"):
        blocks[:, 8:12] = blocks[:, 4:8]
        blocks[:, 12:16] = (blocks[:, 12:16] & 15) * 17


def spread_f16(blocks, scale):
    """IQ1_M: four bits of the f16 scale are the highest of each of its four 16-bit words of small scales, the lowest first."""
    bits = scale.astype(np.float16).view(np.uint16)
    for i in range(4):
        high = blocks[:, 49 + 2 * i]
        high[:] = (high & 15) | ((bits >> (4 * i)) & 15).astype(np.uint8) << 4


def type_of(name, layer, shape, quant):
    """The type of a matrix. Q4_K_M keeps some of attn_v and ffn_down, and the output matrix, in Q6_K."""
    if quant == "MXFP4":
        return "MXFP4" if name.endswith("_exps") else "Q8_0"
    if quant in ("FP8", "FP4", "W8A8") and name in ("token_embd", "output"):
        return "Q8_0" if quant == "W8A8" else "BF16"
    is_output = name == "output" or (name == "token_embd" and shape.tied)
    if quant in FEW_BITS and is_output:
        return "Q6_K" if shape.dim % 256 == 0 else "Q8_0"
    if quant != "Q4_K_M":
        block = TYPES[quant][1]
        return quant if shape.dim % block == 0 else "Q8_0"
    if shape.dim % 256:
        return "Q8_0"
    eighth = shape.n_layers // 8
    more_bits = layer < eighth or layer >= 7 * shape.n_layers // 8 or (layer - eighth) % 3 == 2
    if is_output:
        return "Q6_K"
    return "Q6_K" if name.removesuffix("_exps") in ("attn_v", "ffn_down") and more_bits else "Q4_K"


def tensor_list(shape, quant):
    """(name, dims outermost first, type)"""
    q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    yield "token_embd.weight", (shape.vocab, shape.dim), type_of("token_embd", 0, shape, quant)
    for i in range(shape.n_layers):
        matrices = {**(state(shape) if shape.keeps_state(i) else attention(shape)), **feed_forward(shape, i)}
        yield f"blk.{i}.attn_norm.weight", (shape.dim,), "F32"
        yield f"blk.{i}.{'post_attention' if shape.family in ('gpt-oss', 'qwen35', 'qwen35moe') else 'ffn'}_norm.weight", (shape.dim,), "F32"
        for name, dims in (vectors(shape, i) | state_vectors(shape, i)).items():
            yield f"blk.{i}.{name}", dims, "F32"
        for name, dims in matrices.items():
            dtype = type_of(name, i, shape, quant)
            yield f"blk.{i}.{name}.weight", dims, dtype if dims[-1] % TYPES[dtype][1] == 0 else "Q8_0"
    yield "token_embd_norm.weight" if shape.family == "lfm2" else "output_norm.weight", (shape.dim,), "F32"
    if not shape.tied:
        yield "output.weight", (shape.vocab, shape.dim), type_of("output", 0, shape, quant)


def state(shape):
    """The matrices of a layer that keeps a state."""
    if shape.delta:
        k_heads, v_heads, width = shape.delta
        values = v_heads * width
        return {"attn_qkv": (2 * k_heads * width + values, shape.dim), "attn_gate": (values, shape.dim),
                "ssm_alpha": (v_heads, shape.dim), "ssm_beta": (v_heads, shape.dim), "ssm_out": (shape.dim, values)}
    if shape.ssm:
        heads, width, groups, size = shape.ssm
        return {"ssm_in": (2 * heads * width + 2 * groups * size + heads, shape.dim), "ssm_out": (shape.dim, heads * width)}
    return {"shortconv.in_proj": (3 * shape.dim, shape.dim), "shortconv.out_proj": (shape.dim, shape.dim)}


def state_vectors(shape, layer):
    """The same in F32; and the norms of heads where the others have them."""
    if not shape.keeps_state(layer):
        normed = shape.taps and not shape.ssm
        return {f"attn_{name}_norm.weight": (shape.head_dim,) for name in "qk"} if normed else {}
    if shape.delta:
        k_heads, v_heads, width = shape.delta
        return {"ssm_conv1d.weight": (2 * k_heads * width + v_heads * width, shape.taps), "ssm_a": (v_heads,),
                "ssm_dt.bias": (v_heads,), "ssm_norm.weight": (width,)}
    if shape.ssm:
        heads, width, groups, size = shape.ssm
        channels = heads * width + 2 * groups * size
        return {"ssm_conv1d.weight": (channels, shape.taps), "ssm_conv1d.bias": (channels,), "ssm_a": (heads, 1),
                "ssm_d": (heads, 1), "ssm_dt.bias": (heads,), "ssm_norm.weight": (groups, heads * width // groups)}
    return {"shortconv.conv.weight": (shape.dim, shape.taps)}


def attention(shape):
    q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    if shape.delta:  # with a gate behind each head
        return {"attn_q": (2 * q, shape.dim), "attn_k": (kv, shape.dim), "attn_v": (kv, shape.dim), "attn_output": (shape.dim, q)}
    if not shape.latent:
        return {"attn_q": (q, shape.dim), "attn_k": (kv, shape.dim), "attn_v": (kv, shape.dim), "attn_output": (shape.dim, q)}
    wide = q + shape.n_heads * shape.rotated
    queries = {"attn_q_a": (shape.query_rank, shape.dim), "attn_q_b": (wide, shape.query_rank)}
    return {**(queries if shape.query_rank else {"attn_q": (wide, shape.dim)}),
            "attn_kv_a_mqa": (shape.latent + shape.rotated, shape.dim),
            "attn_k_b": (shape.n_heads, shape.latent, shape.head_dim),
            "attn_v_b": (shape.n_heads, shape.head_dim, shape.latent), "attn_output": (shape.dim, q)}


def feed_forward(shape, layer):
    if shape.dense_ffn and layer == 0:
        return feed_forward(replace(shape, ffn_dim=shape.dense_ffn, dense_ffn=0, n_experts=0, n_shared=0), layer)
    if shape.n_shared:
        width = shape.n_shared * shape.ffn_dim
        shared = {"ffn_gate_shexp": (width, shape.dim), "ffn_up_shexp": (width, shape.dim), "ffn_down_shexp": (shape.dim, width)}
        return feed_forward(replace(shape, n_shared=0), layer) | shared
    up, down = (shape.ffn_dim, shape.dim), (shape.dim, shape.ffn_dim)
    if not shape.n_experts:
        return {"ffn_gate": up, "ffn_up": up, "ffn_down": down}
    return {f"ffn_{name}_exps": (shape.n_experts, *dims) for name, dims in (("gate", up), ("up", up), ("down", down))}


def vectors(shape, layer):
    """What a block has in F32 beside its two norms."""
    q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    own = {"ffn_gate_inp.weight": (shape.n_experts, shape.dim)} if shape.n_experts and not (shape.dense_ffn and layer == 0) else {}
    if shape.family == "qwen35moe":
        own |= {"ffn_gate_inp_shexp.weight": (shape.dim,)}
    if shape.latent:
        own |= {"attn_kv_a_norm.weight": (shape.latent,)}
    if shape.query_rank:
        own |= {"attn_q_a_norm.weight": (shape.query_rank,)}
    if shape.family == "qwen3moe":
        own |= {"attn_q_norm.weight": (shape.head_dim,), "attn_k_norm.weight": (shape.head_dim,)}
    if shape.family == "gpt-oss":
        wide, narrow = (shape.n_experts, shape.ffn_dim), (shape.n_experts, shape.dim)
        own |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,), "attn_output.bias": (shape.dim,),
                "attn_sinks.weight": (shape.n_heads,), "ffn_gate_inp.bias": (shape.n_experts,),
                "ffn_gate_exps.bias": wide, "ffn_up_exps.bias": wide, "ffn_down_exps.bias": narrow}
    return own


def byte_alphabet():
    """GPT-2's printable stand-ins of the 256 bytes."""
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    others = [b for b in range(256) if b not in printable]
    table = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [table[b] for b in range(256)]


def vocabulary(n):
    """Byte tokens, then pairs and triples of letters built by merges, then fillers; the last two are control tokens."""
    tokens, merges = byte_alphabet(), []
    letters = [chr(c) for c in range(97, 123)]
    pairs = [a + b for a in letters for b in letters]
    for pair in pairs:
        tokens.append(pair)
        merges.append(f"{pair[0]} {pair[1]}")
    for pair in pairs:
        for letter in letters:
            tokens.append(pair + letter)
            merges.append(f"{pair} {letter}")
    keep = min(n - 2, len(tokens))
    tokens = tokens[:keep]
    known = set(tokens)
    merges = [m for m in merges if m.replace(" ", "") in known]
    tokens += [f"\u0120filler{i}" for i in range(n - 2 - len(tokens))] + ["<|begin|>", "<|end|>"]
    return tokens, merges


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def meta(key, kind, value):
    body = {UINT32: lambda v: struct.pack("<I", v), INT32: lambda v: struct.pack("<i", v), FLOAT32: lambda v: struct.pack("<f", v),
            BOOL: lambda v: struct.pack("<B", v), STRING: text}
    if kind == ARRAY:
        element, values = value
        packed = b"".join(body[element](v) for v in values)
        return text(key) + struct.pack("<IIQ", ARRAY, element, len(values)) + packed
    return text(key) + struct.pack("<I", kind) + body[kind](value)


def expert_keys(shape):
    if not shape.n_experts:
        return []
    stem = shape.family
    keys = [meta(f"{stem}.expert_count", UINT32, shape.n_experts), meta(f"{stem}.expert_used_count", UINT32, shape.n_used),
            meta(f"{stem}.expert_feed_forward_length", UINT32, shape.ffn_dim)]
    if stem == "qwen35moe":
        keys.append(meta(f"{stem}.expert_shared_feed_forward_length", UINT32, shape.n_shared * shape.ffn_dim))
    if stem == "deepseek2":
        keys += [meta(f"{stem}.expert_shared_count", UINT32, shape.n_shared), meta(f"{stem}.leading_dense_block_count", UINT32, 1),
                 meta(f"{stem}.expert_gating_func", UINT32, 1), meta(f"{stem}.attention.kv_lora_rank", UINT32, shape.latent),
                 meta(f"{stem}.attention.key_length_mla", UINT32, shape.head_dim + shape.rotated),
                 meta(f"{stem}.attention.value_length_mla", UINT32, shape.head_dim),
                 meta(f"{stem}.expert_weights_scale", FLOAT32, 1.0), meta(f"{stem}.rope.scaling.type", STRING, "yarn"),
                 meta(f"{stem}.rope.scaling.factor", FLOAT32, 40.0),
                 meta(f"{stem}.rope.scaling.original_context_length", UINT32, 4096),
                 meta(f"{stem}.rope.scaling.yarn_log_multiplier", FLOAT32, 0.0707)]
        if shape.query_rank:
            keys.append(meta(f"{stem}.attention.q_lora_rank", UINT32, shape.query_rank))
    if stem == "gpt-oss":
        keys += [meta(f"{stem}.attention.sliding_window", UINT32, shape.window), meta(f"{stem}.rope.scaling.type", STRING, "yarn"),
                 meta(f"{stem}.rope.scaling.factor", FLOAT32, 32.0),
                 meta(f"{stem}.rope.scaling.original_context_length", UINT32, shape.context // 32)]
    return keys


def state_keys(shape):
    stem = shape.family
    if not shape.taps:
        return [meta(f"{stem}.attention.head_count_kv", UINT32, shape.n_kv_heads)]
    kv_heads = [0 if shape.keeps_state(i) else shape.n_kv_heads for i in range(shape.n_layers)]
    keys = [meta(f"{stem}.attention.head_count_kv", ARRAY, (INT32, kv_heads))]
    sizes = {}
    if shape.delta:
        k_heads, v_heads, width = shape.delta
        keys = [meta(f"{stem}.attention.head_count_kv", UINT32, shape.n_kv_heads),
                meta(f"{stem}.full_attention_interval", UINT32, shape.attending[0] + 1),
                meta(f"{stem}.rope.dimension_sections", ARRAY, (INT32, [shape.rotated // 2, 0, 0, 0]))]  # all of text
        sizes = {"group_count": k_heads, "time_step_rank": v_heads, "state_size": width, "inner_size": v_heads * width}
    if shape.ssm:
        heads, width, groups, size = shape.ssm
        keys += [meta(f"{stem}.rope.scaling.finetuned", BOOL, 0), meta(f"{stem}.logit_scale", FLOAT32, 6.0)]
        sizes = {"group_count": groups, "time_step_rank": heads, "state_size": size, "inner_size": heads * width}
    if not sizes:
        return keys + [meta(f"{stem}.shortconv.l_cache", UINT32, shape.taps)]
    sizes["conv_kernel"] = shape.taps
    return keys + [meta(f"{stem}.ssm.{key}", UINT32, size) for key, size in sizes.items()]


def metadata(name, shape):
    tokens, merges = vocabulary(shape.vocab)
    kinds = [1] * (shape.vocab - 2) + [3, 3]
    stem = shape.family
    return [
        *expert_keys(shape),
        meta("general.architecture", STRING, stem), meta("general.name", STRING, f"{name} (random weights)"),
        meta(f"{stem}.block_count", UINT32, shape.n_layers), meta(f"{stem}.context_length", UINT32, shape.context),
        meta(f"{stem}.embedding_length", UINT32, shape.dim), meta(f"{stem}.feed_forward_length", UINT32, shape.dense_ffn or shape.ffn_dim),
        meta(f"{stem}.attention.head_count", UINT32, shape.n_heads), *state_keys(shape),
        meta(f"{stem}.attention.key_length", UINT32, shape.latent + shape.rotated if shape.latent else shape.head_dim),
        meta(f"{stem}.attention.value_length", UINT32, shape.latent or shape.head_dim),
        meta(f"{stem}.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5), meta(f"{stem}.rope.dimension_count", UINT32, shape.rotated or shape.head_dim),
        meta(f"{stem}.rope.freq_base", FLOAT32, shape.rope_base), meta(f"{stem}.vocab_size", UINT32, shape.vocab),
        meta("tokenizer.ggml.model", STRING, "gpt2"), meta("tokenizer.ggml.pre", STRING, "llama-bpe"),
        meta("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)), meta("tokenizer.ggml.token_type", ARRAY, (INT32, kinds)),
        meta("tokenizer.ggml.merges", ARRAY, (STRING, merges)), meta("tokenizer.ggml.bos_token_id", UINT32, shape.vocab - 2),
        meta("tokenizer.ggml.eos_token_id", UINT32, shape.vocab - 1), meta("tokenizer.ggml.add_bos_token", BOOL, 1),
    ]


def write(path, name, shape, quant, seed):
    rng = np.random.default_rng(seed)
    tensors, offset, infos = list(tensor_list(shape, quant)), 0, b""
    for tensor, dims, dtype in tensors:
        number, block, size, _ = TYPES[dtype]
        infos += text(tensor) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in reversed(dims))
        infos += struct.pack("<IQ", number, offset)
        n_bytes = int(np.prod(dims)) // block * size + int(np.prod(dims[:-1])) * ROW_HEADER.get(dtype, 0)
        offset += (n_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    entries = metadata(name, shape)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + infos
    with open(path, "wb") as file:
        file.write(header + b"\0" * (-len(header) % ALIGNMENT))
        for tensor, dims, dtype in tensors:
            if len(dims) == 1 or tensor.endswith(("norm.weight", "ssm_a", "ssm_d")):
                value = -1.0 if tensor.endswith("ssm_a") else float(tensor.endswith(("norm.weight", "ssm_d")))
                file.write(np.full(dims, value, np.float32).tobytes())
            else:
                n_rows = int(np.prod(dims[:-1]))
                for first in range(0, n_rows, 4096):
                    file.write(random_rows(rng, dtype, min(n_rows, first + 4096) - first, dims[-1]).tobytes())
            file.write(b"\0" * (-file.tell() % ALIGNMENT))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("type", choices=[*TYPES, "Q4_K_M"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, help="the first N blocks alone")
    args = parser.parse_args()
    shape = SHAPES[args.shape]
    if args.layers is not None:
        if not max(shape.attending[:1], default=0) < args.layers <= shape.n_layers:
            parser.error(f"--layers: {args.shape} has {shape.n_layers} blocks; {args.layers} of them are no model")
        shape = replace(shape, n_layers=args.layers, attending=tuple(i for i in shape.attending if i < args.layers))
    partial = args.path.with_suffix(".partial")
    write(partial, args.shape, shape, args.type, args.seed)
    partial.rename(args.path)
    print(f"{args.path}: {args.path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
