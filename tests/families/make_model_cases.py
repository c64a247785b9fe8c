#!/usr/bin/env python3
"""Makes model_cases/NAME.json: a config.json, its tensors' names and shapes (whose values made_weights.py computes), and
what the `transformers` library makes of them, in f64: deep random models amplify what f32 rounds.

    python3 make_model_cases.py [--only NAME ...] [--jobs N]

Needs torch and transformers. The cases are settings of families that no golden has (model_settings.py), and config.json
files as they are published, shrunk to tiny sizes with all their keys (published_configs.py). "expect" is "refused" (the
library refuses), or logits of some tokens at some positions.
"""

import argparse
import contextlib
import io
import json
import multiprocessing
import pathlib
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 48
VOCAB = 288
POSITIONS = [5, 23, 47]
STEP = 16


def stored_name(name, case):
    """As the checkpoint of the case names what the library's text model calls `name`."""
    for begin, replaced in case.get("renamed", {}).items():
        if name.startswith(begin):
            return replaced + name[len(begin):]
    return name


def library_config(folder, case):
    import transformers as tf
    if "known_as" in case:
        config = json.loads((folder / "config.json").read_text())
        return tf.AutoConfig.for_model(case["known_as"], **{k: v for k, v in config.items() if k != "model_type"})
    return tf.AutoConfig.from_pretrained(folder).get_text_config()


def make_tensors(model, folder, case):
    """What the library saves, with values by formula; the shapes under the names of the checkpoint."""
    import safetensors.torch
    import torch
    from made_weights import made_weight
    model.save_pretrained(folder)
    shapes, tensors = {}, {}
    for path in sorted(folder.glob("*.safetensors")):
        for name, weight in safetensors.torch.load_file(path).items():
            stored = stored_name(name, case)
            shapes[stored] = list(weight.shape)
            tensors[name] = torch.from_numpy(made_weight(stored, list(weight.shape)).copy()).to(torch.bfloat16)
        path.unlink()
    for name in case.get("extra", {}):
        shapes[name] = case["extra"][name]
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return shapes


def logits_of(config, case):
    import torch
    import transformers as tf
    with tempfile.TemporaryDirectory() as scratch:
        source, folder = pathlib.Path(scratch) / "source", pathlib.Path(scratch) / "model"
        source.mkdir()
        (source / "config.json").write_text(json.dumps(config))
        text = library_config(source, case)
        text.architectures = None
        kind = getattr(tf, case["class"]) if "class" in case else tf.AutoModelForCausalLM
        make = kind._from_config if "class" in case else kind.from_config
        torch.manual_seed(0)
        model = make(text, attn_implementation="eager").to(torch.bfloat16)
        shapes = make_tensors(model, folder, case)
        model, info = kind.from_pretrained(folder, config=library_config(source, case), dtype=torch.float64,
                                           attn_implementation="eager", experts_implementation="eager",
                                           output_loading_info=True)
        left = [name for name in info["unexpected_keys"]]
        if info["missing_keys"] or info.get("mismatched_keys") or left:
            raise RuntimeError(f"keys: missing {info['missing_keys']}, left {left}")
        ids = [(37 * i * i + 11 * i + 5) % VOCAB for i in range(N_TOKENS)]
        with torch.no_grad():
            logits = model.eval()(torch.tensor([ids]), use_cache=False).logits[0].double()
        if not bool(torch.isfinite(logits).all()):
            raise RuntimeError("logits are not finite")
        return logits, shapes


def make(item):
    import logging
    import torch
    import transformers as tf
    torch.set_num_threads(1)
    tf.logging.set_verbosity(logging.CRITICAL)
    tf.logging.disable_progress_bar()
    name, case = item
    config = case["config"]
    shapes = {}
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            logits, shapes = logits_of(config, case)
        expect = [[float(f"{value:.6g}") for value in logits[at, ::STEP].tolist()] for at in POSITIONS]
        said = f"largest logit {float(logits.abs().max()):.2f}"
    except Exception as error:
        expect, said = "refused", f"refused: {str(error).splitlines()[0][:150] if str(error) else type(error).__name__}"
    kept = {"config": config, "tensors": shapes, "expect": expect}
    (HERE / "model_cases" / f"{name}.json").write_text(json.dumps(kept, separators=(",", ":")) + "\n")
    return f"{name}: {said}"


def cases():
    from model_settings import SETTINGS
    from published_configs import published_cases
    return SETTINGS | published_cases()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    (HERE / "model_cases").mkdir(exist_ok=True)
    items = [item for item in cases().items() if not options.only or item[0] in options.only]
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for line in pool.imap_unordered(make, items):
            print(line, flush=True)


if __name__ == "__main__":
    main()
