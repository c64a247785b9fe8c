#!/bin/sh
# Reads the tree for what is not asked of every change: lines of at most 120 columns, names that are unique in a target,
# clang-tidy with the checks of .clang-tidy and include-what-you-use over src/ and apps/, mypy and ruff over python/.
# Status 1 where one found something.
#   sh scripts/lint.sh        some 30 minutes of two processors
set -u
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
sh scripts/setup.sh scripts/lint_packages.txt || exit 1
for preset in release alone; do cmake --preset "$preset" >/dev/null || exit 1; done
status=0
python3 scripts/check_style.py --columns || status=1
python3 scripts/lint_together.py --build build || status=1
python3 scripts/lint_tidy.py --build build || status=1
python3 scripts/lint_includes.py --build build-alone || status=1
python=build/lint-python
[ -x $python/bin/ruff ] || { python3 -m venv $python && $python/bin/pip install -q mypy==2.4.1 ruff==0.17.6; } || exit 1
$python/bin/mypy --config-file python/pyproject.toml || status=1
$python/bin/ruff check -q --config python/pyproject.toml python || status=1
exit "$status"
