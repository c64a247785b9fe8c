#!/bin/sh
# The Python package's documentation as a page, from its docstrings: build/python-docs/candor.html. Needs a build.
set -eu
cd "$(dirname "$0")/.."
environment=build/pdoc
[ -x $environment/bin/pdoc ] || { python3 -m venv $environment && $environment/bin/pip install -q --disable-pip-version-check pdoc==16.0.0; }
CANDOR_LIBRARY=$PWD/build/libcandor.so.0 PYTHONPATH=$PWD/python $environment/bin/pdoc --no-search --output-directory build/python-docs candor '!candor.evaluation' '!candor.ray' '!candor.ray_serve' '!candor.spark'
echo "build/python-docs/candor.html"
