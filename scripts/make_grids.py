#!/usr/bin/env python3
"""Writes src/tensor/quant/grid_entries.inl.h: the vectors that the codes of IQ1, IQ2 and IQ3 name.

They are part of these formats; the PyPI package gguf (0.19.0 was used) has them too. An entry is one number: its digits,
the first weight's least, say which of the format's values each weight has (tensor/quant/grid.h).
"""
import pathlib

import numpy as np
from gguf import quants

# Name, format, base of a digit, values in the order of digits.
GRIDS = [
    ("kIQ2_XXSEntries", quants.IQ2_XXS, 3, [8, 25, 43]),
    ("kIQ2_XSEntries", quants.IQ2_XS, 3, [8, 25, 43]),
    ("kIQ2_SEntries", quants.IQ2_S, 3, [8, 25, 43]),
    ("kIQ3_XXSEntries", quants.IQ3_XXS, 8, [4, 12, 20, 28, 36, 44, 52, 62]),
    ("kIQ3_SEntries", quants.IQ3_S, 8, [1, 3, 5, 7, 9, 11, 13, 15]),
    ("kIQ1Entries", quants.IQ1_S, 3, [-1, 0, 1]),
]
HEADER = """// The vectors that codes of IQ1, IQ2 and IQ3 name, as numbers whose digits (of base 3; of IQ3, base 8) say which value
// each weight has, the first weight's digit the least. Written by scripts/make_grids.py.

#include <cstdint>

namespace candor::quant {
"""


def main():
    text = HEADER
    for name, kind, base, values in GRIDS:
        kind.init_grid()
        grid = np.rint(kind.grid.reshape(kind.grid_shape)).astype(int)
        digit = {value: i for i, value in enumerate(values)}
        entries = [sum(digit[v] * base**i for i, v in enumerate(row)) for row in grid.tolist()]
        text += f"\ninline constexpr uint16_t {name}[{len(entries)}] = {{\n"
        line = "   "
        for entry in entries:
            word = f" {entry},"
            if len(line) + len(word) > 120:
                text += line + "\n"
                line = "   "
            line += word
        text += line + "\n};\n"
    path = pathlib.Path(__file__).parent.parent / "src/tensor/quant/grid_entries.inl.h"
    path.write_text(text + "\n}  // namespace candor::quant\n")


if __name__ == "__main__":
    main()
