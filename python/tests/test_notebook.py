"""Runs the cells of a notebook, in order. Exit code 77 where matplotlib is not installed.

    python3 test_notebook.py NOTEBOOK"""

import json
import os
import sys

os.environ["MPLBACKEND"] = "Agg"
try:
    import matplotlib.pyplot as plt
except ImportError:
    sys.exit(77)


def main():
    with open(sys.argv[1]) as file:
        notebook = json.load(file)
    names = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
            plt.close("all")
    print(f"{len(notebook['cells'])} cells")


if __name__ == "__main__":
    main()
