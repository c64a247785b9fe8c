#!/bin/sh
# sh scripts/build.sh PRESET [TARGET ...]: configures if needed and builds with a preset of CMakePresets.json.
# CANDOR_ISAS=native or runnable leaves out kernels for other processors, in a folder that does not hold them yet
# (cmake/isas.cmake).
set -eu
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
preset=$1
shift
case "$preset" in release) folder=build ;; *) folder=build-$preset ;; esac
isas=${CANDOR_ISAS:-all}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
lacks_isas() {
  case "$isas" in all) fewer='native\|runnable' ;; runnable) fewer=native ;; *) return 1 ;; esac
  grep -q "^CANDOR_ISAS:[A-Z]*=\($fewer\)\$" "$folder/CMakeCache.txt"
}
if [ ! -f "$folder/build.ninja" ] || lacks_isas; then
  cmake --preset "$preset" -DCANDOR_ISAS="$isas" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
fi
if [ -t 2 ]; then
  export NINJA_STATUS='[%p, %f of %t, %e s] '
  cmake --build "$folder" ${1+--target "$@"} >&2
else
  cmake --build "$folder" ${1+--target "$@"} >"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
fi
