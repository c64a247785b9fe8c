#!/usr/bin/env python3
"""Makes hqq_parts.json: small matrices as HQQ quantises and saves them, and the numbers that it makes of them again.

    python3 make_hqq_parts.py

Needs torch and hqq.
"""

import base64
import json
import pathlib

import torch
from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

N_OUT, N_IN = 12, 256
CASES = {"4_bits": (4, 64, 1, torch.bfloat16), "8_bits": (8, 64, 1, torch.float16), "3_bits": (3, 64, 1, torch.bfloat16),
         "2_bits": (2, 32, 1, torch.bfloat16), "1_bit": (1, 64, 1, torch.bfloat16), "axis_0": (4, 64, 0, torch.float16),
         "3_bits_axis_0": (3, 64, 0, torch.bfloat16)}
TYPES = {torch.uint8: "U8", torch.int32: "I32", torch.int64: "I64", torch.bfloat16: "BF16", torch.float16: "F16"}


def coded(tensor):
    return base64.b64encode(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).decode()


def main():
    torch.manual_seed(7)
    result = {}
    for name, (bits, group, axis, dtype) in CASES.items():
        linear = torch.nn.Linear(N_IN, N_OUT, bias=False)
        quantized = HQQLinear(linear, BaseQuantizeConfig(nbits=bits, group_size=group, axis=axis), compute_dtype=dtype,
                              device="cpu")
        parts = {part: {"dtype": TYPES[tensor.dtype], "shape": list(tensor.shape), "data": coded(tensor)}
                 for part, tensor in quantized.state_dict().items()}
        result[name] = {"parts": parts, "numbers": coded(quantized.dequantize())}
    (pathlib.Path(__file__).parent / "hqq_parts.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
