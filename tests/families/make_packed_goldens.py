#!/usr/bin/env python3
"""Makes goldens/llama_packed: goldens/llama as compressed-tensors packs it ("pack-quantized"), and its logits.

    python3 make_packed_goldens.py

Needs torch, transformers and compressed-tensors, whose own functions pack the tensors and decode them. Scales are bf16,
as in published folders. Matrices of 4 bits in groups of 32: symmetric in the first block, with zero points in the
second; down projections have 8 bits by channel, symmetric in the first block. One scale of the second block's query
projection is too small for f16. expected.f32: logits [T / 3, V], little-endian f32, of the prompt of make_goldens.py
through the library's eager attention in f32, with the matrices that the package decodes under the same scales in f32
(in bf16 it would round each product).
"""

import torch
from compressed_tensors.compressors.pack_quantized import PackedQuantizationCompressor as Packer
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from golden_folder import GoldenFolder, is_quantised

GROUP = 32
TINY = 2.0**-26


def scheme_of(key):
    is_symmetric = ".layers.0." in key
    if ".down_proj." in key:
        return dict(num_bits=8, strategy="channel", symmetric=is_symmetric)
    return dict(num_bits=4, strategy="group", group_size=GROUP, symmetric=is_symmetric)


def group_of(scheme, targets):
    weights = dict(scheme, type="int", dynamic=False, actorder="static" if scheme["strategy"] == "group" else None,
                   observer="minmax", block_structure=None)
    return dict(targets=targets, weights=weights, input_activations=None, output_activations=None,
                format="pack-quantized")


def config():
    keys = ["model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight",
            "model.layers.0.mlp.down_proj.weight", "model.layers.1.mlp.down_proj.weight"]
    groups = {f"group_{i}": group_of(scheme_of(key), ["re:.*" + key]) for i, key in enumerate(keys)}
    return dict(quant_method="compressed-tensors", format="pack-quantized", config_groups=groups, ignore=["lm_head"],
                kv_cache_scheme=None, quantization_status="compressed", sparsity_config={}, transform_config={})


def ranges(weight, scheme):
    """scales bf16 [out, groups], zero points int8 of the same shape, for codes from -2^(bits - 1) on."""
    n_out = weight.shape[0]
    groups = weight.reshape(n_out, -1, scheme.get("group_size", weight.shape[1]))
    top = 2 ** (scheme["num_bits"] - 1)
    low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
    if scheme["symmetric"]:
        scales = (torch.maximum(-low, high) / (top - 0.5)).bfloat16()
        return scales, torch.zeros(scales.shape, dtype=torch.int8)
    scales = ((high - low) / (2 * top - 1)).bfloat16()
    zeros = (torch.round(-low / scales.float()) - top).clamp(-top, top - 1)
    return scales, zeros.to(torch.int8)


def make():
    golden = GoldenFolder("llama_packed", config())
    stored = {}
    for key, tensor in golden.tensors.items():
        if not is_quantised(key):
            stored[key] = tensor
            continue
        scheme = scheme_of(key)
        scales, zeros = ranges(tensor.float(), scheme)
        if key.endswith("layers.1.self_attn.q_proj.weight"):
            scales[3, 1] = TINY
        args = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(type="int", **scheme))
        state = dict(weight=tensor.float(), weight_scale=scales.float(), weight_zero_point=zeros)
        packed = Packer.compress(state, args)
        decoded = Packer.decompress(packed, args)["weight"]
        assert decoded.dtype == torch.float32
        golden.model.get_parameter(key).data.copy_(decoded)
        packed["weight_scale"] = scales
        stem = key.removesuffix("weight")
        stored.update({stem + name: value.contiguous() for name, value in packed.items() if value is not None})
    golden.write_tensors(stored)
    golden.write_logits("expected.f32")


if __name__ == "__main__":
    make()
