#!/bin/sh
# Builds and runs under ThreadSanitizer what has threads: the pool of compute threads, the scheduler, constraints that are
# compiled, forked and walked on several threads, the engine, and the server with the short forms of its loads (many
# streams and sockets, clients that leave, a crowd).
#   sh scripts/test_tsan.sh [GTEST_FILTER of the server's and the engine's tests]
# A report ends the run with a status that is not 0.
# Of the bridge, what C++ does with it is covered: who holds, hands over and frees its handles, on which thread. The Rust
# code itself is not: a stable toolchain neither instruments it nor brings a standard library that is, so that the locks
# inside it are not seen (tsan_suppressions.txt). Safe Rust admits no data race; what is unsafe in it are the boundary and
# calls of the system. Helper processes (src/sandbox) are programs of their own, and not watched either.
# bridge/tests run compilers and templates on several threads.
set -eu
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
export CANDOR_CARGO_TARGET_DIR="${CANDOR_CARGO_TARGET_DIR:-$PWD/build/cargo}"
filter="${1:-*}"
sh scripts/build.sh tsan candor_platform_test candor_sched_test candor_constrain_test candor_end_to_end_test candor_server_test
export TSAN_OPTIONS="halt_on_error=0 second_deadlock_stack=1 suppressions=$PWD/scripts/tsan_suppressions.txt"
build-tsan/tests/candor_platform_test --gtest_brief=1 --gtest_filter='thread_pool.*'
build-tsan/tests/candor_sched_test --gtest_brief=1
build-tsan/tests/candor_constrain_test --gtest_brief=1 --gtest_filter='ConstraintThreads.*'
build-tsan/tests/candor_end_to_end_test --gtest_brief=1 --gtest_filter="$filter"
build-tsan/tests/candor_server_test --gtest_brief=1 --gtest_filter="$filter"
