#!/usr/bin/env python3
"""Attacks the built program with broken model files: GGUF, safetensors and folders of the hub, damaged at random bytes
and at the fields of their headers. Each file is given to `candor show` or `candor run`, which must answer with an exit
status of 0, or of 2 with one line, within 2 s of CPU time and 512 MB. Prints what it counted; files that did anything
else are kept. File number N of a seed is the same on every machine.

  scripts/attack_files.py --program build/candor --show 100000 --run 20000        the whole attack
  scripts/attack_files.py --program build/candor --only show:gguf:1234            one file of it again"""
import argparse
import collections
import copy
import json
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU_SECONDS, MEMORY_BYTES, WALL_SECONDS = 2.0, 512 << 20, 20
NUMBERS = [0, 1, 2, 3, 7, 8, 31, 32, 63, 64, 255, 256, 65535, 65536, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
           2**48, 2**63 - 1, 2**63, 2**64 - 1]
ODD_JSON = [None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 1e308, -1e308, 1e-308, "", "x", "\u0000", [], {}, [[]],
            [0], {"a": 1}, [None] * 100, "x" * 10000, ["x"] * 1000, 0.5, -0.0]
SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def gguf_fields(data):
    """(offset, size) of every number of the header, and where the header ends."""
    fields, at = [(4, 4), (8, 8), (16, 8)], 24
    n_tensors, n_entries = struct.unpack_from("<QQ", data, 8)

    def number(size):
        nonlocal at
        fields.append((at, size))
        at += size
        return int.from_bytes(data[at - size:at], "little")

    def text():
        nonlocal at
        size = number(8)
        at += size

    def value(kind):
        nonlocal at
        if kind == 8:
            return text()
        if kind != 9:
            return number(SCALARS[kind])
        element, count = number(4), number(8)
        for i in range(count):
            if element != 8:
                at += SCALARS[element] * (count - i)
                break
            size = struct.unpack_from("<Q", data, at)[0]
            if i < 4:
                fields.append((at, 8))
            at += 8 + size

    for _ in range(n_entries):
        text()
        value(number(4))
    for _ in range(n_tensors):
        text()
        for _ in range(number(4)):
            number(8)
        number(4)
        number(8)
    return fields, at


def flip_bits(rng, data, end):
    for _ in range(rng.choice([1, 1, 1, 2, 8, 64])):
        data[rng.randrange(end)] ^= 1 << rng.randrange(8)


def damage_bytes(rng, data, end, fields=()):
    """One way of damage to bytes whose header ends at `end`."""
    way = rng.randrange(8)
    if fields and way < 4:
        for _ in range(rng.choice([1, 1, 2, 3])):
            at, size = rng.choice(fields)
            old = int.from_bytes(data[at:at + size], "little")
            new = rng.choice(NUMBERS + [old + 1, old - 1, old * 2, old ^ (1 << rng.randrange(8 * size))])
            data[at:at + size] = (new % (1 << (8 * size))).to_bytes(size, "little")
    elif way < 5:
        flip_bits(rng, data, end)
    elif way == 5:
        flip_bits(rng, data, len(data))
    elif way == 6:
        del data[rng.randrange(rng.choice([end, len(data)])):]
    else:
        a, b, size = rng.randrange(end), rng.randrange(end), rng.randrange(1, 200)
        data[b:b + size] = data[a:a + size]
    return data


def all_places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(items)[:50]:
        yield from all_places(one, path + (key,))


def damage_json(rng, text):
    if rng.random() < 0.3:
        return bytes(damage_bytes(rng, bytearray(text), len(text)))
    value = json.loads(text)
    for _ in range(rng.choice([1, 1, 2, 4])):
        path = rng.choice([p for p in all_places(value) if p] or [()])
        at = value
        for key in path[:-1]:
            at = at[key]
        if not path:
            break
        way = rng.random()
        if way < 0.2:
            del at[path[-1]]
        elif way < 0.3 and isinstance(at, dict):
            at[rng.choice(["", "x", path[-1] + "2"])] = at.pop(path[-1])
        elif way < 0.4 and isinstance(at[path[-1]], (int, float)):
            at[path[-1]] = rng.choice([at[path[-1]] + 1, at[path[-1]] - 1, -at[path[-1]], at[path[-1]] * 2])
        else:
            at[path[-1]] = copy.deepcopy(rng.choice(ODD_JSON))
    return json.dumps(value).encode()


def damage_safetensors(rng, data):
    size = struct.unpack_from("<Q", data)[0]
    if rng.random() < 0.5:
        return bytes(damage_bytes(rng, bytearray(data), 8 + size, [(0, 8)]))
    header = damage_json(rng, data[8:8 + size])
    stated = len(header) if rng.random() < 0.9 else rng.choice(NUMBERS)
    return struct.pack("<Q", stated % 2**64) + header + data[8 + size:]


class Sources:
    """Small models, whole: the goldens that the program's build made."""

    def __init__(self, program):
        goldens = sorted((Path(program).parent / "tests/goldens").iterdir())
        self.gguf = [path.read_bytes() for path in (g / "model.gguf" for g in goldens) if path.exists()]
        self.gguf.append((ROOT / "models/pocket/pocket-draft-q8_0.gguf").read_bytes())
        self.fields = [gguf_fields(data) for data in self.gguf]
        self.folders = [{f.name: f.read_bytes() for f in g.iterdir() if f.suffix in (".json", ".safetensors")}
                        for g in goldens if (g / "model.safetensors").exists()]

    def write(self, kind, number, seed, place):
        """File `number` of this kind, below `place`; what the program is given."""
        rng = random.Random(f"{seed}:{kind}:{number}")
        if kind == "gguf":
            which = rng.randrange(len(self.gguf))
            fields, end = self.fields[which]
            path = place / "model.gguf"
            path.write_bytes(damage_bytes(rng, bytearray(self.gguf[which]), end, fields))
            return path
        files = dict(rng.choice(self.folders))
        weights = kind == "safetensors"
        name = "model.safetensors" if weights else rng.choice(sorted(n for n in files if n.endswith(".json")))
        if not weights and rng.random() < 0.05:
            del files[name]
        elif weights:
            files[name] = damage_safetensors(rng, files[name])
        else:
            files[name] = damage_json(rng, files[name])
        for one, content in files.items():
            (place / one).write_bytes(content)
        return place


def arguments_of(program, command, path):
    more = ["-p", "hi", "--raw", "-n", "1", "-t", "1", "--temperature", "0"] if command == "run" else []
    return [program, command, "-m", str(path)] + more


def limit_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_program(arguments, error_path):
    """Exit status (negative: signal), CPU seconds, bytes of memory, what it said on stderr."""
    with open(error_path, "wb") as error:
        actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0), (os.POSIX_SPAWN_DUP2, error.fileno(), 2)]
        child = os.posix_spawn(arguments[0], arguments, os.environ, file_actions=actions)
    timer = threading.Timer(WALL_SECONDS, os.kill, (child, signal.SIGKILL))
    timer.start()
    _, status, usage = os.wait4(child, 0)
    timer.cancel()
    said = Path(error_path).read_bytes()
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, said


def verdict_of(code, seconds, n_bytes, said):
    """What is wrong with the run; "" where nothing is."""
    if code < 0:
        return f"signal {-code}"
    if code not in (0, 2):
        return f"exit {code}"
    if code == 2 and said.count(b"\n") != 1:
        return f"{said.count(bytes([10]))} lines"
    if seconds > CPU_SECONDS:
        return "slow"
    return "large" if n_bytes > MEMORY_BYTES else ""


class Attack:
    def __init__(self, options):
        self.options, self.sources = options, Sources(options.program)
        self.work = Path(tempfile.mkdtemp(prefix="attack-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.counts = collections.Counter()
        self.worst = {"seconds": 0.0, "bytes": 0}

    def one(self, command, kind, number):
        place = self.work / "model"
        place.mkdir()
        path = self.sources.write(kind, number, self.options.seed, place)
        code, seconds, n_bytes, said = run_program(arguments_of(self.options.program, command, path),
                                                   self.work / "stderr")
        verdict = verdict_of(code, seconds, n_bytes, said)
        self.counts[command, kind, verdict or f"exit {code}"] += 1
        self.worst["seconds"] = max(self.worst["seconds"], seconds)
        self.worst["bytes"] = max(self.worst["bytes"], n_bytes)
        if verdict:
            kept = Path(self.options.found) / f"{command}-{kind}-{number}"
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copytree(place, kept, dirs_exist_ok=True)
            print(f"{command}:{kind}:{number}: {verdict}, {seconds:.2f} s, {n_bytes >> 20} MiB: "
                  f"{said[:200].decode(errors='replace').strip()}", flush=True)
        shutil.rmtree(place)

    def run(self):
        kinds = ["gguf", "safetensors", "folder"]
        total = {"show": self.options.show, "run": self.options.run}
        for command, n in total.items():
            for i in range(n):
                self.one(command, kinds[i % 3], self.options.first + i)
                if (i + 1) % 5000 == 0:
                    print(f"{command}: {i + 1} of {n}", flush=True)

    def report(self):
        for key, n in sorted(self.counts.items()):
            print(f"{key[0]:<5} {key[1]:<12} {key[2]:<10} {n}")
        print(f"most: {self.worst['seconds']:.2f} s of CPU, {self.worst['bytes'] >> 20} MiB")
        return 1 if any(verdict not in ("exit 0", "exit 2") for _, _, verdict in self.counts) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/candor"))
    parser.add_argument("--show", type=int, default=0, help="files given to candor show")
    parser.add_argument("--run", type=int, default=0, help="files given to candor run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--only", help="COMMAND:KIND:NUMBER, one file")
    parser.add_argument("--found", default="found", help="folder for files that did what they must not")
    options = parser.parse_args()
    limit_core()
    attack = Attack(options)
    try:
        if options.only:
            command, kind, number = options.only.split(":")
            attack.one(command, kind, int(number))
        else:
            attack.run()
    finally:
        shutil.rmtree(attack.work, ignore_errors=True)
    return attack.report()


if __name__ == "__main__":
    sys.exit(main())
