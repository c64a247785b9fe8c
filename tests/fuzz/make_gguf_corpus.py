#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/corpus/gguf: small whole files of every kind, and damaged ones. Seeded; std only."""
import pathlib
import random
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus" / "gguf"
# Number and block (elements, bytes) of tensor types.
TYPES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
         11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 20: (32, 18), 23: (256, 136), 30: (1, 2),
         39: (32, 17)}
SCALARS = [(0, "<B", 7), (1, "<b", -7), (2, "<H", 700), (3, "<h", -700), (4, "<I", 70000), (5, "<i", -70000),
           (6, "<f", 0.5), (7, "<B", 1), (10, "<Q", 1 << 40), (11, "<q", -1), (12, "<d", 0.25)]


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, type_number, value):
    return text(key) + struct.pack("<I", type_number) + value


def array(type_number, elements):
    return struct.pack("<IQ", type_number, len(elements)) + b"".join(elements)


def tensor(name, dims, type_number, offset):
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, type_number, offset)


def gguf(entries, tensors, data=b"", version=3, alignment=32):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(entries)) + b"".join(entries) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data


def all_scalars():
    entries = [entry(f"s{number}", number, struct.pack(form, value)) for number, form, value in SCALARS]
    return entries + [entry("string", 8, text(b"bytes \xff"))]


def all_arrays():
    entries = [entry(f"a{number}", 9, array(number, [struct.pack(form, value)] * 3)) for number, form, value in SCALARS]
    return entries + [entry("strings", 9, array(8, [text("x"), text("")])), entry("none", 9, array(5, []))]


def all_tensors(alignment):
    tensors, data = [], b""
    for number, (elements, size) in TYPES.items():
        tensors.append(tensor(f"t{number}", [elements, 2], number, len(data)))
        data += bytes((7 * i + number) % 251 for i in range(2 * size))
        data += bytes(-len(data) % alignment)
    return tensors, data


def whole_files():
    tensors, data = all_tensors(32)
    wide_tensors, wide_data = all_tensors(64)
    return {
        "empty_header": gguf([], []),
        "version_2": gguf(all_scalars(), [], version=2),
        "scalars": gguf(all_scalars(), []),
        "arrays": gguf(all_arrays(), []),
        "tensors": gguf([], tensors, data),
        "alignment_64": gguf([entry("general.alignment", 4, struct.pack("<I", 64))], wide_tensors, wide_data,
                             alignment=64),
        "scalar_tensor": gguf([], [tensor("s", [], 0, 0)], bytes(4)),
        "split": gguf([entry("split.no", 2, struct.pack("<H", 0)), entry("split.count", 2, struct.pack("<H", 2))], []),
        "unknown_type": gguf([], [tensor("t", [32], 77, 0)], bytes(128)),
        "nested_array": gguf([entry("a", 9, array(9, [array(0, [b"x"])]))], []),
        "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "huge_count": b"GGUF" + struct.pack("<IQQ", 3, 1 << 63, 1 << 60),
        "huge_array": gguf([text("a") + struct.pack("<IIQ", 9, 0, 1 << 60)], []),
        "huge_alignment": gguf([entry("general.alignment", 4, struct.pack("<I", 1 << 31))], tensors, data),
        "overlap": gguf([], [tensor("a", [32], 0, 0), tensor("b", [32], 0, 64)], bytes(256)),
        "overflow": gguf([], [tensor("a", [1 << 62, 4], 0, 0)], bytes(64)),
    }


def main():
    rng = random.Random(20240611)
    files = whole_files()
    for name in ("scalars", "arrays", "tensors"):
        whole = files[name]
        for i in range(4):
            files[f"{name}_cut{i}"] = whole[:rng.randrange(8, len(whole))]
            flipped = bytearray(whole)
            for _ in range(3):
                flipped[rng.randrange(8, min(len(whole), 700))] ^= 1 << rng.randrange(8)
            files[f"{name}_flipped{i}"] = bytes(flipped)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (FOLDER / name).write_bytes(data)
    print(len(files), "files,", sum(map(len, files.values())), "bytes")


if __name__ == "__main__":
    main()
