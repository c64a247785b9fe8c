#!/bin/sh
# The long form of the tests that fill and empty the engine: 10 000 rounds, or as many as given.
#   sh scripts/soak.sh [ROUNDS]
set -eu
cd "$(dirname "$0")/.."
cmake --build build --target candor_steady_test
CANDOR_SOAK_ROUNDS="${1:-10000}" build/tests/candor_steady_test --gtest_filter='Soak.*'
