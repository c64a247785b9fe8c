#!/usr/bin/env python3
"""Candor beside llama.cpp, in one run on one machine: prefill and decode of the same model file, interleaved.

    bench/compare.py --llama FOLDER --model FILE [--model FILE ...]

FOLDER holds a built `llama-bench` (and `llama-batched-bench` for --batch). Each round runs one program after the
other; medians, their ranges and the ratio are printed, and written as JSON with --json FILE. llama.cpp runs with flash
attention off and on (--flash) and the better median counts. With --under COMMAND each run is started by that command,
which may wait until nothing else runs. A round during which a hypervisor gave more than --most-stolen
percent of this machine's time to others is measured again, as many times as there are rounds at most; how many were
left out is printed.
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


class Peer:
    """A llama.cpp build."""

    def __init__(self, folder: Path, threads: int, under: list[str]):
        self.under = under
        self.bench = folder / "llama-bench"
        self.batched = folder / "llama-batched-bench"
        self.threads = threads
        if not self.bench.exists():
            sys.exit(f"compare: no llama-bench in {folder}; build llama.cpp there, or name another folder with --llama")

    def _run(self, *arguments: str) -> list[dict]:
        command = [*self.under, str(self.bench), *arguments, "-t", str(self.threads), "-r", "1", "-o", "json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def prefill(self, model: Path, n_prompt: int, flash: str) -> float:
        return self._run("-m", str(model), "-p", str(n_prompt), "-n", "0", "-fa", flash)[0]["avg_ts"]

    def decode(self, model: Path, n_prompt: int, n_new: int, flash: str) -> float:
        return self._run("-m", str(model), "-p", "0", "-n", str(n_new), "-d", str(n_prompt), "-fa", flash)[0]["avg_ts"]

    def decode_batch(self, model: Path, n_prompt: int, n_new: int, n_batch: int) -> float:
        command = [*self.under, str(self.batched), "-m", str(model), "-npp", str(n_prompt), "-ntg", str(n_new), "-npl", str(n_batch),
                   "-c", str((n_prompt + n_new) * n_batch), "-t", str(self.threads), "-tb", str(self.threads)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        row = next(line for line in out.splitlines() if re.match(r"\|\s*\d", line))
        return float(row.split("|")[8])  # S_TG t/s


class Candor:
    def __init__(self, program: Path, threads: int, isa: str, under: list[str]):
        self.program = program
        self.under = under
        self.threads = threads
        self.environment = os.environ | ({"CANDOR_ISA": isa} if isa else {})

    def _json(self, *arguments: str) -> dict:
        command = [*self.under, str(self.program), *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"compare: {' '.join(command)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def generate(self, model: Path, n_prompt: int, n_new: int, n_batch: int) -> dict:
        return self._json("bench", "generate", "-m", str(model), "--prompt", str(n_prompt), "--new", str(n_new),
                          "--batch", str(n_batch), "-t", str(self.threads), "-r", "1")

    def machine(self) -> dict:
        report = self._json("doctor")
        return {key: report[key]["value"] for key in ("processor", "instructions", "threads", "memory", "kernels")}


def processor_times() -> tuple[int, int]:
    """Time that was stolen from this machine since it started, and all time, in ticks; (0, 1) where nobody says."""
    if not Path("/proc/stat").exists():
        return 0, 1
    ticks = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[7], sum(ticks)


def one_round(args: argparse.Namespace, candor: Candor, peer: Peer, model: Path) -> tuple[dict, dict]:
    """The value of each (program, test); and the machine's limits as measured meanwhile."""
    report = candor.generate(model, args.prompt, args.new, 1)
    result = report["results"][0]
    values = {("candor", "prefill"): result["prefill_tokens_per_second"],
              ("candor", "decode"): result["decode_tokens_per_second"],
              ("share", "prefill"): result["prefill_int8_share"],
              ("share", "decode"): result["decode_dram_share"]}
    limits = report["limits"] | {"decode_weight_bytes": result.get("decode_weight_bytes")}
    for flash in args.flash:
        program = f"llama.cpp fa={flash}"
        values[program, "prefill"] = peer.prefill(model, args.prompt, flash)
        values[program, "decode"] = peer.decode(model, args.prompt, args.new, flash)
    if args.batch > 1:
        test = f"decode x {args.batch}"
        result = candor.generate(model, args.batch_prompt, args.new, args.batch)["results"][0]
        values["candor", test] = result["decode_tokens_per_second"]
        values["llama.cpp", test] = peer.decode_batch(model, args.batch_prompt, args.new, args.batch)
    return values, limits


def rounds(args: argparse.Namespace, candor: Candor, peer: Peer, model: Path) -> tuple[list[Series], dict]:
    """All series of one model; and of its rounds: the machine's limits as the last one measured them, what was stolen
    from each that counts, how many were left out."""
    series, limits, stolen_percent, n_left_out = {}, {}, [], 0
    while len(stolen_percent) < args.rounds:
        before = processor_times()
        values, limits = one_round(args, candor, peer, model)
        stolen, ticks = (now - then for now, then in zip(processor_times(), before))
        percent = round(100 * stolen / max(1, ticks), 2)
        if percent > args.most_stolen and n_left_out < args.rounds:
            n_left_out += 1
            continue
        stolen_percent.append(percent)
        for (program, test), value in values.items():
            series.setdefault((program, test), Series(program, test)).values.append(value)
    return list(series.values()), {"limits": limits, "stolen_percent": stolen_percent, "rounds_left_out": n_left_out}


def compare(series: list[Series]) -> list[dict]:
    """One row a test: candor, the best of the peer's flags, the ratio."""
    rows = []
    for ours in (s for s in series if s.program == "candor"):
        theirs = max((s for s in series if s.program.startswith("llama.cpp") and s.test == ours.test),
                     key=lambda s: s.median)
        share = next((s.median for s in series if s.program == "share" and s.test == ours.test), None)
        rows.append({"test": ours.test, "candor": ours.as_json(), "llama.cpp": theirs.as_json(),
                     "llama.cpp flags": theirs.program.removeprefix("llama.cpp").strip(),
                     "ratio": ours.median / theirs.median, "share_of_limit": share})
    return rows


def print_rows(model: Path, rows: list[dict]) -> None:
    for row in rows:
        ours, theirs = row["candor"], row["llama.cpp"]
        share = "" if row["share_of_limit"] is None else f"  {100 * row['share_of_limit']:3.0f} % of the limit"
        print(f"{model.name:<24} {row['test']:<12} {ours['median']:8.1f} ({ours['min']:.1f} to {ours['max']:.1f})  "
              f"llama.cpp {theirs['median']:8.1f} ({theirs['min']:.1f} to {theirs['max']:.1f})  "
              f"x {row['ratio']:.2f}{share}", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", type=Path, required=True, help="folder of llama.cpp's programs")
    parser.add_argument("--model", type=Path, action="append", required=True, help="GGUF file; may be given again")
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
    return parser.parse_args()


def main() -> None:
    args = parse_arguments()
    under = shlex.split(args.under)
    candor, peer = Candor(args.candor, args.threads, args.isa, under), Peer(args.llama, args.threads, under)
    report = {"date": time.strftime("%Y-%m-%d"), "machine": candor.machine(), "threads": args.threads, "isa": args.isa,
              "prompt": args.prompt, "new": args.new, "models": []}
    for model in args.model:
        series, about = rounds(args, candor, peer, model)
        rows = compare(series)
        print_rows(model, rows)
        print(f"{model.name:<24} stolen from the machine: {max(about['stolen_percent']):g} % at most; "
              f"rounds left out for that: {about['rounds_left_out']}", flush=True)
        report["models"].append({"model": model.name, "bytes": model.stat().st_size, "tests": rows} | about)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
