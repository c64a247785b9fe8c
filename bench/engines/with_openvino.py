#!/usr/bin/env python3
"""OpenVINO GenAI: int4 weights in groups of 128, int8 activations by groups. See load.py."""

from pathlib import Path

import load

PACKAGES = ["openvino-genai", "openvino-tokenizers", "optimum-intel[openvino]", "torch", "transformers<5", "nncf"]


def setup(folder: Path) -> None:
    load.install(folder, PACKAGES)
    load.in_environment(folder, __file__, "convert")


def convert(folder: Path) -> None:
    hub = load.make_hub_folder(folder)
    program = folder / "venv" / "bin" / "optimum-cli"
    load.subprocess.run([str(program), "export", "openvino", "--model", str(hub), "--task", "text-generation-with-past",
                         "--weight-format", "int4", "--group-size", "128", "--ratio", "1.0", str(folder / "model")],
                        check=True)


def open_model(folder: Path, threads: int):
    import numpy
    import openvino
    import openvino_genai

    options = {"INFERENCE_NUM_THREADS": threads, "DYNAMIC_QUANTIZATION_GROUP_SIZE": 128}
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = 2
    scheduler.enable_prefix_caching = False
    pipeline = openvino_genai.ContinuousBatchingPipeline(str(folder / "model"), scheduler, "CPU", options)

    def generate(prompts, n_new):
        config = openvino_genai.GenerationConfig(max_new_tokens=n_new, min_new_tokens=n_new, do_sample=False,
                                                 ignore_eos=True)
        inputs = [openvino.Tensor(numpy.array([prompt], dtype=numpy.int64)) for prompt in prompts]
        pipeline.generate(inputs, [config] * len(prompts))

    return f"openvino {openvino.__version__}, int4 in groups of 128, {options}", generate


if __name__ == "__main__":
    load.run("OpenVINO int4", {"setup": setup, "convert": convert}, open_model)
