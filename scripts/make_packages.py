#!/usr/bin/env python3
"""Packs the program and the library that scripts/link_portable.py linked:

    python3 scripts/make_packages.py LINKED OUT [NAME]

into a tarball with an install line, a .deb, an .rpm, an image (make_image.py), an SBOM (SPDX 2.3), a wheel and SHA256SUMS.
NAME: candor, or candor-cuda for a program with kernels for GPUs. What is installed where stands in installed_files() and
library_files(), which are the same for both. Times are those of SOURCE_DATE_EPOCH, owners root."""
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import architectures
import make_image
import make_notice
import make_wheel

ROOT = Path(__file__).resolve().parent.parent
EPOCH, VERSION, MODEL = make_image.EPOCH, make_image.VERSION, make_image.MODEL
LINKED = {"libfmt-dev", "libspdlog-dev", "nlohmann-json3-dev", "libcli11-dev", "libutf8proc-dev", "libedit-dev",
          "libboost1.81-dev", "libssl-dev", "libturbojpeg0-dev"}


@dataclass(frozen=True)
class Flavour:
    name: str
    where: str  # it computes, for people
    deb: str = ""  # lines of control about other packages
    rpm: str = ""  # lines of the spec
    wheel: str = ""  # behind the version of the distribution "candor", which both are


FLAVOURS = {each.name: each for each in (
    Flavour("candor", "on the processor at hand"),
    Flavour("candor-cuda", "on the processor at hand or an NVIDIA GPU",
            f"Conflicts: candor\nReplaces: candor\nProvides: candor (= {VERSION})\n",
            f"Provides: candor = {VERSION}\nConflicts: candor\n", "+cuda"),
)}


def shown_by(program, *words):
    return subprocess.run([*architectures.of_program(program).run, program, *words], check=True, capture_output=True).stdout


def library_files(linked, folder):
    """The C interface; folder: "lib", or "lib64" where a distribution keeps libraries there."""
    def filled(name):
        text = (ROOT / "packaging" / name).read_text()
        return text.replace("@VERSION@", VERSION).replace("@LIBDIR@", folder).encode()
    return [
        (f"usr/{folder}/libcandor.so.0", (linked / "libcandor.so.0").read_bytes(), 0o644),
        (f"usr/{folder}/libcandor.so", b"INPUT(libcandor.so.0)\n", 0o644),  # what -lcandor finds
        (f"usr/{folder}/cmake/candor/candorConfig.cmake", filled("candorConfig.cmake"), 0o644),
        (f"usr/{folder}/cmake/candor/candorConfigVersion.cmake", filled("candorConfigVersion.cmake"), 0o644),
        ("usr/share/pkgconfig/candor.pc", filled("candor.pc"), 0o644),
        ("usr/include/candor/candor.h", (ROOT / "include/candor/candor.h").read_bytes(), 0o644),
    ]


def installed_files(program):
    """Path below / of each other file, its content and its mode."""
    read = lambda name: (ROOT / name).read_bytes()
    packed = lambda content: gzip.compress(content, 9, mtime=0)
    notes = "usr/share/doc/candor/"
    return [
        ("usr/bin/candor", program.read_bytes(), 0o755),
        ("usr/share/candor/" + MODEL, read(MODEL), 0o644),
        ("usr/share/man/man1/candor.1.gz", packed(shown_by(program, "completion", "man")), 0o644),
        ("usr/share/bash-completion/completions/candor", shown_by(program, "completion", "bash"), 0o644),
        ("usr/share/zsh/site-functions/_candor", shown_by(program, "completion", "zsh"), 0o644),
        ("usr/share/fish/vendor_completions.d/candor.fish", shown_by(program, "completion", "fish"), 0o644),
        ("usr/lib/systemd/system/candor.service", read("packaging/candor.service"), 0o644),
        ("etc/candor/serve.toml", read("packaging/serve.toml"), 0o644),
        (notes + "copyright", read("LICENSE") + b"\n" + read("NOTICE"), 0o644),
        (notes + "README.md", read("README.md"), 0o644),
        (notes + "c.md", read("docs/c.md"), 0o644),
        (notes + "story.c", read("examples/story.c"), 0o644),
    ]


def write_tree(folder, files):
    for name, content, mode in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    for path in [folder, *sorted(folder.rglob("*"))]:
        if path.is_dir():
            path.chmod(0o755)
        os.utime(path, (EPOCH, EPOCH))


def write_tarball(path, files, top):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content, mode in files:
            make_image.add_file(tar, f"{top}/{name}", content, mode)
    path.write_bytes(gzip.compress(raw.getvalue(), 9, mtime=0))


def make_tarball(target, flavour, out, files):
    """bin/, share/ and the rest under one folder, and install.sh, which copies them below a prefix."""
    inside = [(name.removeprefix("usr/"), content, mode) for name, content, mode in files]
    inside.append(("install.sh", (ROOT / "packaging/install.sh").read_bytes(), 0o755))
    top = f"{flavour.name}-{VERSION}-linux-{target.name}"
    write_tarball(out / f"{top}.tar.gz", inside, top)


def make_deb(target, flavour, out, files):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        n_kib = sum(-(-len(content) // 1024) for _, content, _ in files)
        control = (ROOT / "packaging/deb/control").read_text().format(
            name=flavour.name, version=VERSION, size=n_kib, architecture=target.debian, others=flavour.deb, where=flavour.where)
        hooks = [(f"DEBIAN/{hook}", (ROOT / f"packaging/deb/{hook}").read_bytes(), 0o755)
                 for hook in ("postinst", "prerm", "postrm")]
        sums = "".join(f"{hashlib.md5(content).hexdigest()}  {path}\n" for path, content, _ in files
                       if not path.startswith("etc/"))
        write_tree(folder, [*files, *hooks, ("DEBIAN/control", control.encode(), 0o644),
                            ("DEBIAN/conffiles", b"/etc/candor/serve.toml\n", 0o644),
                            ("DEBIAN/md5sums", sums.encode(), 0o644)])
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--build", name,
                        str(out / f"{flavour.name}_{VERSION}_{target.debian}.deb")], check=True, stdout=subprocess.DEVNULL)


def make_rpm(target, flavour, out, files):
    if shutil.which("rpmbuild") is None:
        sys.exit("make_packages: rpmbuild is not installed; run sh scripts/setup_package.sh")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_tree(folder / "tree", files)
        spec = (ROOT / "packaging/rpm/candor.spec").read_text()
        for word, value in (("@NAME@", flavour.name), ("@OTHERS@\n", flavour.rpm), ("@WHERE@", flavour.where),
                            ("@VERSION@", VERSION), ("@TREE@", str(folder / "tree")), ("@FILES@", "\n".join(rpm_lines(files)))):
            spec = spec.replace(word, value)
        (folder / "candor.spec").write_text(spec)
        subprocess.run(["rpmbuild", "-bb", "--quiet", "--target", target.name, "--define", f"_topdir {folder}/rpm",
                        "--define", f"_dbpath {folder}/db", str(folder / "candor.spec")], check=True)
        built, = (folder / "rpm/RPMS").rglob("*.rpm")
        shutil.copyfile(built, out / f"{flavour.name}-{VERSION}-1.{target.name}.rpm")


# Folders that every system has; what else a package makes is its own too.
USUAL_FOLDERS = {"", "etc", "usr", "usr/bin", "usr/include", "usr/lib", "usr/share", "usr/share/doc", "usr/lib64", "usr/share/man",
                 "usr/share/man/man1"}


def rpm_lines(files):
    folders = {str(parent).removeprefix(".") for path, _, _ in files for parent in Path(path).parents}
    lines = [f"%dir /{folder}" for folder in sorted(folders - USUAL_FOLDERS)]
    return lines + [("%config(noreplace) /" if path.startswith("etc/") else "/") + path for path, _, _ in files]


def spdx_package(name, version, licence, source, kind):
    identity = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{kind}-{name}")
    return {"SPDXID": identity, "name": name, "versionInfo": version, "licenseDeclared": licence,
            "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION", "filesAnalyzed": False,
            "downloadLocation": source or "NOASSERTION"}


def make_sbom(target, flavour, out, program):
    parts = [spdx_package(name, version, licence, "", "debian")
             for name, version, licence, _ in make_notice.debian_rows() if name in LINKED]
    parts += [spdx_package(name, version, licence, source, "crate")
              for name, version, licence, source in make_notice.crate_rows()]
    parts += [spdx_package(name, version, licence, source, "npm")
              for name, version, licence, source in make_notice.page_rows()]
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    whole = spdx_package(flavour.name, VERSION, "Apache-2.0", "", "program")
    whole["checksums"] = [{"algorithm": "SHA256", "checksumValue": digest}]
    created = datetime.fromtimestamp(EPOCH, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    bill = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{flavour.name}-{VERSION}", "documentNamespace": f"urn:{flavour.name}:{VERSION}:{digest}",
            "creationInfo": {"created": created, "creators": ["Tool: make_packages.py"]},
            "packages": [whole, *parts],
            "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                               "relatedSpdxElement": whole["SPDXID"]}]
            + [{"spdxElementId": whole["SPDXID"], "relationshipType": "STATIC_LINK",
                "relatedSpdxElement": part["SPDXID"]} for part in parts]}
    (out / f"{flavour.name}-{VERSION}-{target.name}.spdx.json").write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")


# Where the tarball of a release lies that others install from.
RELEASES = os.environ.get("CANDOR_RELEASES_URL", "https://candor.invalid/releases")


def make_recipes(target, flavour, out):
    """The formula of Homebrew and the expression of Nix, which install the tarball."""
    name = f"{flavour.name}-{VERSION}-linux-{target.name}.tar.gz"
    digest = hashlib.sha256((out / name).read_bytes()).hexdigest()
    words = {"@NAME@": flavour.name, "@CLASS@": flavour.name.title().replace("-", ""), "@VERSION@": VERSION, "@URL@": f"{RELEASES}/{name}", "@SHA256@": digest, "@SYSTEM@": f"{target.name}-linux",
             "@BREW_CPU@": "arm64" if target.name == "aarch64" else target.name}
    for source in ("candor.rb", "candor.nix"):
        text = (ROOT / "packaging" / source).read_text()
        for word, value in words.items():
            text = text.replace(word, value)
        kind = Path(source).suffix
        (out / f"{flavour.name}-{target.name}{kind}").write_text(text)


def write_sums(out):
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
             for path in sorted(out.iterdir()) if path.name != "SHA256SUMS"]
    (out / "SHA256SUMS").write_text("".join(lines))


def main():
    if len(sys.argv) not in (3, 4) or (len(sys.argv) == 4 and sys.argv[3] not in FLAVOURS):
        sys.exit(__doc__)
    linked, out, flavour = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), FLAVOURS[(sys.argv[3:] or ["candor"])[0]]
    program = linked / "candor"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    target = architectures.of_program(program)
    files = installed_files(program)
    bare = out / f"{flavour.name}-{VERSION}-linux-{target.name}"
    shutil.copyfile(program, bare)
    bare.chmod(0o755)
    make_tarball(target, flavour, out, files + library_files(linked, "lib"))
    make_deb(target, flavour, out, files + library_files(linked, "lib"))
    make_rpm(target, flavour, out, files + library_files(linked, "lib64"))
    make_sbom(target, flavour, out, program)
    make_image.write_image(target, flavour.name, files, out / f"{flavour.name}-{VERSION}-{target.oci}.oci.tar")
    make_recipes(target, flavour, out)
    make_wheel.make_wheel(linked, out, flavour.wheel)
    write_sums(out)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>10}  {path.name}")


if __name__ == "__main__":
    main()
