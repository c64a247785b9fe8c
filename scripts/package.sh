#!/bin/sh
# sh scripts/package.sh [--for aarch64] [--cuda] [OUT]: makes a release in OUT (build-package/out): a program that needs
# nothing but glibc 2.27 and its packages, for x86-64 or for 64-bit Arm, which is built in build-package-aarch64.
# --cuda: the packages candor-cuda, with kernels for NVIDIA's GPUs, in build-package-cuda and build-package-aarch64-cuda.
# Two runs of one commit give the same bytes, in whatever folder (scripts/check_reproducible.sh).
set -eu
cd "$(dirname "$0")/.."
[ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
folder=build-package
name=candor
toolchain=""
while :; do
  case "${1:-}" in
    --for)
      case "${2:-}" in
        x86_64) ;;
        aarch64) folder=build-package-aarch64 toolchain="-DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64.cmake" ;;
        *) echo "package.sh: --for ${2:-}: expected x86_64 or aarch64" >&2; exit 2 ;;
      esac
      shift 2
      ;;
    --cuda) name=candor-cuda; shift ;;
    *) break ;;
  esac
done
folder=$folder${name#candor}
out=${1:-$folder/out}
sh scripts/setup.sh
sh scripts/setup_package.sh
[ -z "$toolchain" ] || sh scripts/setup_arm.sh
cuda=OFF
[ $name = candor ] || { sh scripts/setup_cuda.sh; cuda=ON; }
commit=$(git rev-parse --short=12 HEAD 2>/dev/null || true)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
CANDOR_CARGO_TARGET_DIR=$PWD/$folder/cargo
RUSTFLAGS="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
export SOURCE_DATE_EPOCH CANDOR_CARGO_TARGET_DIR RUSTFLAGS
umask 022
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake -S . -B $folder -G Ninja ${toolchain:+"$toolchain" "-DCANDOR_LIBEDIT=edit;tinfo;bsd;md"} -DCMAKE_BUILD_TYPE=Release -DCANDOR_TESTS=OFF -DCANDOR_ISAS=all \
  -DCANDOR_CUDA=$cuda -DCANDOR_COMMIT="$commit" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build $folder --target candor candor_shared >"$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
python3 scripts/link_portable.py $folder $folder/portable
python3 scripts/make_packages.py $folder/portable "$out" $name
