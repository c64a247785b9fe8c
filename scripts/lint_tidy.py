#!/usr/bin/env python3
"""clang-tidy with the checks of .clang-tidy over src/ and apps/, headers included.

  python3 scripts/lint_tidy.py [--build FOLDER] [TEXT ...]     TEXT: only sources in whose path it stands

Reads FOLDER/compile_commands.json (build: the sources of a target compiled together, which takes a third of the time).
Left out: the tables of instruction sets (src/kernels/isa), whose target regions are gcc's pragmas; tests, benchmarks
and fuzz targets, which are mostly other projects' macros. The status is 1 if a check found something.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
TIDY = "clang-tidy-19"
LEFT_OUT = re.compile(r"_(test|bench|fuzz)\.cpp$|_test\.dir/|/isa/|/bench/CMakeFiles/|/tests/|/examples/")


def sources(folder):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        paths = sorted({entry["file"] for entry in json.load(file) if entry["file"].endswith((".cpp", ".cxx"))})
    ours = [path for path in paths if "/Unity/" in path or path.startswith((ROOT + "/src/", ROOT + "/apps/"))]
    return [path for path in ours if not LEFT_OUT.search(path)]


def look_at(path, folder):
    # Of the compiler's own warnings gcc's count, under which everything is built.
    own = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-deprecated-declarations"]
    done = subprocess.run([TIDY, "--quiet", *own, "-p", folder, path], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("texts", nargs="*")
    options = parser.parse_args()
    chosen = [path for path in sources(options.build) if not options.texts or any(text in path for text in options.texts)]
    if not chosen:
        print(f"lint_tidy: {options.build} has no such source", file=sys.stderr)
        return 1
    status, seen = 0, set()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for code, text in pool.map(lambda path: look_at(path, options.build), chosen):
            status |= code != 0
            for finding in re.split(r"\n(?=/)", text.strip()):
                if finding and finding not in seen:
                    seen.add(finding)
                    print(finding.replace(ROOT + "/", ""), flush=True)
    print(f"lint_tidy: {len(chosen)} compilations looked at, {len(seen)} findings")
    return status


if __name__ == "__main__":
    sys.exit(main())
