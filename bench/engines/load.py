"""What the scripts of this folder share: the shape that all engines load, the load that is put on them, the output.

    with_NAME.py setup FOLDER      an environment with the engine in FOLDER/venv, and the model in the form that it reads
    with_NAME.py measure FOLDER    tokens a second of prefill, decode and many together, as JSON

Nothing of Candor needs them, and nothing of them stands in Candor's folders: FOLDER is anywhere else. The weights are
random in the published shape of Llama-3.2-1B, as scripts/make_shape.py makes them for Candor: engines differ in how fast
they compute and not in what.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

VOCAB = 128256
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
         "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
         "vocab_size": VOCAB, "max_position_embeddings": 131072, "rope_theta": 500000.0, "rms_norm_eps": 1e-5,
         "hidden_act": "silu", "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 1,
         "torch_dtype": "bfloat16"}


def python_of(folder: Path) -> str:
    return str(folder / "venv" / "bin" / "python")


def install(folder: Path, packages: list[str]) -> None:
    """An environment of the engine's own, from PyPI."""
    venv.create(folder / "venv", with_pip=True)
    subprocess.run([python_of(folder), "-m", "pip", "install", "-q", *packages], check=True)


def in_environment(folder: Path, script: str, what: str) -> None:
    """Runs a step of the script with the environment's Python."""
    subprocess.run([python_of(folder), script, what, str(folder)], check=True)


def make_hub_folder(folder: Path) -> Path:
    """The shape as the hub's tools write models: bf16, and a tokenizer of one word for each token ("w17" is token 17)."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    hub = folder / "hub"
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(**{key: value for key, value in SHAPE.items() if key != "architectures"}))
    model.to(torch.bfloat16).save_pretrained(hub)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCAB)}, unk_token="w2"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w0", eos_token="w1", unk_token="w2").save_pretrained(hub)
    return hub


def prompts_of(n: int, n_tokens: int, seed: int) -> list[list[int]]:
    """Prompts that begin differently, so that no cache of prefixes serves them."""
    return [[10 + (seed * 977 + i * 7919 + t * 31) % (VOCAB - 10) for t in range(n_tokens)] for i in range(n)]


def measure(generate, args: argparse.Namespace) -> dict:
    """generate(prompts, n_new): exactly n_new tokens for each prompt, greedy. The first token's time is the prompt's."""
    def seconds(n: int, n_prompt: int, n_new: int, seed: int) -> float:
        prompts = prompts_of(n, n_prompt, seed)
        began = time.perf_counter()
        generate(prompts, n_new)
        return time.perf_counter() - began

    seconds(1, 32, 2, 1)  # what is made at the first use
    prefill = seconds(1, args.prompt, 1, 2)
    whole = seconds(1, args.prompt, 1 + args.new, 3)
    rates = {"prefill": args.prompt / prefill, "decode": args.new / max(1e-9, whole - prefill)}
    if args.batch > 1:
        first = seconds(args.batch, args.batch_prompt, 1, 4)
        whole = seconds(args.batch, args.batch_prompt, 1 + args.new, 5)
        rates[f"decode x {args.batch}"] = args.batch * args.new / max(1e-9, whole - first)
    return rates


def run(name: str, steps: dict, open_model) -> None:
    """steps: what besides "measure" may be asked for, functions of the folder. open_model(folder, threads) -> (version and
    options, generate)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*steps, "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--batch-prompt", type=int, default=128)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    args.folder = args.folder.resolve()
    if args.what in steps:
        args.folder.mkdir(parents=True, exist_ok=True)
        return steps[args.what](args.folder)
    if Path(sys.prefix).resolve() != args.folder / "venv":
        return os.execv(python_of(args.folder), [python_of(args.folder), *sys.argv])
    output = os.dup(1)  # what engines print goes elsewhere
    os.dup2(2, 1)
    about, generate = open_model(args.folder, args.threads)
    report = {"name": name, "about": about, "tokens_per_second": measure(generate, args)}
    os.write(output, (json.dumps(report) + "\n").encode())
