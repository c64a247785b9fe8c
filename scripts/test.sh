#!/bin/sh
# Installs, builds and runs every test: checks of the tree, the release preset, then the dev preset (ASan + UBSan).
# Prints the time of each stage. CANDOR_TEST_STAGES="setup checks release dev" chooses.
set -eu
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
stages=${CANDOR_TEST_STAGES:-setup checks release dev}
times=""

stage() {
  name=$1
  shift
  case " $stages " in *" ${name%%:*} "*) ;; *) return 0 ;; esac
  printf '\n== %s\n' "$name"
  began=$(date +%s)
  "$@"
  times="$times$(printf '%-16s %5d s' "$name" $(($(date +%s) - began)))
"
}

checks() {
  python3 scripts/check_deps.py
  python3 scripts/check_style.py
  python3 scripts/make_notice.py --check
}
tests_of() { ctest --test-dir "$1" --output-on-failure -j "$(nproc)" --no-tests=error; }
export CANDOR_CARGO_TARGET_DIR="${CANDOR_CARGO_TARGET_DIR:-$PWD/build/cargo}"

stage setup sh scripts/setup.sh
stage checks checks
stage release:build sh scripts/build.sh release
stage dev:build sh scripts/build.sh dev
stage dev:test tests_of build-dev
stage release:test tests_of build
printf '\n%s' "$times"
