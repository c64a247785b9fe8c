"""`python -m candor`, and `candor` on PATH: the candor program."""

import os
import sys

from .server import find_program


def main() -> None:
    program = find_program()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
