#!/usr/bin/env python3
"""What adapters cost in decoding: 16 requests at once by one model, in turns without adapters, each with one of 8, and all
with the same one. The adapters are random, of rank 16, on every matrix of the blocks.

usage: measure_adapters.py PROGRAM [SHAPE] [TYPE] [ROUNDS]        (make_shape.py: llama-3.2-1b Q4_K_M; 5)
"""
import json
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent
RANK, N_ADAPTERS, N_SEQUENCES, N_TOKENS = 16, 8, 16, 64


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def write_adapter(path, family, matrices, seed):
    """As llama.cpp's converter does, of half floats."""
    tensors = {}
    for name, (n_out, n_in) in matrices.items():
        tensors[name + ".lora_a"], tensors[name + ".lora_b"] = (RANK, n_in), (n_out, RANK)
    entries = {"general.type": "adapter", "adapter.type": "lora", "general.architecture": family}
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries) + 1)
    for key, value in entries.items():
        data += text(key) + struct.pack("<I", 8) + text(value)
    data += text("adapter.lora.alpha") + struct.pack("<If", 6, 32.0)
    offset = 0
    for name, (rows, cols) in tensors.items():
        data += text(name) + struct.pack("<IQQIQ", 2, cols, rows, 1, offset)
        offset += -(-rows * cols * 2 // 32) * 32
    data += b"\0" * (-len(data) % 32)
    draw = random.Random(seed)
    numbers = struct.pack("<4096e", *(draw.uniform(-0.02, 0.02) for _ in range(4096)))
    path.write_bytes(data + (numbers * (offset // len(numbers) + 1))[:offset])


def matrices_of(program, model):
    """{name: (outputs, inputs)} of the blocks' products."""
    shown = json.loads(subprocess.run([program, "show", model, "--tensors", "--json"], check=True, text=True,
                                      capture_output=True).stdout)
    found = {}
    for tensor in shown["tensors"]:
        if re.fullmatch(r"blk\.\d+\.(attn_(q|k|v|output)|ffn_(gate|up|down))\.weight", tensor["name"]):
            found[tensor["name"]] = tuple(tensor["shape"])
    return shown, found


class Served:
    def __init__(self, program, model, adapters):
        command = [program, "serve", str(model), "--port", "0", "--model-id", "base", "--log-level", "off", "-c", "512"]
        for adapter in adapters:
            command += ["--adapter", f"{adapter.stem}={adapter}"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+) ", self.process.stderr.readline()).group(1))

    def answer(self, name, seed):
        body = {"model": name, "prompt": "the engine", "max_tokens": N_TOKENS, "ignore_eos": True, "temperature": 1,
                "seed": seed, "speculative": False}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["usage"]["completion_tokens"]

    def speed(self, names):
        counts = []
        threads = [threading.Thread(target=lambda i=i, name=name: counts.append(self.answer(name, i)))
                   for i, name in enumerate(names)]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(counts) / (time.perf_counter() - begun)


def main():
    program = sys.argv[1]
    shape, kind, rounds = (sys.argv[2:] + ["llama-3.2-1b", "Q4_K_M", "5"][len(sys.argv) - 2:])[:3]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.gguf"
        subprocess.run([sys.executable, SCRIPTS / "make_shape.py", shape, kind, model], check=True)
        shown, matrices = matrices_of(program, model)
        adapters = [Path(folder) / f"a{i}.gguf" for i in range(N_ADAPTERS)]
        for i, path in enumerate(adapters):
            write_adapter(path, "llama", matrices, i)
        served = Served(program, model, adapters)
        ways = {"none": ["base"] * N_SEQUENCES, "of 8": [f"a{i % N_ADAPTERS}" for i in range(N_SEQUENCES)],
                "one": ["a0"] * N_SEQUENCES}
        speeds = {way: [] for way in ways}
        for way, names in ways.items():
            served.speed(names)
        for _ in range(int(rounds)):
            for way, names in ways.items():
                speeds[way].append(served.speed(names))
        served.process.kill()
    middle = {way: statistics.median(of) for way, of in speeds.items()}
    for way, of in speeds.items():
        print(f"{way:6} {middle[way]:8.1f} tok/s ({min(of):.1f} to {max(of):.1f}), {middle[way] / middle['none']:.2f} x")


if __name__ == "__main__":
    main()
