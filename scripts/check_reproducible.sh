#!/bin/sh
# sh scripts/check_reproducible.sh [--cuda]: packages the last commit in two clones under different paths, the second without
# the compiler cache, and compares every file. Some 20 minutes on two cores, and with --cuda (scripts/package.sh) 50.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in first a/longer/second; do
  git clone -q "$here" "$work/$name"
  [ "$name" = first ] || export CANDOR_NO_CCACHE=1
  sh "$work/$name/scripts/package.sh" ${1+"$1"} "$work/$name.out" >/dev/null
done
if diff "$work/first.out/SHA256SUMS" "$work/a/longer/second.out/SHA256SUMS"; then
  echo "reproducible: $(wc -l <"$work/first.out/SHA256SUMS") files have the same bytes"
else
  echo "check_reproducible: the files above differ" >&2
  exit 1
fi
