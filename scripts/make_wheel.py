#!/usr/bin/env python3
"""Packs python/candor, and what scripts/link_portable.py linked, into a wheel for every Python from 3.9:

    python3 scripts/make_wheel.py LINKED OUT

The wheel holds the library, the program (`candor` on PATH) and the shipped model, and needs nothing but glibc. Times are
those of SOURCE_DATE_EPOCH, so that two runs give the same bytes."""
import base64
import hashlib
import sys
import time
import zipfile
from pathlib import Path

import architectures
import make_image

ROOT = Path(__file__).resolve().parent.parent
VERSION = make_image.VERSION
MODEL = make_image.MODEL
# No earlier than what a zip file can say.
TIME = time.gmtime(max(make_image.EPOCH, 315532800))[:6]

METADATA = """Metadata-Version: 2.1
Name: candor
Version: {version}
Summary: LLM inference engine that gives one answer and hides nothing
License: Apache-2.0
Requires-Python: >=3.9
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

"""
ENTRY_POINTS = """[console_scripts]
candor = candor.__main__:main
candor-lm-eval = candor.evaluation:main

[pytest11]
candor = candor.pytest_plugin
"""


def contents(linked, version, tag):
    """Path in the wheel, content, mode."""
    for path in sorted((ROOT / "python/candor").iterdir()):
        if path.suffix == ".py" or path.name == "py.typed":
            yield f"candor/{path.name}", path.read_bytes(), 0o644
    yield "candor/lib/libcandor.so.0", (linked / "libcandor.so.0").read_bytes(), 0o755
    yield "candor/bin/candor", (linked / "candor").read_bytes(), 0o755
    yield f"candor/share/candor/{MODEL}", (ROOT / MODEL).read_bytes(), 0o644
    info = f"candor-{version}.dist-info/"
    yield info + "METADATA", (METADATA.format(version=version) + (ROOT / "docs/python.md").read_text()).encode(), 0o644
    yield info + "WHEEL", f"Wheel-Version: 1.0\nGenerator: candor\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644
    yield info + "entry_points.txt", ENTRY_POINTS.encode(), 0o644
    yield info + "licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), 0o644
    yield info + "licenses/NOTICE", (ROOT / "NOTICE").read_bytes(), 0o644


def write_wheel(path, files, record):
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, TIME)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content, compresslevel=9)
        for name, content, mode in files:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(content)}\n")
            add(name, content, mode)
        add(record, ("".join(lines) + f"{record},,\n").encode(), 0o644)


def make_wheel(linked, out, local=""):
    """local: "+cuda" for a program with kernels for GPUs, a local version of PEP 440: pip puts it in the other's place."""
    version = VERSION + local
    target = architectures.of_program(linked / "candor")
    major, minor = target.zig.rsplit(".", 2)[-2:]
    tag = f"py3-none-manylinux_{major}_{minor}_{target.name}"
    path = out / f"candor-{version}-{tag}.whl"
    write_wheel(path, contents(linked, version, tag), f"candor-{version}.dist-info/RECORD")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(make_wheel(Path(sys.argv[1]).resolve(), Path(sys.argv[2])))
