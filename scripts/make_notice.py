#!/usr/bin/env python3
"""Writes NOTICE: what Candor builds on, with versions and licences. --check fails when the file is out of date.

Debian packages come from scripts/packages.txt, crates from the bridge's lock file (bridge/licences.py asks cargo), the
page's packages from web/package-lock.json.
"""
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """Candor
Copyright the Candor authors. Licensed under the Apache License, Version 2.0 (see LICENSE).

This file is written by scripts/make_notice.py.
"""


def debian_rows():
    for line in (ROOT / "scripts" / "packages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version, licence, use = line.split(None, 3)
            yield name, version, licence, use


def crate_rows():
    out = subprocess.run([sys.executable, str(ROOT / "bridge" / "licences.py")], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        name, version, licence, *source = line.split("\t")
        yield name, version, licence, source[0] if source else ""


def page_rows():
    packages = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    for path, package in sorted(packages.items()):
        if path and not package.get("dev") and not path.startswith("node_modules/@types/"):
            name = path.removeprefix("node_modules/")
            yield name, package["version"], package["license"], "https://www.npmjs.com/package/" + name


def table(title, rows):
    lines = [f"\n{title}\n"]
    lines += [f"  {name:<28} {version:<14} {licence:<46} {more}".rstrip() for name, version, licence, more in rows]
    return "\n".join(lines) + "\n"


# What a package of the page brings along.
INSIDE = [("pdf.js (in unpdf)", "6.1.200", "Apache-2.0", "https://github.com/mozilla/pdf.js")]

# Facts of other projects that tests hold replies against.
FACTS = [("open_responses.json", "2026-04-24", "Apache-2.0", "https://github.com/openresponses/openresponses")]


def main():
    text = HEAD
    text += table("Debian packages that the build uses (linked into the program: fmt, spdlog, nlohmann-json, CLI11, "
                  "utf8proc, libedit, Boost, OpenSSL, libjpeg-turbo)", debian_rows())
    text += table("Rust crates linked into the program through bridge/", crate_rows())
    text += table("npm packages in the page, web/dist (web/package-lock.json)", [*page_rows(), *INSIDE])
    text += table("Facts of other projects, in tests/serve/data", FACTS)
    path = ROOT / "NOTICE"
    if "--check" in sys.argv[1:]:
        if path.read_text() != text:
            print("NOTICE is out of date: run python3 scripts/make_notice.py")
            return 1
        print("notice: up to date")
        return 0
    path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
