#!/usr/bin/env python3
"""Compares candor quantize with llama.cpp's llama-quantize: perplexity of both files by `candor eval`, and whether
llama.cpp continues candor's file with the tokens that candor does.

    python3 scripts/compare_quantizers.py --llama-bin DIR MODEL.gguf TEXT [TYPE ...]

MODEL.gguf should be f32 or f16; TEXT is the file whose perplexity is taken. Exit code 1 when a file of ours is worse by
more than 0.2 %.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

TYPES = "F16 BF16 Q8_0 Q4_0 Q5_0 Q4_K_M Q5_K_M Q6_K Q3_K_M Q2_K".split()
LIMIT_PERCENT = 0.2
PROMPT = "Once upon a time"
N_TOKENS = 24


def output(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", check=False)


def perplexity(candor, model, text):
    return json.loads(output(candor, "eval", model, "-f", text, "--json").stdout)["perplexity"]


def continuations(candor, llama_bin, model):
    ours = json.loads(output(candor, "run", model, "--raw", "-p", PROMPT, "-n", N_TOKENS, "--temp", 0, "--json").stdout)
    theirs = output(llama_bin / "llama-completion", "-m", model, "-p", PROMPT, "-n", N_TOKENS, "--temp", 0, "-no-cnv",
                    "--no-warmup", "-t", 1, "--no-display-prompt").stdout
    return ours["text"].strip(), theirs.replace("[end of text]", "").strip()


def compare(options, kind, folder):
    ours, theirs = folder / "ours.gguf", folder / "theirs.gguf"
    made = output(options.candor, "quantize", "--force", options.model, ours, kind.lower())
    if made.returncode != 0:
        sys.exit(made.stderr)
    a, b = continuations(options.candor, options.llama_bin, ours)
    same = "same continuation" if a == b else f"continued {a!r} / {b!r}"
    own = perplexity(options.candor, ours, options.text)
    made = output(options.llama_bin / "llama-quantize", options.model, theirs, kind)
    if made.returncode != 0:
        print(f"{kind:8} ours {own:.5f}, llama.cpp refuses this model's shapes; {same}", flush=True)
        return True
    other = perplexity(options.candor, theirs, options.text)
    percent = 100 * (own / other - 1)
    print(f"{kind:8} ours {own:.5f} llama.cpp {other:.5f} ({percent:+.3f} %), bytes {ours.stat().st_size} and "
          f"{theirs.stat().st_size}; {same}", flush=True)
    return percent <= LIMIT_PERCENT


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("types", nargs="*", default=TYPES)
    parser.add_argument("--llama-bin", type=pathlib.Path, required=True)
    parser.add_argument("--candor", type=pathlib.Path, default=pathlib.Path("build/candor"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        good = [compare(options, kind, pathlib.Path(folder)) for kind in options.types]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
