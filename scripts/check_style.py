#!/usr/bin/env python3
"""Checks sizes and habits that a script can see: file and function length, std::regex, conditional compilation outside
the few places for it, marks of unfinished work, and non-ASCII in code outside tests. With --columns the length of lines
instead (scripts/lint.sh)."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_HEADER, MAX_SOURCE, MAX_FUNCTION, MAX_KERNEL = 200, 500, 60, 120
MAX_COLUMNS = 120
CONDITIONAL_OK = re.compile(r"^(src/platform/|src/kernels/|src/backend/(all|cuda/kernels|cuda/emulation)/|src/base/error\.h|include/candor/candor\.h)")
FUNCTION_END = re.compile(r"^}\s*(//.*)?$")


def code_files():
    for top in ("src", "apps", "include", "tests", "bench", "examples"):
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in (".h", ".cpp", ".cu"):
                yield file


def long_functions(lines, limit):
    """Top-level definitions as clang-format lays them out: a line that ends in '{' at column 0, up to '}' at column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and line and not line[0].isspace() and line.rstrip().endswith("{"):
            if not re.match(r"(namespace|struct|class|enum|extern|union|constexpr|const|inline constexpr|#|\})", line) and "(" in line:
                start = number
        elif start is not None and FUNCTION_END.match(line):
            if number - start + 1 > limit:
                yield start, number - start + 1
            start = None


def long_lines(text):
    """Numbers of lines of more than MAX_COLUMNS, but for those of raw strings, which are as they are."""
    inside = set()
    for raw in re.finditer(r'R"(\w*)\(.*?\)\1"', text, re.S):
        inside.update(range(text.count("\n", 0, raw.start()) + 1, text.count("\n", 0, raw.end()) + 2))
    return [n for n, line in enumerate(text.splitlines(), 1) if len(line) > MAX_COLUMNS and n not in inside]


def check_columns(file):
    name = file.relative_to(ROOT).as_posix()
    numbers = [] if "generated" in name else long_lines(file.read_text())
    return [f"{name}:{number}: a line of more than {MAX_COLUMNS} columns" for number in numbers]


def check(file):
    name = file.relative_to(ROOT).as_posix()
    text = file.read_text()
    lines = text.splitlines()
    is_test = "_test." in name or name.startswith("tests/")
    generated = "generated" in name
    errors = []
    limit = MAX_HEADER if file.suffix == ".h" and ".inl." not in name else MAX_SOURCE
    if len(lines) > limit and not generated:
        errors.append(f"{name}: {len(lines)} lines, at most {limit}")
    if not is_test and not generated:
        for start, size in long_functions(lines, MAX_KERNEL if re.match("src/kernels/|src/backend/cuda/kernels/", name) else MAX_FUNCTION):
            errors.append(f"{name}:{start}: a function of {size} lines")
    if "std::regex" in text and "never std::regex" not in text:
        errors.append(f"{name}: std::regex recurses once a character; write a scanner")
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*#\s*(if|ifdef|ifndef)\b", line) and not CONDITIONAL_OK.match(name) and not is_test:
            errors.append(f"{name}:{number}: conditional compilation belongs to platform/, kernels/ and backend/all/")
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            errors.append(f"{name}:{number}: a mark of unfinished work")
        if not is_test and not line.isascii():
            errors.append(f"{name}:{number}: non-ASCII text in code (write it as an escape)")
    return errors


def main():
    files = list(code_files())
    look_at = check_columns if "--columns" in sys.argv[1:] else check
    errors = [error for file in files for error in look_at(file)]
    print("\n".join(errors) or f"style: {len(files)} files are within the sizes and habits of docs/style.md")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
