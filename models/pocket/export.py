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
FILE_TYPE = {gguf.F32: 0, gguf.Q4_0: 2, gguf.Q8_0: 7}  # mostly that
QUANTIZATION_VERSION = 2


def model_metadata(config: ModelConfig, name: str, matrices: int) -> dict:
    metadata = {
        "general.architecture": (gguf.STRING, "llama"),
        "general.name": (gguf.STRING, name),
        "general.license": (gguf.STRING, "Apache-2.0"),
        "general.description": (gguf.STRING,
                                "A very small model of short stories and small sums that ships with Candor"),
        "general.alignment": (gguf.UINT32, gguf.ALIGNMENT),
        "general.file_type": (gguf.UINT32, FILE_TYPE[matrices]),
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
    if matrices != gguf.F32:
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


def export(checkpoint: Path, config: ModelConfig, name: str, files: dict[str, int]) -> None:
    """files: file name -> the type of its matrices."""
    tokenizer = Tokenizer.load(HERE / "tokenizer.json")
    state = torch.load(checkpoint, map_location="cpu")["model"]
    tensors = {key: value.numpy().astype(np.float32) for key, value in state.items()}
    for file, matrices in files.items():
        metadata = model_metadata(config, name, matrices) | tokenizer_metadata(tokenizer)
        gguf.write(HERE / file, metadata, tensors, matrices)
        print(f"{file}: {(HERE / file).stat().st_size} bytes")


def export_head(checkpoint: Path, config: ModelConfig, file: str) -> None:
    """The head for multi-token prediction alone: a block behind the model's last, and the output matrix again. Drafts
    need not be exact, and small weights are read fast."""
    names = {"enorm": "nextn.enorm", "hnorm": "nextn.hnorm", "eh_proj": "nextn.eh_proj",
             "norm": "nextn.shared_head_norm"}
    tensors = {}
    for key, value in torch.load(checkpoint, map_location="cpu")["model"].items():
        part = key.removesuffix(".weight")
        name = names.get(part, part.removeprefix("block."))
        tensors[f"blk.{config.n_layers}.{name}.weight"] = value.numpy().astype(np.float32)
    output = gguf.Reader(HERE / "pocket-f32.gguf").tensors["token_embd.weight"]
    tensors[f"blk.{config.n_layers}.nextn.shared_head_head.weight"] = output
    metadata = model_metadata(config, "Pocket, multi-token prediction", gguf.Q4_0)
    metadata["llama.block_count"] = (gguf.UINT32, config.n_layers + 1)
    metadata["llama.nextn_predict_layers"] = (gguf.UINT32, 1)
    gguf.write(HERE / file, metadata, tensors, gguf.Q4_0)
    print(f"{file}: {(HERE / file).stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of the checkpoints")
    work = parser.parse_args().work
    vocab_size = len(Tokenizer.load(HERE / "tokenizer.json").tokens)
    if (work / "main.pt").exists():
        export(work / "main.pt", main_config(vocab_size), "Pocket",
               {"pocket-f32.gguf": gguf.F32, "pocket-q8_0.gguf": gguf.Q8_0})
    if (work / "head.pt").exists():
        export_head(work / "head.pt", main_config(vocab_size), "mtp-pocket-q8_0.gguf")
    if (work / "draft.pt").exists():
        export(work / "draft.pt", draft_config(vocab_size), "Pocket Draft", {"pocket-draft-q8_0.gguf": gguf.Q8_0})


if __name__ == "__main__":
    main()
