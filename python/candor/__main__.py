"""`python -m candor` is the candor program."""

import os
import sys

from .server import find_program

program = find_program()
os.execv(program, [program, *sys.argv[1:]])
