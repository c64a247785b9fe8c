#!/bin/sh
# Builds the whole product for 64-bit Arm with Debian's cross compiler and runs picked tests of it under qemu-user, as root
# (its helper processes are started in a root of that architecture): of the kernels and the pinned bits, on a processor with
# the dot product and matrix instructions and on one without; of formats, text, constraints, the sandbox, sampling,
# scheduling, the engine and the C interface; and a story, compared. Some 40 minutes, 15 of them building.
# CANDOR_TEST_STAGES="setup build test" chooses.
set -eu
cd "$(dirname "$0")/.."
stages=${CANDOR_TEST_STAGES:-setup build test}
has() {
  case " $stages " in *" $1 "*) ;; *) return 1 ;; esac
}
both="candor_platform_test candor_kernels_test candor_bits_test"
once="candor_formats_test candor_text_test candor_constrain_test candor_sandbox_test candor_sample_test candor_sched_test
      candor_kv_test candor_capi_test"

if has setup; then
  sh scripts/setup.sh
  sh scripts/setup_arm.sh
  sh scripts/register_arm.sh
fi
if has build; then
  # shellcheck disable=SC2086
  sh scripts/build.sh arm candor candor_shared $both $once
  # The other side of the comparison.
  sh scripts/build.sh release candor
fi
has test || exit 0

# A root with glibc and the compiler's libraries for Arm, this machine's devices and the project at its own place.
root=$(mktemp -d)
data=$(cd .. && pwd)/shared
# What is still mounted is never removed.
clean_up() {
  for place in "$PWD" "$data" /proc /dev; do umount "$root$place" 2>/dev/null || true; done
  mount | grep -qF " $root/" || rm -rf "$root"
}
trap clean_up EXIT
trap "exit 143" INT TERM
chmod 755 "$root"
mkdir -p "$root/lib" "$root/tmp" "$root/root"
cp -a /usr/aarch64-linux-gnu/lib/*.so* "$root/lib/"
for name in libstdc++.so.6 libgcc_s.so.1; do
  cp "$(aarch64-linux-gnu-g++ -print-file-name=$name)" "$root/lib/"
done
for place in "$PWD" "$data" /proc /dev; do
  [ -d "$place" ] || continue
  mkdir -p "$root$place"
  mount --bind "$place" "$root$place"
  case "$place" in /proc | /dev) ;; *) mount -o remount,bind,ro "$root$place" ;; esac
done

# Not what starts a program that does not exist, or a shell: qemu's vfork is a fork, which does not hand on the error, and
# this root has no shell. Not what counts seconds a megabyte of text.
left_out="*death_test*:*DeathTest*:spawn_plan.*:long_texts.*:chat_template.without_a_helper_*:\
helper_pool.who_finds_all_helpers_busy_is_told_so:helper_pool.a_program_in_a_temporary_file_runs_as_well"
status=0
# run_test PROGRAM [CPU]
run_test() {
  printf '\n== %s on %s\n' "$1" "${2:-max}"
  env HOME=/root QEMU_CPU="${2:-max}" CANDOR_TEST_SLOWER=20 chroot "$root" "$PWD/build-arm/tests/$1" --gtest_brief=1 \
    --gtest_filter="-$left_out" || status=1
}
for test in $both; do
  run_test "$test"
  run_test "$test" cortex-a53
done
for test in $once; do
  run_test "$test"
done
printf '\n== a story here and there\n'
story="run Once_upon_a_time -m $PWD/models/pocket/pocket-q8_0.gguf -n 40 --temperature 0"
# shellcheck disable=SC2086
for cpu in max cortex-a53; do
  env HOME=/root QEMU_CPU=$cpu chroot "$root" "$PWD/build-arm/candor" $story 2>/dev/null >"$root/tmp/there" || status=1
  build/candor $story 2>/dev/null | cmp - "$root/tmp/there" && echo "the same on $cpu" || status=1
done
exit $status
