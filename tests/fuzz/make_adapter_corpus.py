#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/adapter: adapters of the small model that adapter_fuzz.cpp reads them for, right and wrong.
   python3 tests/fuzz/make_adapter_corpus.py"""
import json
import struct
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus" / "adapter"
DIM, FFN, VOCAB, KV = 64, 96, 96, 32
LAYER = "base_model.model.model.layers.0."
PLAIN = {"peft_type": "LORA", "r": 1, "lora_alpha": 2}


def safetensors(tensors):
    header, data = {}, b""
    for name, shape in tensors.items():
        count = 1
        for size in shape:
            count *= size
        part = struct.pack("<f", 0.5) * count
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def folder(tensors, **config):
    return json.dumps({**PLAIN, **config}).encode() + b"\0" + safetensors(tensors)


def pair(module, n_in, n_out, rank=1):
    return {f"{module}.lora_A.weight": (rank, n_in), f"{module}.lora_B.weight": (n_out, rank)}


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(tensors, entries):
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    for key, value in entries.items():
        data += text(key)
        data += struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<If", 6, value)
    offset = 0
    for name, (rows, cols) in tensors.items():
        data += text(name) + struct.pack("<IQQIQ", 2, cols, rows, 0, offset)
        offset += -(-rows * cols * 4 // 32) * 32
    data += b"\0" * (-len(data) % 32)
    return data + struct.pack("<f", 0.5) * (offset // 4)


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    q = pair(LAYER + "self_attn.q_proj", DIM, DIM)
    files = {
        "plain": folder(q),
        "gains": folder({**q, LAYER + "self_attn.q_proj.lora_magnitude_vector": (DIM,)}, use_dora=True),
        "no_gains": folder(q, use_dora=True),
        "whole_head": folder({"base_model.model.lm_head.weight": (VOCAB, DIM)}),
        "embedding": folder({"base_model.model.model.embed_tokens.lora_embedding_A": (1, VOCAB),
                             "base_model.model.model.embed_tokens.lora_embedding_B": (DIM, 1)}),
        "patterns": folder(q, alpha_pattern={"q_proj": 4, "layers\\.[0-9]+\\..*k?_proj": 8}, use_rslora=True),
        "costly_patterns": folder(q, alpha_pattern={"a*" * 100 + str(i): 1 for i in range(64)}),
        "experts": folder({LAYER + "mlp.experts.lora_A.weight": (4, DIM), LAYER + "mlp.experts.lora_B.weight": (FFN, 4)},
                          target_parameters=["mlp.experts.gate_up_proj"]),
        "no_rank": folder(pair(LAYER + "self_attn.q_proj", DIM, DIM, 0)),
        "other_width": folder(pair(LAYER + "mlp.up_proj", FFN, DIM)),
        "no_module": folder(pair(LAYER + "self_attn.z_proj", DIM, DIM)),
        "no_layer": folder(pair(LAYER.replace("0", "99999999999") + "self_attn.q_proj", DIM, DIM)),
        "no_config": b"\0" + safetensors(q),
        "no_weights": json.dumps(PLAIN).encode(),
        "gguf": gguf({"blk.0.attn_q.weight.lora_a": (1, DIM), "blk.0.attn_q.weight.lora_b": (DIM, 1)},
                     {"general.type": "adapter", "adapter.type": "lora", "general.architecture": "llama",
                      "adapter.lora.alpha": 2.0}),
        "gguf_half": gguf({"blk.0.attn_q.weight.lora_a": (1, DIM)},
                          {"general.type": "adapter", "adapter.type": "lora", "general.architecture": "llama"}),
        "gguf_model": gguf({"token_embd.weight": (4, 4)}, {"general.architecture": "llama"}),
    }
    for name, data in files.items():
        (CORPUS / name).write_bytes(data)


if __name__ == "__main__":
    main()
