#!/usr/bin/env python3
"""Compares the rows of images with those of llama.cpp's mtmd, golden by golden (docs/models.md has the results).

    cmake -B build -DCANDOR_LLAMA_CPP=FOLDER && ninja -C build candor candor_compare_llama vision_goldens
    python3 tests/vision/compare_llama.py --llama FOLDER [--only NAME ...] [--bf16]

FOLDER is a checkout of llama.cpp, built in FOLDER/build. Needs numpy. Weights are widened to f32, as both programs
round what they multiply to bf16 otherwise (--bf16). Where llama.cpp computes something else, its file is changed so that
it computes the same. A line for each golden: the largest difference of the rows compared, as a share of the largest
number.
"""

import argparse
import dataclasses
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
GOLDENS = BUILD / "tests" / "vision_goldens"


def keep(_, values):
    return values


def next_position(name, values):
    """llama.cpp puts the class token, which has position 0, behind the patches."""
    if not name.startswith("v.position_embd"):
        return values
    return np.roll(values, -1, axis=values.ndim - 2)


def no_bounds(name, values):
    """llama.cpp applies Q's bounds to what K and V read too."""
    if name.endswith("_max"):
        return np.full_like(values, 1e30)
    return np.full_like(values, -1e30) if name.endswith("_min") else values


def as_it_is(name):
    return name


def second_norm(name):
    """What llama.cpp's own converter names attn_post_norm is another norm to it."""
    return name.replace("attn_post_norm", "ln2")


@dataclasses.dataclass
class Case:
    width: int
    height: int
    rows: tuple = (0, None)  # compared
    both: object = keep  # what is done to the weights
    theirs: object = keep  # of llama.cpp's file alone, as the following
    rename: object = as_it_is
    keys: dict = dataclasses.field(default_factory=dict)
    text: str = ""  # another golden's text model: llama.cpp does not load its own


PROJECTION = {"clip.vision.projection_dim": 64}
CASES = {
    "smolvlm": Case(64, 64, (0, 64)),  # the whole image is resized in another way
    "gemma3": Case(32, 32),
    "gemma4": Case(192, 192, both=no_bounds, keys={"clip.use_gelu": True}),
    "gemma4_unified": Case(192, 192),
    "llava": Case(32, 32, (1, None), theirs=next_position, keys=PROJECTION),
    "llava_next": Case(32, 32, (1, 16), theirs=next_position, keys=PROJECTION),  # the whole image alone
    "internvl": Case(32, 32, theirs=next_position),
    "lfm2_vl": Case(256, 256),
    "pixtral": Case(32, 32),
    "mistral3": Case(32, 32),
    "llama4": Case(32, 32, rename=second_norm),
    "qwen2_vl": Case(64, 64),
    "qwen2_5_vl": Case(168, 112),
    "qwen3vl": Case(256, 256),
    "qwen3vl_moe": Case(256, 256, text="qwen3vl"),
    "qwen3_5": Case(256, 256),
}


def image(name, width, height):
    """Smooth, with an edge. llama.cpp does not round pixels to bf16, as Llama 4 does: black and white stay the same."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack([(x * 5 + y) % 256, (y * 6 + x * x // 20) % 256, np.where(x > y, 200, 40) + (x % 7)], axis=-1)
    return ((rgb > 99) * 255 if name == "llama4" else rgb).astype(np.uint8)


def write_changed(gguf, source, target, is_widened, changes, rename=as_it_is, keys={}):
    read, out = gguf.GGUFReader(source), gguf.GGUFWriter(target, "clip")
    for field in read.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture" or field.name in keys:
            continue
        kind = field.types[0]
        item = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        out.add_key_value(field.name, field.contents(), kind, sub_type=item)
    for key, value in keys.items():
        (out.add_bool if isinstance(value, bool) else out.add_uint32)(key, value)
    for tensor in read.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        values = values.reshape([int(side) for side in reversed(tensor.shape)])
        for change in changes:
            values = np.ascontiguousarray(change(tensor.name, values))
        if not is_widened and tensor.tensor_type == gguf.GGMLQuantizationType.BF16:
            packed = gguf.quants.quantize(values, tensor.tensor_type)
            out.add_tensor(rename(tensor.name), packed, raw_dtype=tensor.tensor_type)
        else:
            out.add_tensor(rename(tensor.name), values)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else f"exit status {done.returncode}")
    return done.stdout


def compare(gguf, name, is_widened, folder):
    case = CASES[name]
    ours, theirs, text, pixels = (folder / file for file in ("ours.gguf", "theirs.gguf", "text.gguf", "image.rgb"))
    source = GOLDENS / name / "mmproj.gguf"
    write_changed(gguf, source, ours, is_widened, [case.both])
    write_changed(gguf, source, theirs, is_widened, [case.both, case.theirs], case.rename, case.keys)
    run(BUILD / "candor", "convert", GOLDENS / (case.text or name), text)
    pixels.write_bytes(image(name, case.width, case.height).tobytes())
    program = BUILD / "tests" / "candor_compare_llama"
    lines = run(program, ours, theirs, text, case.width, case.height, pixels).splitlines()
    found = [line.split() for line in lines][slice(*case.rows)]
    if len({other for _, other in found}) != len(found):
        raise RuntimeError("two rows are nearest to one")
    return f"{max(float(share) for share, _ in found):.1e} of {len(found)} rows"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--llama", required=True, type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--bf16", action="store_true", help="weights as they are")
    args = parser.parse_args()
    sys.path.insert(0, str(args.llama / "gguf-py"))
    import gguf
    for name in args.only:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = compare(gguf, name, not args.bf16, pathlib.Path(folder))
            except RuntimeError as error:
                found = str(error)
        print(f"{name}: {found}", flush=True)


main()
