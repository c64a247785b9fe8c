#!/bin/sh
# sh scripts/test.sh [--all]: installs, checks the tree, builds and runs the tests. Those where input meets memory run in
# the input preset (ASan + UBSan in the modules that read input), all others in the release preset, but for those with the
# label "nightly"; with --all every test runs in the release preset and in the dev preset (sanitizers in every module).
# Kernels for other processors are left out without --all. Prints the time of each stage; the last line counts passed,
# failed and skipped tests.
# CANDOR_TEST_STAGES="setup checks release input dev" chooses.
set -eu
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
case "${1:-}" in
  --all) all=yes ;;
  "") all="" ;;
  *) echo "test.sh: what is \"$1\"? --all, or nothing" >&2; exit 2 ;;
esac
stages=${CANDOR_TEST_STAGES:-setup checks release input dev}
export CANDOR_CARGO_TARGET_DIR="${CANDOR_CARGO_TARGET_DIR:-$PWD/build/cargo}"
times=""
results=""
remains=""
status=0

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

# Runs a command with a folder of its own for temporary files: whatever it leaves there, and whatever process it leaves,
# is an error.
leaving_nothing() {
  left=$(mktemp -d /tmp/ct.XXXX)
  chmod 755 "$left"  # tests that become another user have their files there
  mark="CANDOR_TEST_RUN=$left"
  code=0
  env TMPDIR="$left" "$mark" "$@" || code=$?
  if [ -n "$(ls -A "$left")" ]; then
    remains="$remains$(find "$left" -mindepth 1 -maxdepth 2 -printf 'left behind by the tests: %P\n')
"
  fi
  processes=$(grep -lzsxF "$mark" /proc/[0-9]*/environ || true)
  for process in $processes; do
    remains="${remains}left behind by the tests, a process: $(tr '\0' ' ' <"${process%environ}cmdline")
"
  done
  rm -rf "$left"
  return $code
}

# The few that fail beside others run once more, alone: those that pass then are named as unsteady, with what they said.
run_tests() {
  results="$results $1/test-results.xml"
  failed=$1/Testing/Temporary/LastTestsFailed.log
  rm -f "$failed"
  folder=$1
  shift
  leaving_nothing ctest --test-dir "$folder" "$@" --output-on-failure -j "$(nproc)" --no-tests=error --output-junit test-results.xml &&
    return 0
  if [ ! -f "$failed" ] || [ "$(wc -l <"$failed")" -gt 5 ]; then
    status=1
    return 0
  fi
  results="$results $folder/test-results-again.xml"
  leaving_nothing ctest --test-dir "$folder" "$@" --rerun-failed --output-on-failure --output-junit test-results-again.xml || status=1
}

stage setup sh scripts/setup.sh
stage setup:clients sh scripts/setup_clients.sh ${all:+--all} || echo "setup: the clients of tests/clients are not all here"
stage setup:page sh scripts/setup_page.sh || echo "setup: the packages of the page are not all here"
stage checks checks
if [ -n "$all" ]; then
  export CANDOR_TEST_ROWS="${CANDOR_TEST_ROWS:-10000}"
  stage release:build sh scripts/build.sh release
  stage release:test run_tests build
  stage dev:build sh scripts/build.sh dev
  stage dev:test run_tests build-dev
else
  stage release:build env CANDOR_ISAS=runnable sh scripts/build.sh release candor candor_examples candor_other_tests
  stage release:test run_tests build --label-exclude '^(input|nightly)$' --exclude-regex '_NOT_BUILT$'
  stage input:build env CANDOR_ISAS=native sh scripts/build.sh input candor_input_tests
  stage input:test run_tests build-input --label-regex '^input$'
fi

printf '\n%s\n%s' "$times" "$remains"
[ -z "$remains" ] || status=1
# shellcheck disable=SC2086
[ -z "$results" ] || python3 scripts/count_tests.py $results || status=1
exit "$status"
