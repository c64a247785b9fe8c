#!/bin/sh
# sh scripts/setup_clients.sh [--all]: installs the clients that tests/clients asks the server with, unmodified and pinned,
# under build/clients: a Python environment and a Node one. --all: those of nightly tests too. Without a network the tests
# that need them are skipped, and counted as such.
set -eu
cd "$(dirname "$0")/.."
clients=build/clients
mkdir -p "$clients"
same() { cmp -s "tests/clients/$1" "$clients/$1"; }

install() {
  "$clients/python/bin/python" -m pip install -q --disable-pip-version-check -r "tests/clients/$1"
  cp "tests/clients/$1" "$clients/"
}

if ! same requirements.txt; then
  sh scripts/setup.sh scripts/client_packages.txt
  rm -rf "$clients/python" "$clients/requirements-nightly.txt"
  python3 -m venv "$clients/python"
  install requirements.txt
fi
if [ "${1:-}" = --all ] && ! same requirements-nightly.txt; then install requirements-nightly.txt; fi
if ! { same package.json && [ -f "$clients/.node" ]; }; then
  command -v npm >/dev/null 2>&1 || sh scripts/setup.sh scripts/node_packages.txt
  cp tests/clients/package.json "$clients/"
  (cd "$clients" && npm install --silent --no-audit --no-fund)
  touch "$clients/.node"
fi
