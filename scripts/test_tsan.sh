#!/bin/sh
# Builds and runs under ThreadSanitizer what has threads: the pool of compute threads, the scheduler, constraints that are
# compiled, forked and walked on several threads, the engine, and the server with the short forms of its loads (many
# streams and sockets, clients that leave, a crowd).
#   sh scripts/test_tsan.sh [GTEST_FILTER of the server's and the engine's tests]
# A report ends the run with a status that is not 0.
# Of the bridge, what C++ does with it is covered: who holds, hands over and frees its handles, on which thread. A stable
# toolchain neither instruments the Rust code itself nor brings a standard library that is, so that the locks inside it
# are not seen there (tsan_suppressions.txt). Where a nightly one with its sources is installed (rustup toolchain install
# nightly --component rust-src), the tests of bridge/tests that have threads run with both instrumented. Helper processes
# (src/sandbox) are programs of their own, and not watched.
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

triple=$(rustc -vV | sed -n 's/^host: //p')
if [ -d "$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" ]; then
  # Without the suppressions, which name all of this code.
  TSAN_OPTIONS="second_deadlock_stack=1" RUSTFLAGS=-Zsanitizer=thread CARGO_TARGET_DIR="$CANDOR_CARGO_TARGET_DIR/tsan" \
    cargo +nightly test -Zbuild-std --target "$triple" --locked --quiet --manifest-path bridge/Cargo.toml \
    --test constraints --test templates -- threads forks_are_independent
else
  echo "tsan: no nightly Rust toolchain with rust-src here: the threads inside the bridge are not watched"
fi
