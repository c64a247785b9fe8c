#!/usr/bin/env python3
"""Checks that every #include "module/..." follows scripts/deps.txt.

A module (a folder of src/ or apps/, or `include`) may include itself and what its line names; every name stands on an
earlier line, and some file of the module includes it. Tests beside the code (X_test.cpp, test_support.h) may include any
module that stands before theirs, and tests/support.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Public headers that a module implements.
FACADES = {"candor/engine.h": "engine", "candor/verify.h": "receipt"}
TEST_FILE = re.compile(r"(_(test|bench|fuzz)\.cpp|test_support\.h)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def read_rules(path):
    rules, errors = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, _, deps = line.partition(":")
        for dep in deps.split():
            if dep not in rules:
                errors.append(f"{path.name}:{number}: {name} names {dep}, which stands on no earlier line")
        rules[name] = deps.split()
    return rules, errors


def module_of(path, rules):
    """The longest rule name that is a prefix of an include path such as backend/cpu/arena.h."""
    parts = path.split("/")
    for n in range(len(parts) - 1, 0, -1):
        name = "/".join(parts[:n])
        if name in rules:
            return name
    return None


def owner_of(file, rules):
    relative = file.relative_to(ROOT).as_posix()
    if relative.startswith("include/"):
        return FACADES.get(relative.removeprefix("include/"), "include")
    return module_of(relative.removeprefix("src/"), rules)


def included_module(target, rules):
    return FACADES.get(target, "include") if target.startswith("candor/") else module_of(target, rules)


def check_file(file, rules):
    owner = owner_of(file, rules)
    if owner not in rules:
        return [f"{file.relative_to(ROOT)}: its folder has no line in scripts/deps.txt"]
    order = list(rules)
    allowed = set(rules[owner]) | {owner}
    if TEST_FILE.search(file.name):
        allowed |= set(order[:order.index(owner)]) | {"support"}  # of tests/: support and fuzz
    errors = []
    for match in INCLUDE.finditer(file.read_text()):
        target = match.group(1)
        if target.startswith(("support/", "fuzz/")) and "support" in allowed or "/" not in target:
            continue
        module = included_module(target, rules)
        if module not in allowed:
            line = file.read_text()[:match.start()].count("\n") + 1
            errors.append(f'{file.relative_to(ROOT)}:{line}: {owner} may not include "{target}" ({module or "no module"})')
    return errors


def unused_names(files, rules):
    """Names that no file of the line's module includes, but for tests."""
    used = {name: set() for name in rules}
    for file in files:
        owner = owner_of(file, rules)
        if owner in rules and not TEST_FILE.search(file.name):
            used[owner] |= {included_module(target, rules) for target in INCLUDE.findall(file.read_text())}
    return [f"deps.txt: {name} names {dep}, which none of its files includes"
            for name, deps in rules.items() for dep in deps if dep not in used[name]]


def main():
    rules, errors = read_rules(ROOT / "scripts" / "deps.txt")
    files = [f for top in ("src", "apps", "include") for f in sorted((ROOT / top).rglob("*")) if f.suffix in (".h", ".cpp", ".cu")]
    for file in files:
        errors += check_file(file, rules)
    errors += unused_names(files, rules)
    print("\n".join(errors) or f"deps: {len(files)} files follow scripts/deps.txt")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
