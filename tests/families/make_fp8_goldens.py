#!/usr/bin/env python3
"""Makes goldens/*_fp8: small random models whose matrices are codes E4M3 with scales, as they are published, and their
logits.

    python3 make_fp8_goldens.py

Needs torch and transformers. qwen3_fp8 has a scale for each block of 128 x 128 (quant_method "fp8"), deepseek_fp8 too;
ministral3_fp8 one in all, and one of activations (static), in a folder that has images too; llama_fp8 one for each output (compressed-tensors); some of
their rows are no whole blocks of 128. Heads, embeddings and what scores experts stay BF16. expected.f32: logits [T / 3, V],
little-endian f32, of the prompt of make_goldens.py through the library's eager attention in f32, with the matrices code *
scale in f32 and nothing rounded besides.
"""

import json
import pathlib
import tempfile

import safetensors.torch
import torch
import transformers as tf

from golden_store import KEPT_ROWS

HERE = pathlib.Path(__file__).resolve().parent
BLOCK = 128
LARGEST = 448.0
N_TOKENS = 48

BASE = dict(hidden_size=128, intermediate_size=320, num_hidden_layers=2)
LATENT = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=2, kv_lora_rank=128, q_lora_rank=128,
              moe_intermediate_size=128, n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1)
FP8 = dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[BLOCK, BLOCK],
           modules_to_not_convert=["lm_head"])
STATIC = dict(quant_method="fp8", activation_scheme="static", weight_block_size=None, dequantize=False,
              modules_to_not_convert=["lm_head"])


def compressed():
    scheme = dict(num_bits=8, type="float", symmetric=True, group_size=None, block_structure=None, actorder=None)
    group = {"weights": dict(scheme, strategy="channel", dynamic=False, observer="minmax"),
             "input_activations": dict(scheme, strategy="token", dynamic=True, observer=None),
             "output_activations": None, "targets": ["Linear"]}
    return {"config_groups": {"group_0": group}, "format": "float-quantized", "ignore": ["lm_head"],
            "kv_cache_scheme": None, "quant_method": "compressed-tensors", "quantization_status": "compressed"}


def scales_of(weight, rows, columns):
    n_out, n_in = weight.shape
    grid = -(-n_out // rows), -(-n_in // columns)
    scales = torch.zeros(grid)
    for i in range(grid[0]):
        for j in range(grid[1]):
            part = weight[i * rows:(i + 1) * rows, j * columns:(j + 1) * columns]
            scales[i, j] = part.abs().amax() / LARGEST
    return scales


def quantized(weight, rows, columns, dtype):
    """Codes, scales of blocks of rows x columns, and the numbers that both mean."""
    scales = scales_of(weight, rows, columns).to(dtype)
    wide = scales.float().repeat_interleave(rows, 0)[:weight.shape[0]]
    wide = wide.repeat_interleave(columns, 1)[:, :weight.shape[1]]
    codes = (weight / wide).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)
    return codes, scales, codes.float() * wide


def by_block(name, weight):
    codes, scales, numbers = quantized(weight, BLOCK, BLOCK, torch.float32)
    return {name: codes, name + "_scale_inv": scales}, numbers


def by_tensor(name, weight):
    codes, scales, numbers = quantized(weight, *weight.shape, torch.bfloat16)
    activation = torch.tensor(0.02, dtype=torch.bfloat16)
    stem = name.removesuffix("weight")
    return {name: codes, name + "_scale_inv": scales[0, 0].clone(), stem + "activation_scale": activation}, numbers


def by_output(name, weight):
    codes, scales, numbers = quantized(weight, 1, weight.shape[1], torch.bfloat16)
    return {name: codes, name + "_scale": scales}, numbers


def random_numbers(parameter):
    noise = torch.randn(parameter.shape)
    if parameter.dim() < 2:
        return parameter + 0.1 * noise
    rows = torch.linspace(0.7, 1.9, parameter.shape[-2])[:, None]  # so that no two blocks have the same scale
    columns = torch.linspace(1.7, 0.8, parameter.shape[-1])
    return parameter.shape[-1] ** -0.5 * rows * columns * noise


def random_tensors(folder, config):
    """As the library saves such a model, with other numbers."""
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(5)
    model = tf.AutoModelForCausalLM.from_config(tf.AutoConfig.from_pretrained(folder)).to(torch.bfloat16)
    for parameter in model.parameters():
        parameter.data = random_numbers(parameter.data).bfloat16()
    model.save_pretrained(folder)
    return safetensors.torch.load_file(folder / "model.safetensors")


def logits_of(folder, tensors, n_vocab):
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model = tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = [(37 * i * i + 11 * i + 5) % n_vocab for i in range(N_TOKENS)]
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0][KEPT_ROWS].float()


def make(name, source, changes, quantization, encode):
    source, target = HERE / "goldens" / source, HERE / "goldens" / name
    target.mkdir(exist_ok=True)
    config = json.loads((source / "config.json").read_text()) | changes
    stored, meant = {}, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for key, tensor in random_tensors(folder, config).items():
            is_coded = "_proj" in key and key.endswith(".weight")
            parts, numbers = encode(key, tensor.float()) if is_coded else ({key: tensor}, tensor.float())
            stored.update(parts)
            meant[key] = numbers.contiguous()
        logits = logits_of(folder, meant, config["vocab_size"])
    if config["model_type"] == "ministral3":
        config = {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "text_config": config}
        stored = {"language_model." + key: tensor for key, tensor in stored.items()}
        stored["vision_tower.patch_conv.weight"] = torch.zeros(4, 3, 2, 2, dtype=torch.bfloat16)
    config["quantization_config"] = quantization
    (target / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    safetensors.torch.save_file(stored, target / "model.safetensors")
    (target / "model.safetensors").chmod(0o644)
    (target / "expected.f32").write_bytes(logits.numpy().tobytes())


if __name__ == "__main__":
    make("qwen3_fp8", "qwen3", dict(BASE, intermediate_size=384), FP8, by_block)
    make("ministral3_fp8", "ministral3", dict(BASE, head_dim=32), STATIC, by_tensor)
    make("llama_fp8", "llama", dict(BASE, head_dim=32), compressed(), by_output)
    make("deepseek_fp8", "deepseek_v3", LATENT, FP8, by_block)
