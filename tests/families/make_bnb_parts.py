#!/usr/bin/env python3
"""Makes bnb_parts.json: small matrices as bitsandbytes quantises them, and the numbers that it makes of them again.

    python3 make_bnb_parts.py

Needs torch and bitsandbytes.
"""

import base64
import json
import pathlib

import bitsandbytes.functional as bnb
import torch

N_OUT, N_IN = 12, 192


def text(tensor):
    data = tensor.contiguous().flatten().view(torch.uint8) if tensor.numel() > 0 else tensor
    return base64.b64encode(data.numpy().tobytes()).decode()


def four_bits(weight, quant_type, is_nested):
    codes, state = bnb.quantize_4bit(weight, quant_type=quant_type, compress_statistics=is_nested, blocksize=64)
    again = bnb.dequantize_4bit(codes, state)
    parts = {"": text(codes)}
    for name, tensor in state.as_dict(packed=True).items():
        parts["." + name] = text(tensor)
    return {"parts": parts, "numbers": text(again.view(torch.int16)), "dtype": str(weight.dtype).removeprefix("torch.")}


def rows_of_int8(weight):
    codes, scales, _ = bnb.int8_vectorwise_quant(weight.half())
    return {"codes": text(codes), "scales": text(scales), "numbers": text(bnb.int8_vectorwise_dequant(codes, scales).half().view(torch.int16))}


def main():
    torch.manual_seed(7)
    weight = torch.randn(N_OUT, N_IN) * 0.05
    cases = {f"{quant_type}{'_nested' if is_nested else ''}": four_bits(weight.to(dtype), quant_type, is_nested)
             for quant_type, is_nested, dtype in (("nf4", True, torch.bfloat16), ("nf4", False, torch.float16),
                                                  ("fp4", True, torch.bfloat16))}
    result = {"n_out": N_OUT, "n_in": N_IN, "four_bits": cases, "int8": rows_of_int8(weight)}
    (pathlib.Path(__file__).parent / "bnb_parts.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
