#!/usr/bin/env python3
"""Adds up JUnit files: names what was skipped, then one line 'N passed, N failed, N skipped'."""
import sys
import xml.etree.ElementTree as ElementTree


def main():
    counts = {"run": 0, "fail": 0, "notrun": 0}
    skipped = set()
    for path in sys.argv[1:]:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            status = case.get("status")
            counts[status if status in counts else "fail"] += 1
            if status == "notrun":
                skipped.add(case.get("name"))
    for name in sorted(skipped):
        print(f"skipped: {name}")
    print(f"{counts['run']} passed, {counts['fail']} failed, {counts['notrun']} skipped")


if __name__ == "__main__":
    main()
