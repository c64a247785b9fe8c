#!/usr/bin/env python3
"""Sources and headers of src/ and apps/ include what they use and nothing else, says include-what-you-use.

  python3 scripts/lint_includes.py [--fix] [--build FOLDER] [PATH ...]

Reads FOLDER/compile_commands.json (build-alone: sources one by one). PATH: files or folders; without one, all.
Prints what each file should add or remove; the status is 1 if there is something. --fix changes the files.
Left out, with the reason: tests, benchmarks and fuzz targets (their frameworks' headers are a facade of hundreds), and
the kernels' bodies (src/kernels/generic, src/kernels/isa), which are texts inside a target region that cannot include,
and kernels of GPUs (src/backend/cuda/kernels), whose words are not C++'s.
Types are included, not declared again (--no_fwd_decls). Where its verdict is not ours:
- an implementation's own header stands for the public one (PUBLIC), any header of another project for all of it;
- a header is wanted where the file writes one of its names (of the standard library's: NAMES), not where only the type
  of an expression comes from it; a standard one may stay where one is written;
- what scripts/deps.txt forbids to include comes through a header that may include it;
- what stands inside #if may be for another system;
- several sources may define what one header declares: its includes are theirs (included_by_own_header);
- an umbrella header brings what many short files of one kind need (UMBRELLAS).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import check_deps

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
FOLDERS = ["src", "apps"]
LEFT_OUT = re.compile(r"_(test|bench|fuzz)\.cpp$|/test_\w+\.h$|\.inl\.h$|^src/kernels/(generic|isa)/|^src/backend/cuda/kernels/")

PUBLIC = {
    "<stddef.h>": "<cstddef>", "<stdint.h>": "<cstdint>", "<string.h>": "<cstring>", "<stdlib.h>": "<cstdlib>",
    "<stdio.h>": "<cstdio>", "<errno.h>": "<cerrno>", "<math.h>": "<cmath>", "<limits.h>": "<climits>",
    "<time.h>": "<ctime>", "<ext/alloc_traits.h>": "<vector>", "<bits/chrono.h>": "<chrono>",
    "<bits/utility.h>": "<utility>", "<syscall.h>": "<sys/syscall.h>", "<emmintrin.h>": "<immintrin.h>",
    "<bits/types/struct_tm.h>": "<ctime>", "<bits/std_abs.h>": "<cmath>",
    "<features.h>": "<cstdlib>", "<bits/types/siginfo_t.h>": "<csignal>", "<bits/types/idtype_t.h>": "<sys/wait.h>",
    "<bits/mman-shared.h>": "<sys/mman.h>", "<bits/struct_stat.h>": "<sys/stat.h>",
    '"candor/result.h"': '"base/error.h"', '"candor/ids.h"': '"base/ids.h"',
}
WHOLE = {"nlohmann": "<nlohmann/json.hpp>", "CLI": "<CLI/CLI.hpp>"}  # of other projects, one header for all
EXPORTED = {'"base/error.h"': '"candor/result.h"', '"base/ids.h"': '"candor/ids.h"'}

# A model family is one short file, so is a weight format: each includes what all of its kind are made of by one name.
# The facade is all that a program of its users includes, and a command's arguments are the command line's words.
UMBRELLAS = {
    '"candor/engine.h"': [
        '"candor/event.h"', '"candor/ids.h"', '"candor/info.h"', '"candor/kv_type.h"', '"candor/metrics.h"',
        '"candor/options.h"', '"candor/request.h"', '"candor/result.h"'],
    '"apps/options/arguments.h"': ["<CLI/CLI.hpp>"],
    '"model/families/common.h"': [
        '"backend/op_specs.h"', '"base/error.h"', '"formats/model_file.h"', '"model/arch_spec.h"',
        '"model/families/families.h"', '"model/hparams.h"', '"model/hub/hub_config.h"', '"model/hub/hub_form.h"',
        '"model/tensor_roles.h"', "<array>", "<cstddef>", "<cstdint>", "<string>", "<string_view>", "<vector>"],
    '"tensor/quant/block_math.h"': [
        '"base/half.h"', '"tensor/dtype.h"', '"tensor/quant/block_format.h"', "<algorithm>", "<bit>", "<cmath>",
        "<cstdint>", "<string_view>"],
}

NAMES = {
    "<algorithm>": r"std::(ranges::)?(sort|stable_sort|partial_sort|find\w*|copy\w*|fill\w*|min|max|minmax|clamp|all_of|any_of|"
                   r"none_of|count\w*|reverse|rotate|transform|equal|lower_bound|upper_bound|equal_range|binary_search|"
                   r"remove\w*|replace\w*|unique|swap_ranges|\w+_element|\w*heap|search|adjacent_find|for_each|mismatch|"
                   r"starts_with|is_sorted|nth_element|merge|generate|move_backward|lexicographical_compare)\b",
    "<array>": r"std::(array|to_array)\b", "<atomic>": r"std::(atomic|memory_order)", "<bit>": r"std::(bit_|popcount|count[lr]_|has_single)",
    "<cerrno>": r"\berrno\b|\bE[A-Z]{3,}\b", "<chrono>": r"std::chrono|chrono_literals", "<cmath>": r"std::(\w*round|rint|lrint|floor|ceil|fabs|abs|sqrt|exp\w*|log\w*|pow|is(nan|finite|inf)|fma|ldexp|frexp|trunc|tanh|cos|sin|signbit|erf|copysign)\b",
    "<compare>": r"<=>|std::(strong|weak|partial)_ordering",
    "<concepts>": r"std::(same_as|convertible_to|integral|floating_point|invocable|constructible_from|derived_from|unsigned_integral|signed_integral)\b",
    "<cstddef>": r"\b(size_t|ptrdiff_t|nullptr_t|offsetof|max_align_t)\b|std::byte", "<cstdint>": r"\bu?int(8|16|32|64|ptr|max)_t\b|\bU?INT\d+_(MAX|MIN|C)\b|\bSIZE_MAX\b",
    "<cstring>": r"\b(mem(cpy|cmp|move|set|chr)|str(len|cmp|ncmp|chr|error))\b", "<exception>": r"std::(exception|current_exception|rethrow|terminate|uncaught)",
    "<filesystem>": r"std::filesystem", "<functional>": r"std::(function|less|greater|hash|equal_to|plus|invoke|bind|ref|cref|identity|move_only)\b",
    "<initializer_list>": r"initializer_list", "<iterator>": r"std::((back_)?insert(er)?|back_inserter|i?o?stream(buf)?_iterator|begin|end|size|distance|next|prev|advance|data|reverse_iterator|make_move_iterator)\b",
    "<limits>": r"numeric_limits", "<memory>": r"std::(unique_ptr|shared_ptr|weak_ptr|make_(unique|shared)|enable_shared_from|addressof|destroy_at|construct_at|to_address)",
    "<new>": r"std::(bad_alloc|align_val_t|nothrow|launder|hardware_)|new \(", "<optional>": r"std::(optional|nullopt)",
    "<map>": r"std::(multi)?map\b", "<set>": r"std::(multi)?set\b", "<unordered_map>": r"std::unordered_map\b",
    "<deque>": r"std::deque\b", "<ctime>": r"std::(tm|time_t|time|strftime|mktime|gmtime|localtime)\b|\b(gm|local)time_r\b|\btimespec\b",
    "<coroutine>": r"\bco_(await|return|yield)\b|std::coroutine", "<cxxabi.h>": r"abi::",
    "<stdexcept>": r"std::(runtime_error|logic_error|invalid_argument|out_of_range|length_error|domain_error)\b",
    "<ratio>": r"std::(ratio|milli|micro|nano)\b",
    "<ranges>": r"std::(views|ranges::(subrange|iota_view|range|begin|end|size|empty|input_range))|\bviews::", "<span>": r"std::(span|as_bytes|as_writable_bytes|dynamic_extent)",
    "<system_error>": r"std::(error_code|error_condition|errc|system_error|generic_category|system_category|make_error_code)\b",
    "<string>": r"std::(string|to_string|stoi|stod|getline|u\d+string)\b(?!_view)", "<string_view>": r"std::string_view|string_view_literals", "<tuple>": r"std::(tuple|tie|make_tuple|apply|get<)",
    "<type_traits>": r"std::(is_\w+|remove_\w+|decay\w*|conditional\w*|enable_if\w*|underlying_type\w*|make_(un)?signed\w*|common_type\w*|invoke_result\w*|void_t|true_type|false_type|add_\w+)",
    "<utility>": r"std::(move|forward|pair|swap|exchange|make_pair|as_const|in_range|cmp_\w+|index_sequence|make_index_sequence|to_underlying|declval)\b",
    "<nlohmann/json.hpp>": r"\b(ordered_)?[Jj]son\b", "<variant>": r"std::(variant|visit|get_if|holds_alternative|monostate|get<)", "<vector>": r"std::vector",
}


def commands(folder):
    """The compile command of each source, without its compiler and output."""
    with open(os.path.join(folder, "compile_commands.json")) as file:
        entries = json.load(file)
    result = {}
    for entry in entries:
        path = os.path.relpath(entry["file"], ROOT)
        words = shlex.split(entry["command"])
        start = next((i for i, word in enumerate(words) if re.search(r"\+\+(-\d+)?$", word)), None)
        if start is None or "-o" not in words:
            continue  # not C++
        words = words[start + 1 : words.index("-o")]
        result[path] = (entry["directory"], words)
    return result


def wanted(paths):
    found = []
    for path in paths or FOLDERS:
        full = os.path.join(ROOT, path)
        names = [full] if os.path.isfile(full) else [
            os.path.join(folder, name) for folder, _, files in os.walk(full) for name in files]
        found += [os.path.relpath(name, ROOT) for name in names if name.endswith((".h", ".cpp"))]
    found = sorted(path for path in found if not LEFT_OUT.search(path))
    # A header is looked at with the source of its name.
    return [path for path in found if not (path.endswith(".h") and path[:-2] + ".cpp" in found)]


def command_for(path, known):
    if path in known:
        return known[path]
    folder = os.path.dirname(path)
    while folder:
        beside = sorted(source for source in known if source.startswith(folder + "/") and not LEFT_OUT.search(source))
        if beside:
            return known[beside[0]]
        folder = os.path.dirname(folder)
    return known[next(source for source in sorted(known) if source.startswith("src/base/"))]


def look_at(path, known):
    directory, flags = command_for(path, known)
    command = ["include-what-you-use", "-w"]
    for option in ["--no_fwd_decls", "--no_comments", "--max_line_length=120", "--quoted_includes_first"]:
        command += ["-Xiwyu", option]
    command += [flag for flag in flags if flag != "-Werror"]
    command += ["-x", "c++", os.path.join(ROOT, path)]
    return subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def verdicts(report):
    """[(file, lines to add, lines to remove)], and what is no verdict (the compiler's errors)."""
    found, errors, file, add, remove, mode = [], [], None, [], [], None
    for line in report.splitlines():
        said = re.match(r"(.*) should (add|remove) these lines:$", line)
        if said:
            name = os.path.relpath(said[1], ROOT)
            if name != file:
                file, add, remove = name, [], []
                found.append((file, add, remove))
            mode = add if said[2] == "add" else remove
        elif line.startswith("The full include-list for"):
            mode = None
        elif mode is not None and line.startswith(("#include", "- #include")):
            mode.append(re.sub(r" *//.*", "", line.removeprefix("- ")))
        elif ": error:" in line or ": fatal error:" in line:
            errors.append(line)
    ours = [(file, *as_we_see_it(file, add, remove)) for file, add, remove in found if not is_left_out(file)]
    return [verdict for verdict in ours if verdict[1] or verdict[2]], errors


def is_left_out(file):
    return LEFT_OUT.search(file) or not file.startswith(("src/", "apps/"))


def text_of(header):
    """None: it is not ours."""
    for folder in ("src", "include", "."):
        path = os.path.join(ROOT, folder, header.strip('"'))
        if header.startswith('"') and os.path.isfile(path):
            with open(path) as file:
                return file.read()
    return None


def names_of(header):
    """What a header of ours declares outside of classes: types, constants, functions, macros. None: it is not ours."""
    text = text_of(header)
    if text is None:
        return None
    types = re.findall(r"^(?:template <.*>\n)?(?:class|struct|enum class|enum|union|concept|using)\s+(?:\w+\(.*?\) )?(\w+)", text, re.M)
    constants = re.findall(r"^[\w:<>,\[\] *&]*?\b(k[A-Z]\w*)\b", text, re.M)
    functions = re.findall(r"^(?!using|namespace|return)[A-Za-z\[][\w:<>,*&\[\] ]*?\b(\w+)\(", text, re.M)
    return set(types + constants + functions + re.findall(r"^#define (\w+)", text, re.M))


def writes_a_name_of(header, code):
    names = names_of(header)
    if names is not None:
        return bool(names & set(re.findall(r"\w+", code)))
    return header not in NAMES or bool(re.search(NAMES[header], code))


def is_allowed(file, header):
    rules, _ = check_deps.read_rules(pathlib.Path(ROOT, "scripts/deps.txt"))
    owner = check_deps.owner_of(pathlib.Path(check_deps.ROOT, file), rules)
    return header.startswith("<") or check_deps.included_module(header.strip('"'), rules) in {owner, *rules.get(owner, [])}


def conditional(text):
    """The headers that are included inside of #if."""
    depth, found = 0, set()
    for line in text.splitlines():
        depth += line.startswith("#if")
        depth -= line.startswith("#endif")
        included = re.match(r'#include ([<"][^>"]*[>"])', line)
        if included and depth > 0:
            found.add(included[1])
    return found


def public_header(header):
    other = re.match(r"<(\w+)/", header)
    return PUBLIC.get(header) or WHOLE.get(other[1] if other else "", header)


def included(text):
    return set(re.findall(r'^#include ([<"][^>"]*[>"])', text, re.M))


def included_by_own_header(file, text):
    """What the header includes whose functions a source defines: its first, whatever its name."""
    first = re.search(r"^#include (.*)", text, re.M)
    return included(text_of(first[1]) or "") if file.endswith(".cpp") and first else set()


def as_we_see_it(file, add, remove):
    with open(os.path.join(ROOT, file)) as source:
        text = source.read()
    there = included(text)
    code = re.sub(r"^#include .*|//.*", "", text, flags=re.M)
    public = lambda line: public_header(line.split()[1])
    project = lambda header: header.split("/")[0] if header.startswith("<") and "/" in header else None
    wanted, unused = {public(line) for line in add}, {public(line) for line in remove}
    missing = {header for header in wanted - there if EXPORTED.get(header) not in there}
    missing = {header for header in missing if writes_a_name_of(header, code) and is_allowed(file, header)}
    brought = {header for umbrella in there | missing for header in UMBRELLAS.get(umbrella, [])}
    missing -= brought | included_by_own_header(file, text)
    missing = {header for header in missing if not project(header) or project(header) not in map(project, there)}
    if "<cstdint>" in there | missing:
        missing.discard("<cstddef>")  # it brings the names of the other
    forbidden = {header for header in wanted if not is_allowed(file, header)}
    unused = {header for header in unused if not forbidden & included(text_of(header) or "")}
    unused -= conditional(text)
    unused -= set(UMBRELLAS) if wanted & brought else set()
    unused -= set(UMBRELLAS.get('"' + file.removeprefix("src/") + '"', []))
    unused = {header for header in unused - wanted if header not in NAMES or not writes_a_name_of(header, code)}
    unused = {header for header in unused if not project(header) or project(header) not in map(project, wanted)}
    return sorted(f"#include {header}" for header in missing), sorted(f"#include {header}" for header in unused)


def group_of(line):
    """The order of blocks in a file: the standard library, other projects, ours."""
    name = re.match(r'#include ([<"])([^>"]*)', line)
    if name[1] == '"':
        return 2
    return 0 if "/" not in name[2] and not name[2].endswith(".h") else 1


def change(file, add, remove):
    path = os.path.join(ROOT, file)
    with open(path) as source:
        lines = source.read().split("\n")
    plain = lambda line: re.sub(r" *//.*", "", line).replace("<nlohmann/json_fwd.hpp>", "<nlohmann/json.hpp>")
    lines = [line for line in lines if plain(line) not in remove]
    own = '#include "' + file.removeprefix("src/").replace(".cpp", ".h") + '"'
    for text in add:
        places = [i for i, line in enumerate(lines) if line.startswith("#include") and line != own
                  and group_of(line) == group_of(text)]
        if places:
            lines.insert(places[-1] + 1, text)
            continue
        before = [i for i, line in enumerate(lines) if line.startswith("#include")
                  and (line == own or group_of(line) < group_of(text))]
        later = [i for i, line in enumerate(lines) if line.startswith("#include") and line != own]
        if before:
            lines[before[-1] + 1 : before[-1] + 1] = ["", text]
        elif later:
            lines[later[0] : later[0]] = [text, ""]
        else:
            at = next(i for i, line in enumerate(lines) if not line.startswith(("//", "#pragma")) and line)
            lines[at:at] = [text, ""]
    with open(path, "w") as source:
        source.write("\n".join(lines))
    places = [i for i, line in enumerate(lines, 1) if line.startswith("#include")]
    if places:
        subprocess.run(["clang-format-14", "-i", f"--lines={places[0]}:{places[-1]}", path], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--build", default=os.path.join(ROOT, "build-alone"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args()
    known = commands(options.build)
    status, seen = 0, set()
    files = wanted(options.paths)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, report in zip(files, pool.map(lambda path: look_at(path, known), files)):
            found, errors = verdicts(report)
            for error in errors:
                print(f"{path}: {error}")
            status |= bool(errors)
            for file, add, remove in found:
                if file in seen:
                    continue
                seen.add(file)
                status = 1
                for line in add:
                    print(f"{file}: add {line}")
                for line in remove:
                    print(f"{file}: remove {line}")
                if options.fix:
                    change(file, add, remove)
            sys.stdout.flush()
    print(f"lint_includes: {len(files)} sources and headers looked at, {len(seen)} files to change")
    return status


if __name__ == "__main__":
    sys.exit(main())
