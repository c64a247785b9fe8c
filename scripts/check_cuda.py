#!/usr/bin/env python3
"""Checks that the compiled kernels of src/backend/cuda/kernels compute what their sources say (docs/numerics.md): every float
operation is one IEEE operation with FTZ, nothing is contracted, approximate or added atomically.

  python3 scripts/check_cuda.py [--archs 80,90a,120] [--self-test] [FILE.cu ...]

Three looks at each file. Its PTX: only instructions that name their rounding, which no later compiler may fuse, the driver's
neither. Its machine code: no approximate function, no float in a matrix instruction or an atomic one. And its machine code with fma_rn, div_rn and sqrt_rn replaced by calls of
functions that the compiler does not know: no fused multiply-add is left, so that every one of the program is of these words.
(Integer division uses MUFU.RCP, and corrects it exactly.) Further: driver.h is held against NVIDIA's cuda.h.
Exit 77: no nvcc is installed (sh scripts/setup_cuda.sh).
"""
import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src" / "backend" / "cuda" / "kernels"
NOT_INSTALLED = 77

# PTX instructions on floats that are exact, or rounded once to nearest even. What computes has .ftz.
FLOAT_TYPE = re.compile(r"\.(f16|f16x2|bf16|bf16x2|tf32|f32|f32x2|f64|e4m3\w*|e5m2\w*)\b")
MOVES = re.compile(r"(ld|st|mov|selp|slct|shfl|set|setp|testp|copysign|abs|neg|min|max|cvt|ldu|prmt)\b")
ROUNDED = re.compile(r"(add|sub|mul|fma|div|sqrt)\.rn\.ftz\.f32$")
CONVERSION = re.compile(r"cvt(\.rn|\.rni|\.rzi|\.rmi|\.rpi)?(\.sat)?(\.ftz)?\.\w+\.\w+$")
# Machine code.
MACHINE_WRONG = [
    (re.compile(r"\bMUFU\.(?!RCP\b|RSQ\b)\w+"), "an approximate function"),
    (re.compile(r"\b(ATOM|ATOMG|ATOMS|RED|REDG|REDUX)\b\S*\.(F16|F32|F64|BF16)\S*"), "an atomic operation on floats"),
    (re.compile(r"\b(HMMA|DMMA|QMMA|OMMA|HGMMA|QGMMA|UTC[HQO]MMA)\b\S*"), "a matrix product of floats"),
    (re.compile(r"\b(DFMA|DADD|DMUL)\b\S*"), "arithmetic in double"),
]
FUSED = re.compile(r"\b(FFMA2?|HFMA2|DFMA|FFMA32I|HFMA2_MMA)\b(\S*)\s+([^;]*)")
OPAQUE = """extern "C" __device__ float candor_fma(float, float, float);
extern "C" __device__ float candor_div(float, float);
extern "C" __device__ float candor_sqrt(float);
#define __fmaf_rn candor_fma
#define __fdiv_rn candor_div
#define __fsqrt_rn candor_sqrt
"""


def find_tools():
    """The folder with nvcc and nvdisasm, or None."""
    folders = sorted((ROOT / "build" / "cuda").glob("lib/python3*/site-packages/nvidia/cu*/bin"))
    folders += [Path(found).parent for found in [shutil.which("nvcc")] if found] + [Path("/usr/local/cuda/bin")]
    return next((folder for folder in folders if (folder / "nvcc").exists() and (folder / "nvdisasm").exists()), None)


def cmake_flags():
    """CANDOR_CUDA_FLAGS of cmake/cuda.cmake: what is checked is what is built."""
    found = re.search(r"set\(CANDOR_CUDA_FLAGS ([^)]*)\)", (ROOT / "cmake" / "cuda.cmake").read_text())
    return found.group(1).split()


class Compiler:
    def __init__(self, tools, work):
        self.tools, self.work, self.flags = tools, work, cmake_flags()
        self.folders = [f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"]
        self.opaque = work / "opaque.h"
        self.opaque.write_text(OPAQUE)

    def run(self, *command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"check_cuda: {Path(command[0]).name} fails:\n{done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def ptx(self, source, arch, *more):
        out = self.work / f"{source.stem}.{arch}.{len(more)}.ptx"
        self.run(self.tools / "nvcc", "-ptx", *self.flags, f"-arch=compute_{arch}", *self.folders, *more, "-o", out, source)
        return out

    def machine_code(self, ptx, arch, *more):
        out = ptx.with_suffix(".cubin")
        self.run(self.tools / "ptxas", f"-arch=sm_{arch}", *more, "-o", out, ptx)
        return self.run(self.tools / "nvdisasm", "-c", out)


def ptx_errors(text):
    function = "?"
    for line in text.splitlines():
        begin = re.search(r"\.(entry|func)\b(?:\s*\([^)]*\))?\s*(\w+)", line)
        if begin:
            function = begin.group(2)
        found = re.match(r"\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_.:]*)\s", line)
        if not found or not FLOAT_TYPE.search(found.group(1)):
            continue
        name = found.group(1)
        if name.startswith("cvt."):
            good = CONVERSION.match(name) and ".sat" not in name
        elif MOVES.match(name):
            good = not re.match(r"(abs|neg|min|max|setp?)\b", name) or ".f32" not in name or ".ftz" in name
        else:
            good = ROUNDED.match(name)
        if not good:
            yield f"{function}: PTX {name}"


def machine_lines(text):
    function = "?"
    for line in text.splitlines():
        begin = re.match(r"\.text\.(\w+):", line.strip())
        if begin:
            function = begin.group(1)
        code = re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*)", line)
        if code:
            yield function, code.group(1)


def machine_errors(text):
    for function, code in machine_lines(text):
        for pattern, words in MACHINE_WRONG:
            if found := pattern.search(code):
                yield f"{function}: {words}, {found.group(0)}"


def is_move(operands):
    """Products with zero: how a constant comes into a register."""
    return sum(1 for part in operands.split(",")[1:3] if re.search(r"\bU?RZ\b", part)) >= 1


def fused_errors(text):
    for function, code in machine_lines(text):
        found = FUSED.search(code)
        if found and not is_move(found.group(3)):
            yield f"{function}: a fused multiply-add that the source has not, {found.group(0).strip()}"


def check_file(compiler, source, arch, flags):
    ptx = compiler.ptx(source, arch, *flags)
    opaque = compiler.ptx(source, arch, "-include", compiler.opaque, "-rdc=true", *flags)
    errors = [*ptx_errors(ptx.read_text()), *machine_errors(compiler.machine_code(ptx, arch)),
              *fused_errors(compiler.machine_code(opaque, arch, "-c"))]
    return [f"{source.name}: sm_{arch}: {error}" for error in dict.fromkeys(errors)]


def check_files(compiler, sources, archs, flags=()):
    work = [(compiler, source, arch, flags) for source in sources for arch in archs]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [error for found in pool.map(lambda one: check_file(*one), work) for error in found]


ABI = """#include <cuda.h>
#include <tuple>
#include <type_traits>
#include "backend/cuda/driver.h"
namespace candor::backend::cuda {
template <class A, class B>
constexpr bool alike_one = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class A, class B>
struct alike : std::false_type {};
template <class R, class S, class... A, class... B>
requires(sizeof...(A) == sizeof...(B))
struct alike<R (*)(A...), S (*)(B...)> : std::bool_constant<sizeof(R) == sizeof(S) && (alike_one<A, B> && ...)> {};
#define CHECK(field, symbol, ...) static_assert(alike<decltype(DriverFunctions{}.field), decltype(&::symbol)>::value, #symbol);
CANDOR_CUDA_DRIVER_CALLS(CHECK)
static_assert(driver::kInvalidValue == CUDA_ERROR_INVALID_VALUE && driver::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(driver::kNoDevice == CUDA_ERROR_NO_DEVICE && driver::kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(driver::kProcessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(driver::kMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(driver::kMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(driver::kMaxSharedBytes == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(driver::kDynamicSharedBytes == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(driver::kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(driver::kEventWithoutTime == CU_EVENT_DISABLE_TIMING);
static_assert(sizeof(DriverNodeParams) == sizeof(CUDA_KERNEL_NODE_PARAMS));
static_assert(offsetof(DriverNodeParams, shared_bytes) == offsetof(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes));
static_assert(offsetof(DriverNodeParams, values) == offsetof(CUDA_KERNEL_NODE_PARAMS, kernelParams));
static_assert(offsetof(DriverNodeParams, context) == offsetof(CUDA_KERNEL_NODE_PARAMS, ctx));
}
"""


def check_interface(compiler):
    """driver.h against NVIDIA's own header: the shapes of calls, and values."""
    header = compiler.tools.parent / "include" / "cuda.h"
    if not header.exists():
        return []
    source = compiler.work / "interface.cpp"
    source.write_text(ABI)
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", *compiler.folders, f"-I{header.parent}", str(source)],
                          capture_output=True, text=True)
    return [f"driver.h: {line}" for line in done.stderr.splitlines() if "error:" in line]


# Kernels that are wrong, each with what must be said of it.
WRONG = [
    ("contracted", ["-fmad=true"], "args.y[0] = args.x[0] * args.x[1] + args.x[2];", "a fused multiply-add"),
    ("fast_exp", [], "args.y[0] = __expf(args.x[0]);", "PTX ex2.approx"),
    ("libm_exp", [], "args.y[0] = expf(args.x[0]);", "PTX ex2.approx"),
    ("fast_division", ["-prec-div=false"], "args.y[0] = args.x[0] / args.x[1];", "PTX div."),
    ("fast_root", ["-prec-sqrt=false"], "args.y[0] = sqrtf(args.x[0]);", "PTX sqrt.approx"),
    ("fast_inverse_root", [], "args.y[0] = rsqrtf(args.x[0]);", "PTX rsqrt"),
    ("atomic", [], "atomicAdd(args.y, args.x[0]);", "an atomic operation on floats"),
    ("denormals", ["-ftz=false"], "args.y[0] = args.x[0] + args.x[1];", "PTX add"),
    ("in_double", [], "args.y[0] = static_cast<float>(args.x[0] * 0.1);", "PTX mul"),
    ("own_fma", [], "args.y[0] = __builtin_fmaf(args.x[0], args.x[1], args.x[2]);", "a fused multiply-add"),
    ("sound", [], "args.y[0] = fma_rn(args.x[0], div_rn(args.x[1], sqrt_rn(args.x[2])), args.x[3] * args.x[4]);", None),
]


def self_test(compiler, arch):
    def check(wrong):
        name, flags, body, expected = wrong
        source = compiler.work / f"{name}.cu"
        source.write_text('#include "backend/cuda/kernels/language.h"\nnamespace candor::backend::cuda {\n'
                          f"struct Args {{ float* y; const float* x; }};\nCANDOR_KERNEL({name}, Args) {{ {body} }}\n}}\n")
        errors = check_file(compiler, source, arch, flags)
        seen = any(expected in error for error in errors) if expected else not errors
        missed = [] if seen else [f"self-test: {name} should give: {expected or 'nothing'}"]
        return missed, f"  {'; '.join(errors) or name + ': nothing'}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, WRONG))
    print("wrong on purpose:\n" + "\n".join(line for _, line in results))
    return [error for errors, _ in results for error in errors]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--archs", default="80,90a,120")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    tools = find_tools()
    if tools is None:
        print("check_cuda: no nvcc with nvdisasm is installed (sh scripts/setup_cuda.sh)")
        return NOT_INSTALLED
    sources = options.files or sorted(KERNELS.glob("*.cu"))
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(tools, Path(folder))
        archs = options.archs.split(",")
        errors = self_test(compiler, archs[0]) if options.self_test else []
        errors += check_interface(compiler) + check_files(compiler, sources, archs)
    machines = ", ".join(f"sm_{arch}" for arch in archs)
    print("\n".join(errors) or f"cuda: {len(sources)} files compute what they say, on {machines}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
