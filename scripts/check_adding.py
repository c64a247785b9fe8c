#!/usr/bin/env python3
"""What docs/adding.md says is enough: adds a made-up family, weight format, instruction set, endpoint and sampler stage
to a scratch copy of the tree, in the files that the page names, builds `candor` and runs the tests that loop over the
lists. Fails where an edit touches a file that its section does not name, where something does not compile, and where a
test fails. Prints how many files each thing touches.

  python3 scripts/check_adding.py [--keep FOLDER] [THING ...]      family, format, isa, endpoint, stage; all without one

A first build takes some 15 minutes of two processors. --keep: the copy stays there, and the next run is quicker.
"""
import argparse
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# Files touched before formats, numbers and routes had one list each.
BEFORE = {"family": "3", "format": "9", "isa": "a folder + 3 lines", "endpoint": "5", "stage": "8"}


class Thing:
    """Edits of a scratch copy, each with the words by which the page names the file."""

    def __init__(self, copy, section):
        with open(os.path.join(ROOT, "docs/adding.md")) as page:
            text = page.read()
        found = re.search(r"^## " + re.escape(section) + r"\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        if not found:
            raise SystemExit(f'check_adding: docs/adding.md has no section "{section}"')
        self.copy, self.section, self.said = copy, section, " ".join(found[1].split())
        self.touched, self.faults = {}, []

    def _touch(self, path, named_as):
        self.touched[path] = named_as
        if named_as not in self.said:
            self.faults.append(f'docs/adding.md, "{self.section}", does not name {path} (as "{named_as}")')
        full = os.path.join(self.copy, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return full

    def write(self, path, named_as, content):
        with open(self._touch(path, named_as), "wb" if isinstance(content, bytes) else "w") as file:
            file.write(content)

    def change(self, path, named_as, *edits):
        """edits: (text that stands there once, text in its place)."""
        full = self._touch(path, named_as)
        with open(full) as file:
            text = file.read()
        for old, new in edits:
            if text.count(old) != 1:
                raise SystemExit(f"check_adding: {path} has {text.count(old)} times, expected once: {old!r}")
            text = text.replace(old, new)
        with open(full, "w") as file:
            file.write(text)

    def read(self, path, mode="r"):
        with open(os.path.join(self.copy, path), mode) as file:
            return file.read()


FAMILY = """// A made-up family: Llama under another name.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace dummy {
namespace {

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors);
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubGatedFfn);
constexpr HubForm kHub[] = {{"dummy", "DummyForCausalLM", "silu", kHubTensors}};
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_decoder(Hparams(file, "dummy"), backend::NormKind::kRms);
}

}  // namespace
}  // namespace dummy

Family dummy_family() {
  using namespace dummy;
  return {"dummy", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
"""


def add_family(copy):
    thing = Thing(copy, "A model family")
    thing.write("src/model/families/dummy.cpp", "`src/model/families/`", FAMILY)
    thing.change("src/model/families/families.h", "`families.h`",
                 ("Family llama_family();\n", "Family llama_family();\nFamily dummy_family();\n"))
    thing.change("src/model/families/families.cpp", "`families.cpp`",
                 ("llama_family(),", "llama_family(), dummy_family(),"))
    # The golden of Llama, under the family's name.
    source = "tests/families/goldens/llama"
    for name in sorted(os.listdir(os.path.join(copy, source))):
        content = thing.read(f"{source}/{name}", "rb")
        if name == "gguf.head":
            content = content.replace(b"llama.", b"dummy.")
            content = content.replace(struct.pack("<Q", 5) + b"llama", struct.pack("<Q", 5) + b"dummy", 1)
        if name == "config.json":
            content = content.replace(b"LlamaForCausalLM", b"DummyForCausalLM").replace(b'"llama"', b'"dummy"')
        thing.write(f"tests/families/goldens/dummy/{name}", "`tests/families/goldens/`", content)
    thing.change("tests/families/families_test.cpp", "`families_test.cpp`", ('{"llama"},', '{"llama"}, {"dummy"},'))
    row = re.search(r"^\| `mixtral` .*\n", thing.read("docs/models.md"), re.M)[0]
    line = "| `dummy` | `dummy` | rotary with factors | grouped | RMS before | gated SiLU | safetensors, GGUF, llama.cpp |  |\n"
    thing.change("docs/models.md", "`docs/models.md`", (row, row + line))
    return thing


def toy_vectors():
    """Blocks of the toy format as bytes and as the numbers that they mean."""
    lines = ""
    for scale in (0.5, -2.0, 0.125):
        codes = [(37 * i) % 255 - 127 for i in range(32)]
        block = struct.pack("<e32b", scale, *codes)
        values = struct.pack("<32f", *(scale * code for code in codes))
        lines += f"decode TOY {block.hex()} {values.hex()}\n"
    return lines


def add_format(copy):
    """Q8_0 under another name and number, which the list, the file's table and the tests have to tell apart."""
    thing = Thing(copy, "A quant format")
    header = thing.read("src/tensor/quant/q8_0.h").replace("Q8_0", "Toy").replace('"Toy"', '"TOY"')
    thing.write("src/tensor/quant/toy.h", "`src/tensor/quant/NAME.h`", header)
    thing.change("src/tensor/weight_formats.h", "`tensor/weight_formats.h`",
                 ('#include "tensor/quant/scalar_formats.h"\n',
                  '#include "tensor/quant/scalar_formats.h"\n#include "tensor/quant/toy.h"\n'),
                 ("    quant::BlockQ8_0,\n", "    quant::BlockQ8_0,\n    quant::BlockToy,\n"))
    thing.change("src/tensor/dtype.h", "`tensor/dtype.h`", ("  kQ4_KFast = 128,", "  kToy = 101,\n  kQ4_KFast = 128,"))
    vectors = "src/tensor/testdata/block_vectors.txt"
    thing.write(vectors, "`tensor/testdata`", thing.read(vectors) + toy_vectors())
    thing.change("src/tensor/tensor_test.cpp", "`tensor_test.cpp`",
                 ("    case DType::kQ8_0:\n", "    case DType::kQ8_0:\n    case DType::kToy:\n"))
    thing.change("tests/support/random_weights.h", "`tests/support/random_weights.h`",
                 ("    case DType::kQ8_0:\n", "    case DType::kQ8_0:\n    case DType::kToy:\n"))
    pinned = re.search(r"\{DType::kQ8_0, (.*?)\}", thing.read("tests/bits/bits_test.cpp"))
    thing.change("tests/bits/bits_test.cpp", "`tests/bits`",
                 (pinned[0], pinned[0] + ", {DType::kToy, " + pinned[1] + "}"))
    thing.change("docs/numerics.md", "`docs/numerics.md`", ("| Q8_0, Q4_0,", "| Q8_0, TOY, Q4_0,"))
    return thing


def add_isa(copy):
    """The portable set once more."""
    thing = Thing(copy, "An instruction set")
    folder = "src/kernels/isa/portable"
    words = {"vocabulary.inl.h": "`vocabulary.inl.h`", "table.cpp": "`table.cpp`"}
    for name in sorted(os.listdir(os.path.join(copy, folder))):
        text = re.sub(r"\bportable\b|\bportable(?=_table)", "toy", thing.read(f"{folder}/{name}"))
        thing.write(f"src/kernels/isa/toy/{name}", words.get(name, "one file for each family of weight formats"), text)
    thing.change("src/kernels/isa/tables.h", "`isa/tables.h`",
                 ("const KernelTable* portable_table();\n",
                  "const KernelTable* portable_table();\nconst KernelTable* toy_table();\n"))
    thing.change("src/kernels/kernels.cpp", "`runnable_tables()`", ("{portable_table(), ", "{portable_table(), toy_table(), "))
    return thing


def add_endpoint(copy):
    thing = Thing(copy, "An endpoint")
    thing.change("src/serve/openai/api.cpp", "`api.cpp`",
                 ('    {.method = "GET",\n     .path = "/v1/models",\n',
                  '    {.method = "GET",\n     .path = "/toy",\n     .tell = [](const ServerCore& core, const Shared& exchange) '
                  '{ InfoRoutes(core).toy(*exchange); }},\n    {.method = "GET",\n     .path = "/v1/models",\n'))
    thing.change("src/serve/openai/info_routes.h", "a method or function that answers it",
                 ("  void ready(", "  void toy(http::Exchange& exchange) const;\n  void ready("))
    thing.change("src/serve/openai/info_routes.cpp", "a method or function that answers it",
                 ("void InfoRoutes::ready(", "void InfoRoutes::toy(http::Exchange& exchange) const {\n"
                  '  exchange.respond({.body = "{}"});\n}\n\nvoid InfoRoutes::ready('))
    thing.change("docs/server.md", "`docs/server.md`", ("| `GET /ready` |", "| `GET /toy` | nothing |\n| `GET /ready` |"))
    thing.change("tests/serve/protocol_test.cpp", "`tests/serve`",
                 ("TEST(keys, every_route_but_health_and_the_pages_files_wants_one) {",
                  'TEST(keys, a_route_of_its_own) {\n  Running running(Running::defaults());\n'
                  '  EXPECT_EQ(ask(running.port(), "GET", "/toy").status, 200);\n}\n\n'
                  "TEST(keys, every_route_but_health_and_the_pages_files_wants_one) {"))
    return thing


def add_stage(copy):
    """A stage that keeps what min_p would."""
    thing = Thing(copy, "A number of the sampler")
    thing.change("include/candor/request.h", "`include/candor/request.h`",
                 ("  double min_p = ", "  double toy_p = 0.0;\n  double min_p = "))
    thing.change("include/candor/sampling_table.h", "`include/candor/sampling_table.h`",
                 ('    {.name = "xtc_probability",',
                  '    {.name = "toy_p", .member = &P::toy_p, .least = 0, .most = 1, .note = "0 = off",\n'
                  '     .help = "drop what a toy drops"},\n    {.name = "xtc_probability",'))
    thing.change("src/sample/chain.h", "`chain.h`",
                 ("kMinP, kXtc };", "kMinP, kXtc, kToy };"),
                 ("Stage::kXtc};", "Stage::kXtc, Stage::kToy};"),
                 ("  double min_p = 0.0; ", "  double toy_p = 0.0;\n  double min_p = 0.0; "))
    thing.change("src/sample/chain.cpp", "`chain.cpp`",
                 ("    case Stage::kMinP:\n      keep_min_p(candidates, params.min_p);\n      break;\n",
                  "    case Stage::kMinP:\n      keep_min_p(candidates, params.min_p);\n      break;\n"
                  "    case Stage::kToy:\n      keep_min_p(candidates, params.toy_p);\n      break;\n"),
                 ("    case Stage::kXtc:\n      return ", "    case Stage::kToy:\n      return params.toy_p > 0.0;\n"
                  "    case Stage::kXtc:\n      return "),
                 ('"xtc"};', '"xtc", "toy_p"};'))
    thing.change("src/sample/params.cpp", "`make_chain_params`",
                 ("  params.min_p = sampling.min_p;\n", "  params.min_p = sampling.min_p;\n  params.toy_p = sampling.toy_p;\n"))
    row = re.search(r"^\| `min_p` .*\n", thing.read("docs/server.md"), re.M)[0]
    thing.change("docs/server.md", "`docs/server.md`",
                 (row, row + "| `toy_p` | `--toy-p` | 0 to 1 (0 = off) | 0 | drop what a toy drops |\n"))
    return thing


ADD = {"family": add_family, "format": add_format, "isa": add_isa, "endpoint": add_endpoint, "stage": add_stage}

# Programs of the tests that loop over the lists, and which of their tests.
TESTS = {
    "family": [("candor_families_test", "*")],
    "format": [("candor_tensor_test", "*"), ("candor_kernels_test", "*"), ("candor_bits_test", "bits.logits_of_generated*")],
    "isa": [("candor_kernels_test", "*"), ("candor_bits_test", "*")],
    "endpoint": [("candor_server_test", "keys.*")],
    "stage": [("candor_sample_test", "*"), ("candor_sampler_test", "*")],
}


def copy_tree(folder):
    """What git tracks or would track, as it stands; only what differs is written, so that builds go on."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE).stdout.decode().split("\0")
    names = {name for name in listed if name and os.path.isfile(os.path.join(ROOT, name))}
    for name in sorted(names):
        source, target = os.path.join(ROOT, name), os.path.join(folder, name)
        with open(source, "rb") as file:
            content = file.read()
        if os.path.isfile(target):
            with open(target, "rb") as file:
                if file.read() == content:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(source, target)
    for base in ("src", "tests", "include", "apps"):
        for where, _, files in os.walk(os.path.join(folder, base)):
            for name in files:
                path = os.path.join(where, name)
                if os.path.relpath(path, folder) not in names:
                    os.remove(path)


def run(command, folder, quiet=True):
    shared = os.environ.get("CANDOR_CARGO_TARGET_DIR", os.path.join(ROOT, "build/cargo"))
    environment = {**os.environ, "CANDOR_CARGO_TARGET_DIR": shared}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print("\n".join(done.stdout.splitlines()[-60:]))
        print(f"check_adding: failed: {' '.join(command)}")
    elif not quiet:
        print("\n".join(done.stdout.splitlines()[-1:]))
    return done.returncode == 0


def is_product(path):
    return not path.startswith(("tests/", "docs/")) and "/testdata/" not in path and not path.endswith("_test.cpp")


def print_table(things):
    print(f"\n{'files touched':<16}{'before':>20}{'product':>9}{'tests':>7}{'docs':>6}")
    for name, thing in things.items():
        product = sum(map(is_product, thing.touched))
        docs = sum(path.startswith("docs/") for path in thing.touched)
        goldens = {os.path.dirname(path) if "/goldens/" in path else path for path in thing.touched}
        tests = sum(not is_product(path) and not path.startswith("docs/") for path in goldens)
        print(f"{name:<16}{BEFORE[name]:>20}{product:>9}{tests:>7}{docs:>6}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--edit-only", action="store_true", help="make the edits and compare them with the page")
    parser.add_argument("things", nargs="*", choices=[[], *ADD], metavar="THING")
    options = parser.parse_args()
    folder = os.path.realpath(options.keep) if options.keep else tempfile.mkdtemp(prefix="candor-adding-")
    os.makedirs(folder, exist_ok=True)
    try:
        copy_tree(folder)
        things = {name: ADD[name](folder) for name in options.things or ADD}
        faults = [fault for thing in things.values() for fault in thing.faults]
        for fault in faults:
            print(f"check_adding: {fault}")
        is_good = not faults
        if not options.edit_only:
            tests = {}
            for name in things:
                for program, chosen in TESTS[name]:
                    tests[program] = chosen if tests.get(program) != "*" else "*"
            is_good &= run(["sh", "scripts/build.sh", "release", "candor", *tests], folder)
            for program, chosen in tests.items() if is_good else []:
                is_good &= run([f"build/tests/{program}", "--gtest_brief=1", f"--gtest_filter={chosen}"], folder, quiet=False)
        print_table(things)
        return 0 if is_good else 1
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
