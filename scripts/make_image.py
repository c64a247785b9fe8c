"""Packs a program that scripts/link_portable.py linked into an image of the Open Container Initiative, without a daemon.
Called by make_packages.py; `podman load -i` takes what it writes.

Two layers: glibc and the authorities of https, of the machine that packs; and Candor. The server runs as a user without
rights and writes nothing, so that a read-only root will do. Times are those of SOURCE_DATE_EPOCH."""
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from datetime import datetime, timezone
from pathlib import Path

import architectures

ROOT = Path(__file__).resolve().parent.parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
VERSION = re.search(r'kVersion = "([^"]+)"', (ROOT / "include/candor/version.h").read_text()).group(1)
GLIBC = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libresolv.so.2",
         "libnss_dns.so.2", "libnss_files.so.2"]
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
USER = 65532
MODEL = "models/pocket/pocket-q8_0.gguf"  # that ships
CREATED = datetime.fromtimestamp(EPOCH, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
PREFIXES = ("usr/bin/", "usr/share/candor/", "usr/share/doc/candor/copyright")


def glibc_files(target):
    for name in [Path(target.loader).name, *GLIBC]:
        path = target.library(name)
        if path is None:
            sys.exit(f"make_image: there is no {name} on this machine")
        # Where the loader looks that the program names, and where it looks for the others.
        yield target.loader if target.loader.endswith(name) else "usr/lib/" + name, Path(path).read_bytes(), 0o755
    yield "etc/passwd", f"candor:x:{USER}:{USER}::/:/bin/false\n".encode(), 0o644
    yield "etc/nsswitch.conf", b"hosts: files dns\n", 0o644
    if AUTHORITIES.exists():
        yield str(AUTHORITIES)[1:], AUTHORITIES.read_bytes(), 0o644


def add_file(tar, name, content, mode):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, EPOCH
    entry.uname = entry.gname = "root"
    tar.addfile(entry, io.BytesIO(content))


def layer(files):
    """The tar, compressed, and the digest of the tar itself."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folders = sorted({str(parent) for name, _, _ in files for parent in Path(name).parents} - {"."})
        for folder in [*folders, "tmp"]:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, EPOCH
            tar.addfile(entry)
        for name, content, mode in files:
            add_file(tar, name, content, mode)
    return gzip.compress(raw.getvalue(), 9, mtime=0), hashlib.sha256(raw.getvalue()).hexdigest()


class Image:
    def __init__(self):
        self.blobs = {}

    def add(self, content, kind):
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[digest] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": "sha256:" + digest, "size": len(content)}

    def add_json(self, value, kind):
        return self.add(json.dumps(value, sort_keys=True).encode(), kind)

    def write(self, path, index):
        files = [("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'), ("index.json", json.dumps(index).encode())]
        files += [(f"blobs/sha256/{digest}", content) for digest, content in sorted(self.blobs.items())]
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
            for name, content in files:
                add_file(tar, name, content, 0o644)


# What the runtime of NVIDIA's containers reads; any other does not look at it.
CUDA_ENVIRONMENT = ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"]


def config(target, name, diff_ids):
    return {
        "architecture": target.oci, "os": "linux", "created": CREATED,
        "config": {
            "User": f"{USER}:{USER}", "ExposedPorts": {"8080/tcp": {}}, "WorkingDir": "/",
            "Env": ["PATH=/usr/bin", "HOME=/tmp", *(CUDA_ENVIRONMENT if name == "candor-cuda" else [])],
            # Beyond this machine a server needs keys: a file with lines of NAME SECRET, mounted at /keys.
            "Entrypoint": ["/usr/bin/candor"],
            "Cmd": ["serve", "--host", "0.0.0.0", "--api-key-file", "/keys"],
            "Healthcheck": {"Test": ["CMD", "/usr/bin/candor", "health"], "Interval": 30000000000, "Timeout": 5000000000},
            "Labels": {"org.opencontainers.image.title": name,
                       "org.opencontainers.image.version": VERSION,
                       "org.opencontainers.image.licenses": "Apache-2.0",
                       "org.opencontainers.image.description":
                           "LLM inference engine that gives one answer and hides nothing"}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest for digest in diff_ids]},
    }


def write_image(target, name, files, path):
    """files: (path below /, content, mode) of all that is installed."""
    own = [file for file in files if file[0].startswith(PREFIXES)]
    image = Image()
    layers = [layer(list(glibc_files(target))), layer(own)]
    manifest = image.add_json(
        {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
         "config": image.add_json(config(target, name, [diff for _, diff in layers]), "config.v1+json"),
         "layers": [image.add(packed, "layer.v1.tar+gzip") for packed, _ in layers]}, "manifest.v1+json")
    manifest["annotations"] = {"org.opencontainers.image.ref.name": f"{name}:{VERSION}"}
    image.write(path, {"schemaVersion": 2, "manifests": [manifest]})
