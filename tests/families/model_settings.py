"""Settings of families that no golden has: biases, windows, norms, dense blocks, multipliers, spellings (see
make_model_cases.py)."""

VOCAB = 288
WINDOW = 12
BASE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=256, tie_word_embeddings=False, pad_token_id=0)
DEEP = BASE | dict(num_hidden_layers=4, intermediate_size=48)
EXPERTS = DEEP | dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
SHARED = EXPERTS | dict(shared_expert_intermediate_size=32)
DELTA = dict(head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
             linear_value_head_dim=16, linear_conv_kernel_dim=4)
LATENT = dict(BASE, num_hidden_layers=3, num_key_value_heads=4, kv_lora_rank=32, q_lora_rank=48, qk_nope_head_dim=16,
              qk_rope_head_dim=8, v_head_dim=16, first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3,
              moe_intermediate_size=32, n_group=4, topk_group=2, n_shared_experts=1)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)
BAMBA = dict(BASE, num_hidden_layers=3, mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16,
             mamba_expand=2, attn_layer_indices=[1])
# Powers of two: products of others are rounded to the tensors' type, as files of llama.cpp have them.
FALCON_H1 = dict(BASE, head_dim=16, mamba_d_ssm=128, mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=2,
                 mamba_d_state=16, mamba_rms_norm=False, embedding_multiplier=4.0, lm_head_multiplier=0.125,
                 key_multiplier=0.5, attention_in_multiplier=2.0, attention_out_multiplier=0.5,
                 ssm_multipliers=[0.5, 1.0, 0.5, 2.0, 1.0], mlp_multipliers=[2.0, 0.5], ssm_in_multiplier=2.0,
                 ssm_out_multiplier=0.5)
NEMOTRON_H = dict(BASE, num_hidden_layers=3, head_dim=16, hybrid_override_pattern="M*-", mamba_num_heads=8,
                  mamba_head_dim=16, n_groups=2, ssm_state_size=16)
NO_HEAD = {"model.": ""}


def case(model_type, settings, **more):
    return {"config": {"model_type": model_type} | settings} | more


def kinds(n, full):
    return ["full_attention" if i in full else "sliding_attention" for i in range(n)]


SETTINGS = {
    "llama_attention_bias": case("llama", BASE | dict(attention_bias=True)),
    "llama_mlp_bias": case("llama", BASE | dict(attention_bias=True, mlp_bias=True)),
    "llama_yarn_mscale": case("llama", BASE | dict(rope_scaling=YARN | dict(mscale=0.7, mscale_all_dim=0.4))),
    "llama_base_model": case("llama", BASE | dict(tie_word_embeddings=True), renamed=NO_HEAD),
    "qwen3_base_model": case("qwen3", BASE | dict(tie_word_embeddings=True, head_dim=16), renamed=NO_HEAD),
    "gpt2_base_model": case("gpt2", dict(vocab_size=VOCAB, n_positions=128, n_embd=64, n_layer=2, n_head=4),
                            renamed={"transformer.": ""}),
    "llama_tied_beside_head": case("llama", BASE | dict(tie_word_embeddings=True),
                                   extra={"lm_head.weight": [VOCAB, 64]}),
    "qwen2_windows": case("qwen2", DEEP | dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2)),
    "qwen3_windows": case("qwen3", DEEP | dict(head_dim=16, use_sliding_window=True, sliding_window=WINDOW,
                                               layer_types=kinds(4, [1, 2]))),
    "qwen2_moe_windows": case("qwen2_moe", SHARED | dict(use_sliding_window=True, sliding_window=WINDOW,
                                                         max_window_layers=3)),
    "qwen3_moe_windows": case("qwen3_moe", EXPERTS | dict(head_dim=16, use_sliding_window=True, sliding_window=WINDOW)),
    "qwen3_attention_bias": case("qwen3", BASE | dict(head_dim=16, attention_bias=True)),
    "qwen2_moe_dense_blocks": case("qwen2_moe", SHARED | dict(mlp_only_layers=[0, 2])),
    "qwen2_moe_sparse_step": case("qwen2_moe", SHARED | dict(decoder_sparse_step=2)),
    "qwen3_moe_dense_blocks": case("qwen3_moe", EXPERTS | dict(head_dim=16, mlp_only_layers=[1])),
    "qwen3_next_dense_blocks": case("qwen3_next", SHARED | DELTA | dict(mlp_only_layers=[2])),
    "smollm3_irregular": case("smollm3", DEEP | dict(no_rope_layers=[1, 0, 0, 1])),
    "smollm3_windows": case("smollm3", DEEP | dict(use_sliding_window=True, sliding_window=WINDOW,
                                                   no_rope_layers=[1, 0, 1, 0])),
    "olmo2_attention_bias": case("olmo2", BASE | dict(attention_bias=True)),
    "olmoe_attention_bias": case("olmoe", BASE | dict(attention_bias=True, intermediate_size=32, num_experts=4,
                                                      num_experts_per_tok=2)),
    "cohere_attention_bias": case("cohere", BASE | dict(tie_word_embeddings=True, attention_bias=True)),
    "cohere_qk_norm": case("cohere", BASE | dict(tie_word_embeddings=True, use_qk_norm=True)),
    "cohere2_attention_bias": case("cohere2", BASE | dict(tie_word_embeddings=True, attention_bias=True)),
    "internlm3_qkv_bias": case("internlm3", BASE | dict(head_dim=16, qkv_bias=True, bias=True)),
    "ernie4_5_use_bias": case("ernie4_5", BASE | dict(head_dim=16, use_bias=True)),
    "granite_biases": case("granite", BASE | dict(attention_bias=True, mlp_bias=True, embedding_multiplier=6.0)),
    "seed_oss_biases": case("seed_oss", BASE | dict(head_dim=16, attention_bias=True, attention_out_bias=True,
                                                    mlp_bias=True)),
    "glm4_no_bias": case("glm4", BASE | dict(head_dim=16, attention_bias=False)),
    "starcoder2_no_bias": case("starcoder2", BASE | dict(use_bias=False)),
    "gpt_neox_no_bias": case("gpt_neox", {k: v for k, v in BASE.items() if k != "num_key_value_heads"} |
                             dict(attention_bias=False)),
    "gpt_neox_gelu_new": case("gpt_neox", {k: v for k, v in BASE.items() if k != "num_key_value_heads"} |
                              dict(hidden_act="gelu_new", use_parallel_residual=False)),
    "gpt_neox_gelu_fast": case("gpt_neox", {k: v for k, v in BASE.items() if k != "num_key_value_heads"} |
                               dict(hidden_act="gelu_fast", rotary_pct=0.5)),
    "phi_qk_layernorm": case("phi", BASE | dict(qk_layernorm=True)),
    "persimmon_plain": case("persimmon", {k: v for k, v in BASE.items() if k != "num_key_value_heads"} |
                            dict(qk_layernorm=False)),
    "nanochat_attention_bias": case("nanochat", BASE | dict(attention_bias=True)),
    "helium_biases": case("helium", BASE | dict(head_dim=16, attention_bias=True, mlp_bias=True)),
    "deepseek_v3_mscale": case("deepseek_v3", LATENT | dict(rope_scaling=YARN | dict(mscale=0.5, mscale_all_dim=1.2))),
    "deepseek_v3_halves": case("deepseek_v3", LATENT | dict(rope_interleave=False)),
    "youtu_halves": case("youtu", {k: v for k, v in LATENT.items() if k in BASE or "lora" in k or "_dim" in k} |
                         dict(rope_interleave=False, q_lora_rank=None)),
    "glm4_moe_biases": case("glm4_moe", DEEP | dict(head_dim=16, attention_bias=True, use_qk_norm=True,
                                                    n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=32,
                                                    first_k_dense_replace=2)),
    "bamba_step_limits": case("bamba", BAMBA | dict(time_step_limit=[0.5, 0.9])),
    "granitemoehybrid_step_limits": case("granitemoehybrid", {k: v for k, v in BAMBA.items() if k != "attn_layer_indices"} |
                                         dict(layer_types=["mamba", "attention", "mamba"], num_local_experts=0,
                                              shared_intermediate_size=64, time_step_limit=[0.3, 1.0])),
    "falcon_h1_tied": case("falcon_h1", FALCON_H1 | dict(tie_word_embeddings=True)),
    "falcon_h1_tied_equally": case("falcon_h1", FALCON_H1 | dict(tie_word_embeddings=True, lm_head_multiplier=4.0)),
    "falcon_h1_biases": case("falcon_h1", FALCON_H1 | dict(attention_bias=True, mlp_bias=True)),
    "falcon_h1_step_limits": case("falcon_h1", FALCON_H1 | dict(time_step_limit=[0.4, 0.8])),
    "nemotron_h_least_step": case("nemotron_h", NEMOTRON_H | dict(time_step_min=0.6, time_step_limit=[0.0, 0.1])),
    "gemma3_older": case("gemma3_text", DEEP | dict(num_hidden_layers=6, head_dim=16, tie_word_embeddings=True,
                                                    sliding_window=WINDOW, sliding_window_pattern=3,
                                                    rope_local_base_freq=10000.0, rope_theta=1000000.0,
                                                    rope_scaling=dict(rope_type="linear", factor=8.0))),
    "gemma2_two_activations": case("gemma2", BASE | dict(head_dim=16, tie_word_embeddings=True, hidden_act="gelu",
                                                         hidden_activation="gelu_pytorch_tanh")),
    "codegen_whole_heads": case("codegen", dict(vocab_size=VOCAB, n_positions=128, n_embd=64, n_layer=2, n_head=4,
                                                rotary_dim=16)),
    "gpt_neo_windows": case("gpt_neo", dict(vocab_size=VOCAB, max_position_embeddings=128, hidden_size=64, num_layers=3,
                                            num_heads=4, window_size=7,
                                            attention_types=[[["local"], 1], [["global", "local"], 1]])),
    "cwm_without_windows": case("cwm", DEEP | dict(head_dim=16, sliding_window=WINDOW,
                                                   layer_types=kinds(4, [0, 1, 2, 3]))),
}
