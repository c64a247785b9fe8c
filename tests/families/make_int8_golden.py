#!/usr/bin/env python3
"""Makes goldens/llama_int8: goldens/llama as compressed-tensors writes it int-quantized by channel, and its logits.

    python3 make_int8_golden.py

Needs torch and transformers. Matrices of the blocks become codes I8 and, as "weight_scale", one BF16 for each output;
the head and the embedding stay BF16. Activations are dynamic by token: the computation is the library's eager attention
in f32, in which each of these layers rounds a row of its input to int8 by largest magnitude / 127, sums the products of
codes as integers, and multiplies them by both scales. expected.f32: logits [T / 3, V], little-endian, of the prompt of
make_goldens.py; decoded.f32: the same without rounding the inputs.
"""

import torch
from golden_folder import GoldenFolder, is_quantised

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
    golden = GoldenFolder("llama_int8", QUANTIZATION)
    stored = {}
    for name, tensor in golden.tensors.items():
        if not is_quantised(name):
            stored[name] = tensor
            continue
        codes, scale = quantized(tensor.float())
        stored[name], stored[name + "_scale"] = codes, scale
        parent = golden.model.get_submodule(name.removesuffix(".weight").rpartition(".")[0])
        setattr(parent, name.split(".")[-2], Int8Linear(codes, scale))
    golden.write_tensors(stored)
    for name, Int8Linear.rounds in (("expected.f32", True), ("decoded.f32", False)):
        golden.write_logits(name)


if __name__ == "__main__":
    main()
