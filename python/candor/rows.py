"""Rows of floats that the engine made: logits and hidden states, shown without a copy."""

from __future__ import annotations

import ctypes
from typing import Any, Iterator

from ._library import Handle, library


class Rows:
    """`shape` is (rows, columns) of float32. Read-only. numpy.asarray(rows) copies nothing; what it gives keeps the rows
    alive. Without numpy: rows[i] is a list, and rows.view() a memoryview."""

    def __init__(self, handle: Handle, n_rows: int) -> None:
        self._handle = handle
        self._address, self._n = library.floats(handle.value)
        self.shape = (n_rows, self._n // max(1, n_rows))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": self.shape, "typestr": "<f4", "data": (self._address, True), "version": 3}

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
