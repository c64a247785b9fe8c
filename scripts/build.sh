#!/bin/sh
# sh scripts/build.sh PRESET [TARGET ...]: configures if needed and builds with a preset of CMakePresets.json.
set -eu
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
preset=$1
shift
case "$preset" in release) folder=build ;; *) folder=build-$preset ;; esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -f "$folder/build.ninja" ]; then
  cmake --preset "$preset" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
if [ -t 2 ]; then
  cmake --build "$folder" ${1+--target "$@"} >&2
else
  cmake --build "$folder" ${1+--target "$@"} >"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
fi
