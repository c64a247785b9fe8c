"""check_symbols.py LIBRARY: its symbols are those of symbols.txt. A program that is compiled already needs each of them:
lines are added, not taken away, within a major version. --write adds what is new."""
import subprocess
import sys
from pathlib import Path

RECORDED = Path(__file__).with_name("symbols.txt")


def main():
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", sys.argv[1]], check=True,
                         capture_output=True, text=True).stdout
    found = {line.split()[-1] for line in out.splitlines() if not line.split()[-1] == "CANDOR_0"}
    recorded = set(RECORDED.read_text().split())
    if "--write" in sys.argv:
        RECORDED.write_text("\n".join(sorted(found | recorded)) + "\n")
        return 0
    for name in sorted(recorded - found):
        print(f"{name}: programs that are compiled already need it")
    for name in sorted(found - recorded):
        print(f"{name}: new; record it with --write if it is meant")
    return int(found != recorded)


if __name__ == "__main__":
    sys.exit(main())
