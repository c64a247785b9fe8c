#!/usr/bin/env python3
"""One model in several types, in turns on one machine: prefill, decode, and sequences together.

    bench/formats.py --model 1b-w8a8.gguf --model 1b-q8_0.gguf --model 1b-q4km.gguf

Each round runs every file once, one after the other; medians, their ranges and their ratios to the first file are
printed, and written as JSON with --json FILE, with the shares of the limits that the machine showed in the same runs.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

from compare import ROOT, Candor


def one_run(candor: Candor, model: Path, args: argparse.Namespace) -> dict[str, float]:
    report = candor.generate(model, args.prompt, args.new, 1)
    alone = report["results"][0]
    together = candor.generate(model, args.batch_prompt, args.new, args.batch)["results"][0]
    return {"prefill": alone["prefill_tokens_per_second"], "prefill_int8_share": alone["prefill_int8_share"],
            "decode": alone["decode_tokens_per_second"], "decode_dram_share": alone["decode_dram_share"],
            f"decode x {args.batch}": together["decode_tokens_per_second"],
            "int8_ops": report["limits"]["int8_ops"], "dram_read_bytes": report["limits"]["dram_read_bytes"]}


def summary(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, action="append", required=True, help="GGUF file; may be given again")
    parser.add_argument("--candor", type=Path, default=ROOT / "build" / "candor")
    parser.add_argument("--isa", default="", help="CANDOR_ISA")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--new", type=int, default=24)
    parser.add_argument("--batch", type=int, default=16, help="sequences together")
    parser.add_argument("--batch-prompt", type=int, default=16, help="their prompts")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write everything there")
    args = parser.parse_args()
    candor = Candor(args.candor, args.threads, args.isa)
    runs: dict[Path, list[dict[str, float]]] = {model: [] for model in args.model}
    for _ in range(args.rounds):
        for model in args.model:
            runs[model].append(one_run(candor, model, args))
    report = {"date": time.strftime("%Y-%m-%d"), "machine": candor.machine(), "threads": args.threads, "isa": args.isa,
              "prompt": args.prompt, "new": args.new, "rounds": args.rounds, "models": {}}
    for model, values in runs.items():
        rows = {test: summary([run[test] for run in values]) for test in values[0]}
        report["models"][model.name] = rows | {"bytes": model.stat().st_size}
        first = report["models"][args.model[0].name]
        for test, row in rows.items():
            print(f"{model.name:<24} {test:<20} {row['median']:12.4g} ({row['min']:.4g} to {row['max']:.4g})  "
                  f"{first[test]['median'] / max(1e-9, row['median']):.2f} x of it by {args.model[0].name}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
