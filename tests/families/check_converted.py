#!/usr/bin/env python3
"""Checks that the `transformers` library computes the same with the folders that `candor convert` writes.

    python3 check_converted.py --candor PROGRAM --goldens FOLDER [--only NAME ...]

FOLDER holds the goldens as a build makes them whole (build/tests/goldens). Each golden's folder goes to GGUF and back to a folder; the library's f32 logits of that folder are compared with
expected.f32. Prints the largest difference of each. Needs torch and transformers.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
import transformers as tf

VOCAB = 288
PROMPT = [(37 * i * i + 11 * i + 5) % VOCAB for i in range(48)]


def logits_of(folder):
    model = tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    config = json.loads((folder / "config.json").read_text())
    assert config["architectures"] == [type(model).__name__], (config["architectures"], type(model).__name__)
    with torch.no_grad():
        return model(torch.tensor([PROMPT]), use_cache=False).logits[0].float().numpy()


def check(candor, golden, scratch):
    gguf = scratch / f"{golden.name}.gguf"
    folder = scratch / golden.name
    for source, target in ((golden, gguf), (gguf, folder)):
        subprocess.run([candor, "convert", source, target], check=True, capture_output=True)
    expected = np.fromfile(golden / "expected.f32", "<f4").reshape(-1, VOCAB)
    difference = np.abs(logits_of(folder)[2::3] - expected).max() / np.abs(expected).max()
    print(f"{golden.name:10} largest difference {difference:.1e} of the largest logit", flush=True)
    return difference


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--candor", type=pathlib.Path, required=True)
    parser.add_argument("--goldens", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    names = options.only or sorted(path.name for path in options.goldens.iterdir())
    with tempfile.TemporaryDirectory() as scratch:
        worst = max(check(options.candor.resolve(), options.goldens / name, pathlib.Path(scratch))
                    for name in names)
    print(f"worst: {worst:.1e}")
    return 0 if worst <= 1e-4 else 1


if __name__ == "__main__":
    raise SystemExit(main())
