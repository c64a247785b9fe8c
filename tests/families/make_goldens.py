#!/usr/bin/env python3
"""Makes the family goldens: a tiny random model of each family, its f32 logits, and a GGUF of the same weights.

    python3 make_goldens.py --converter FOLDER [--only NAME ...]

FOLDER is a checkout of llama.cpp (convert_hf_to_gguf.py, conversion/, gguf-py/). Needs torch, transformers and
tokenizers. Each family gets goldens/NAME/: the folder as the `transformers` library saves it (bf16), expected.f32
(logits [T, V], little-endian f32, of prompt() through the library's eager attention in f32), and model.gguf where
llama.cpp's converter knows the family. The vocabulary is a small byte-level BPE shared by all, so the converter's
choice of tokenizer is overridden; what it does to tensors and hyperparameters is its own.
"""

import argparse
import json
import pathlib
import shutil
import sys

import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers as tf

HERE = pathlib.Path(__file__).resolve().parent
VOCAB = 288
N_TOKENS = 48  # longer than WINDOW and than the first context of scaled rotary
WINDOW = 12

BASE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=False, bos_token_id=0,
            eos_token_id=0, pad_token_id=0)


OLD = dict(vocab_size=VOCAB, n_positions=128, n_ctx=128, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
HYBRID = dict(BASE, num_hidden_layers=4, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
              linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4)
FALCON = dict(vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_hidden_size=256,
              max_position_embeddings=2048, alibi=False, bias=False, bos_token_id=0, eos_token_id=0)


def rope(theta=10000.0, **more):
    return {"rope_type": "default", "rope_theta": theta, **more}


def llama3_rope():
    return dict(rope_type="llama3", rope_theta=500000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=16)


def phi3_rope():
    return dict(rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=32, factor=8.0,
                partial_rotary_factor=1.0,
                short_factor=[1.0 + 0.02 * i for i in range(8)], long_factor=[1.0 + 0.3 * i for i in range(8)])


def yarn_rope():
    return dict(rope_type="yarn", rope_theta=150000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False,
                original_max_position_embeddings=16)


def gemma_layers(n, every):
    return ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(n)]


MODELS = {
    "llama": (tf.LlamaConfig, dict(BASE, rope_parameters=llama3_rope())),
    "mistral": (tf.MistralConfig, dict(BASE, sliding_window=WINDOW, head_dim=16, rope_parameters=rope())),
    "mixtral": (tf.MixtralConfig, dict(BASE, intermediate_size=32, num_local_experts=4, num_experts_per_tok=2,
                                       sliding_window=None, head_dim=16, rope_parameters=rope(1e6))),
    "qwen2": (tf.Qwen2Config, dict(BASE, tie_word_embeddings=True, rope_parameters=rope(1e6))),
    "qwen3": (tf.Qwen3Config, dict(BASE, head_dim=32, tie_word_embeddings=True, rope_parameters=rope(1e6))),
    "qwen3moe": (tf.Qwen3MoeConfig, dict(BASE, head_dim=32, num_experts=6, num_experts_per_tok=2, norm_topk_prob=True,
                                         moe_intermediate_size=32, decoder_sparse_step=1, mlp_only_layers=[],
                                         rope_parameters=rope(1e6))),
    "gemma2": (tf.Gemma2Config, dict(BASE, head_dim=32, tie_word_embeddings=True, sliding_window=WINDOW,
                                     query_pre_attn_scalar=32, attn_logit_softcapping=5.0,
                                     final_logit_softcapping=10.0, num_hidden_layers=2, rope_parameters=rope())),
    "gemma3": (tf.Gemma3TextConfig, dict(BASE, head_dim=16, intermediate_size=48, tie_word_embeddings=True,
                                         sliding_window=WINDOW, query_pre_attn_scalar=16, num_hidden_layers=6,
                                         num_attention_heads=2, num_key_value_heads=1,
                                         layer_types=gemma_layers(6, 6),
                                         rope_parameters={"sliding_attention": rope(1e4),
                                                          "full_attention": dict(rope_type="linear", rope_theta=1e6,
                                                                                 factor=4.0)})),
    "phi3": (tf.Phi3Config, dict(BASE, sliding_window=WINDOW, rope_parameters=phi3_rope(),
                                 original_max_position_embeddings=32)),
    "granite": (tf.GraniteConfig, dict(BASE, embedding_multiplier=12.0, attention_multiplier=0.2, logits_scaling=1.5,
                                       residual_multiplier=0.22, rope_parameters=rope(5e6))),
    "gpt2": (tf.GPT2Config, dict(vocab_size=VOCAB, n_positions=128, n_ctx=128, n_embd=64, n_layer=2, n_head=4,
                                 bos_token_id=0, eos_token_id=0)),
    "olmo2": (tf.Olmo2Config, dict(BASE, rope_parameters=rope(5e5))),
    "smollm3": (tf.SmolLM3Config, dict(BASE, num_hidden_layers=4, intermediate_size=64, no_rope_layer_interval=4,
                                       use_sliding_window=False, tie_word_embeddings=True,
                                       rope_parameters=rope(5e6))),
    "bloom": (tf.BloomConfig, dict(vocab_size=VOCAB, hidden_size=64, n_layer=2, n_head=4, seq_length=128,
                                   bos_token_id=0, eos_token_id=0, pad_token_id=0)),
    "xglm": (tf.XGLMConfig, dict(vocab_size=VOCAB, d_model=64, ffn_dim=128, num_layers=2, attention_heads=4,
                                 max_position_embeddings=128, activation_function="gelu", scale_embedding=True,
                                 bos_token_id=0, eos_token_id=2, pad_token_id=1)),
    "gpt_oss": (tf.GptOssConfig, dict(BASE, head_dim=32, intermediate_size=64, num_local_experts=8, num_experts_per_tok=4,
                                      sliding_window=WINDOW, layer_types=["sliding_attention", "full_attention"],
                                      rope_parameters=yarn_rope())),
    "starcoder2": (tf.Starcoder2Config, dict(BASE, use_bias=True, sliding_window=None, tie_word_embeddings=True,
                                             rope_parameters=rope(1e5))),
    "gpt_neox": (tf.GPTNeoXConfig, dict({key: BASE[key] for key in BASE if key != "num_key_value_heads"},
                                        use_parallel_residual=True,
                                        rope_parameters=rope(partial_rotary_factor=0.25))),
    "gptj": (tf.GPTJConfig, dict(OLD, rotary_dim=8, tie_word_embeddings=False)),
    "phi": (tf.PhiConfig, dict(BASE, num_key_value_heads=4, intermediate_size=256,
                             rope_parameters=rope(partial_rotary_factor=0.5))),
    "stablelm": (tf.StableLmConfig, dict(BASE, use_qkv_bias=True, rope_parameters=rope(partial_rotary_factor=0.25))),
    "falcon": (tf.FalconConfig, dict(FALCON, multi_query=True, num_kv_heads=1, parallel_attn=True, new_decoder_architecture=False)),
    "falcon40": (tf.FalconConfig, dict(FALCON, num_kv_heads=2, new_decoder_architecture=True)),
    "cohere": (tf.CohereConfig, dict(BASE, tie_word_embeddings=True, logit_scale=0.25, rope_parameters=rope(8e6))),
    "cohere2": (tf.Cohere2Config, dict(BASE, tie_word_embeddings=True, logit_scale=0.25, num_hidden_layers=4,
                                       intermediate_size=48, sliding_window=WINDOW, head_dim=16,
                                       layer_types=gemma_layers(4, 4), rope_parameters=rope(5e4))),
    "olmo": (tf.OlmoConfig, dict(BASE, num_key_value_heads=4, rope_parameters=rope())),
    "olmo3": (tf.Olmo3Config, dict(BASE, num_hidden_layers=4, intermediate_size=48, sliding_window=WINDOW,
                                   layer_types=gemma_layers(4, 4),
                                   rope_parameters={"sliding_attention": rope(5e5),
                                                    "full_attention": dict(yarn_rope(), rope_theta=5e5,
                                                                           truncate=True)})),
    "olmoe": (tf.OlmoeConfig, dict(BASE, intermediate_size=32, num_experts=4, num_experts_per_tok=2,
                                   norm_topk_prob=False, rope_parameters=rope())),
    "mpt": (tf.MptConfig, dict(vocab_size=VOCAB, d_model=64, n_heads=4, n_layers=2, expansion_ratio=4, max_seq_len=128,
                               bos_token_id=0, eos_token_id=0, pad_token_id=0)),
    "opt": (tf.OPTConfig, dict(vocab_size=VOCAB, hidden_size=64, ffn_dim=96, num_hidden_layers=2, num_attention_heads=4,
                               max_position_embeddings=128, word_embed_proj_dim=64, bos_token_id=0, eos_token_id=0,
                               pad_token_id=1)),
    "gpt_bigcode": (tf.GPTBigCodeConfig, dict(OLD, multi_query=True)),
    "gemma": (tf.GemmaConfig, dict(BASE, head_dim=32, tie_word_embeddings=True, rope_parameters=rope())),
    "glm4": (tf.Glm4Config, dict(BASE, head_dim=16, attention_bias=True,
                                 rope_parameters=rope(partial_rotary_factor=0.5))),
    "seed_oss": (tf.SeedOssConfig, dict(BASE, head_dim=32, attention_bias=True, attention_out_bias=False,
                                        rope_parameters=rope(1e7))),
    "nemotron": (tf.NemotronConfig, dict(BASE, head_dim=16, rope_parameters=rope(partial_rotary_factor=0.5))),
    "arcee": (tf.ArceeConfig, dict(BASE, rope_parameters=rope())),
    "ernie4_5": (tf.Ernie4_5Config, dict(BASE, head_dim=16, tie_word_embeddings=True, rope_parameters=rope(5e5))),
    "exaone4": (tf.Exaone4Config, dict(BASE, head_dim=16, num_hidden_layers=4, intermediate_size=48, sliding_window=WINDOW,
                                       layer_types=gemma_layers(4, 4), rope_parameters=rope(1e6))),
    "qwen3_5_text": (tf.Qwen3_5TextConfig, dict(HYBRID, rope_parameters=rope(1e7, partial_rotary_factor=0.25))),
    "qwen3_5_moe_text": (tf.Qwen3_5MoeTextConfig, dict(
        {key: HYBRID[key] for key in HYBRID if key != "intermediate_size"}, num_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=32, shared_expert_intermediate_size=32,
        rope_parameters=rope(1e7, partial_rotary_factor=0.25))),
    "qwen3_next": (tf.Qwen3NextConfig, dict(HYBRID, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                                            shared_expert_intermediate_size=32, norm_topk_prob=True,
                                            rope_parameters=rope(1e7, partial_rotary_factor=0.25))),
    "glm": (tf.GlmConfig, dict(BASE, head_dim=16, attention_bias=True, rms_norm_eps=1e-5,
                               rope_parameters=rope(partial_rotary_factor=0.5))),
}
NOT_IN_LLAMA_CPP = {"xglm", "opt", "gptj"}
# What published folders say and the library no longer writes.
PUBLISHED = {"gpt_neox": {"rotary_pct": 0.25}, "cohere2": {"rotary_pct": 1.0},
             "mpt": {"architectures": ["MPTForCausalLM"]}}


def prompt():
    return [(37 * i * i + 11 * i + 5) % VOCAB for i in range(N_TOKENS)]


def train_tokenizer():
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=["<|end|>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    text = ["the river and the wind told the old tree another tale in the night; she heard and then she slept"] * 4
    tok.train_from_iterator(text, trainer)
    return tok


def is_table(name):
    return any(part in name for part in ("embed", "wte", "wpe"))


# Recurrent layers and routers amplify what bf16 rounds: less noise, so that the contract of `cpu` measures Candor.
SPREAD = {"qwen3_5_text": 1.0, "qwen3_5_moe_text": 1.0, "qwen3_next": 0.6}


def randomise(model, spread):
    generator = torch.Generator().manual_seed(20)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        with torch.no_grad():
            if weight.dim() == 1 and name.endswith("weight"):
                weight.add_(0.2 * noise)  # a norm's gain: around what the library starts from
            elif weight.dim() == 1:
                weight.copy_(0.2 * noise)
            else:
                weight.copy_(noise * (spread / weight.shape[-1] ** 0.5 if not is_table(name) else 0.25))


def pack_mxfp4(weight):
    """weight: [..., K] -> codes [..., K/32, 16], exponents [..., K/32] (OCP Microscaling Formats v1.0)."""
    values = torch.tensor([0.0, 0.5, 1, 1.5, 2, 3, 4, 6])
    groups = weight.float().reshape(*weight.shape[:-1], -1, 32)
    exponents = torch.floor(torch.log2(groups.abs().amax(-1))) - 2
    scaled = groups / torch.exp2(exponents)[..., None]
    codes = (scaled.abs()[..., None] - values).abs().argmin(-1) + 8 * (scaled < 0)
    return (codes[..., ::2] + 16 * codes[..., 1::2]).to(torch.uint8), (exponents + 127).to(torch.uint8)


def pack_experts(folder):
    """gpt-oss as it is published: experts in MXFP4, outputs before inputs."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    for name in [name for name in tensors if name.endswith(("gate_up_proj", "down_proj"))]:
        codes, exponents = pack_mxfp4(4 * tensors.pop(name).transpose(-1, -2))
        tensors[name + "_blocks"], tensors[name + "_scales"] = codes.contiguous(), exponents.contiguous()
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": [
        "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def save_folder(name, folder):
    config_class, settings = MODELS[name]
    config = config_class(**settings)
    config.architectures = None
    model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    randomise(model, SPREAD.get(name, 1.5))
    model.to(torch.bfloat16).save_pretrained(folder)
    if name == "gpt_oss":
        pack_experts(folder)
    if name in PUBLISHED:
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | PUBLISHED[name], indent=2) + "\n")
    tok = tf.PreTrainedTokenizerFast(tokenizer_object=train_tokenizer(), bos_token="<|end|>", eos_token="<|end|>")
    tok.save_pretrained(folder)


def expected_logits(folder):
    model = tf.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        return model(torch.tensor([prompt()]), use_cache=False).logits[0].float().numpy()


def convert(folder, target):
    import conversion.base as base
    from conversion import get_model_class
    import gguf

    def read_vocabulary(self):
        tokens = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
        assert len(tokens) == VOCAB
        types = [gguf.TokenType.CONTROL if token == "<|end|>" else gguf.TokenType.NORMAL for token in tokens]
        return list(tokens), types, "gpt-2"

    base.TextModel.get_vocab_base = read_vocabulary
    config = base.ModelBase.load_hparams(folder, False)
    converter = get_model_class(config["architectures"][0])
    converter = type(converter.__name__, (converter,), {"set_vocab": base.TextModel._set_vocab_gpt2,
                                                              "model_arch": converter.model_arch,
                                                              "no_mtp": True})
    with torch.inference_mode():
        instance = converter(folder, gguf.LlamaFileType.MOSTLY_BF16, target, use_temp_file=False,
                             model_name="tiny")
        instance.hparams |= PUBLISHED.get(folder.name, {})
        instance.write()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--converter", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    options = parser.parse_args()
    sys.path[:0] = [str(options.converter / "gguf-py"), str(options.converter)]
    for name in options.only:
        folder = HERE / "goldens" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        save_folder(name, folder)
        logits = expected_logits(folder)
        logits.astype("<f4").tofile(folder / "expected.f32")
        if name not in NOT_IN_LLAMA_CPP:
            convert(folder, folder / "model.gguf")
        for path in folder.iterdir():
            path.chmod(0o644)
        size = sum(path.stat().st_size for path in folder.iterdir()) // 1024
        print(f"{name}: largest logit {np.abs(logits).max():.3f}, {size} KiB")


if __name__ == "__main__":
    main()
