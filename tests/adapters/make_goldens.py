#!/usr/bin/env python3
"""Makes the goldens of adapters: random ones of PEFT for the tiny models of tests/families, and what the models say with
them.

    python3 make_goldens.py --bases FOLDER [--converter FOLDER] [--only NAME ...]

Needs torch, transformers and peft. The first FOLDER holds the goldens of families as a build makes them whole
(build/tests/goldens), the second is a checkout of llama.cpp. Each case gets goldens/NAME/: the adapter as PEFT
saves it (f32); base.txt: its model among tests/families/goldens; expected.f32: logits [T, V], little-endian f32, of
prompt() with eager attention in f32; adapter.gguf where llama.cpp converts it. goldens/both.f32: of llama_all by 0.5
and llama_patterns together.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

import peft
import torch
import transformers as tf

HERE = pathlib.Path(__file__).resolve().parent
GOLDENS = HERE / "goldens"
N_TOKENS = 16
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
GATED = ["gate_up_proj", "down_proj"]

# name: base, settings, whether llama.cpp converts it
CASES = {
    "llama_all": ("llama", dict(r=4, lora_alpha=12, target_modules=LINEAR + ["lm_head"]), True),
    "llama_patterns": ("llama", dict(r=3, lora_alpha=6, use_rslora=True, target_modules=r".*\.(q|k|down)_proj",
                                     rank_pattern={"layers.0.self_attn.q_proj": 7},
                                     alpha_pattern={r"layers\.\d+\.self_attn\.k_proj": 20}), False),
    "llama_dora": ("llama", dict(r=4, lora_alpha=8, use_dora=True, target_modules=LINEAR), False),
    "llama_saved": ("llama", dict(r=2, lora_alpha=4, target_modules=["q_proj"],
                                  modules_to_save=["embed_tokens", "lm_head"]), False),
    "llama_embedding": ("llama", dict(r=4, lora_alpha=4, target_modules=["embed_tokens", "lm_head"]), False),
    "qwen2_dora": ("qwen2", dict(r=4, lora_alpha=4, use_dora=True, target_modules=LINEAR), False),
    "qwen3": ("qwen3", dict(r=8, lora_alpha=8, target_modules=LINEAR), True),
    "gemma3": ("gemma3", dict(r=4, lora_alpha=4, target_modules=LINEAR + ["embed_tokens"]), False),
    "gpt2": ("gpt2", dict(r=4, lora_alpha=8, fan_in_fan_out=True, target_modules=["c_attn", "c_proj", "c_fc"]), False),
    "phi3": ("phi3", dict(r=4, lora_alpha=8, target_modules=["qkv_proj", "o_proj", "gate_up_proj", "down_proj"]), False),
    "gpt_neox": ("gpt_neox", dict(r=4, lora_alpha=8, target_modules=["query_key_value", "dense_4h_to_h"]), False),
    "mixtral": ("mixtral", dict(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"], target_parameters=GATED), False),
    "qwen3moe": ("qwen3moe", dict(r=3, lora_alpha=4, target_modules=["o_proj"], target_parameters=["experts.down_proj"]),
                 False),
    "gpt_oss": ("gpt_oss", dict(r=2, lora_alpha=4, target_modules=["q_proj", "o_proj"], target_parameters=GATED), False),
    "qwen3_next": ("qwen3_next", dict(r=4, lora_alpha=8, target_modules=["in_proj_qkvz", "in_proj_ba", "out_proj",
                                                                        "q_proj", "o_proj"]), False),
    "deepseek_v3": ("deepseek_v3", dict(r=4, lora_alpha=8, target_modules=["q_a_proj", "q_b_proj", "kv_a_proj_with_mqa",
                                                                          "o_proj"]), False),
    "nemotron_h": ("nemotron_h", dict(r=4, lora_alpha=8, target_modules=["in_proj", "q_proj", "up_proj"]), False),
}

# Of those where an expert would be chosen by so little that what bf16 rounds decides.
SEEDS = {"qwen3moe": 1, "qwen3_next": 1}


def base_model(folder):
    return tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def logits_of(model):
    vocabulary = model.config.vocab_size
    ids = [(37 * i * i + 11 * i + 5) % vocabulary for i in range(N_TOKENS)]
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().numpy()


def adapted(name, bases):
    base, settings, _ = CASES[name]
    torch.manual_seed(SEEDS.get(name, sum(map(ord, name))))
    config = peft.LoraConfig(task_type="CAUSAL_LM", init_lora_weights=False, **settings)
    model = peft.get_peft_model(base_model(bases / base), config)
    for key, weight in model.named_parameters():
        if "lora_magnitude" in key:
            weight.data *= 1.0 + 0.2 * torch.randn(weight.shape)
        elif "lora_" in key:
            weight.data = 0.1 * torch.randn(weight.shape)
        elif "modules_to_save" in key:
            weight.data = weight.data + 0.3 * weight.data.std() * torch.randn(weight.shape)
    return model.eval()


def make(name, bases, converter):
    folder = GOLDENS / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    base, _, converts = CASES[name]
    model = adapted(name, bases)
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = folder / "adapter_config.json"
    config.write_text(config.read_text().replace(str(bases / base), base))
    (folder / "base.txt").write_text(base + "\n")
    before = logits_of(base_model(bases / base))
    after = logits_of(model)
    (folder / "expected.f32").write_bytes(after.tobytes())
    print(f"{name:16} moves logits by {abs(after - before).max():.3f} of {abs(before).max():.3f}")
    if not (converts and converter):
        return
    subprocess.run([sys.executable, converter / "convert_lora_to_gguf.py", "--base", bases / base, "--outtype", "f32",
                    "--outfile", folder / "adapter.gguf", folder], check=True, capture_output=True)


def make_both(bases):
    model = peft.PeftModel.from_pretrained(base_model(bases / "llama"), GOLDENS / "llama_all", adapter_name="llama_all")
    model.load_adapter(GOLDENS / "llama_patterns", adapter_name="llama_patterns")
    model.base_model.set_adapter(["llama_all", "llama_patterns"])
    for module in model.modules():
        if isinstance(module, peft.tuners.lora.LoraLayer) and "llama_all" in module.scaling:
            module.scaling["llama_all"] *= 0.5
    (GOLDENS / "both.f32").write_bytes(logits_of(model.eval()).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bases", type=pathlib.Path, required=True)
    parser.add_argument("--converter", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=CASES)
    arguments = parser.parse_args()
    bases = arguments.bases.resolve()
    for name in arguments.only or CASES:
        make(name, bases, arguments.converter)
    make_both(bases)


if __name__ == "__main__":
    main()
