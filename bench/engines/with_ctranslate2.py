#!/usr/bin/env python3
"""CTranslate2: int8 weights by row, int8 activations by token. See load.py."""

from pathlib import Path

import load

PACKAGES = ["ctranslate2>=4.6", "transformers<5", "torch", "safetensors", "sentencepiece"]


def setup(folder: Path) -> None:
    load.install(folder, PACKAGES)
    load.in_environment(folder, __file__, "convert")


def convert(folder: Path) -> None:
    import ctranslate2

    hub = load.make_hub_folder(folder)
    ctranslate2.converters.TransformersConverter(str(hub), low_cpu_mem_usage=True).convert(
        str(folder / "model"), quantization="int8_float32", force=True)


def open_model(folder: Path, threads: int):
    import ctranslate2

    generator = ctranslate2.Generator(str(folder / "model"), device="cpu", intra_threads=threads, inter_threads=1)

    def generate(prompts, n_new):
        generator.generate_batch([[f"w{token}" for token in prompt] for prompt in prompts], max_length=n_new,
                                 min_length=n_new, sampling_topk=1, include_prompt_in_result=False,
                                 max_batch_size=len(prompts))

    return f"ctranslate2 {ctranslate2.__version__}, int8", generate


if __name__ == "__main__":
    load.run("CTranslate2 int8", {"setup": setup, "convert": convert}, open_model)
