"""Rows for other packages by DLPack (dmlc.github.io/dlpack): a capsule that shows the floats where they are, read-only, and
keeps them until it is dropped. Who knows only the protocol before 1.0, which cannot say read-only, gets a copy."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any

CPU = (1, 0)  # kDLCPU, the first one
_READ_ONLY, _IS_COPIED = 1, 2
_FLOAT = 2


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("n_dims", c_int32),
                ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
                ("tensor", _Tensor)]


# What capsules show, by the address of its struct, until somebody who took it is done.
_shown: dict[int, Any] = {}


def _delete(address: int) -> None:
    _shown.pop(address, None)


_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}


def _drop_capsule(capsule: int) -> None:
    api = ctypes.pythonapi
    for name in _NAMES.values():  # one that was taken has another name
        if api.PyCapsule_IsValid(c_void_p(capsule), name):
            _delete(_pointer_of(capsule, name))


def _pointer_of(capsule: int, name: bytes) -> int:
    get = ctypes.PYFUNCTYPE(c_void_p, c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return int(get(capsule, name))


# As C calls them; they live as long as the module.
_DELETE = ctypes.CFUNCTYPE(None, c_void_p)(_delete)
_DROP_CAPSULE = ctypes.CFUNCTYPE(None, c_void_p)(_drop_capsule)


def capsule_of(address: int, shape: tuple[int, int], keeper: Any, is_versioned: bool, copies: bool) -> Any:
    """Of `shape` floats at the address, which live while `keeper` does."""
    if not hasattr(ctypes, "pythonapi"):
        raise BufferError("DLPack needs CPython: use numpy.asarray(rows), or rows.view()")
    is_copied = copies or not is_versioned
    if is_copied:
        n_bytes = 4 * shape[0] * shape[1]
        keeper = ctypes.create_string_buffer(ctypes.string_at(address, n_bytes), max(1, n_bytes))
        address = ctypes.addressof(keeper)
    dims = (c_int64 * 2)(*shape)
    strides = (c_int64 * 2)(shape[1], 1)
    tensor = _Tensor(address, *CPU, 2, _FLOAT, 32, 1, dims, strides, 0)
    deleter = ctypes.cast(_DELETE, c_void_p)
    managed: Structure
    if is_versioned:
        managed = _ManagedVersioned(1, 0, None, deleter, _IS_COPIED if is_copied else _READ_ONLY, tensor)
    else:
        managed = _Managed(tensor, None, deleter)
    _shown[ctypes.addressof(managed)] = (managed, dims, strides, keeper)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)(("PyCapsule_New", ctypes.pythonapi))
    return make(ctypes.addressof(managed), _NAMES[is_versioned], ctypes.cast(_DROP_CAPSULE, c_void_p))
