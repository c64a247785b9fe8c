#!/usr/bin/env python3
"""Adds up JUnit files: what was skipped, what took longest, what failed with the end of its output, and a line
'N passed, N failed, N skipped'. A later file of the same folder holds what was run again: what failed only at first is
counted as passed and named as unsteady. Exits with 1 where a test failed."""
import os
import sys
import xml.etree.ElementTree as ElementTree

SLOWEST = 10
OUTPUT_CHARS = 4000


class Case:
    def __init__(self, element):
        status = element.get("status")
        self.status = status if status in ("run", "notrun") else "fail"
        self.seconds = float(element.get("time") or 0)
        self.output = (element.findtext("system-out") or "").strip()[-OUTPUT_CHARS:]


def read(paths):
    """The last run of each test by (folder, name), and what the runs before it were."""
    last, earlier = {}, {}
    for path in paths:
        for element in ElementTree.parse(path).getroot().iter("testcase"):
            # ctest appends what gtest prints of a parameter; a pointer's bytes differ from run to run.
            key = (os.path.dirname(path), element.get("name").split("  # GetParam()")[0])
            if key in last:
                earlier[key] = last[key]
            last[key] = Case(element)
    return last, earlier


def main():
    last, earlier = read(sys.argv[1:])
    for name in sorted({name for (_, name), case in last.items() if case.status == "notrun"}):
        print(f"skipped: {name}")
    for key in sorted(last, key=lambda key: -last[key].seconds)[:SLOWEST]:
        print(f"slowest: {last[key].seconds:6.1f} s  {' '.join(key)}")
    for key, case in earlier.items():
        if last[key].status == "run":
            print(f"unsteady (passed when run again, alone): {' '.join(key)}\n{case.output}")
    for key, case in last.items():
        if case.status == "fail":
            print(f"failed: {' '.join(key)}\n{case.output}")
    counts = {status: sum(case.status == status for case in last.values()) for status in ("run", "fail", "notrun")}
    unsteady = sum(last[key].status == "run" for key in earlier)
    tail = f", {unsteady} passed only when run again" if unsteady else ""
    print(f"{counts['run']} passed, {counts['fail']} failed, {counts['notrun']} skipped{tail}")
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
