#!/bin/sh
# Builds what runs a model for 64-bit Arm with Debian's cross compiler, and runs the tests of the kernels and the pinned
# bits of logits under qemu-user: on a processor with the dot product instructions, then on one without.
# CANDOR_TEST_STAGES="setup build test" chooses.
set -eu
cd "$(dirname "$0")/.."
stages=${CANDOR_TEST_STAGES:-setup build test}
has() {
  case " $stages " in *" $1 "*) ;; *) return 1 ;; esac
}

if has setup; then
  missing=""
  for package in g++-aarch64-linux-gnu qemu-user-static googletest libfmt-dev; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
  done
  # shellcheck disable=SC2086
  [ -z "$missing" ] || apt-get install -y --no-install-recommends $missing
fi
if has build; then
  sh scripts/build.sh neon candor_platform_test candor_kernels_test candor_bits_test
fi
if has test; then
  for cpu in max cortex-a53; do
    for test in candor_platform_test candor_kernels_test candor_bits_test; do
      printf '\n== %s on %s\n' "$test" "$cpu"
      # Death tests start their own program again, which the host cannot run without qemu.
      qemu-aarch64-static -L /usr/aarch64-linux-gnu -cpu "$cpu" "build-neon/tests/$test" --gtest_brief=1 \
        --gtest_filter='-*death_test*'
    done
  done
fi
