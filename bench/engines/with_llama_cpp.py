#!/usr/bin/env python3
"""llama.cpp: builds it where compare.py --llama looks for it. What compares is llama-bench on Candor's own files.

    with_llama_cpp.py setup FOLDER --source REPOSITORY
"""

import argparse
import subprocess
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["setup"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--source", required=True, help="what git clones: a folder with its source")
    args = parser.parse_args()
    source, build = args.folder / "source", args.folder / "build"
    if not source.exists():
        subprocess.run(["git", "clone", "--depth", "1", args.source, str(source)], check=True)
    subprocess.run(["cmake", "-S", str(source), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON",
                    "-DLLAMA_CURL=OFF"], check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "llama-bench", "llama-batched-bench"], check=True)
    print(f"now: bench/compare.py --llama {build / 'bin'} --model FILE")


if __name__ == "__main__":
    main()
