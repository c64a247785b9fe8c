#!/bin/sh
# What takes too long for every change. Each part's time is stated and settable; a part that fails does not stop the
# next. Prints one line a part at the end; the status is 1 if one failed.
#   sh scripts/nightly.sh [PART ...]
# all    every test, with and without sanitizers (scripts/test.sh --all): hours, not measured as a whole
# fuzz   every target of tests/fuzz for CANDOR_FUZZ_SECONDS (60): some 25 minutes, and as many for a first build
# tsan   what has threads under ThreadSanitizer: some 20 minutes, and as many for a first build
# soak   the engine filled and emptied CANDOR_SOAK_ROUNDS times (10 000), the server under load for CANDOR_LOAD_SECONDS
#        (300): some 40 minutes
# alone  every source compiled by itself (normally several are one), so that none lives by another's includes, and the
#        benchmarks: 30 minutes
# lint   clang-tidy, include-what-you-use and more (scripts/lint.sh): some 30 minutes
# packages a release, tried in clean roots (scripts/try_packages.sh) and made twice (check_reproducible.sh), and one for
#        64-bit Arm: 45 minutes
# arm    the product for 64-bit Arm under qemu (scripts/test_arm.sh): 40 minutes
# cuda   kernels for GPUs, compiled for every card and looked through (scripts/check_cuda.py), the module's tests, and the
#        packages candor-cuda, made and tried: 35 minutes with a warm compiler cache
# spark  batch inference with Spark (python/tests/test_spark.py): some 3 minutes
# frameworks LlamaIndex, Haystack, DSPy, instructor, Cohere's and Hugging Face's clients against the server: 3 minutes
# adding what docs/adding.md says, done in a copy (scripts/check_adding.py): some 15 minutes
set -u
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- all fuzz tsan soak alone lint packages arm cuda spark frameworks adding
packages() {
  sh scripts/package.sh && sh scripts/try_packages.sh && sh scripts/check_reproducible.sh &&
    sh scripts/package.sh --for aarch64 && sh scripts/try_packages.sh build-package-aarch64/out
}

cuda() {
  sh scripts/setup_cuda.sh && python3 scripts/check_cuda.py --archs 80,86,89,90a,100,120 --self-test &&
    sh scripts/build.sh cuda candor_backend_cuda_test && build-cuda/tests/candor_backend_cuda_test &&
    sh scripts/package.sh --cuda && sh scripts/try_packages.sh build-package-cuda/out
}

spark() {
  sh scripts/setup.sh scripts/spark_packages.txt && sh scripts/build.sh release candor candor_shared || return 1
  [ -x build/spark/bin/python ] || python3 -m venv build/spark || return 1
  build/spark/bin/python -m pip install -q --disable-pip-version-check pyspark==4.1.1 pandas==3.1.1 pyarrow==26.0.1 || return 1
  CANDOR_LIBRARY=$PWD/build/libcandor.so.0 CANDOR_PROGRAM=$PWD/build/candor PYTHONPATH=$PWD/python \
    build/spark/bin/python python/tests/test_spark.py
}

frameworks() {
  sh scripts/setup.sh scripts/client_packages.txt && sh scripts/build.sh release candor || return 1
  [ -x build/frameworks/bin/python ] || python3 -m venv build/frameworks || return 1
  build/frameworks/bin/python -m pip install -q --disable-pip-version-check -r tests/clients/requirements-frameworks.txt &&
    build/frameworks/bin/python tests/clients/framework_clients.py build/candor &&
    build/frameworks/bin/python tests/clients/reading_clients.py build/candor
}

summary=""
status=0
for part in "$@"; do
  case "$part" in
    all) command="sh scripts/test.sh --all" ;;
    fuzz) command="sh scripts/fuzz_nightly.sh" ;;
    tsan) command="sh scripts/test_tsan.sh" ;;
    soak) command="sh scripts/soak.sh ${CANDOR_SOAK_ROUNDS:-10000}" ;;
    alone) command="env CANDOR_CARGO_TARGET_DIR=${CANDOR_CARGO_TARGET_DIR:-$PWD/build/cargo} sh scripts/build.sh alone all candor_benches" ;;
    lint) command="sh scripts/lint.sh" ;;
    packages) command="packages" ;;
    arm) command="sh scripts/test_arm.sh" ;;
    cuda) command="cuda" ;;
    spark) command="spark" ;;
    frameworks) command="frameworks" ;;
    adding) command="python3 scripts/check_adding.py" ;;
    *) echo "nightly: what is \"$part\"? all, fuzz, tsan, soak, alone, lint, packages, arm, cuda, spark, frameworks, adding" >&2; exit 2 ;;
  esac
  printf '\n== %s\n' "$part"
  began=$(date +%s)
  if $command; then result=passed; else result=FAILED; status=1; fi
  summary="$summary$(printf '%-6s %s %6d s' "$part" "$result" $(($(date +%s) - began)))
"
done
printf '\n%s' "$summary"
exit "$status"
