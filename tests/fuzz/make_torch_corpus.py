#!/usr/bin/env python3
"""Writes the seeds of tests/fuzz/corpus/torch_file with torch.save: heads, types, views, and what is refused."""
import collections
import pathlib
import pickle

import torch

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus" / "torch_file"


class Runs:
    def __reduce__(self):
        return (print, ("this ran",))


def main():
    torch.manual_seed(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    linear = torch.nn.Linear(4, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[0.5, -1.0, 2.0, 0.25]]))
        linear.bias.fill_(0.125)
    torch.save(linear.state_dict(), FOLDER / "linear.pt")
    kinds = {str(kind): torch.arange(6).reshape(2, 3).to(kind)
             for kind in (torch.float32, torch.float16, torch.bfloat16, torch.float64)}
    torch.save(kinds, FOLDER / "kinds.pt")
    rows = torch.arange(12.0).reshape(4, 3)
    torch.save({"second": rows[1:3], "all": rows, "parameter": torch.nn.Parameter(rows[:1].clone())}, FOLDER / "views.pt")
    torch.save({"turned": rows.T}, FOLDER / "turned.pt")
    torch.save({"ids": torch.arange(3)}, FOLDER / "integers.pt")
    torch.save({"outer": {"inner": rows}}, FOLDER / "nested.pt")
    torch.save(linear.state_dict(), FOLDER / "old.pt", _use_new_zipfile_serialization=False)
    torch.save(collections.OrderedDict(a=rows, b=Runs()), FOLDER / "runs.pt")
    (FOLDER / "runs.pkl").write_bytes(pickle.dumps({"a": Runs()}, protocol=2))


if __name__ == "__main__":
    main()
