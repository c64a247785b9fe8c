#!/bin/sh
# Installs what packages are made with, beyond the build: static libraries (scripts/package_packages.txt), and into
# build/package-tools zig's linker.
set -eu
cd "$(dirname "$0")/.."
CANDOR_SETUP_QUIET=1 sh scripts/setup.sh scripts/package_packages.txt
version=0.17.1
tools=build/package-tools
if ! "$tools/bin/python" -c "import importlib.metadata as m; assert m.version('ziglang') == '$version'" 2>/dev/null; then
  printf 'setup: installing: ziglang %s\n' "$version" >&2
  python3 -m venv "$tools"
  "$tools/bin/pip" install -q "ziglang==$version"
fi
