#!/usr/bin/env python3
"""vLLM on the CPU, bf16. PyPI's wheels are for GPUs: WHEEL names one for the CPU (docs.vllm.ai says where). See load.py.

Other arithmetic by the model: put a folder that llm-compressor made (W8A8, W4A16) in FOLDER/hub.
"""

import os
from pathlib import Path

import load

WHEEL = os.environ.get("VLLM_CPU_WHEEL", "vllm")


def setup(folder: Path) -> None:
    load.install(folder, [WHEEL])
    load.in_environment(folder, __file__, "convert")


def convert(folder: Path) -> None:
    if not (folder / "hub").exists():
        load.make_hub_folder(folder)


def open_model(folder: Path, threads: int):
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{threads - 1}")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    import vllm

    model = vllm.LLM(str(folder / "hub"), max_model_len=16384, enable_prefix_caching=False, disable_log_stats=True)

    def generate(prompts, n_new):
        params = vllm.SamplingParams(temperature=0, max_tokens=n_new, min_tokens=n_new, ignore_eos=True)
        model.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)

    return f"vllm {vllm.__version__}", generate


if __name__ == "__main__":
    load.run("vLLM", {"setup": setup, "convert": convert}, open_model)
