#!/usr/bin/env python3
"""Makes goldens/llama_int8: goldens/llama as compressed-tensors writes it int-quantized by channel, and its logits.

    python3 make_int8_golden.py

Needs torch and transformers. Matrices of the blocks become codes I8 and, as "weight_scale", one BF16 for each output;
the head and the embedding stay BF16. Activations are dynamic by token: the computation is the library's eager attention
in f32, in which each of these layers rounds a row of its input to int8 by largest magnitude / 127, sums the products of
codes as integers, and multiplies them by both scales. expected.f32: logits [T, V], little-endian, of the prompt of
make_goldens.py; decoded.f32: the same without rounding the inputs.
"""

import json
import pathlib
import shutil

import safetensors.torch
import torch
import transformers as tf

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "goldens" / "llama"
TARGET = HERE / "goldens" / "llama_int8"
N_TOKENS = 48

INT8 = dict(num_bits=8, type="int", symmetric=True, group_size=None, block_structure=None, actorder=None,
            observer_kwargs={})
QUANTIZATION = {
    "config_groups": {
        "group_0": {
            "input_activations": dict(INT8, strategy="token", dynamic=True, observer=None),
            "output_activations": None,
            "targets": ["Linear"],
            "weights": dict(INT8, strategy="channel", dynamic=False, observer="minmax"),
        }
    },
    "format": "int-quantized",
    "global_compression_ratio": None,
    "ignore": ["lm_head"],
    "kv_cache_scheme": None,
    "quant_method": "compressed-tensors",
    "quantization_status": "compressed",
    "sparsity_config": {},
    "transform_config": {},
}


def quantized(weight):
    scale = (weight.abs().amax(dim=1, keepdim=True) / 127).to(torch.bfloat16)
    codes = torch.round(weight / scale.float()).clamp(-128, 127).to(torch.int8)
    return codes, scale


class Int8Linear(torch.nn.Module):
    def __init__(self, codes, scale):
        super().__init__()
        self.codes = codes.double()
        self.scale = scale.float().flatten()

    rounds = True

    def forward(self, x):
        if not Int8Linear.rounds:
            return x @ (self.codes.float() * self.scale[:, None]).T
        top = x.abs().amax(dim=-1, keepdim=True)
        codes = torch.round(x * (127 / top)).double()
        return (top / 127) * (self.scale * (codes @ self.codes.T).float())


def main():
    TARGET.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(SOURCE / name, TARGET / name)
    config = json.loads((SOURCE / "config.json").read_text())
    config["quantization_config"] = QUANTIZATION
    (TARGET / "config.json").write_text(json.dumps(config, indent=2) + "\n")

    tensors = safetensors.torch.load_file(SOURCE / "model.safetensors")
    model = tf.AutoModelForCausalLM.from_pretrained(SOURCE, dtype=torch.float32, attn_implementation="eager").eval()
    stored = {}
    for name, tensor in tensors.items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor
            continue
        codes, scale = quantized(tensor.float())
        stored[name], stored[name + "_scale"] = codes, scale
        parent = model.get_submodule(name.removesuffix(".weight").rpartition(".")[0])
        setattr(parent, name.split(".")[-2], Int8Linear(codes, scale))
    safetensors.torch.save_file(stored, TARGET / "model.safetensors")
    ids = [(37 * i * i + 11 * i + 5) % config["vocab_size"] for i in range(N_TOKENS)]
    for name, Int8Linear.rounds in (("expected.f32", True), ("decoded.f32", False)):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        (TARGET / name).write_bytes(logits.float().numpy().tobytes())


if __name__ == "__main__":
    main()
