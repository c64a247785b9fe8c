#!/usr/bin/env python3
"""Makes config_cases/NAME.json: a golden's config.json with keys left out or spelled otherwise, and what the
`transformers` library computes with each.

    python3 make_config_cases.py --goldens FOLDER [--only NAME ...] [--jobs N]

FOLDER holds the goldens as a build makes them whole (build/tests/goldens). Needs torch and transformers. Of each whose model_type the library knows: every key left out, every
key of nested settings, and rotary settings in each spelling that a release of the library wrote. "expect" is "same"
(the golden's own logits), "refused" (the library refuses, or lacks tensors), or logits of some tokens at some positions.
Where spellings contradict each other ("contradicts"), or tensors are left over ("leaves"), Candor may refuse what the
library computes.
"""

import argparse
import contextlib
import functools
import io
import json
import multiprocessing
import pathlib
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
N_TOKENS = 48
POSITIONS = [5, 23, 47]
STEP = 16  # every so manyth token's logit
WITHOUT_CLASS = {"mimo", "internlm2", "baichuan", "minicpm", "kimi_k2"}
IGNORED = {"architectures", "dtype", "torch_dtype", "transformers_version", "model_type", "initializer_range", "use_cache",
           "bos_token_id", "eos_token_id", "pad_token_id", "attention_dropout", "pretraining_tp", "text_config",
           "vision_config", "image_token_id", "video_token_id", "vision_end_token_id", "vision_start_token_id"}


# The class's own default stands above what is inside the rotary settings; a share beside that inside.
CONTRADICTIONS = {("phi3", "without original_max_position_embeddings"), ("gpt_neox", "share inside")}


def without(*keys):
    return {"drop": list(keys)}


def flat_rope(config):
    rope = config.get("rope_parameters")
    if not isinstance(rope, dict) or any(isinstance(value, dict) for value in rope.values()):
        return None
    return dict(rope)


def scalings(config):
    """Rotary settings that a folder might have, beside its own."""
    context = config.get("max_position_embeddings", 256)
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    yield "linear", {"rope_type": "linear", "factor": 2.0}
    yield "linear below 1", {"rope_type": "linear", "factor": 0.5}
    yield "linear without factor", {"rope_type": "linear"}
    yield "dynamic", {"rope_type": "dynamic", "factor": 2.0}
    yield "llama3", {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 16}
    yield "yarn", yarn
    yield "yarn with mscale", yarn | {"mscale": 0.7, "mscale_all_dim": 0.4}
    yield "yarn with one mscale", yarn | {"mscale": 0.7}
    yield "yarn below 1", yarn | {"factor": 0.5}
    yield "yarn without factor", {key: value for key, value in yarn.items() if key != "factor"}
    yield "yarn of null", yarn | {"factor": None, "beta_fast": None}
    yield "yarn without first context", {"rope_type": "yarn", "factor": 4.0}
    yield "yarn untruncated", yarn | {"truncate": False, "beta_fast": 16.0, "attention_factor": 1.1}
    yield "default of null", {"rope_type": "default", "factor": None}
    yield "unknown member", {"rope_type": "linear", "factor": 2.0, "finetuned": True}
    yield "first context above", {"rope_type": "yarn", "factor": 4.0, "above": {"original_max_position_embeddings": context // 8}}


def rotary_cases(config):
    rope = flat_rope(config)
    if rope is None:
        yield from rotary_cases_by_kind(config)
        return
    theta = rope.get("rope_theta")
    inside = {key: value for key, value in rope.items() if key not in ("rope_theta", "partial_rotary_factor")}
    partial = rope.get("partial_rotary_factor")
    outside = {"rope_theta": 12345.0} | ({"partial_rotary_factor": partial} if partial is not None else {})
    kind = {("type" if key == "rope_type" else key): value for key, value in inside.items()}
    yield "no rotary settings", without("rope_parameters")
    yield "base alone", {"drop": ["rope_parameters"], "set": {"rope_theta": 12345.0}}
    yield "base above", {"set": {"rope_parameters": inside} | outside}
    yield "settings without base", {"set": {"rope_parameters": inside}}
    yield "rope_scaling", {"drop": ["rope_parameters"], "set": {"rope_scaling": inside} | outside}
    yield "rope_scaling by type", {"drop": ["rope_parameters"], "set": {"rope_scaling": kind} | outside}
    yield "rope_scaling of null", {"drop": ["rope_parameters"], "set": {"rope_scaling": None} | outside}
    yield "rope_scaling with base", {"drop": ["rope_parameters"], "set": {"rope_scaling": rope}}
    yield "rope_scaling beside", {"set": {"rope_scaling": {"rope_type": "linear", "factor": 3.0}}, "contradicts": True}
    yield "other base above", {"set": {"rope_theta": 2 * (theta or 1e4)}, "contradicts": True}
    yield "share above", {"drop": ["rope_parameters"], "set": {"rope_theta": 12345.0, "partial_rotary_factor": 0.5}}
    yield "share inside", {"set": {"rope_parameters": inside | {"rope_theta": 12345.0, "partial_rotary_factor": 0.5}}}
    yield "published names of shares", {"drop": ["rope_parameters"], "set": {"rotary_emb_base": 12345, "rotary_pct": 0.5}}
    for name, scaling in scalings(config):
        above = scaling.pop("above", {})
        old = {("type" if key == "rope_type" else key): value for key, value in scaling.items()}
        yield name, {"set": {"rope_parameters": scaling | {"rope_theta": theta}} | above}
        yield name + ", older", {"drop": ["rope_parameters"], "set": {"rope_scaling": old, "rope_theta": theta} | above}


def rotary_cases_by_kind(config):
    rope = config.get("rope_parameters")
    if not isinstance(rope, dict):
        return
    yield "no rotary settings", without("rope_parameters")
    yield "base alone", {"drop": ["rope_parameters"], "set": {"rope_theta": 12345.0}}
    yield "local base", {"drop": ["rope_parameters"], "set": {"rope_theta": 12345.0, "rope_local_base_freq": 321.0}}
    yield "scaling alone", {"drop": ["rope_parameters"], "set": {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}}
    yield "scaling by type", {"drop": ["rope_parameters"], "set": {"rope_scaling": {"type": "linear", "factor": 8.0}},
                             "contradicts": True}
    yield "flat", {"set": {"rope_parameters": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5}},
                  "contradicts": True}
    for kind in rope:
        yield f"without {kind}", {"set": {"rope_parameters": {key: rope[key] for key in rope if key != kind}}}
        bare = {key: value for key, value in rope[kind].items() if key != "rope_theta"}
        yield f"{kind} without base", {"set": {"rope_parameters": rope | {kind: bare}}}


def cases_of(config):
    for key in config:
        if key not in IGNORED and key != "rope_parameters":
            yield f"without {key}", without(key)
    for key, value in config.items():
        if isinstance(value, dict) and key not in ("rope_parameters", "text_config", "vision_config", "per_layer_config",
                                                   "quantization_config"):
            for member in value:
                yield f"without {key}.{member}", {"set": {key: {k: v for k, v in value.items() if k != member}}}
    if "num_key_value_heads" in config and "head_dim" in config:
        yield "without derived sizes", without("num_key_value_heads", "head_dim", "layer_types")
    if "sliding_window" in config:
        yield "no window", {"set": {"sliding_window": None}}
        yield "no window or kinds", {"set": {"sliding_window": None}, "drop": ["layer_types"]}
        yield "window unused", {"set": {"use_sliding_window": False}, "drop": ["layer_types"]}
        yield "window used", {"set": {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 1},
                              "drop": ["layer_types"]}
        yield "pattern", {"set": {"sliding_window": 12, "sliding_window_pattern": 3}, "drop": ["layer_types"]}
    yield from rotary_cases(config)


def apply(config, case):
    changed = {key: value for key, value in config.items() if key not in case.get("drop", [])}
    return changed | case.get("set", {})


class Library:
    """The golden's tensors in the library's model of a changed configuration."""

    def __init__(self, golden, whole):
        import torch
        import transformers as tf
        from make_goldens import ALONE, WHOLE
        self.torch, self.golden = torch, golden
        self.kind = WHOLE[golden.name][0] if whole else ALONE.get(golden.name, tf.AutoModelForCausalLM)
        self.own = self.torch.frombuffer(bytearray((golden / "expected.f32").read_bytes()), dtype=torch.float32)
        self.own = self.own.reshape(N_TOKENS // 3, -1)  # of every third position

    def is_loadable(self, folder):
        """Whether all tensors are there in the shapes that the configuration asks for; without making any."""
        import transformers as tf
        config = tf.AutoConfig.from_pretrained(folder)
        text = config.get_text_config()
        return text.hidden_size * getattr(text, "num_hidden_layers", 1) <= 1 << 17 and text.vocab_size <= 1 << 19

    def run(self, config):
        torch = self.torch
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for path in self.golden.iterdir():
                if path.suffix == ".safetensors":
                    (folder / path.name).symlink_to(path)
            (folder / "config.json").write_text(json.dumps(config))
            if not self.is_loadable(folder):
                return None, False
            model, info = self.kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                    output_loading_info=True)
            if info["missing_keys"] or info.get("mismatched_keys") or info.get("error_msgs"):
                return None, False
            ids = [(37 * i * i + 11 * i + 5) % self.own.shape[1] for i in range(N_TOKENS)]
            with torch.no_grad():
                logits = model.eval()(torch.tensor([ids]), use_cache=False).logits[0].float()
            return logits, bool(info["unexpected_keys"])


def expectation(library, config):
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            logits, leaves = library.run(config)
        except Exception:  # whatever the library says: it refuses
            return {"expect": "refused"}
    if logits is None or not bool(library.torch.isfinite(logits).all()):
        return {"expect": "refused"}
    more = {"leaves": True} if leaves else {}
    if float((logits[2::3] - library.own).abs().max()) <= 2e-5 * float(library.own.abs().max()):
        return {"expect": "same"} | more
    return {"expect": [[float(f"{value:.6g}") for value in logits[at, ::STEP].tolist()] for at in POSITIONS]} | more


def make(goldens, name):
    import logging
    import torch
    import transformers as tf
    torch.set_num_threads(1)
    tf.logging.set_verbosity(logging.CRITICAL)
    tf.logging.disable_progress_bar()
    golden = goldens / name
    config = json.loads((golden / "config.json").read_text())
    inner = config.get("text_config")
    library = Library(golden, inner is not None)
    cases = []
    for title, case in cases_of(inner or config):
        case |= {"contradicts": True} if (name, title) in CONTRADICTIONS else {}
        changed = apply(inner or config, case)
        case = {"name": title} | case | expectation(library, config | {"text_config": changed} if inner else changed)
        cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "config_cases" / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    counts = {kind: sum(case["expect"] == kind for case in cases) for kind in ("same", "refused")}
    return f"{name}: {len(cases)} cases, {counts['same']} as the golden, {counts['refused']} refused"


def names(goldens):
    configs = {path.name: json.loads((path / "config.json").read_text()) for path in sorted(goldens.iterdir())}
    return [name for name, config in configs.items()
            if config["model_type"] not in WITHOUT_CLASS and "quantization_config" not in config]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--goldens", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    goldens = options.goldens.resolve()
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for line in pool.imap_unordered(functools.partial(make, goldens), options.only or names(goldens)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
