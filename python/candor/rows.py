"""Rows of floats that the engine made: logits and hidden states, shown without a copy."""

from __future__ import annotations

import ctypes
from typing import Any, Iterator

from ._dlpack import CPU, capsule_of
from ._library import Handle, library


class Rows:
    """`shape` is (rows, columns) of float32. Read-only. numpy.asarray(rows) copies nothing, and what it gives keeps the rows
    alive; likewise torch.from_dlpack(rows), and others that know DLPack 1.0 (those before it get a copy). Without numpy:
    rows[i] is a list, and rows.view() a memoryview."""

    def __init__(self, handle: Handle, n_rows: int) -> None:
        self._handle = handle
        self._address, self._n = library.floats(handle.value)
        self.shape = (n_rows, self._n // max(1, n_rows))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f4", "data": (self._address, True), "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if dl_device not in (None, CPU):
            raise BufferError(f"rows are in the processor's memory, device {CPU}, not {dl_device}")
        is_versioned = max_version is not None and max_version[0] >= 1
        if copy is False and not is_versioned:
            raise BufferError("rows are read-only, which DLPack before 1.0 cannot say: ask for a copy")
        return capsule_of(self._address, self.shape, self._handle, is_versioned, bool(copy))

    def view(self) -> "memoryview[float]":
        """Of all floats, one after the other, read-only. It keeps the rows alive."""
        array = (ctypes.c_float * self._n).from_address(self._address)
        array._rows = self  # type: ignore[attr-defined]
        return memoryview(array).cast("B").cast("f").toreadonly()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> list[float]:
        n_rows, n_columns = self.shape
        if not -n_rows <= row < n_rows:
            raise IndexError(f"row {row}: there are {n_rows}")
        begin = (row % n_rows) * n_columns
        return list(self.view()[begin : begin + n_columns])

    def __iter__(self) -> Iterator[list[float]]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<candor.Rows {self.shape[0]} x {self.shape[1]} float32>"
