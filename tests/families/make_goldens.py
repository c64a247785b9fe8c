#!/usr/bin/env python3
"""Makes the family goldens: a tiny random model of each family, its f32 logits, and a GGUF of the same weights.

    python3 make_goldens.py --converter FOLDER --candor PROGRAM [--only NAME ...]

FOLDER is a checkout of llama.cpp (convert_hf_to_gguf.py, conversion/, gguf-py/). Needs torch, transformers and
tokenizers. Each family gets goldens/NAME/, as golden_store.py keeps it: the folder as the `transformers` library saves it
(bf16, other numbers), expected.f32 (logits [T / 3, V], little-endian f32, of prompt() through the library's eager
attention in f32), and what llama.cpp's converter makes of it, where it knows the family. The vocabulary is a small
byte-level BPE shared by all, so the converter's choice of tokenizer is overridden; what it does to tensors and
hyperparameters is its own.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np
import safetensors.torch
import tokenizers
import torch
import transformers as tf

from golden_store import KEPT_WHOLE, replace_weights, store

VOCAB = 288
N_TOKENS = 48  # longer than WINDOW and than the first context of scaled rotary
WINDOW = 12

BASE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=False, bos_token_id=0,
            eos_token_id=0, pad_token_id=0)


OLD = dict(vocab_size=VOCAB, n_positions=128, n_ctx=128, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
HYBRID = dict(BASE, num_hidden_layers=4, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
              linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4)
LATENT = dict(BASE, num_hidden_layers=3, num_key_value_heads=4, kv_lora_rank=32, qk_nope_head_dim=16,
              qk_rope_head_dim=8, v_head_dim=16, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
              moe_intermediate_size=32)
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


def mla_rope(mscale):
    return dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0, mscale=mscale,
                mscale_all_dim=mscale, original_max_position_embeddings=16)


def gemma_layers(n, every):
    return ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(n)]


def gemma4_rope():
    return {"sliding_attention": rope(1e4),
            "full_attention": dict(rope_type="proportional", rope_theta=1e6, partial_rotary_factor=0.25)}


GEMMA4 = dict(BASE, head_dim=16, global_head_dim=32, tie_word_embeddings=True, sliding_window=WINDOW,
              final_logit_softcapping=30.0, rope_parameters=gemma4_rope())
GLM_MOE = dict(BASE, num_hidden_layers=3, head_dim=16, first_k_dense_replace=1, n_routed_experts=8,
               num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=1, routed_scaling_factor=2.5,
               rope_parameters=rope(1e6, partial_rotary_factor=0.5))
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
    "deepseek_v2": (tf.DeepseekV2Config, dict(LATENT, q_lora_rank=None, n_group=4, topk_group=2,
                                              topk_method="group_limited_greedy", norm_topk_prob=False,
                                              routed_scaling_factor=4.0, n_shared_experts=2,
                                              rope_parameters=mla_rope(0.707))),
    "deepseek_v3": (tf.DeepseekV3Config, dict(LATENT, q_lora_rank=48, n_group=4, topk_group=2, norm_topk_prob=True,
                                              routed_scaling_factor=2.5, n_shared_experts=1,
                                              rope_parameters=mla_rope(1.0))),
    "kimi_k2": (tf.DeepseekV3Config, dict(LATENT, q_lora_rank=48, n_group=1, topk_group=1, norm_topk_prob=True,
                                          routed_scaling_factor=2.827, n_shared_experts=1,
                                          rope_parameters=mla_rope(1.0))),
    "qwen2_moe": (tf.Qwen2MoeConfig, dict(BASE, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=32,
                                          shared_expert_intermediate_size=64, rope_parameters=rope(1e6))),
    "glm4_moe": (tf.Glm4MoeConfig, dict(GLM_MOE, attention_bias=True, use_qk_norm=True)),
    "glm4_moe_air": (tf.Glm4MoeConfig, dict(GLM_MOE, num_mtp_layers=0)),
    "minimax_m2": (tf.MiniMaxM2Config, dict(BASE, intermediate_size=32, head_dim=32, num_local_experts=6,
                                            num_experts_per_tok=2, rope_parameters=rope(5e6, partial_rotary_factor=0.5))),
    "ministral3": (tf.Ministral3Config, dict(BASE, head_dim=16, rope_parameters=dict(
        mla_rope(1.0), llama_4_scaling_beta=0.5))),
    "internlm2": (tf.LlamaConfig, dict(BASE, rope_parameters=dict(rope_type="dynamic", rope_theta=1e6, factor=2.0))),
    "internlm3": (tf.InternLM3Config, dict(BASE, head_dim=32,
                                           rope_parameters=dict(rope_type="dynamic", rope_theta=5e7, factor=6.0))),
    "baichuan": (tf.LlamaConfig, dict(BASE, num_key_value_heads=4, rope_parameters=rope())),
    "minicpm": (tf.GraniteConfig, dict(BASE, embedding_multiplier=12.0, attention_multiplier=0.25, logits_scaling=2.0,
                                       residual_multiplier=1.4 / 2 ** 0.5, rope_parameters=rope())),
    "ministral": (tf.MinistralConfig, dict(BASE, sliding_window=WINDOW, head_dim=16, num_hidden_layers=3,
                                           layer_types=["full_attention", "sliding_attention", "sliding_attention"],
                                           rope_parameters=rope(1e6))),
    "mimo": (tf.Qwen2Config, dict(BASE, rope_parameters=rope(6.4e5))),
    "glm4_moe_lite": (tf.Glm4MoeLiteConfig, dict({key: LATENT[key] for key in LATENT if key != "first_k_dense_replace"},
                                                 q_lora_rank=48, routed_scaling_factor=1.8, n_shared_experts=1,
                                                 mlp_layer_types=["dense", "sparse", "sparse"],
                                                 rope_parameters=rope(1e6))),
    "dots1": (tf.Dots1Config, dict(BASE, num_hidden_layers=3, head_dim=16, first_k_dense_replace=1, n_routed_experts=8,
                                   num_experts_per_tok=3, moe_intermediate_size=32, n_shared_experts=2,
                                   norm_topk_prob=True, routed_scaling_factor=2.5, rope_parameters=rope(1e6))),
    "gemma4_text": (tf.Gemma4TextConfig, dict(GEMMA4, num_hidden_layers=6, intermediate_size=48, num_kv_shared_layers=3,
                                              num_key_value_heads=1, hidden_size_per_layer_input=16,
                                              vocab_size_per_layer_input=VOCAB, use_double_wide_mlp=True,
                                              layer_types=gemma_layers(6, 3))),
    "gemma4_moe": (tf.Gemma4TextConfig, dict(GEMMA4, num_hidden_layers=3, intermediate_size=48, attention_k_eq_v=True,
                                             num_global_key_value_heads=1, hidden_size_per_layer_input=0,
                                             enable_moe_block=True, num_experts=6, top_k_experts=2,
                                             moe_intermediate_size=32, layer_types=gemma_layers(3, 3))),
    "llama4_text": (tf.Llama4TextConfig, dict(BASE, num_hidden_layers=4, intermediate_size=32, intermediate_size_mlp=96,
                                              head_dim=16, num_local_experts=4, num_experts_per_tok=1,
                                              interleave_moe_layer_step=2, attention_chunk_size=16, floor_scale=16,
                                              attn_scale=0.3, rope_parameters=rope(5e5))),
    "mistral4": (tf.Mistral4Config, dict(LATENT, first_k_dense_replace=0, num_hidden_layers=2, q_lora_rank=48, n_shared_experts=1, norm_topk_prob=True,
                                         rope_parameters=dict(mla_rope(1.0), llama_4_scaling_beta=0.5))),
    "ernie4_5_moe": (tf.Ernie4_5_MoeConfig, dict(BASE, num_hidden_layers=3, intermediate_size=128, tie_word_embeddings=True,
                                                 moe_num_experts=6, moe_k=2, moe_num_shared_experts=2,
                                                 moe_intermediate_size=32, moe_layer_start_index=1,
                                                 rope_parameters=rope(5e5))),
    "hunyuan_v1_dense": (tf.HunYuanDenseV1Config, dict(BASE, head_dim=32, tie_word_embeddings=True,
                                                       max_position_embeddings=32768,
                                                       rope_parameters=dict(rope_type="dynamic", rope_theta=1e4,
                                                                            alpha=1000.0, factor=1.0))),
    "hunyuan_v1_moe": (tf.HunYuanMoEV1Config, dict(BASE, head_dim=16, intermediate_size=32, num_experts=6, moe_topk=2,
                                                   tie_word_embeddings=True, rope_parameters=rope())),
    "granitemoe": (tf.GraniteMoeConfig, dict(BASE, intermediate_size=32, num_local_experts=6, num_experts_per_tok=2,
                                             embedding_multiplier=12.0, attention_multiplier=0.2, logits_scaling=1.5,
                                             residual_multiplier=0.22, tie_word_embeddings=True,
                                             rope_parameters=rope(1e4))),
    "granitemoeshared": (tf.GraniteMoeSharedConfig, dict(BASE, intermediate_size=32, num_local_experts=6,
                                                         num_experts_per_tok=2, shared_intermediate_size=48,
                                                         embedding_multiplier=12.0, attention_multiplier=0.2,
                                                         logits_scaling=1.5, residual_multiplier=0.22,
                                                         rope_parameters=rope(1e4))),
    "exaone_moe": (tf.ExaoneMoeConfig, dict(BASE, num_hidden_layers=4, head_dim=16, intermediate_size=48,
                                            sliding_window=WINDOW, layer_types=gemma_layers(4, 4), num_experts=8,
                                            num_experts_per_tok=3, moe_intermediate_size=32, num_shared_experts=1,
                                            first_k_dense_replace=1, rope_parameters=rope(1e6))),
    "glm": (tf.GlmConfig, dict(BASE, head_dim=16, attention_bias=True, rms_norm_eps=1e-5,
                               rope_parameters=rope(partial_rotary_factor=0.5))),
    "cwm": (tf.CwmConfig, dict(BASE, num_hidden_layers=5, intermediate_size=48, head_dim=16, sliding_window=WINDOW,
                               rope_parameters=llama3_rope())),
    "helium": (tf.HeliumConfig, dict(BASE, head_dim=16, rope_parameters=rope(1e5))),
    "vaultgemma": (tf.VaultGemmaConfig, dict(BASE, head_dim=32, tie_word_embeddings=True, sliding_window=WINDOW,
                                             query_pre_attn_scalar=32, attn_logit_softcapping=5.0,
                                             final_logit_softcapping=10.0, rope_parameters=rope())),
    "flex_olmo": (tf.FlexOlmoConfig, dict(BASE, intermediate_size=32, num_experts=4, num_experts_per_tok=2,
                                          rope_parameters=rope(5e5))),
    # The library zeroes the row of a padding token when it loads this one.
    "youtu": (tf.YoutuConfig, dict(BASE, num_key_value_heads=4, tie_word_embeddings=True, pad_token_id=None, q_lora_rank=48,
                                   kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16,
                                   rope_parameters=rope(1.6e6))),
    "persimmon": (tf.PersimmonConfig, dict({key: BASE[key] for key in BASE if key != "num_key_value_heads"},
                                           rope_parameters=rope(25000.0, partial_rotary_factor=0.5))),
    "gpt_neo": (tf.GPTNeoConfig, dict(vocab_size=VOCAB, max_position_embeddings=128, hidden_size=64, num_layers=2,
                                      num_heads=4, attention_types=[[["global", "local"], 1]], window_size=WINDOW,
                                      bos_token_id=0, eos_token_id=0)),
    "codegen": (tf.CodeGenConfig, dict(OLD, rotary_dim=8)),
    "afmoe": (tf.AfmoeConfig, dict(BASE, num_hidden_layers=4, intermediate_size=48, head_dim=16, num_dense_layers=1,
                                   num_experts=6, num_experts_per_tok=2, num_shared_experts=1, moe_intermediate_size=32,
                                   route_scale=1.5, mup_enabled=True, sliding_window=WINDOW, rope_parameters=rope())),
    "nanochat": (tf.NanoChatConfig, dict(BASE, rope_parameters=rope(), final_logit_softcapping=15.0)),
}

CONV_LAYERS = ["conv", "conv", "full_attention", "conv"]
LFM2 = dict(BASE, num_hidden_layers=4, conv_L_cache=3, layer_types=CONV_LAYERS, tie_word_embeddings=True,
            rope_parameters=rope(1e6))
MODELS |= {
    "lfm2": (tf.Lfm2Config, dict(LFM2, block_auto_adjust_ff_dim=True, block_multiple_of=32)),
    "lfm2_moe": (tf.Lfm2MoeConfig, dict(LFM2, num_dense_layers=1, num_experts=8, num_experts_per_tok=3,
                                        moe_intermediate_size=32)),
}
MAMBA = dict(mamba_n_heads=8, mamba_d_head=16, mamba_d_state=32, mamba_d_conv=4, mamba_expand=2, mamba_chunk_size=16)
STATE_LAYERS = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
GRANITE_4 = dict(BASE, **MAMBA, num_hidden_layers=4, layer_types=STATE_LAYERS, embedding_multiplier=12.0,
                 attention_multiplier=0.2, logits_scaling=1.5, residual_multiplier=0.22, shared_intermediate_size=48,
                 tie_word_embeddings=True)
FALCON_H1 = dict(BASE, **MAMBA | {"mamba_d_head": 12}, mamba_n_groups=2, mamba_d_ssm=96, head_dim=16,
                 mamba_norm_before_gate=False, rope_parameters=rope(1e11))
KIMI = dict({key: LATENT[key] for key in LATENT if key not in ("first_k_dense_replace", "n_routed_experts",
                                                                "num_experts_per_tok", "max_position_embeddings")},
            num_hidden_layers=4, q_lora_rank=None, num_experts=8, num_experts_per_token=3, num_shared_experts=1,
            num_expert_group=1, topk_group=1, moe_renormalize=True, routed_scaling_factor=2.446, linear_head_dim=32,
            linear_num_heads=4, linear_conv_kernel_dim=4, model_max_length=256,
            layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"],
            mlp_layer_types=["dense", "sparse", "sparse", "sparse"])
OLMO_HYBRID = dict(BASE, num_hidden_layers=4, layer_types=STATE_LAYERS, linear_num_key_heads=4, linear_num_value_heads=4,
                   linear_key_head_dim=24, linear_value_head_dim=48)
# Whose factors would be rounded with the weights: written in f32.
IN_F32 = {"falcon_h1"}
READ_RAW = {"nemotron_h", "nemotron_h_moe", "kimi_linear"}
MODELS |= {
    "granitemoehybrid": (tf.GraniteMoeHybridConfig, dict(GRANITE_4, mamba_n_groups=1, num_local_experts=6,
                                                         num_experts_per_tok=2, intermediate_size=32)),
    "granitemoehybrid_dense": (tf.GraniteMoeHybridConfig, dict(GRANITE_4, intermediate_size=48, mamba_n_groups=2,
                                                               num_local_experts=0, num_experts_per_tok=0)),
    "falcon_h1": (tf.FalconH1Config, dict(FALCON_H1, embedding_multiplier=5.656854249492381, lm_head_multiplier=1.3,
                                          mlp_multipliers=[0.88, 0.58], key_multiplier=0.39,
                                          attention_out_multiplier=0.9, attention_in_multiplier=1.1,
                                          ssm_multipliers=[0.35, 0.25, 0.36, 0.5, 0.37], ssm_in_multiplier=1.25,
                                          ssm_out_multiplier=0.23)),
    "falcon_h1_norm": (tf.FalconH1Config, dict(FALCON_H1, mamba_rms_norm=True, embedding_multiplier=4.0,
                                               key_multiplier=0.5, ssm_multipliers=[2.0, 0.5, 1.0, 0.25, 0.5])),
    "kimi_linear": (tf.KimiLinearConfig, KIMI),
    "olmo_hybrid": (tf.OlmoHybridConfig, dict(OLMO_HYBRID, rope_parameters=rope(None))),
    "olmo_hybrid_rotary": (tf.OlmoHybridConfig, dict(OLMO_HYBRID, linear_num_key_heads=2, linear_allow_neg_eigval=False,
                                                     rope_parameters=rope(5e5))),
    "bamba": (tf.BambaConfig, dict(BASE, num_hidden_layers=3, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=16,
                                   mamba_n_groups=1, mamba_d_state=32, mamba_chunk_size=16)),
    "nemotron_h": (tf.NemotronHConfig, dict(
        {key: BASE[key] for key in BASE if key != "num_hidden_layers"}, head_dim=16, mamba_num_heads=8, mamba_head_dim=16,
        ssm_state_size=32, n_groups=2, conv_kernel=4, expand=2, chunk_size=16,
        layers_block_type=["linear_attention", "mlp", "full_attention", "mlp", "linear_attention"])),
    "nemotron_h_moe": (tf.NemotronHConfig, dict(
        {key: BASE[key] for key in BASE if key != "num_hidden_layers"}, head_dim=16, mamba_num_heads=8, mamba_head_dim=16,
        ssm_state_size=32, n_groups=2, conv_kernel=4, expand=2, chunk_size=16, n_routed_experts=8, num_experts_per_tok=3,
        n_shared_experts=1, moe_intermediate_size=32, moe_shared_expert_intermediate_size=48, routed_scaling_factor=2.5,
        layers_block_type=["linear_attention", "moe", "full_attention", "moe", "linear_attention"])),
}
QWEN_VISION = dict(depth=1, hidden_size=32, intermediate_size=32, num_heads=2, out_hidden_size=64, patch_size=4,
                   num_position_embeddings=16, deepstack_visual_indexes=[])
# Models of more than text, whose text is that of another golden.
WHOLE = {
    "qwen3_5": (tf.Qwen3_5ForConditionalGeneration, tf.Qwen3_5Config, "qwen3_5_text", QWEN_VISION),
    "qwen3_5_moe": (tf.Qwen3_5MoeForConditionalGeneration, tf.Qwen3_5MoeConfig, "qwen3_5_moe_text", QWEN_VISION),
}
# Not among those that the library finds by their configuration.
ALONE = {"mistral4": tf.Mistral4ForCausalLM}
NOT_IN_LLAMA_CPP = {"xglm", "opt", "gptj", "mimo", "ministral", "bamba", "olmo_hybrid", "olmo_hybrid_rotary",
                    "cwm", "helium", "vaultgemma", "flex_olmo", "youtu", "persimmon", "gpt_neo", "codegen", "nanochat",
                    "afmoe"}
# The library does not know the names that these have for models of others.
KNOWN_AS = {"kimi_k2": tf.DeepseekV3ForCausalLM, "mimo": tf.Qwen2ForCausalLM,
            "internlm2": tf.LlamaForCausalLM, "baichuan": tf.LlamaForCausalLM, "minicpm": tf.GraniteForCausalLM}
# What published folders say and the library no longer writes.
NAMES_OF_GRANITE = {"layer_types": ["mamba", "mamba", "attention", "mamba"], "position_embedding_type": "nope"}
SIGMOID = {"scoring_func": "sigmoid", "topk_method": "noaux_tc"}
PUBLISHED = {"deepseek_v2": {"scoring_func": "softmax"}, "deepseek_v3": SIGMOID,
             "kimi_k2": SIGMOID | {"model_type": "kimi_k2", "num_nextn_predict_layers": 0},
             "internlm2": {"model_type": "internlm2", "architectures": ["InternLM2ForCausalLM"], "bias": False},
             "internlm3": {"architectures": ["InternLM3ForCausalLM"]},
             "baichuan": {"model_type": "baichuan", "architectures": ["BaichuanForCausalLM"]},
             "minicpm": {"model_type": "minicpm", "architectures": ["MiniCPMForCausalLM"], "scale_emb": 12,
                         "scale_depth": 1.4, "dim_model_base": 32},
             "mimo": {"model_type": "mimo", "num_nextn_predict_layers": 1},
             "glm4_moe_lite": {"topk_method": "noaux_tc", "first_k_dense_replace": 1, "scoring_func": "sigmoid"},
             "dots1": SIGMOID,
             "minimax_m2": {"scoring_func": "sigmoid", "rotary_dim": 16, "qk_norm_type": "per_layer",
                            "use_qk_norm": True, "use_routing_bias": True, "attn_type_list": [1, 1]},
             "exaone_moe": {"scoring_func": "sigmoid", "num_nextn_predict_layers": 0},
             "hunyuan_v1_moe": {"moe_topk": [2, 2], "moe_intermediate_size": [32, 32], "num_shared_expert": [1, 1]},
             "gpt_neox": {"rotary_pct": 0.25}, "cohere2": {"rotary_pct": 1.0},
             "mpt": {"architectures": ["MPTForCausalLM"]},
             "kimi_linear": {"linear_attn_config": {"full_attn_layers": [3], "kda_layers": [1, 2, 4], "head_dim": 32,
                                                    "num_heads": 4, "short_conv_kernel_size": 4},
                             "first_k_dense_replace": 1, "moe_layer_freq": 1, "mla_use_nope": True,
                             "moe_router_activation_func": "sigmoid", "mlp_layer_types": None, "layer_types": None},
             "granitemoehybrid": NAMES_OF_GRANITE, "granitemoehybrid_dense": NAMES_OF_GRANITE,
             "nemotron_h": {"hybrid_override_pattern": "M-*-M", "num_hidden_layers": 5, "rms_norm_eps": 1e-5,
                            "layers_block_type": None, "num_experts_per_tok": None, "n_routed_experts": None},
             "nemotron_h_moe": {"hybrid_override_pattern": "ME*EM", "num_hidden_layers": 5, "rms_norm_eps": 1e-5,
                                "layers_block_type": None}}


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
SPREAD = {"qwen3_5_text": 1.0, "qwen3_5_moe_text": 1.0, "qwen3_5": 1.0, "hunyuan_v1_moe": 0.8, "exaone_moe": 0.6, "kimi_linear": 0.7, "qwen3_5_moe": 0.6, "mistral4": 0.5, "qwen3_next": 0.6, "deepseek_v2": 0.8,
          "deepseek_v3": 0.8, "kimi_k2": 0.8,
          "glm4_moe": 0.6, "glm4_moe_air": 0.8, "qwen2_moe": 0.8,
          "minimax_m2": 0.8, "afmoe": 0.8, "glm4_moe_lite": 0.8, "dots1": 0.8}

# Gemma 4 does not scale its scores, so that its own gains keep them small.
QK_GAIN = {"gemma4_text": 0.5}


def randomise(model, spread, qk_gain=1.0):
    generator = torch.Generator().manual_seed(20)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        with torch.no_grad():
            if weight.dim() == 1 and name.endswith(("weight", "scale")):
                weight.add_(0.2 * noise)  # a norm's gain: around what the library starts from
                if name.endswith(("q_norm.weight", "k_norm.weight")):
                    weight.mul_(qk_gain)
            elif weight.dim() == 1:
                weight.copy_(0.2 * noise)
            else:
                weight.copy_(noise * (spread / weight.shape[-1] ** 0.5 if not is_table(name) else 0.25))


def randomise_buffers(model):
    generator = torch.Generator().manual_seed(21)
    for name, buffer in model.named_buffers():
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            buffer.copy_(0.3 * torch.randn(buffer.shape, generator=generator))
        if name.endswith("layer_scalar"):
            buffer.copy_(0.8 + 0.1 * torch.randn(buffer.shape, generator=generator))


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


def stack_experts(folder):
    """Qwen3.5 as it is published: gate and up of all experts in one tensor."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    for first in [name for name in tensors if name.endswith("experts.0.gate_proj.weight")]:
        stem = first.removesuffix("0.gate_proj.weight")
        parts = {part: [tensors.pop(f"{stem}{expert}.{part}.weight") for expert in range(4)]
                 for part in ("gate_proj", "up_proj", "down_proj")}
        pairs = [torch.cat(pair) for pair in zip(parts["gate_proj"], parts["up_proj"])]
        tensors[stem + "gate_up_proj"] = torch.stack(pairs)
        tensors[stem + "down_proj"] = torch.stack(parts["down_proj"])
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def add_prediction(folder):
    """What MiMo has behind its blocks: one for multi-token prediction."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    last = "model.layers.1."
    for name in [name for name in tensors if name.startswith(last)]:
        tensors["model.mtp_layers.0." + name.removeprefix(last)] = tensors[name].clone()
    norm = tensors["model.norm.weight"]
    for name in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
        tensors[f"model.mtp_layers.0.{name}.weight"] = norm.clone()
    tensors["model.mtp_layers.0.input_proj.weight"] = torch.ones(norm.shape[0], 2 * norm.shape[0], dtype=norm.dtype)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


INTERNLM = {"model.embed_tokens": "model.tok_embeddings", "lm_head": "output", "self_attn.o_proj": "attention.wo",
            "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2", "mlp.up_proj": "feed_forward.w3",
            "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm"}


def join_projections(folder, n_groups, joined, renamed):
    """Llama's tensors as models have them that keep q, k and v of each of n_groups in one."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    for name in [name for name in tensors if name.endswith("q_proj.weight")]:
        parts = [tensors.pop(name.replace("q_proj", part)) for part in ("q_proj", "k_proj", "v_proj")]
        rows = [part.reshape(n_groups, -1, part.shape[-1]) for part in parts]
        name = name.replace("self_attn.q_proj", joined)
        tensors[name] = torch.cat(rows, dim=1).reshape(-1, parts[0].shape[-1]).contiguous()
    for old, new in renamed.items():
        for name in [name for name in tensors if old in name]:
            tensors[name.replace(old, new)] = tensors.pop(name)
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def rename_dense(folder):
    """Kimi Linear's first block, which the library writes as if it had experts."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    first = "model.layers.0."
    tensors = {name.replace(first + "block_sparse_moe.", first + "mlp."): weight for name, weight in tensors.items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def part_taps(folder, config):
    """OLMo Hybrid as it is published: the library writes its taps in three equal parts, and a norm under the name that
    blocks of the other kind have for it."""
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    sizes = [config.linear_num_key_heads * config.linear_key_head_dim] * 2
    sizes.append(config.linear_num_value_heads * config.linear_value_head_dim)
    for layer, kind in enumerate(config.layer_types):
        stem = f"model.layers.{layer}."
        if kind == "full_attention":
            tensors[stem + "post_attention_layernorm.weight"] = tensors.pop(stem + "feedforward_layer_norm.weight")
            continue
        names = [f"{stem}linear_attn.{part}_conv1d.weight" for part in "qkv"]
        taps = torch.cat([tensors[part] for part in names])
        tensors |= {part: piece.contiguous() for part, piece in zip(names, taps.split(sizes))}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def save_folder(name, folder):
    if name in WHOLE:
        library, config_class, text, vision = WHOLE[name]
        text_class, settings = MODELS[text]
        config = config_class(text_config=text_class(**settings).to_dict(), vision_config=vision,
                              tie_word_embeddings=settings["tie_word_embeddings"])
        model = library._from_config(config, attn_implementation="eager")
    else:
        config_class, settings = MODELS[name]
        config = config_class(**settings)
        config.architectures = None
        make = ALONE[name]._from_config if name in ALONE else tf.AutoModelForCausalLM.from_config
        model = make(config, attn_implementation="eager")
    randomise(model, SPREAD.get(name, 1.5), QK_GAIN.get(name, 1.0))
    randomise_buffers(model)
    model.to(torch.bfloat16).to(torch.float32 if name in IN_F32 else torch.bfloat16).save_pretrained(folder)
    if name == "gpt_oss":
        pack_experts(folder)
    if name == "mimo":
        add_prediction(folder)
    if name == "kimi_linear":
        rename_dense(folder)
    if name.startswith("olmo_hybrid"):
        part_taps(folder, config)
    if name == "qwen3_5_moe":
        stack_experts(folder)
    if name in PUBLISHED:
        config = json.loads((folder / "config.json").read_text())
        published = {key: value for key, value in (config | PUBLISHED[name]).items() if key not in PUBLISHED[name] or
                     value is not None}
        (folder / "config.json").write_text(json.dumps(published, indent=2) + "\n")
    tok = tf.PreTrainedTokenizerFast(tokenizer_object=train_tokenizer(), bos_token="<|end|>", eos_token="<|end|>")
    tok.save_pretrained(folder)


def expected_logits(folder):
    known = {}
    if folder.name in KNOWN_AS:
        config_class, settings = MODELS[folder.name]
        known = {"config": config_class(**settings)}
    library = WHOLE[folder.name][0] if folder.name in WHOLE else KNOWN_AS.get(
        folder.name, ALONE.get(folder.name, tf.AutoModelForCausalLM))
    model = library.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **known).eval()
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
    converter = get_model_class("Ministral3ForCausalLM" if folder.name == "mistral4" else config["architectures"][0])
    if converter.__name__ == "Mistral3Model":
        converter = converter.Mistral4Model if folder.name == "mistral4" else converter.Ministral3Model
    converter = type(converter.__name__, (converter,), {"set_vocab": base.TextModel._set_vocab_gpt2,
                                                              "model_arch": converter.model_arch,
                                                              "no_mtp": True})
    if folder.name == "baichuan":  # of other tensors than W_pack the converter asks itself, without end
        def modify(self, tensor, name, block, packed=converter.modify_tensors):
            alone = lambda: base.TextModel.modify_tensors(self, tensor, name, block)
            return packed(self, tensor, name, block) if "W_pack" in name else alone()
        converter.modify_tensors = modify
    with torch.inference_mode():
        # The library renames what the converter asks for in these.
        read = {"hparams": json.loads((folder / "config.json").read_text())} if folder.name in READ_RAW else {}
        instance = converter(folder, gguf.LlamaFileType.ALL_F32 if folder.name in IN_F32 else gguf.LlamaFileType.MOSTLY_BF16,
                             target, use_temp_file=False,
                             model_name="tiny", **read)
        instance.hparams |= {key: value for key, value in PUBLISHED.get(folder.name, {}).items() if value is not None}
        instance.write()


def make(name, folder, candor):
    folder.mkdir()
    save_folder(name, folder)
    if name not in KEPT_WHOLE:
        replace_weights(folder)
    logits = expected_logits(folder)
    if name == "internlm2":
        join_projections(folder, BASE["num_key_value_heads"], "attention.wqkv", INTERNLM)
    if name == "baichuan":
        join_projections(folder, 1, "self_attn.W_pack", {})
    if name not in NOT_IN_LLAMA_CPP:
        convert(folder, folder / "model.gguf")
    print(f"{name}: largest logit {np.abs(logits).max():.3f}, {store(folder, logits, candor)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--converter", type=pathlib.Path, required=True)
    parser.add_argument("--candor", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=[*MODELS, *WHOLE])
    options = parser.parse_args()
    sys.path[:0] = [str(options.converter / "gguf-py"), str(options.converter)]
    for name in options.only:
        with tempfile.TemporaryDirectory() as scratch:
            make(name, pathlib.Path(scratch) / name, options.candor.resolve())


if __name__ == "__main__":
    main()
