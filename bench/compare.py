#!/usr/bin/env python3
"""Candor beside an earlier commit, another build of it, llama.cpp or another engine: in one run on one machine, in
turns.

    bench/compare.py --baseline COMMIT --model FILE [--model FILE ...]
    bench/compare.py --llama FOLDER --model FILE
    bench/compare.py --engine openvino=FOLDER --model FILE

--baseline builds COMMIT in a checkout of its own below --baseline-folder (kept for the next time) and measures its
program. FOLDER of --llama holds a built `llama-bench` (and `llama-batched-bench` for --batch). FOLDER of --engine is
what `bench/engines/with_NAME.py setup FOLDER` made: an environment with that engine and its own copy of the same
shape.

Each round runs one program after the other; medians, their ranges and the ratio to the best of the others are
printed, with the ratio of both sides' best rounds, and written as JSON with --json FILE: where memory has two speeds,
medians of few rounds compare one with the other. llama.cpp runs with flash attention off and on (--flash). With --under
COMMAND each run is started by that command, which may wait until nothing else runs. A round during which a hypervisor
gave more than --most-stolen percent of this machine's time to others is measured again, as many times as there are
rounds at most; how many were left out is printed.
"""

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ROOT / "bench" / "engines"


@dataclass
class Series:
    """Tokens a second of one program in one test, one value a round."""

    program: str
    test: str
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def as_json(self) -> dict:
        return {"median": self.median, "min": min(self.values), "max": max(self.values), "rounds": len(self.values)}


def run_json(command: list[str], environment: dict | None = None) -> dict:
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"compare: {' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return json.loads(done.stdout)


class Candor:
    def __init__(self, name: str, program: Path, isa: str, under: list[str]):
        self.name = name
        self.under = under
        self.program = program
        self.environment = os.environ | ({"CANDOR_ISA": isa} if isa else {})
        if not program.exists():
            sys.exit(f"compare: no program {program}; build it (sh scripts/build.sh release candor), or name another one")

    def _json(self, *arguments: str) -> dict:
        return run_json([*self.under, str(self.program), *arguments, "--json"], self.environment)

    def _generate(self, model: Path, threads: int, n_prompt: int, n_new: int, n_batch: int) -> dict:
        return self._json("bench", "generate", "-m", str(model), "--prompt", str(n_prompt), "--new", str(n_new),
                          "--batch", str(n_batch), "-t", str(threads), "-r", "1")

    def measure(self, model: Path, args: argparse.Namespace) -> dict:
        report = self._generate(model, args.threads, args.prompt, args.new, 1)
        result = report["results"][0]
        values = {(self.name, "prefill"): result["prefill_tokens_per_second"],
                  (self.name, "decode"): result["decode_tokens_per_second"],
                  (f"{self.name}: share", "prefill"): result.get("prefill_share", result.get("prefill_int8_share")),
                  (f"{self.name}: share", "decode"): result["decode_dram_share"]}
        self.limits = report["limits"] | {"decode_weight_bytes": result.get("decode_weight_bytes")}
        if args.batch > 1:
            result = self._generate(model, args.threads, args.batch_prompt, args.new, args.batch)["results"][0]
            values[self.name, f"decode x {args.batch}"] = result["decode_tokens_per_second"]
        return values

    def machine(self) -> dict:
        report = self._json("doctor")
        return {key: report[key]["value"] for key in ("processor", "instructions", "threads", "memory", "kernels")}


class LlamaCpp:
    """A llama.cpp build."""

    def __init__(self, folder: Path, under: list[str]):
        self.under = under
        self.bench = folder / "llama-bench"
        self.batched = folder / "llama-batched-bench"
        if not self.bench.exists():
            sys.exit(f"compare: no llama-bench in {folder}; build llama.cpp there, or name another folder with --llama")

    def _run(self, threads: int, *arguments: str) -> float:
        command = [*self.under, str(self.bench), *arguments, "-t", str(threads), "-r", "1", "-o", "json"]
        return run_json(command)[0]["avg_ts"]

    def _decode_batch(self, model: Path, args: argparse.Namespace) -> float:
        command = [*self.under, str(self.batched), "-m", str(model), "-npp", str(args.batch_prompt),
                   "-ntg", str(args.new), "-npl", str(args.batch),
                   "-c", str((args.batch_prompt + args.new) * args.batch), "-t", str(args.threads), "-tb", str(args.threads)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = next(line for line in out.splitlines() if re.match(r"\|\s*\d", line))
        return float(row.split("|")[8])  # S_TG t/s

    def measure(self, model: Path, args: argparse.Namespace) -> dict:
        values = {}
        for flash in args.flash:
            name = f"llama.cpp fa={flash}"
            values[name, "prefill"] = self._run(args.threads, "-m", str(model), "-p", str(args.prompt), "-n", "0",
                                                "-fa", flash)
            values[name, "decode"] = self._run(args.threads, "-m", str(model), "-p", "0", "-n", str(args.new),
                                               "-d", str(args.prompt), "-fa", flash)
        if args.batch > 1:
            values["llama.cpp", f"decode x {args.batch}"] = self._decode_batch(model, args)
        return values


class Engine:
    """Another engine by its script of bench/engines, in an environment that the script made."""

    def __init__(self, text: str, under: list[str]):
        self.under = under
        self.name, _, folder = text.partition("=")
        self.folder = Path(folder)
        self.script = ENGINES / f"with_{self.name}.py"
        if not folder or not self.script.exists():
            known = ", ".join(sorted(path.stem.removeprefix("with_") for path in ENGINES.glob("with_*.py")))
            sys.exit(f"compare: --engine {text}: expected NAME=FOLDER with a NAME of {known}")

    def measure(self, model: Path, args: argparse.Namespace) -> dict:
        del model  # its own copy of the shape
        report = run_json([*self.under, sys.executable, str(self.script), "measure", str(self.folder),
                           "--prompt", str(args.prompt), "--new", str(args.new), "--batch", str(args.batch),
                           "--batch-prompt", str(args.batch_prompt), "--threads", str(args.threads)])
        return {(report["name"], test): value for test, value in report["tokens_per_second"].items()}


def build_baseline(commit: str, folder: Path) -> Path:
    """The program of an earlier commit, built by its own scripts; a checkout that is there already is used again."""
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}"],
                           capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(f"compare: --baseline {commit}: git knows no such commit")
    name = found.stdout.strip()
    checkout = folder / name[:12]
    if not checkout.exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "-C", str(ROOT), "worktree", "add", "--detach", str(checkout), name], check=True,
                       stdout=sys.stderr)
    print(f"compare: building {name[:12]} in {checkout}", file=sys.stderr)
    subprocess.run(["sh", "scripts/build.sh", "release", "candor"], cwd=checkout, check=True, stdout=sys.stderr)
    return checkout / "build" / "candor"


def processor_times() -> tuple[int, int]:
    """Time that was stolen from this machine since it started, and all time, in ticks; (0, 1) where nobody says."""
    if not Path("/proc/stat").exists():
        return 0, 1
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)


def rounds(args: argparse.Namespace, programs: list, model: Path) -> tuple[list[Series], dict]:
    """All series of one model; and of its rounds: the machine's limits as the last one measured them, what was stolen
    from each that counts, how many were left out."""
    series, stolen_percent, n_left_out = {}, [], 0
    while len(stolen_percent) < args.rounds:
        before = processor_times()
        values = {}
        for program in programs:
            values |= program.measure(model, args)
        stolen, ticks = (now - then for now, then in zip(processor_times(), before))
        percent = round(100 * stolen / max(1, ticks), 2)
        if percent > args.most_stolen and n_left_out < args.rounds:
            n_left_out += 1
            continue
        stolen_percent.append(percent)
        for (program, test), value in values.items():
            series.setdefault((program, test), Series(program, test)).values.append(value)
        programs = programs[1:] + programs[:1]  # nobody always comes behind the same one
    limits = next(program.limits for program in programs if isinstance(program, Candor))
    return list(series.values()), {"limits": limits, "stolen_percent": stolen_percent, "rounds_left_out": n_left_out}


def compare(series: list[Series]) -> list[dict]:
    """One row a test: candor, the best of the others, the ratio, and all of them."""
    rows = []
    for ours in (s for s in series if s.program == "candor"):
        others = [s for s in series if s.program != "candor" and s.test == ours.test and ": share" not in s.program]
        theirs = max(others, key=lambda s: s.median)
        share = next((s.median for s in series if s.program == "candor: share" and s.test == ours.test), None)
        rows.append({"test": ours.test, "candor": ours.as_json(), "other": theirs.program, "best": theirs.as_json(),
                     "ratio": ours.median / theirs.median, "ratio_of_best": max(ours.values) / max(theirs.values),
                     "share_of_limit": share,
                     "others": {s.program: s.as_json() for s in others}})
    return rows


def print_rows(model: Path, rows: list[dict]) -> None:
    for row in rows:
        ours, theirs = row["candor"], row["best"]
        share = "" if row["share_of_limit"] is None else f"  {100 * row['share_of_limit']:3.0f} % of the limit"
        print(f"{model.name:<24} {row['test']:<12} {ours['median']:8.1f} ({ours['min']:.1f} to {ours['max']:.1f})  "
              f"{row['other']} {theirs['median']:8.1f} ({theirs['min']:.1f} to {theirs['max']:.1f})  "
              f"x {row['ratio']:.2f}, best rounds {row['ratio_of_best']:.2f}{share}", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, action="append", required=True, help="GGUF file; may be given again")
    parser.add_argument("--baseline", metavar="COMMIT", help="an earlier commit, built and measured beside it")
    parser.add_argument("--baseline-folder", type=Path, default=Path("/tmp/candor-baselines"), help="for its checkouts")
    parser.add_argument("--other", type=Path, help="another program of candor's")
    parser.add_argument("--llama", type=Path, help="folder of llama.cpp's programs")
    parser.add_argument("--engine", action="append", default=[], metavar="NAME=FOLDER", help="another engine")
    parser.add_argument("--candor", type=Path, default=ROOT / "build" / "candor")
    parser.add_argument("--isa", default="", help="CANDOR_ISA for candor's side")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--batch", type=int, default=1, help="also decode so many sequences together")
    parser.add_argument("--batch-prompt", type=int, default=128, help="their prompts")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flash", nargs="+", choices=("0", "1"), default=["0", "1"], help="llama.cpp's -fa")
    parser.add_argument("--under", default="", metavar="COMMAND", help="starts each run")
    parser.add_argument("--most-stolen", type=float, default=2, metavar="PERCENT", help="in a round that counts")
    parser.add_argument("--json", type=Path, help="write everything there")
    args = parser.parse_args()
    if not (args.baseline or args.other or args.llama or args.engine):
        parser.error("nothing to compare with: give --baseline, --other, --llama or --engine")
    return args


def programs_of(args: argparse.Namespace) -> list:
    under = shlex.split(args.under)
    programs = [Candor("candor", args.candor, args.isa, under)]
    if args.baseline:
        program = build_baseline(args.baseline, args.baseline_folder)
        programs.append(Candor(args.baseline, program, args.isa, under))
    if args.other:
        programs.append(Candor(str(args.other), args.other, args.isa, under))
    if args.llama:
        programs.append(LlamaCpp(args.llama, under))
    return programs + [Engine(text, under) for text in args.engine]


def main() -> None:
    args = parse_arguments()
    programs = programs_of(args)
    report = {"date": time.strftime("%Y-%m-%d"), "machine": programs[0].machine(), "threads": args.threads,
              "isa": args.isa, "prompt": args.prompt, "new": args.new, "models": []}
    for model in args.model:
        series, about = rounds(args, programs, model)
        rows = compare(series)
        print_rows(model, rows)
        print(f"{model.name:<24} stolen from the machine: {max(about['stolen_percent']):g} % at most; "
              f"rounds left out for that: {about['rounds_left_out']}", flush=True)
        report["models"].append({"model": model.name, "bytes": model.stat().st_size, "tests": rows} | about)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
