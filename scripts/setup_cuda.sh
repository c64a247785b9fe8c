#!/bin/sh
# Installs NVIDIA's compiler of scripts/cuda_packages.txt into build/cuda, for -DCANDOR_CUDA=ON and scripts/check_cuda.py.
# It needs Python, half a gigabyte of disk, and neither a GPU nor its driver. Quiet and quick when nothing is missing.
set -eu
cd "$(dirname "$0")/.."
list=scripts/cuda_packages.txt
tools=build/cuda
say() { printf 'setup: %s\n' "$*" >&2; }

! cmp -s "$list" "$tools/packages.txt" || exit 0
case "$(uname -s) $(uname -m)" in
  "Linux x86_64" | "Linux aarch64") ;;
  *) say "there is no nvcc for $(uname -s) $(uname -m): kernels for GPUs are compiled on Linux, x86_64 or aarch64"; exit 1 ;;
esac
python3 -c 'import ensurepip, venv' 2>/dev/null || { say "Python's venv is missing (Debian: apt-get install python3-venv)"; exit 1; }
packages=$(awk '!/^#/ && NF { print $1 "==" $2 }' "$list")
say "installing: nvcc into $tools"
rm -rf "$tools"
python3 -m venv "$tools"
# shellcheck disable=SC2086
"$tools/bin/python" -m pip install -q --disable-pip-version-check --no-deps $packages || {
  say "nvcc was not installed: pip could not fetch the packages of $list (is there a network?)"
  exit 1
}
cp "$list" "$tools/packages.txt"
