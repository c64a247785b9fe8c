#!/bin/sh
# Checks the backend cuda on a machine with an NVIDIA GPU within ten minutes, bits first, then speed, then the sanitizers.
#   sh scripts/check_device.sh [OUT]            builds here (preset cuda), then checks
#   sh scripts/check_device.sh pack FOLDER      builds, and puts what another machine needs into FOLDER: programs, their
#                                               libraries, data of tests; and FOLDER.tar.gz. That machine needs a driver and no
#                                               compiler
#   sh FOLDER/check_device.sh run [OUT]         checks there
# OUT (gpu-results): a log for each stage, and gpu.json, which is written anew behind each, so that a check that is stopped
# half-way has told what it had. CANDOR_DEVICE_SECONDS (540): when no further stage begins. CANDOR_STAGES: which ones.
# CANDOR_LLAMA_BENCH: a llama-bench of llama.cpp that uses GPUs, measured beside; pack takes it along.
# Without a GPU that can be used it says why, and ends with status 2.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tests="candor_backend_cuda_emulation_test candor_cuda_test"

build() {
  sh scripts/setup.sh
  sh scripts/setup_cuda.sh
  CANDOR_CARGO_TARGET_DIR="${CANDOR_CARGO_TARGET_DIR:-$PWD/build/cargo}" sh scripts/build.sh cuda candor $tests
}

# The libraries that a program needs, but for those of glibc, which are the other machine's.
libraries() {
  ldd "$@" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' | sort -u
}

pack() {
  folder=$1
  mkdir -p "$folder/lib" "$folder/bin" "$folder/project/models/pocket" "$folder/project/scripts"
  for program in build-cuda/candor $(printf 'build-cuda/tests/%s ' $tests); do
    strip -o "$folder/bin/$(basename "$program")" "$program"
  done
  [ -z "${CANDOR_LLAMA_BENCH:-}" ] || cp -L "$CANDOR_LLAMA_BENCH" "$folder/bin/llama-bench"
  for library in $(libraries "$folder"/bin/*); do cp -L "$library" "$folder/lib/"; done
  cp models/pocket/pocket-q8_0.gguf models/pocket/tokenizer.json "$folder/project/models/pocket/"
  cp scripts/make_shape.py "$folder/project/scripts/"
  cp scripts/check_device.sh "$folder/"
  [ ! -d build-cuda/tests/goldens ] || cp -r build-cuda/tests/goldens "$folder/goldens"
  [ ! -d ../shared/data/models ] || { mkdir -p "$folder/data" && cp -r ../shared/data/models "$folder/data/"; }
  tar -C "$(dirname "$folder")" -czf "$folder.tar.gz" "$(basename "$folder")"
  du -sh "$folder" "$folder.tar.gz"
}

# Runs a stage for at most so many seconds: stage NAME SECONDS COMMAND...
stage() {
  name=$1 most=$2
  shift 2
  case " ${CANDOR_STAGES:-device kernels sanitizer races models speed} " in *" $name "*) ;; *) return 0 ;; esac
  left=$((began + ${CANDOR_DEVICE_SECONDS:-540} - $(date +%s)))
  [ "$left" -lt "$most" ] && most=$left
  if [ "$most" -lt 5 ]; then
    note "$name" "no time left" 0
    return 0
  fi
  from=$(date +%s)
  code=0
  timeout "$most" "$@" >"$out/$name.log" 2>&1 || code=$?
  case $code in
    0) result=passed ;;
    77) result=skipped ;;
    124) result="stopped after $most s" ;;
    *) result=FAILED; status=1 ;;
  esac
  note "$name" "$result" $(($(date +%s) - from))
}

note() {
  printf '%-12s %-22s %4d s  %s\n' "$1" "$2" "$3" "$(tail -n 1 "$out/$1.log" 2>/dev/null | cut -c1-150)"
  printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$out/stages.tsv"
  summary
}

# gpu.json of what is there. Without Python the logs remain.
summary() {
  command -v python3 >/dev/null 2>&1 || return 0
  python3 - "$out" <<'END'
import json, sys
from pathlib import Path
out = Path(sys.argv[1])
def read(name):
    try:
        return json.loads((out / name).read_text())
    except (OSError, ValueError):
        return None
doctor = read("doctor.json") or {}
stages = [line.split("\t") for line in (out / "stages.tsv").read_text().splitlines()]
report = {"device": {name: found["value"] for name, found in doctor.items() if name.startswith("GPU") or name == "processor"},
          "stages": [{"name": name, "result": result, "seconds": int(seconds),
                      "last": ((out / f"{name}.log").read_text(errors="replace").splitlines() or [""])[-1][:300]
                      if (out / f"{name}.log").exists() else ""} for name, result, seconds in stages],
          "speed": {file.stem[6:]: read(file.name) for file in sorted(out.glob("speed_*.json"))},
          "llama.cpp": {file.stem[6:]: read(file.name) for file in sorted(out.glob("llama_*.json"))}}
(out / "gpu.json").write_text(json.dumps(report, indent=1) + "\n")
END
}

# What the card is, and a story from it.
device() {
  "$candor" doctor --json >"$out/doctor.json"
  "$candor" run "Once upon a time" -n 16 --temperature 0 --device cuda \
    -m "$project/models/pocket/pocket-q8_0.gguf"
}

kernels() { "$bin/candor_backend_cuda_emulation_test" --gtest_brief=1 "$@"; }

under_sanitizer() {
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
  [ -n "$sanitizer" ] || { echo "compute-sanitizer is not installed"; return 77; }
  "$sanitizer" --tool "$1" --error-exitcode 1 "$bin/candor_backend_cuda_emulation_test" --gtest_brief=1
}

# measure NAME OPTIONS...: tokens a second, and shares of what the card was measured to give, of 1, 16 and 64 together.
measure() {
  name=$1
  shift
  "$candor" bench generate "$out/model.gguf" --device cuda --new 64 -r 2 --json "$@" >"$out/speed_$name.json" || return 1
  summary
  python3 - "$out/speed_$name.json" "$name" <<'END'
import json, sys
def share(value):
    return f"{100 * value:.0f} %" if value else "-"
for row in json.load(open(sys.argv[1]))["results"]:
    print(f"{sys.argv[2]}: {row['batch']} x {row['prompt']}: prefill {row['prefill_tokens_per_second']:.0f} tokens/s"
          f" ({share(row['prefill_share'])} of the arithmetic), decode {row['decode_tokens_per_second']:.0f}"
          f" ({share(row['decode_dram_share'])} of the memory)")
END
}

# llama.cpp's, alone: it has no W8A8.
measure_llama() {
  bench=${CANDOR_LLAMA_BENCH:-$bin/llama-bench}
  [ -x "$bench" ] || return 0
  "$bench" -m "$out/model.gguf" -ngl 99 -fa 1 -p 512 -n 64 -r 2 -o json >"$out/llama_$1.json" 2>"$out/llama.log" ||
    echo "llama.cpp: $1: $(tail -n 1 "$out/llama.log")"
  summary
}

# Shapes and types; a model is made when its turn comes, and lies in OUT no longer than that. Counted for a card that reads
# 4 TB/s: 80 s to make and load the five, 50 s to measure them.
speed() {
  for case in "llama-3.1-8b Q4_K_M" "llama-3.1-8b W8A8" "llama-3.1-8b Q8_0" "llama-3.2-1b BF16" "llama-3.2-1b Q4_K_M"; do
    shape=${case% *} type=${case#* }
    python3 "$project/scripts/make_shape.py" "$shape" "$type" "$out/model.gguf" || return 1
    measure "$shape-$type" --prompt 512 --batch 1,16,64 || return 1
    [ "$type" = W8A8 ] || measure_llama "$shape-$type"
    [ "$case" != "llama-3.1-8b Q4_K_M" ] || measure "$shape-$type-long" --prompt 8192 --batch 1 || return 1
    rm -f "$out/model.gguf"
  done
}

run() {
  out=${1:-gpu-results}
  rm -rf "$out"
  mkdir -p "$out"
  out=$(cd "$out" && pwd)
  began=$(date +%s)
  status=0
  export CANDOR_TEST_GPU=0 CANDOR_DEVICE=cuda CANDOR_TEST_PROJECT="$project" bin candor project out
  # A function of this file in a process of its own, which `timeout` may end.
  part() { name=$1 most=$2; shift 2; stage "$name" "$most" sh "$here/check_device.sh" part "$@"; }
  part device 60 device
  if [ "${result:-passed}" != passed ]; then
    echo "check_device: no GPU can be used here: $(tail -n 1 "$out/device.log")" >&2
    return 2
  fi
  part kernels 120 kernels
  stage models 150 "$bin/candor_cuda_test" --gtest_brief=1
  part speed 240 speed
  part sanitizer 90 under_sanitizer memcheck
  part races 60 under_sanitizer racecheck
  rm -f "$out/model.gguf"
  return $status
}

case "${1:-}" in
  part) shift; "$@" ;;
  run)
    bin=$here/bin candor=$here/bin/candor project=$here/project
    export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export CANDOR_TEST_DATA="$here/data" CANDOR_TEST_GOLDENS="$here/goldens"
    run "${2:-gpu-results}"
    ;;
  pack)
    [ $# = 2 ] || { echo "check_device.sh: pack into which folder?" >&2; exit 2; }
    cd "$here/.."
    build
    pack "$2"
    ;;
  *)
    cd "$here/.."
    build
    bin=$PWD/build-cuda/tests candor=$PWD/build-cuda/candor project=$PWD
    run "${1:-gpu-results}"
    ;;
esac
