#!/bin/sh
# sh tests/package/check_install.sh BUILD: installs the build into an empty folder, moves it, and builds and runs there what
# finds the package with find_package(candor).
set -eu
build=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "check_install: $*" >&2
  exit 1
}
cmake --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || fail "$(tail -n 3 "$work/log")"
mv "$work/first" "$work/moved"
cmake -S "$root/tests/package/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$work/moved" -DEXAMPLES="$root/examples" \
  >"$work/log" 2>&1 && cmake --build "$work/consumer" >>"$work/log" 2>&1 || fail "$(tail -n 40 "$work/log")"
model=$work/moved/share/candor/models/pocket/pocket-q8_0.gguf
for program in story minimal; do
  "$work/consumer/$program" "$model" "Once upon a time" | grep -q "Once upon a time......" || fail "$program tells nothing"
done
"$work/moved/bin/candor" run "Once upon a time" -n 8 2>/dev/null | grep -q . || fail "the installed program tells nothing"
! grep -rlF "$root" "$work/moved/lib/cmake" || fail "the package names the folder that it was built in"
