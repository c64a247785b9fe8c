#!/usr/bin/env python3
"""Links the program and the shared library of a build folder once more, so that they run on any Linux of that
processor with glibc 2.27 or newer:

    python3 scripts/link_portable.py BUILD OUT

makes OUT/candor and OUT/libcandor.so.0.

The objects are those of the build, so that the answers are; all libraries but glibc's are linked in, and glibc's are
bound to by what version 2.27 has (packaging/portable/glibc.c brings what came later). The linker is zig's, which knows
every version of glibc (scripts/setup_package.sh installs it)."""
import os
import shlex
import subprocess
import sys
import tempfile

import architectures

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ZIG = os.path.join(ROOT, "build/package-tools/bin/python")
# Of glibc: not linked in.
SYSTEM = {"dl", "m", "pthread", "c", "rt"}
# What static libraries need, which shared ones say themselves.
NEEDS = {"edit": ["tinfo", "bsd", "md"]}
COMPILER = ["stdc++", "gcc_eh", "gcc"]
C_FLAGS = ["-O2", "-fPIC", "-Wall", "-Wextra", f"-ffile-prefix-map={ROOT}/="]


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def static_library(target, name):
    path = target.library(f"lib{name}.a")
    if path is None:
        sys.exit(f"link_portable: there is no lib{name}.a; sh scripts/setup_package.sh installs what is missing")
    return path


def link_inputs(build, made):
    """The objects and archives of what is made, and the names of the libraries from outside, of its own link command."""
    commands = run("ninja", "-C", build, "-t", "commands", made, capture_output=True).stdout.splitlines()
    words = shlex.split([command for command in commands if " -o " + made in command][-1])
    inside, outside = [], []
    for word in words[words.index("-o") + 2:]:
        if word.startswith("-l"):
            outside.append(word[2:])
        elif word.endswith(".so"):
            outside.append(os.path.basename(word)[3:-3])
        elif word.endswith(".a"):
            inside.append(os.path.join(build, word))
    objects = [os.path.join(build, word) for word in words if word.endswith(".o")]
    names = [name for name in dict.fromkeys(outside) if name not in SYSTEM]
    return objects + inside, names + [extra for name in names for extra in NEEDS.get(name, [])] + COMPILER


def compile_c(target, source, out, *flags):
    run(target.tools + "gcc", *C_FLAGS, *flags, f"-I{ROOT}/bridge/include", "-c", os.path.join(ROOT, source), "-o", out)
    return out


def link(target, out, inputs, *options):
    run(ZIG, "-m", "ziglang", "cc", "-target", target.zig, "-s", "-Wl,--gc-sections", "-Wl,-z,relro,-z,now", *options,
        "-o", out, "-Wl,--start-group", *inputs, "-Wl,--end-group", "-lpthread", "-ldl", "-lm")


def portable_inputs(target, build, made, replacements):
    """All that `made` is made of, with our own in place of the archives that `replacements` names."""
    inside, names = link_inputs(build, made)
    kept = [path for path in inside if os.path.basename(path) not in replacements]
    return [*kept, *replacements.values(), *(static_library(target, name) for name in names)]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    build, out = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not os.path.exists(ZIG):
        sys.exit("link_portable: the linker is not installed; run sh scripts/setup_package.sh")
    target = architectures.of_build(build)
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        later_glibc = compile_c(target, "packaging/portable/glibc.c", f"{folder}/glibc.o")
        helper_main = compile_c(target, "packaging/portable/helper.c", f"{folder}/helper.o")
        bridge, = (path for path in link_inputs(build, "candor")[0] if path.endswith("/libcandor_bridge.a"))
        runtime = [static_library(target, name) for name in COMPILER]
        link(target, f"{folder}/candor_helper", [helper_main, later_glibc, bridge, *runtime], "-pie")
        image = compile_c(target, "bridge/helper_image.c", f"{folder}/image.o", f'-DCANDOR_HELPER_PATH="{folder}/candor_helper"')
        own = {"libcandor_helper_image.a": image, "": later_glibc}
        link(target, f"{out}/candor", portable_inputs(target, build, "candor", own), "-pie")
        capi = ["-Wl,--whole-archive", os.path.join(build, "libcandor_capi.a"), "-Wl,--no-whole-archive"]
        link(target, f"{out}/libcandor.so.0", [*capi, *portable_inputs(target, build, "libcandor.so.0.1.0", own)], "-shared",
             "-Wl,-soname,libcandor.so.0", f"-Wl,--version-script={build}/libcandor.map")


if __name__ == "__main__":
    main()
