#!/usr/bin/env python3
"""Makes goldens/llama_gptq and goldens/llama_awq: goldens/llama in 4 bits, packed as those two do, and its logits.

    python3 make_int4_goldens.py

Needs torch and transformers. Matrices of the blocks have a scale and a zero point for each 32 inputs; in the first block
of the GPTQ model every zero point is 8, as its symmetric form has them. expected.f32: logits [T, V], little-endian f32,
of the prompt of make_goldens.py through the library's eager attention in f32, with the matrices scale * (code - zero).
"""

import json
import pathlib
import shutil

import safetensors.torch
import torch
import transformers as tf

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "goldens" / "llama"
GROUP = 32
N_TOKENS = 48
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
    target = HERE / "goldens" / name
    target.mkdir(exist_ok=True)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(SOURCE / file, target / file)
    config = json.loads((SOURCE / "config.json").read_text())
    config["quantization_config"] = quantization
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = safetensors.torch.load_file(SOURCE / "model.safetensors")
    model = tf.AutoModelForCausalLM.from_pretrained(SOURCE, dtype=torch.float32, attn_implementation="eager").eval()
    stored = {}
    for key, tensor in tensors.items():
        if not key.endswith("_proj.weight"):
            stored[key] = tensor
            continue
        codes, zeros, scales = quantized(tensor.float(), name == "llama_gptq" and ".layers.0." in key)
        stored.update(pack(key.removesuffix(".weight"), codes, zeros, scales))
        wide = (codes - zeros.repeat_interleave(GROUP, 1)).float() * scales.float().repeat_interleave(GROUP, 1)
        model.get_parameter(key).data.copy_(wide)
    safetensors.torch.save_file(stored, target / "model.safetensors")
    (target / "model.safetensors").chmod(0o644)
    ids = [(37 * i * i + 11 * i + 5) % config["vocab_size"] for i in range(N_TOKENS)]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    (target / "expected.f32").write_bytes(logits.float().numpy().tobytes())


if __name__ == "__main__":
    make("llama_gptq", GPTQ, gptq_tensors)
    make("llama_awq", AWQ, awq_tensors)
