#!/bin/sh
# Fuzzes every door: builds the targets of tests/fuzz with the fuzz preset (clang, libFuzzer, ASan + UBSan) and runs each.
#   sh scripts/fuzz_nightly.sh [TARGET ...]      all of tests/fuzz/CMakeLists.txt, or those named
# CANDOR_FUZZ_SECONDS: for each target (60). CANDOR_FUZZ_SEED: of the day (YYYYMMDD); it is printed, and gives the same
# again. Before it fuzzes a target, it gives it inputs of no corpus: all of them varied by the seed. Every input is held to the bounds of tests/fuzz/fuzz_budget.h, not only to
# not crashing. One line a target: runs, edges covered, inputs found.
# What ends a target is made as small as may be and kept as build-fuzz/findings/TARGET-*: mend the fault, and put the
# input into tests/fuzz/corpus/TARGET under a name that says what it did. Inputs that reach new code are kept in
# build-fuzz/new/TARGET, without those that others make needless, and the next run begins with them.
# Longer inputs are cut to 16 KiB in fuzzing; varied ones are whole, as in the tests. Status 1 where something was found, or a target did not run.
set -u
cd "$(dirname "$0")/.."
seconds="${CANDOR_FUZZ_SECONDS:-60}"
seed="${CANDOR_FUZZ_SEED:-$(date -u +%Y%m%d)}"
known=$(sed -n 's/^candor_add_fuzz(\([a-z_]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
[ $# -gt 0 ] || eval "set -- $(echo $known)"
programs=""
for target in "$@"; do programs="$programs candor_${target}_fuzz"; done

sh scripts/setup.sh scripts/fuzz_packages.txt || exit 1
export CANDOR_CARGO_TARGET_DIR="${CANDOR_CARGO_TARGET_DIR:-$PWD/build/cargo}"
# shellcheck disable=SC2086
sh scripts/build.sh fuzz $programs || exit 1
export ASAN_OPTIONS="quarantine_size_mb=16:allocator_may_return_null=1:detect_leaks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
mkdir -p build-fuzz/findings build-fuzz/new build-fuzz/logs
echo "fuzz: seed $seed (CANDOR_FUZZ_SEED=$seed gives the same again)"
rm -rf build-fuzz/varied
python3 tests/fuzz/make_attack_corpus.py --seed "$seed" --into build-fuzz/varied || exit 1

last() { grep -o "$1: *[0-9]*" "$2" | tail -n 1 | grep -o '[0-9]*$' || true; }

# The smallest form of an input that ends the program, in half of the time. What takes too long is left as it is.
shorten() {
  case "$2" in *-timeout-*) return 0 ;; esac
  timeout "$((seconds + 10))" "$1" -minimize_crash=1 -exact_artifact_path="$2.small" -max_total_time=$((seconds / 2 + 1)) \
    -rss_limit_mb=4096 -timeout=60 "$2" >/dev/null 2>&1
  [ -s "$2.small" ] && mv "$2.small" "$2"
  rm -f "$2.small"
}

# Those of build-fuzz/new that reach what the corpus does not.
keep_needed() {
  rm -rf "build-fuzz/new/$2.needed"
  mkdir -p "build-fuzz/new/$2.needed"
  if "$1" -merge=1 -rss_limit_mb=4096 -timeout=60 "build-fuzz/new/$2.needed" "tests/fuzz/corpus/$2" "build-fuzz/new/$2" \
    >/dev/null 2>&1; then
    for input in build-fuzz/new/"$2".needed/*; do
      [ -f "$input" ] && cmp -s "$input" "build-fuzz/new/$2/${input##*/}" && continue
      rm -f "$input"  # of the corpus
    done
    rm -rf "build-fuzz/new/$2"
    mv "build-fuzz/new/$2.needed" "build-fuzz/new/$2"
  fi
  rm -rf "build-fuzz/new/$2.needed"
}

# Every varied input, whole. One that ends the program is kept, and the next ones follow.
#   try_varied PROGRAM TARGET
try_varied() {
  tried=$1 name=$2
  set -- build-fuzz/varied/"$name"/*
  while [ $# -gt 0 ]; do
    "$tried" -rss_limit_mb=4096 -timeout=60 "$@" >"build-fuzz/logs/$name.varied" 2>&1 && return 0
    ended=$(sed -n 's/^Running: //p' "build-fuzz/logs/$name.varied" | tail -n 1)
    tail -n 25 "build-fuzz/logs/$name.varied"
    [ -n "$ended" ] || return 1
    cp "$ended" "build-fuzz/findings/$name-varied-${ended##*/}"
    while [ "$1" != "$ended" ]; do shift; done
    shift
  done
}

status=0
for target in "$@"; do
  program=build-fuzz/tests/candor_${target}_fuzz
  log=build-fuzz/logs/$target
  mkdir -p "build-fuzz/new/$target"
  before=$(find build-fuzz/findings -name "$target-*" | wc -l)
  try_varied "$program" "$target" || status=1
  "$program" -seed="$seed" -max_total_time="$seconds" -max_len=16384 -rss_limit_mb=4096 -timeout=60 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/findings/$target-" "build-fuzz/new/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1
  code=$?
  runs=$(last stat::number_of_executed_units "$log")
  edges=$(last cov "$log")
  found=$(($(find build-fuzz/findings -name "$target-*" | wc -l) - before))
  if [ "$found" -gt 0 ] || [ "$code" != 0 ]; then
    status=1
    for input in $(find build-fuzz/findings -name "$target-*" -newer "$program" -newermt "-$((seconds + 60)) seconds"); do
      shorten "$program" "$input"
    done
    tail -n 25 "$log"
  fi
  keep_needed "$program" "$target"
  printf '%-16s %9s runs %7s edges %3s found%s\n' "$target" "${runs:-?}" "${edges:-?}" "$found" \
    "$([ "$code" = 0 ] || echo "  status $code, build-fuzz/logs/$target")"
done
exit "$status"
