#!/bin/sh
# The long forms of the tests that fill and empty the engine and the server.
#   sh scripts/soak.sh [ROUNDS]
# The engine: 10 000 rounds, or as many as given. The server: five minutes of 64 streams and 16 sockets with lengths from
# a trace of real requests, 2 000 clients that leave, 1 000 at once, and what idle streams and requests cost.
set -eu
cd "$(dirname "$0")/.."
cmake --build build --target candor_steady_test candor_server_test candor
ulimit -n "$(ulimit -H -n)"
CANDOR_SOAK_ROUNDS="${1:-10000}" build/tests/candor_steady_test --gtest_filter='Soak.*'
CANDOR_LOAD_SECONDS="${CANDOR_LOAD_SECONDS:-300}" CANDOR_LOAD_ABORTS=2000 CANDOR_LOAD_CROWD=1000 \
  build/tests/candor_server_test --gtest_filter='load.*'
python3 scripts/measure_server.py build/candor
