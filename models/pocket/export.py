"""Writes the GGUF files of the trained models.

    python3 export.py --work DIR
"""

import argparse
from pathlib import Path

import numpy as np
import torch

import gguf
from bpe import Tokenizer
from model import ModelConfig, draft_config, main_config

HERE = Path(__file__).resolve().parent
NORMAL, CONTROL = 1, 3        # token types
FILE_TYPE = {False: 0, True: 7}  # all F32, mostly Q8_0
QUANTIZATION_VERSION = 2


def model_metadata(config: ModelConfig, name: str, quantized: bool) -> dict:
    metadata = {
        "general.architecture": (gguf.STRING, "llama"),
        "general.name": (gguf.STRING, name),
        "general.license": (gguf.STRING, "Apache-2.0"),
        "general.description": (gguf.STRING,
                                "A very small model of short stories and small sums that ships with Candor"),
        "general.alignment": (gguf.UINT32, gguf.ALIGNMENT),
        "general.file_type": (gguf.UINT32, FILE_TYPE[quantized]),
        "llama.vocab_size": (gguf.UINT32, config.vocab_size),
        "llama.context_length": (gguf.UINT32, config.context_tokens),
        "llama.embedding_length": (gguf.UINT32, config.dim),
        "llama.block_count": (gguf.UINT32, config.n_layers),
        "llama.feed_forward_length": (gguf.UINT32, config.ffn_dim),
        "llama.attention.head_count": (gguf.UINT32, config.n_heads),
        "llama.attention.head_count_kv": (gguf.UINT32, config.n_kv_heads),
        "llama.attention.layer_norm_rms_epsilon": (gguf.FLOAT32, config.norm_eps),
        "llama.rope.dimension_count": (gguf.UINT32, config.head_dim),
        "llama.rope.freq_base": (gguf.FLOAT32, config.rope_base),
    }
    if quantized:
        metadata["general.quantization_version"] = (gguf.UINT32, QUANTIZATION_VERSION)
    return metadata


def tokenizer_metadata(tokenizer: Tokenizer) -> dict:
    types = [CONTROL if i >= tokenizer.first_special else NORMAL for i in range(len(tokenizer.tokens))]
    template = (HERE / "chat_template.jinja").read_text().rstrip("\n")
    return {
        "tokenizer.ggml.model": (gguf.STRING, "gpt2"),
        "tokenizer.ggml.pre": (gguf.STRING, "qwen2"),
        "tokenizer.ggml.tokens": (gguf.ARRAY, gguf.STRING, tokenizer.tokens),
        "tokenizer.ggml.token_type": (gguf.ARRAY, gguf.INT32, types),
        "tokenizer.ggml.merges": (gguf.ARRAY, gguf.STRING, [" ".join(pair) for pair in tokenizer.merges]),
        "tokenizer.ggml.bos_token_id": (gguf.UINT32, tokenizer.bos),
        "tokenizer.ggml.eos_token_id": (gguf.UINT32, tokenizer.eos),
        "tokenizer.ggml.add_bos_token": (gguf.BOOL, True),
        "tokenizer.ggml.add_eos_token": (gguf.BOOL, False),
        "tokenizer.chat_template": (gguf.STRING, template),
    }


def export(checkpoint: Path, config: ModelConfig, name: str, files: dict[str, bool]) -> None:
    """files: file name -> whether its matrices are Q8_0."""
    tokenizer = Tokenizer.load(HERE / "tokenizer.json")
    state = torch.load(checkpoint, map_location="cpu")["model"]
    tensors = {key: value.numpy().astype(np.float32) for key, value in state.items()}
    for file, quantized in files.items():
        metadata = model_metadata(config, name, quantized) | tokenizer_metadata(tokenizer)
        gguf.write(HERE / file, metadata, tensors, quantized)
        print(f"{file}: {(HERE / file).stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of the checkpoints")
    work = parser.parse_args().work
    vocab_size = len(Tokenizer.load(HERE / "tokenizer.json").tokens)
    if (work / "main.pt").exists():
        export(work / "main.pt", main_config(vocab_size), "Pocket",
               {"pocket-f32.gguf": False, "pocket-q8_0.gguf": True})
    if (work / "draft.pt").exists():
        export(work / "draft.pt", draft_config(vocab_size), "Pocket Draft", {"pocket-draft-q8_0.gguf": True})


if __name__ == "__main__":
    main()
