#!/usr/bin/env python3
"""Names of anonymous namespaces are unique in a target: reads all sources of each target as if they were one.

  python3 scripts/lint_together.py [--build FOLDER] [TARGET ...]

Up to six sources are compiled as one (candor_compile_together), and which six changes with every file that is added:
two that use a name twice may stand in one at any time. Reads FOLDER/compile_commands.json (build) and what cmake wrote
for each target; nothing is built. The status is 1 where a target does not compile.
"""
import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
UNITY = re.compile(r"/(\w+)\.dir/Unity/unity_(\d+)_cxx\.cxx$")


def targets(folder):
    """Of each target its parts in order, each a compile command of that file."""
    with open(os.path.join(folder, "compile_commands.json")) as file:
        entries = json.load(file)
    found = {}
    for entry in entries:
        part = UNITY.search(entry["file"])
        if part:
            found.setdefault(part[1], []).append((int(part[2]), entry))
    return {name: [entry for _, entry in sorted(parts, key=lambda part: part[0])] for name, parts in found.items()}


def included(parts):
    text = ""
    for part in parts:
        with open(part["file"]) as file:
            text += "".join(line for line in file if line.startswith("#include"))
    return text


def errors_of(parts):
    words = shlex.split(parts[0]["command"])
    start = next(i for i, word in enumerate(words) if re.search(r"\+\+(-\d+)?$", word))
    flags = words[start : words.index("-o")]
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as one:
        one.write(included(parts))
        one.flush()
        done = subprocess.run([*flags, "-fsyntax-only", one.name], cwd=parts[0]["directory"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    found = re.findall(r"^\S+: (?:fatal )?error: .*", done.stdout, re.M)
    return found or ([done.stdout] if done.returncode != 0 else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    options = parser.parse_args()
    known = targets(options.build)
    unknown = [name for name in options.targets if name not in known]
    if unknown or not known:
        print(f"lint_together: {options.build} has no sources that are compiled together"
              + (f" of {', '.join(unknown)}" if unknown else ""), file=sys.stderr)
        return 1
    status = 0
    chosen = options.targets or sorted(known)
    for name in chosen:
        errors = errors_of(known[name])
        status |= bool(errors)
        for error in errors:
            print(f"{name}: {error.replace(ROOT + '/', '')}", flush=True)
    print(f"lint_together: {len(chosen)} targets looked at")
    return status


if __name__ == "__main__":
    sys.exit(main())
