#!/usr/bin/env python3
"""Writes goldens/NAME/llama_cpp.json: the token that llama.cpp ranks first after each token of the golden's prompt.

    python3 make_llama_cpp_tokens.py --llama FOLDER --goldens FOLDER [--gguf NAME=FILE ...]

The first FOLDER is a checkout of llama.cpp, built in build/; the second holds the goldens as a build makes them whole
(build/tests/goldens). With --gguf nothing is written; the given files
are compared with the goldens instead: the same first token at every position where the gap exceeds 0.1.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
VOCAB = 288
# What llama.cpp computes otherwise of a tiny model, or of any.
OTHERWISE = {"baichuan": "rotates only where there are 32 blocks",
             "deepseek_v2": "has a query without a rank only in 26 or 27 blocks",
             "glm4_moe_lite": "agrees, but one row goes to another expert where activations are bf16",
             "gpt_oss": "cuts the borders of YaRN to whole pairs, which config.json says not to"}
PROMPT = [(37 * i * i + 11 * i + 5) % VOCAB for i in range(48)]


def build(llama, folder):
    program = pathlib.Path(folder) / "llama_cpp_logits"
    libraries = llama / "build/bin"
    subprocess.run(["c++", "-O1", "-std=c++17", f"-I{llama}/include", f"-I{llama}/ggml/include", HERE / "llama_cpp_logits.cpp",
                    "-o", program, f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lllama", "-lggml", "-lggml-base"],
                   check=True)
    return program


def logits_of(program, gguf, folder):
    out = pathlib.Path(folder) / "logits.f32"
    subprocess.run([program, gguf, out, *map(str, PROMPT)], check=True)
    return np.fromfile(out, "<f4").reshape(len(PROMPT), VOCAB)


def report(name, logits):
    """Against the `transformers` library's logits."""
    expected = np.fromfile(HERE / "goldens" / name / "expected.f32", "<f4").reshape(-1, VOCAB)
    logits = logits[2::3]
    ranked = np.sort(expected, axis=1)
    clear = ranked[:, -1] - ranked[:, -2] > 0.1
    differ = [int(i) for i in np.nonzero((expected.argmax(1) != logits.argmax(1)) & clear)[0]]
    print(f"{name:10} {int(clear.sum())} clear positions, differ at {differ}, largest difference "
          f"{np.abs(expected - logits).max():.2e} of {np.abs(expected).max():.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--llama", type=pathlib.Path, required=True)
    parser.add_argument("--goldens", type=pathlib.Path, required=True)
    parser.add_argument("--gguf", nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(options.llama.resolve(), folder)
        for pair in options.gguf:
            name, file = pair.split("=", 1)
            report(name, logits_of(program, file, folder))
        for golden in [] if options.gguf else sorted(options.goldens.iterdir()):
            if not (golden / "model.gguf").exists():
                continue
            if golden.name in OTHERWISE:
                print(f"{golden.name:10} left out: {OTHERWISE[golden.name]}")
                continue
            try:
                logits = logits_of(program, golden / "model.gguf", folder)
            except subprocess.CalledProcessError:
                print(f"{golden.name:10} llama.cpp cannot load it", flush=True)
                continue
            report(golden.name, logits)
            (HERE / "goldens" / golden.name / "llama_cpp.json").write_text(json.dumps(logits.argmax(1).tolist()) + "\n")


if __name__ == "__main__":
    main()
