"""The processors that releases are made for, as the tools call them. Used by link_portable.py, make_packages.py and
make_image.py; the build folder's own architecture is read off its CMakeCache.txt."""
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Architecture:
    name: str  # as uname, rpm and rustc say it
    debian: str
    oci: str
    zig: str  # a target, with the oldest glibc that the program runs with
    loader: str  # where programs look for it
    tools: str = ""  # prefix of compiler and binutils
    run: tuple = ()  # what runs its programs here
    roots: list = field(default_factory=list)  # folders of libraries, before the compiler's own

    def library(self, name):
        """The file that the compiler links for `name`; None: there is none."""
        for root in self.roots:
            if (root / name).is_file():
                return str((root / name).resolve())
        command = [self.tools + "g++", f"-print-file-name={name}"]
        path = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
        return str(path.resolve()) if path.is_absolute() and path.is_file() else None


ARCHITECTURES = {each.name: each for each in (
    Architecture("x86_64", "amd64", "amd64", "x86_64-linux-gnu.2.27", "lib64/ld-linux-x86-64.so.2"),
    Architecture("aarch64", "arm64", "arm64", "aarch64-linux-gnu.2.27", "lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu-",
                 ("qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"),
                 [ROOT / "build/arm-root/usr/lib/aarch64-linux-gnu"]),
)}


def of_program(path):
    """Of an ELF file."""
    machine = Path(path).read_bytes()[18:20]
    for name, number in (("x86_64", 62), ("aarch64", 183)):
        if machine == number.to_bytes(2, "little"):
            return ARCHITECTURES[name]
    sys.exit(f"{path}: no program for {' or '.join(ARCHITECTURES)}")


def of_build(folder):
    found = re.search(r"^CMAKE_TOOLCHAIN_FILE:.*=.*/(\w+)\.cmake$", (Path(folder) / "CMakeCache.txt").read_text(), re.M)
    return ARCHITECTURES[found.group(1) if found else "x86_64"]
