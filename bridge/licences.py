#!/usr/bin/env python3
"""Prints the crates that the library is built from, one a line: name, version, licence, repository, separated by tabs.

Crates that only build (procedural macros), only test, or only serve other platforms are listed where cargo resolves them
for this platform: the list may name too many, never too few."""

import json
import pathlib
import subprocess

MANIFEST = pathlib.Path(__file__).resolve().parent / "Cargo.toml"


def host():
    out = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[1] for line in out.splitlines() if line.startswith("host:"))


def main():
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host(), "--manifest-path", str(MANIFEST)]
    metadata = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    used = {node["id"] for node in metadata["resolve"]["nodes"]} - {metadata["resolve"]["root"]}
    for package in sorted(metadata["packages"], key=lambda p: (p["name"], p["version"])):
        if package["id"] in used:
            fields = (package["name"], package["version"], package["license"] or package["license_file"], package["repository"])
            print("\t".join(field or "" for field in fields))


if __name__ == "__main__":
    main()
