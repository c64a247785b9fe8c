#!/usr/bin/env python3
"""Makes goldens/llama_gptq and goldens/llama_awq: goldens/llama in 4 bits, packed as those two do, and its logits.

    python3 make_int4_goldens.py

Needs torch and transformers. Matrices of the blocks have a scale and a zero point for each 32 inputs; in the first block
of the GPTQ model every zero point is 8, as its symmetric form has them. expected.f32: logits [T / 3, V], little-endian f32,
of the prompt of make_goldens.py through the library's eager attention in f32, with the matrices scale * (code - zero).
"""

import torch
from golden_folder import GoldenFolder, is_quantised

GROUP = 32
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]

GPTQ = dict(bits=4, group_size=GROUP, desc_act=False, sym=False, quant_method="gptq", checkpoint_format="gptq",
            lm_head=False, damp_percent=0.05, true_sequential=True)
AWQ = dict(bits=4, group_size=GROUP, zero_point=True, quant_method="awq", version="gemm", modules_to_not_convert=None)


def quantized(weight, is_symmetric):
    """weight: [out, in]. codes [out, in], zeros [out, groups], scales f16 [out, groups]."""
    n_out, n_in = weight.shape
    groups = weight.reshape(n_out, n_in // GROUP, GROUP)
    if is_symmetric:
        scales = (groups.abs().amax(-1) / 7.5).half()
        zeros = torch.full(scales.shape, 8)
    else:
        low, high = groups.amin(-1).clamp(max=0), groups.amax(-1).clamp(min=0)
        scales = ((high - low) / 15).half()
        zeros = torch.round(-low / scales.float()).clamp(1, 15).int()
    codes = (torch.round(groups / scales.float()[..., None]) + zeros[..., None]).clamp(0, 15).int()
    return codes.reshape(n_out, n_in), zeros, scales


def packed(values, order):
    """Eight columns in an int32, order[i] at bit 4 i."""
    result = torch.zeros(values.shape[0], values.shape[1] // 8, dtype=torch.int64)
    for i, column in enumerate(order):
        result |= values[:, column::8].long() << (4 * i)
    return torch.where(result >= 1 << 31, result - (1 << 32), result).int().contiguous()


def gptq_tensors(stem, codes, zeros, scales):
    plain = list(range(8))
    n_in = codes.shape[1]
    return {stem + ".qweight": packed(codes, plain).T.contiguous(), stem + ".qzeros": packed(zeros.T - 1, plain),
            stem + ".scales": scales.T.contiguous(), stem + ".g_idx": (torch.arange(n_in) // GROUP).int()}


def awq_tensors(stem, codes, zeros, scales):
    return {stem + ".qweight": packed(codes.T, AWQ_ORDER), stem + ".qzeros": packed(zeros.T, AWQ_ORDER),
            stem + ".scales": scales.T.contiguous()}


def make(name, quantization, pack):
    golden = GoldenFolder(name, quantization)
    stored = {}
    for key, tensor in golden.tensors.items():
        if not is_quantised(key):
            stored[key] = tensor
            continue
        codes, zeros, scales = quantized(tensor.float(), name == "llama_gptq" and ".layers.0." in key)
        stored.update(pack(key.removesuffix(".weight"), codes, zeros, scales))
        wide = (codes - zeros.repeat_interleave(GROUP, 1)).float() * scales.float().repeat_interleave(GROUP, 1)
        golden.model.get_parameter(key).data.copy_(wide)
    golden.write_tensors(stored)
    golden.write_logits("expected.f32")


if __name__ == "__main__":
    make("llama_gptq", GPTQ, gptq_tensors)
    make("llama_awq", AWQ, awq_tensors)
