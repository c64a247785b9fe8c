#!/bin/sh
# Sets up, builds and runs Candor: `sh scripts/run.sh` for a first taste, `sh scripts/run.sh COMMAND ...` for the rest.
# Later runs start at once: set-up and build happen only when the sources are newer than the program. Nothing is built where
# CANDOR_PREBUILT names a program, or the folder of an unpacked release.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
program=$root/build/candor
stamp=$root/build/.ready

is_current() {
  [ -x "$program" ] && [ -f "$stamp" ] || return 1
  newer=$(find "$root/src" "$root/include" "$root/apps" "$root/bridge" "$root/cmake" "$root/CMakeLists.txt" \
            "$root/scripts/deps.txt" "$root/scripts/packages.txt" -newer "$stamp" -not -path '*/target/*' -print -quit)
  [ -z "$newer" ]
}

if [ -n "${CANDOR_PREBUILT:-}" ]; then
  program=$CANDOR_PREBUILT
  [ ! -d "$program" ] || program=$program/bin/candor
  [ -x "$program" ] || { echo "run.sh: CANDOR_PREBUILT: there is no program $program" >&2; exit 2; }
elif ! is_current; then
  sh "$root/scripts/setup.sh"
  printf 'building Candor for this processor (a few minutes the first time)\n' >&2
  touch "$root/.build-started.$$"
  if CANDOR_ISAS=native sh "$root/scripts/build.sh" release candor; then
    mv "$root/.build-started.$$" "$stamp"
  else
    rm -f "$root/.build-started.$$"
    exit 1
  fi
fi
[ $# -gt 0 ] || set -- run "Once upon a time"
exec "$program" "$@"
