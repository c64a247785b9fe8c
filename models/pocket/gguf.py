"""GGUF v3: a small writer, a small reader and the Q8_0 block format.

Tensors are F32, Q8_0 or Q4_0. A Q8_0 block is 32 weights: {f16 d; int8 q[32]} with
d = max |x| / 127 and q = round(x / d), halves away from zero. A Q4_0 block is 32
weights: {f16 d; 16 bytes}, byte i holding weight i in its low and i + 16 in its
high half, as x / d + 8, with d = -1/8 of the weight farthest from 0.
"""

import struct
from pathlib import Path

import numpy as np

MAGIC, VERSION, ALIGNMENT = b"GGUF", 3, 32
F32, Q4_0, Q8_0 = 0, 2, 8  # tensor types
BLOCK_WEIGHTS, BLOCK_BYTES = 32, 34
UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # metadata types
_SCALARS = {UINT32: "<I", INT32: "<i", FLOAT32: "<f", BOOL: "<?"}


def quantize_q8_0(x: np.ndarray) -> bytes:
    """x: [..., n] f32 with n a multiple of 32, rows contiguous."""
    blocks = np.ascontiguousarray(x, dtype=np.float32).reshape(-1, BLOCK_WEIGHTS)
    d = np.abs(blocks).max(axis=1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d > 0)
    scaled = blocks * inverse
    q = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))
    packed = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "i1", BLOCK_WEIGHTS)])
    packed["d"], packed["q"] = d[:, 0].astype(np.float16), q.astype(np.int8)
    return packed.tobytes()


def quantize_q4_0(x: np.ndarray) -> bytes:
    """x: [..., n] f32 with n a multiple of 32, rows contiguous."""
    blocks = np.ascontiguousarray(x, dtype=np.float32).reshape(-1, BLOCK_WEIGHTS)
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    d = (farthest / np.float32(-8)).astype(np.float16).astype(np.float32)
    inverse = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)
    q = np.clip(np.floor(blocks * inverse + np.float32(8.5)), 0, 15).astype(np.uint8)
    packed = np.empty(len(blocks), dtype=[("d", "<f2"), ("q", "u1", BLOCK_WEIGHTS // 2)])
    packed["d"], packed["q"] = d[:, 0].astype(np.float16), q[:, :16] | (q[:, 16:] << 4)
    return packed.tobytes()


def dequantize_q8_0(data: bytes) -> np.ndarray:
    packed = np.frombuffer(data, dtype=[("d", "<f2"), ("q", "i1", BLOCK_WEIGHTS)])
    return (packed["d"].astype(np.float32)[:, None] * packed["q"].astype(np.float32)).ravel()


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(kind: int, value) -> bytes:
    return _string(value) if kind == STRING else struct.pack(_SCALARS[kind], value)


def _pair(key: str, value) -> bytes:
    """value: (kind, scalar) or (ARRAY, kind, list)."""
    head = _string(key) + struct.pack("<I", value[0])
    if value[0] != ARRAY:
        return head + _value(*value)
    _, kind, items = value
    return head + struct.pack("<IQ", kind, len(items)) + b"".join(_value(kind, item) for item in items)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % ALIGNMENT)


ENCODERS = {Q8_0: quantize_q8_0, Q4_0: quantize_q4_0, F32: lambda x: x.astype("<f4").tobytes()}


def write(path: Path, metadata: dict, tensors: dict[str, np.ndarray], matrices: int) -> None:
    """Writes the file; every matrix becomes of that type, and every vector stays F32."""
    infos, blobs, offset = [], [], 0
    for name, tensor in tensors.items():
        kind = matrices if tensor.ndim == 2 else F32
        blob = _padded(ENCODERS[kind](tensor))
        dims = tensor.shape[::-1]  # GGUF lists the contiguous dimension first
        infos.append(_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset))
        blobs.append(blob)
        offset += len(blob)
    head = MAGIC + struct.pack("<IQQ", VERSION, len(tensors), len(metadata))
    head += b"".join(_pair(key, value) for key, value in metadata.items()) + b"".join(infos)
    path.write_bytes(_padded(head) + b"".join(blobs))


class Reader:
    """metadata: key -> value; tensors: name -> f32 array, dequantised."""

    def __init__(self, path: Path):
        self.data, self.at = path.read_bytes(), 0
        magic, version, n_tensors, n_pairs = self._unpack("<4sIQQ")
        if (magic, version) != (MAGIC, VERSION):
            raise ValueError(f"{path.name}: magic {magic!r} version {version}, expected GGUF 3")
        self.metadata = dict(self._read_pair() for _ in range(n_pairs))
        infos = [self._read_info() for _ in range(n_tensors)]
        self.at += -self.at % ALIGNMENT
        self.tensors = {name: self._read_tensor(*rest) for name, *rest in infos}

    def _unpack(self, layout: str):
        values = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return values

    def _read_string(self) -> str:
        (n_bytes,) = self._unpack("<Q")
        self.at += n_bytes
        return self.data[self.at - n_bytes:self.at].decode()

    def _read_value(self, kind: int):
        return self._read_string() if kind == STRING else self._unpack(_SCALARS[kind])[0]

    def _read_pair(self):
        key, (kind,) = self._read_string(), self._unpack("<I")
        if kind != ARRAY:
            return key, self._read_value(kind)
        kind, n_items = self._unpack("<IQ")
        return key, [self._read_value(kind) for _ in range(n_items)]

    def _read_info(self):
        name, (n_dims,) = self._read_string(), self._unpack("<I")
        dims = self._unpack(f"<{n_dims}Q")
        kind, offset = self._unpack("<IQ")
        return name, dims[::-1], kind, offset

    def _read_tensor(self, shape, kind: int, offset: int) -> np.ndarray:
        n_weights, begin = int(np.prod(shape)), self.at + offset
        if kind == F32:
            return np.frombuffer(self.data, "<f4", n_weights, begin).reshape(shape)
        n_bytes = n_weights // BLOCK_WEIGHTS * BLOCK_BYTES
        return dequantize_q8_0(self.data[begin:begin + n_bytes]).reshape(shape)
