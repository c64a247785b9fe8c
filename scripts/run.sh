#!/bin/sh
# Sets up, builds and runs Candor: `sh scripts/run.sh` for a first taste, `sh scripts/run.sh COMMAND ...` for the rest.
# `run` alone builds a program that has nothing else (candor_run); the first other command builds what that lacks.
# Later runs start at once: set-up and build happen only when the sources are newer than the program. Nothing is built where
# CANDOR_PREBUILT names a program, or the folder of an unpacked release.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
[ $# -gt 0 ] || set -- run "Once upon a time"

# Of the program in build/: newer than every source.
is_current() {
  stamp=$root/build/.ready_$1
  [ -x "$root/build/$1" ] && [ -f "$stamp" ] || return 1
  newer=$(find "$root/src" "$root/include" "$root/apps" "$root/bridge" "$root/cmake" "$root/CMakeLists.txt" \
            "$root/scripts/deps.txt" "$root/scripts/packages.txt" -newer "$stamp" -not -path '*/target/*' -print -quit)
  [ -z "$newer" ]
}

if [ -n "${CANDOR_PREBUILT:-}" ]; then
  program=$CANDOR_PREBUILT
  [ ! -d "$program" ] || program=$program/bin/candor
  [ -x "$program" ] || { echo "run.sh: CANDOR_PREBUILT: there is no program $program" >&2; exit 2; }
else
  name=candor
  if [ "$1" = run ] && ! is_current candor; then name=candor_run; fi
  program=$root/build/$name
  if ! is_current "$name"; then
    sh "$root/scripts/setup.sh"
    printf 'building Candor for this processor (a few minutes the first time)\n' >&2
    touch "$root/.build-started.$$"
    if CANDOR_ISAS=native sh "$root/scripts/build.sh" release "$name"; then
      mv "$root/.build-started.$$" "$stamp"
    else
      rm -f "$root/.build-started.$$"
      exit 1
    fi
  fi
fi
exec "$program" "$@"
