"""How goldens are kept: small. make_golden_files.cpp makes the whole folders again, when tests are built.

tensors.json instead of model.safetensors: names, shapes and types, and the centre and spread of the numbers that
made_weights.py computes. gguf.head instead of model.gguf: what stands before its tensors; gguf.json: the file's size and
the SHA-256 of its tensors' bytes; gguf.rest, where `candor convert` makes other bytes of the folder for some tensors:
theirs. expected.f32: the logits of every third position.
"""

import hashlib
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import safetensors.torch
import torch

from made_weights import made_values

GOLDENS = pathlib.Path(__file__).resolve().parent / "goldens"
SHARED = ("tokenizer.json", "tokenizer_config.json")  # goldens/llama has them for all
KEPT_WHOLE = {"llama", "internlm2", "baichuan", "gpt_oss"}  # others are made of it, or their tensors hold codes
KEPT_ROWS = slice(2, None, 3)
# Other numbers: where torch's e^x of a rate is not the nearest float, so that both files have the same bits; and where an
# expert is chosen by so little that what bf16 rounds decides.
SALTS = {name: " 1" for name in ("granitemoehybrid_dense", "falcon_h1", "falcon_h1_norm", "nemotron_h_moe", "mixtral",
                                 "deepseek_v2", "glm4_moe_air")}
SALTS |= {"afmoe": " 5", "mistral4": " 2", "exaone4": " 5", "gemma4_moe": " 10"}
NAMES = {torch.bfloat16: "BF16", torch.float32: "F32"}


def recipe_of(weight, salt):
    numbers = weight.double()
    is_vector = weight.numel() == max(weight.shape, default=1)
    centre = round(8 * float(numbers.mean())) / 8 if is_vector else 0.0
    spread = float(f"{float((numbers - numbers.mean()).pow(2).mean().sqrt()) * 3 ** 0.5:.3g}")
    salted = {"salt": salt} if salt else {}
    return {"dtype": NAMES[weight.dtype], "shape": list(weight.shape), "centre": centre, "spread": spread} | salted


def made(name, recipe, dtype):
    values = made_values(name + recipe.get("salt", ""), int(np.prod(recipe["shape"])), recipe["centre"], recipe["spread"])
    return torch.from_numpy(values.copy()).reshape(recipe["shape"]).to(dtype)


def replace_weights(folder):
    """By numbers of a formula that are spread as they were."""
    path = folder / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    salt = SALTS.get(folder.name, "")
    recipes = {name: recipe_of(weight, salt) for name, weight in sorted(tensors.items())}
    safetensors.torch.save_file({name: made(name, recipes[name], weight.dtype) for name, weight in tensors.items()},
                                path, {"format": "pt"})
    lines = [f"{json.dumps(name)}: {json.dumps(recipe)}" for name, recipe in recipes.items()]
    (folder / "tensors.json").write_text("{" + ",\n ".join(lines) + "}\n")


def tensors_of(path):
    """Names and bytes in the file's order, and where they begin."""
    import gguf
    reader = gguf.GGUFReader(path)
    return {tensor.name: tensor.data.tobytes() for tensor in reader.tensors}, reader.data_offset


def write_rest(path, rest):
    """A safetensors file of bytes."""
    tensors = {name: torch.frombuffer(bytearray(data), dtype=torch.uint8) for name, data in rest.items()}
    safetensors.torch.save_file(tensors, path)


def store_gguf(folder, target, candor):
    whole = (folder / "model.gguf").read_bytes()
    theirs, begin = tensors_of(folder / "model.gguf")
    (target / "gguf.head").write_bytes(whole[:begin])
    about = {"bytes": len(whole), "sha256": hashlib.sha256(b"".join(theirs.values())).hexdigest()}
    (target / "gguf.json").write_text(json.dumps(about) + "\n")
    with tempfile.TemporaryDirectory() as scratch:
        ours = pathlib.Path(scratch) / "ours.gguf"
        subprocess.run([candor, "convert", folder, ours], check=True, capture_output=True)
        converted = tensors_of(ours)[0]
    rest = {name: data for name, data in theirs.items() if converted.get(name) != data}
    if rest:
        write_rest(target / "gguf.rest", rest)
    return rest


def store(folder, logits, candor):
    """folder: whole, of the golden's name."""
    target = GOLDENS / folder.name
    is_whole = folder.name in KEPT_WHOLE
    left = {"model.gguf", "tensors.json" if is_whole else "model.safetensors", *(() if folder.name == "llama" else SHARED)}
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name not in left:
            shutil.copyfile(path, target / path.name)
    logits[KEPT_ROWS].astype("<f4").tofile(target / "expected.f32")
    rest = store_gguf(folder, target, candor) if (folder / "model.gguf").exists() else {}
    return f"{sum(path.stat().st_size for path in target.iterdir()) // 1024} KiB, {len(rest)} tensors are not as converted"
