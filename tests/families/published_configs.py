"""config.json files as they are published, all of their keys (but for those of media and of quantisation), shrunk: sizes
become tiny, everything else stays. Facts from public repositories and documentation."""

SIZES = {
    "vocab_size": 288, "hidden_size": 64, "n_embd": 64, "d_model": 64, "intermediate_size": 96, "ffn_dim": 96,
    "n_inner": 96, "word_embed_proj_dim": 64, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    "moe_shared_expert_intermediate_size": 32, "shared_intermediate_size": 48, "intermediate_size_mlp": 64,
    "sliding_window": 12, "attention_chunk_size": 16, "max_window_layers": 1, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 16, "qk_head_dim": 24, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_key_head_dim": 16, "linear_value_head_dim": 16, "global_head_dim": 32, "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": 288, "mamba_num_heads": 8, "mamba_head_dim": 16, "mamba_n_heads": 8, "mamba_d_head": 16,
    "mamba_d_state": 16, "ssm_state_size": 16, "mamba_d_ssm": 128, "mamba_n_groups": 2, "n_groups": 2,
    "block_auto_adjust_ff_dim": False, "block_ff_dim": 96, "rotary_dim": 8, "window_size": 12, "n_positions": 128,
    "n_ctx": 128, "max_seq_len": 128, "seq_length": 128, "ffn_hidden_size": 256, "conv_dim": 64, "conv_dim_out": 64,
    "block_dim": 64, "block_mlp_init_scale": 1.0,
}
IDS = ("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "eod_token_id", "im_start_id", "im_end_id",
       "decoder_start_token_id")
HEADS = ("num_attention_heads", "n_head", "num_heads", "attention_heads", "n_heads")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers", "block_num_layers")
EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
CHOSEN = ("num_experts_per_tok", "moe_k", "top_k_experts", "num_selected_experts")
LISTS = ("layer_types", "no_rope_layers", "mlp_layer_types", "layers_block_type", "is_moe_layer", "moe_layer_freq_list")


def shrink_key(key, value, config, layers):
    if key in SIZES and value is not None:
        return SIZES[key]
    if key in IDS and value is not None:
        return 0
    if key in HEADS:
        return 4
    if key in LAYERS:
        return layers
    if key in EXPERTS and value:
        return [8, 8] if isinstance(value, list) else 8
    if key in CHOSEN and value:
        return min(value if isinstance(value, int) else 2, 3)
    if key in LISTS and isinstance(value, list):
        return value[:layers]
    if key in ("num_key_value_heads", "num_kv_heads", "num_global_key_value_heads", "multi_query_group_num") and value:
        heads = next((config[name] for name in HEADS if config.get(name)), value)
        return 4 if value == heads else 1 if value == 1 else 2
    if key in ("head_dim", "kv_channels") and value is not None:
        return 16
    if key == "q_lora_rank" and value is not None:
        return 48
    if key in ("n_group", "topk_group") and value and value > 1:
        return 4 if key == "n_group" else 2
    return value


def shrunk(config, layers, more):
    small = {key: shrink_key(key, value, config, layers) for key, value in config.items()}
    return small | more


CASES = {}


def add(name, config, layers=2, outer=None, renamed=None, case=None, **more):
    small = shrunk(config, layers, more)
    if outer is not None:
        small = outer | {"text_config": small}
    CASES["published_" + name] = {"config": small} | ({"renamed": renamed} if renamed else {}) | (case or {})


def llama(hidden=4096, heads=32, kv=8, **more):
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": hidden,
            "initializer_range": 0.02, "intermediate_size": 14336, "num_attention_heads": heads, "num_hidden_layers": 32,
            "num_key_value_heads": kv, "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "use_cache": True, "vocab_size": 128256, "bos_token_id": 128000, "eos_token_id": 128001} | more


LLAMA31 = dict(attention_bias=False, attention_dropout=0.0, max_position_embeddings=131072, mlp_bias=False,
               pretraining_tp=1, rope_theta=500000.0, transformers_version="4.43.0.dev0",
               rope_scaling={"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": 8192, "rope_type": "llama3"})
LLAMA32 = LLAMA31 | dict(head_dim=64, tie_word_embeddings=True, rope_scaling=LLAMA31["rope_scaling"] | {"factor": 32.0})
add("llama_1_7b", llama(kv=32, max_position_embeddings=2048, pad_token_id=0, rms_norm_eps=1e-06, vocab_size=32000,
                        torch_dtype="float16", transformers_version="4.28.0.dev0"))
add("llama_2_7b", llama(kv=32, max_position_embeddings=4096, pretraining_tp=1, rope_scaling=None, vocab_size=32000,
                        torch_dtype="float16", transformers_version="4.31.0.dev0"))
add("llama_2_70b", llama(8192, 64, 8, max_position_embeddings=4096, pretraining_tp=1, rope_scaling=None))
add("llama_3_8b", llama(attention_bias=False, attention_dropout=0.0, max_position_embeddings=8192, pretraining_tp=1,
                        rope_scaling=None, rope_theta=500000.0, transformers_version="4.40.0.dev0"))
add("llama_3_1_8b", llama(**LLAMA31))
add("llama_3_1_405b", llama(16384, 128, 16, **LLAMA31))
add("llama_3_2_1b", llama(2048, 32, 8, **LLAMA32))
add("llama_3_2_3b", llama(3072, 24, 8, **LLAMA32 | dict(head_dim=128)))
add("llama_3_3_70b", llama(8192, 64, 8, **LLAMA31 | dict(head_dim=128, eos_token_id=[128001, 128008, 128009])))
add("codellama_7b", llama(kv=32, max_position_embeddings=16384, pretraining_tp=1, rope_scaling=None, rope_theta=1000000,
                          vocab_size=32016))
add("tinyllama_1b", llama(2048, 32, 4, attention_bias=False, max_position_embeddings=2048, pretraining_tp=1,
                          rope_scaling=None, rope_theta=10000.0, vocab_size=32000))
add("yi_34b_200k", llama(7168, 56, 8, max_position_embeddings=200000, pad_token_id=0, rope_theta=5000000.0,
                         attention_bias=False, pretraining_tp=1, rope_scaling=None))
add("deepseek_coder_6_7b", llama(kv=32, max_position_embeddings=16384, pretraining_tp=1, rope_theta=100000,
                                 rope_scaling={"factor": 4.0, "type": "linear"}, rms_norm_eps=1e-06))
add("granite_code_3b", llama(2560, 32, 32, attention_bias=True, attention_dropout=0.1, max_position_embeddings=2048,
                             mlp_bias=True, pad_token_id=0, pretraining_tp=1, rope_scaling=None, rope_theta=10000,
                             tie_word_embeddings=True))
add("smollm2_135m", llama(576, 9, 3, attention_bias=False, attention_dropout=0.0, is_llama_config=True,
                          max_position_embeddings=8192, pretraining_tp=1, rope_interleaved=False, rope_scaling=None,
                          rope_theta=100000, tie_word_embeddings=True, mlp_bias=False,
                          transformers_js_config={"kv_cache_dtype": {"q4f16": "float16"}}))
add("falcon3_7b", llama(3072, 12, 4, activation="swiglu", attention_bias=False, attention_dropout=0.0, head_dim=256,
                        max_position_embeddings=32768, mlp_bias=False, pretraining_tp=1, rms_norm_eps=1e-06,
                        rope_scaling=None, rope_theta=1000042))
add("r1_distill_llama_70b", llama(8192, 64, 8, **LLAMA31 | dict(head_dim=128, mlp_bias=False)))


def mistral(**more):
    return {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "attention_dropout": 0.0, "bos_token_id": 1,
            "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
            "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32,
            "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
            "sliding_window": None, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True,
            "vocab_size": 32768} | more


add("mistral_7b_v0_1", mistral(sliding_window=4096, rope_theta=10000.0, vocab_size=32000))
add("mistral_7b_v0_3", mistral())
add("mistral_nemo", mistral(head_dim=128, hidden_size=5120, max_position_embeddings=128000, vocab_size=131072))
add("mistral_small_24b", mistral(head_dim=128, hidden_size=5120, rope_theta=100000000.0, vocab_size=131072))
add("ministral_8b", mistral(head_dim=128, hidden_size=4096, rope_theta=100000000.0, sliding_window=32768))
add("mixtral_8x7b", mistral(architectures=["MixtralForCausalLM"], model_type="mixtral", num_experts_per_tok=2,
                            num_local_experts=8, output_router_logits=False, router_aux_loss_coef=0.02))
add("mixtral_8x22b", mistral(architectures=["MixtralForCausalLM"], model_type="mixtral", num_experts_per_tok=2,
                             num_local_experts=8, output_router_logits=False, router_aux_loss_coef=0.001,
                             router_jitter_noise=0.0, max_position_embeddings=65536, vocab_size=32000))
OF_TEXT = {"model.": "language_model.model.", "lm_head.": "language_model.lm_head."}
NEW_OF_TEXT = {"model.": "model.language_model."}
add("mistral_small_3_1", {k: v for k, v in mistral(head_dim=128, hidden_size=5120, max_position_embeddings=131072,
                                                   rope_theta=1000000000.0, vocab_size=131072).items()
                          if k not in ("architectures", "torch_dtype", "bos_token_id", "eos_token_id", "tie_word_embeddings")},
    outer={"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "image_token_index": 10,
           "multimodal_projector_bias": False, "projector_hidden_act": "gelu", "spatial_merge_size": 2,
           "torch_dtype": "bfloat16", "vision_feature_layer": -1, "vision_config": {"model_type": "pixtral"}},
    renamed=OF_TEXT)
add("ministral_3_8b", {"attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096,
                       "initializer_range": 0.02, "intermediate_size": 14336, "max_position_embeddings": 262144,
                       "model_type": "ministral3", "num_attention_heads": 32, "num_hidden_layers": 34,
                       "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "sliding_window": None, "use_cache": True,
                       "vocab_size": 131072,
                       "rope_parameters": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "mscale": 1.0,
                                           "llama_4_scaling_beta": 0.1, "mscale_all_dim": 1.0,
                                           "original_max_position_embeddings": 16384, "rope_theta": 1000000.0,
                                           "rope_type": "yarn", "type": "yarn"}},
    outer={"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "dtype": "bfloat16",
           "image_token_index": 10, "multimodal_projector_bias": False, "projector_hidden_act": "gelu",
           "spatial_merge_size": 2, "tie_word_embeddings": False, "transformers_version": "5.0.0.dev0",
           "vision_feature_layer": -1, "vision_config": {"model_type": "pixtral"}}, renamed=OF_TEXT)


def gemma(model_type, architecture, **more):
    return {"architectures": [architecture], "model_type": model_type, "attention_bias": False, "attention_dropout": 0.0,
            "bos_token_id": 2, "eos_token_id": 1, "head_dim": 256, "initializer_range": 0.02, "pad_token_id": 0,
            "rms_norm_eps": 1e-06, "torch_dtype": "bfloat16", "use_cache": True, "max_position_embeddings": 8192,
            "num_hidden_layers": 18} | more


add("gemma_2b", gemma("gemma", "GemmaForCausalLM", hidden_act="gelu", hidden_size=2048, intermediate_size=16384,
                      num_attention_heads=8, num_key_value_heads=1, rope_theta=10000.0, vocab_size=256000))
add("gemma_1_1_7b", gemma("gemma", "GemmaForCausalLM", hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh",
                          hidden_size=3072, intermediate_size=24576, num_attention_heads=16, num_key_value_heads=16,
                          rope_scaling=None, rope_theta=10000.0, vocab_size=256000))
GEMMA2 = dict(attn_logit_softcapping=50.0, cache_implementation="hybrid", final_logit_softcapping=30.0,
              hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256,
              rope_theta=10000.0, sliding_window=4096, vocab_size=256000, sliding_window_size=4096)
add("gemma_2_2b", gemma("gemma2", "Gemma2ForCausalLM", hidden_size=2304, intermediate_size=9216, num_attention_heads=8,
                        num_key_value_heads=4, **GEMMA2))
add("gemma_2_27b", gemma("gemma2", "Gemma2ForCausalLM", hidden_size=4608, intermediate_size=36864, num_attention_heads=32,
                         num_key_value_heads=16, **GEMMA2 | dict(query_pre_attn_scalar=144)))
GEMMA3 = dict(attn_logit_softcapping=None, cache_implementation="hybrid", final_logit_softcapping=None,
              hidden_activation="gelu_pytorch_tanh", max_position_embeddings=32768, query_pre_attn_scalar=256,
              rope_local_base_freq=10000, rope_scaling=None, rope_theta=1000000, sliding_window_pattern=6,
              vocab_size=262144, num_key_value_heads=1, num_attention_heads=4)
add("gemma_3_1b", gemma("gemma3_text", "Gemma3ForCausalLM", hidden_size=1152, intermediate_size=6912, sliding_window=512,
                        **GEMMA3), layers=7)
add("gemma_3_270m", gemma("gemma3_text", "Gemma3ForCausalLM", hidden_size=640, intermediate_size=2048, sliding_window=512,
                          _sliding_window_pattern=6, use_bidirectional_attention=False,
                          layer_types=(["sliding_attention"] * 5 + ["full_attention"]) * 3,
                          **{k: v for k, v in GEMMA3.items() if k != "sliding_window_pattern"}), layers=6)
GEMMA3_OUTER = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "boi_token_index": 255999,
                "eoi_token_index": 256000, "eos_token_id": [1, 106], "image_token_index": 262144,
                "initializer_range": 0.02, "mm_tokens_per_image": 256, "torch_dtype": "bfloat16",
                "transformers_version": "4.50.0.dev0", "vision_config": {"model_type": "siglip_vision_model"}}
# What the published folders leave out is the library's default.
add("gemma_3_4b", {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
                   "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024}, layers=7,
    outer=GEMMA3_OUTER, renamed=OF_TEXT, **dict(vocab_size=288))
for name, hidden, inner, layers, heads, kv, more in [
        ("gemma_3_12b", 3840, 15360, 48, 16, 8, {}),
        ("gemma_3_27b", 5376, 21504, 62, 32, 16, {"head_dim": 128, "query_pre_attn_scalar": 168})]:
    add(name, {"hidden_size": hidden, "intermediate_size": inner, "model_type": "gemma3_text", "num_attention_heads": heads,
               "num_hidden_layers": layers, "num_key_value_heads": kv,
               "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024} | more, layers=7,
        outer=GEMMA3_OUTER, renamed=OF_TEXT, vocab_size=288)
add("medgemma_27b_text", gemma("gemma3_text", "Gemma3ForCausalLM", hidden_size=5376, intermediate_size=21504,
                               sliding_window=1024, **GEMMA3 | dict(num_attention_heads=32, num_key_value_heads=16,
                                                                    query_pre_attn_scalar=168, head_dim=128,
                                                                    max_position_embeddings=131072,
                                                                    rope_scaling={"factor": 8.0, "rope_type": "linear"})),
    layers=6)


def gemma4(types, **more):
    return {"attention_bias": False, "attention_dropout": 0.0, "attention_k_eq_v": False, "bos_token_id": 2,
            "dtype": "bfloat16", "enable_moe_block": False, "eos_token_id": 1, "final_logit_softcapping": 30.0,
            "global_head_dim": 512, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1536,
            "hidden_size_per_layer_input": 256, "initializer_range": 0.02, "intermediate_size": 6144,
            "layer_types": types, "max_position_embeddings": 131072, "model_type": "gemma4_text",
            "num_attention_heads": 8, "num_experts": None, "num_global_key_value_heads": None, "num_hidden_layers": 35,
            "num_key_value_heads": 1, "num_kv_shared_layers": 20, "pad_token_id": 0, "rms_norm_eps": 1e-06,
            "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
                                                   "rope_type": "proportional"},
                                "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
            "sliding_window": 512, "tie_word_embeddings": True, "top_k_experts": None, "use_bidirectional_attention": None,
            "use_cache": True, "use_double_wide_mlp": True, "vocab_size": 262144,
            "vocab_size_per_layer_input": 262144} | more


FIFTH = (["sliding_attention"] * 4 + ["full_attention"]) * 7
SIXTH = (["sliding_attention"] * 5 + ["full_attention"]) * 10
GEMMA4_OUTER = {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "dtype": "bfloat16",
                "eos_token_id": [1, 106], "image_token_id": 258880, "audio_token_id": 258881,
                "initializer_range": 0.02, "tie_word_embeddings": True, "vision_config": {"model_type": "gemma4_vision"},
                "audio_config": None}
add("gemma_4_e2b", gemma4(FIFTH), layers=10, outer=GEMMA4_OUTER, renamed=NEW_OF_TEXT, num_kv_shared_layers=5)
add("gemma_4_e4b", gemma4(SIXTH[:42], hidden_size=2560, intermediate_size=10240, num_kv_shared_layers=18,
                          num_key_value_heads=2, use_double_wide_mlp=False),
    layers=12, outer=GEMMA4_OUTER, renamed=NEW_OF_TEXT, num_kv_shared_layers=6)
WIDE4 = dict(attention_k_eq_v=True, hidden_size_per_layer_input=0, num_kv_shared_layers=0, use_double_wide_mlp=False,
             sliding_window=1024, max_position_embeddings=262144, num_attention_heads=16, num_key_value_heads=8)
add("gemma_4_12b", gemma4(SIXTH[:48], hidden_size=3840, intermediate_size=15360, num_global_key_value_heads=1, **WIDE4),
    layers=6, outer=GEMMA4_OUTER, renamed=NEW_OF_TEXT, hidden_size_per_layer_input=0)
add("gemma_4_26b_a4b", gemma4(SIXTH[:30], hidden_size=2816, intermediate_size=2112, moe_intermediate_size=704,
                              enable_moe_block=True, num_experts=128, top_k_experts=8, num_global_key_value_heads=2,
                              **WIDE4),
    layers=6, outer=GEMMA4_OUTER, renamed=NEW_OF_TEXT, hidden_size_per_layer_input=0)


def qwen(model_type, architecture, **more):
    return {"architectures": [architecture], "model_type": model_type, "attention_dropout": 0.0, "bos_token_id": 151643,
            "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 3584, "initializer_range": 0.02,
            "intermediate_size": 18944, "max_position_embeddings": 32768, "max_window_layers": 28,
            "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4, "rms_norm_eps": 1e-06,
            "rope_theta": 1000000.0, "sliding_window": 131072, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "use_cache": True, "use_sliding_window": False, "vocab_size": 152064} | more


add("qwen1_5_7b", qwen("qwen2", "Qwen2ForCausalLM", num_key_value_heads=28, sliding_window=32768))
add("qwen2_5_0_5b", qwen("qwen2", "Qwen2ForCausalLM", hidden_size=896, num_attention_heads=14, num_key_value_heads=2,
                         sliding_window=32768, tie_word_embeddings=True, use_mrope=False))
add("qwen2_5_7b", qwen("qwen2", "Qwen2ForCausalLM"))
add("qwen2_5_7b_yarn", qwen("qwen2", "Qwen2ForCausalLM", rope_scaling={
    "factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"}))
add("qwq_32b", qwen("qwen2", "Qwen2ForCausalLM", max_window_layers=64, max_position_embeddings=40960, sliding_window=32768))
add("qwen1_5_moe_a2_7b", qwen("qwen2_moe", "Qwen2MoeForCausalLM", decoder_sparse_step=1, moe_intermediate_size=1408,
                              norm_topk_prob=False, num_experts=60, num_experts_per_tok=4, output_router_logits=False,
                              router_aux_loss_coef=0.001, shared_expert_intermediate_size=5632, num_key_value_heads=28))
add("qwen2_57b_a14b", qwen("qwen2_moe", "Qwen2MoeForCausalLM", decoder_sparse_step=1, moe_intermediate_size=2560,
                           norm_topk_prob=False, num_experts=64, num_experts_per_tok=8, output_router_logits=False,
                           router_aux_loss_coef=0.001, shared_expert_intermediate_size=20480))
QWEN3 = dict(attention_bias=False, head_dim=128, rope_scaling=None, sliding_window=None, max_position_embeddings=40960)
add("qwen3_0_6b", qwen("qwen3", "Qwen3ForCausalLM", tie_word_embeddings=True, **QWEN3))
add("qwen3_32b", qwen("qwen3", "Qwen3ForCausalLM", max_window_layers=64, num_attention_heads=64, num_key_value_heads=8,
                      **QWEN3))
add("qwen3_30b_a3b", qwen("qwen3_moe", "Qwen3MoeForCausalLM", decoder_sparse_step=1, mlp_only_layers=[],
                          moe_intermediate_size=768, norm_topk_prob=True, num_experts=128, num_experts_per_tok=8,
                          output_router_logits=False, router_aux_loss_coef=0.001, **QWEN3))
add("qwen3_coder_30b_a3b", {k: v for k, v in qwen(
    "qwen3_moe", "Qwen3MoeForCausalLM", decoder_sparse_step=1, mlp_only_layers=[], moe_intermediate_size=768,
    norm_topk_prob=True, num_experts=128, num_experts_per_tok=8, output_router_logits=False, router_aux_loss_coef=0.0,
    qkv_bias=False, use_qk_norm=True, shared_expert_intermediate_size=0, rope_theta=10000000, **QWEN3).items()
    if k != "shared_expert_intermediate_size"})
DELTA = dict(linear_conv_kernel_dim=4, linear_key_head_dim=128, linear_num_key_heads=16, linear_num_value_heads=32,
             linear_value_head_dim=128)
add("qwen3_next_80b_a3b", {k: v for k, v in qwen(
    "qwen3_next", "Qwen3NextForCausalLM", attention_bias=False, decoder_sparse_step=1, full_attention_interval=4,
    head_dim=256, mlp_only_layers=[], moe_intermediate_size=512, norm_topk_prob=True, num_experts=512,
    num_experts_per_tok=10, num_key_value_heads=2, output_router_logits=False, partial_rotary_factor=0.25,
    rope_scaling=None, rope_theta=10000000, router_aux_loss_coef=0.001, shared_expert_intermediate_size=512,
    max_position_embeddings=262144, **DELTA).items() if "window" not in k}, layers=4)
QWEN35_ROPE = {"mrope_interleaved": True, "mrope_section": [11, 11, 10], "rope_type": "default", "rope_theta": 10000000,
               "partial_rotary_factor": 0.25}
QWEN35 = dict(attention_bias=False, attention_dropout=0.0, attn_output_gate=True, dtype="bfloat16", eos_token_id=248044,
              full_attention_interval=4, head_dim=256, hidden_act="silu", initializer_range=0.02,
              layer_types=["linear_attention"] * 3 + ["full_attention"], mamba_ssm_dtype="float32",
              max_position_embeddings=262144, mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False,
              num_attention_heads=16, num_hidden_layers=32, num_key_value_heads=4, rms_norm_eps=1e-06, use_cache=True,
              vocab_size=248320, rope_parameters=QWEN35_ROPE, **DELTA)
QWEN35_OUTER = {"image_token_id": 248056, "tie_word_embeddings": False, "transformers_version": "4.57.0.dev0",
                "video_token_id": 248057, "vision_end_token_id": 248054, "vision_start_token_id": 248053}
add("qwen3_5_9b", QWEN35 | dict(model_type="qwen3_5_text", hidden_size=4096, intermediate_size=12288), layers=4,
    outer=QWEN35_OUTER | {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
                          "vision_config": {"model_type": "qwen3_5"}}, renamed=NEW_OF_TEXT)
add("qwen3_5_35b_a3b", QWEN35 | dict(model_type="qwen3_5_moe_text", hidden_size=2048, moe_intermediate_size=512,
                                     num_experts=256, num_experts_per_tok=8, router_aux_loss_coef=0.001,
                                     output_router_logits=False, shared_expert_intermediate_size=512), layers=4,
    outer=QWEN35_OUTER | {"architectures": ["Qwen3_5MoeForConditionalGeneration"], "model_type": "qwen3_5_moe",
                          "vision_config": {"model_type": "qwen3_5_moe"}}, renamed=NEW_OF_TEXT)

add("phi_2", {"architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 50256, "embd_pdrop": 0.0,
              "eos_token_id": 50256, "hidden_act": "gelu_new", "hidden_size": 2560, "initializer_range": 0.02,
              "intermediate_size": 10240, "layer_norm_eps": 1e-05, "max_position_embeddings": 2048, "model_type": "phi",
              "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32, "partial_rotary_factor": 0.4,
              "qk_layernorm": False, "resid_pdrop": 0.1, "rope_scaling": None, "rope_theta": 10000.0,
              "tie_word_embeddings": False, "torch_dtype": "float16", "use_cache": True, "vocab_size": 51200},
    partial_rotary_factor=0.5)


def phi3(**more):
    return {"architectures": ["Phi3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
            "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "bos_token_id": 1, "embd_pdrop": 0.0,
            "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02,
            "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32,
            "num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096,
            "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
            "sliding_window": 2047, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True,
            "vocab_size": 32064} | more


def long_rope(n):
    return {"long_factor": [1.0 + 0.37 * i for i in range(n)], "short_factor": [1.0 + 0.02 * i for i in range(n)],
            "type": "longrope"}


add("phi_3_mini_4k", phi3())
add("phi_3_mini_128k", phi3(max_position_embeddings=131072, rope_scaling=long_rope(8), sliding_window=262144))
add("phi_4", phi3(hidden_size=5120, max_position_embeddings=16384, num_attention_heads=40, num_key_value_heads=10,
                  original_max_position_embeddings=16384, rope_theta=250000, sliding_window=None, vocab_size=100352))
add("phi_4_mini", phi3(full_attn_mod=1, interpolate_factor=1, lm_head_bias=False, max_position_embeddings=131072,
                       mlp_bias=False, num_attention_heads=24, num_key_value_heads=8, partial_rotary_factor=0.75,
                       rope_scaling=long_rope(6), sliding_window=262144, tie_word_embeddings=True, vocab_size=200064))

GLM_MOE = {"attention_bias": True, "attention_dropout": 0.0, "pad_token_id": 151329, "eos_token_id": [151329, 151336],
           "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "partial_rotary_factor": 0.5,
           "initializer_range": 0.02, "intermediate_size": 10944, "max_position_embeddings": 131072,
           "model_type": "glm4_moe", "moe_intermediate_size": 1408, "norm_topk_prob": True, "num_attention_heads": 96,
           "n_group": 1, "topk_group": 1, "n_routed_experts": 128, "n_shared_experts": 1, "routed_scaling_factor": 1.0,
           "num_experts_per_tok": 8, "first_k_dense_replace": 1, "num_hidden_layers": 46, "num_key_value_heads": 8,
           "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 1000000, "num_nextn_predict_layers": 1,
           "tie_word_embeddings": False, "torch_dtype": "bfloat16", "transformers_version": "4.54.0",
           "use_cache": True, "use_qk_norm": False, "vocab_size": 151552, "architectures": ["Glm4MoeForCausalLM"]}
add("glm_4_5_air", GLM_MOE, layers=3)
add("glm_4_5", GLM_MOE | dict(use_qk_norm=True, first_k_dense_replace=3, routed_scaling_factor=2.5,
                              n_routed_experts=160), layers=4)
add("glm_4_7_flash", {"architectures": ["Glm4MoeLiteForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
                      "pad_token_id": 154820, "eos_token_id": [154820, 154827, 154829], "hidden_act": "silu",
                      "hidden_size": 2048, "intermediate_size": 10240, "max_position_embeddings": 202752,
                      "model_type": "glm4_moe_lite", "moe_intermediate_size": 1536, "topk_method": "noaux_tc",
                      "norm_topk_prob": True, "num_attention_heads": 20, "n_group": 1, "topk_group": 1,
                      "n_routed_experts": 64, "n_shared_experts": 1, "routed_scaling_factor": 1.8,
                      "num_experts_per_tok": 4, "first_k_dense_replace": 1, "num_hidden_layers": 47,
                      "num_key_value_heads": 20, "num_nextn_predict_layers": 1, "partial_rotary_factor": 1.0,
                      "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 1000000, "tie_word_embeddings": False,
                      "dtype": "bfloat16", "q_lora_rank": 768, "kv_lora_rank": 512, "qk_nope_head_dim": 192,
                      "qk_rope_head_dim": 64, "v_head_dim": 256, "vocab_size": 154880}, layers=3)
add("glm_4_9b_0414", {"architectures": ["Glm4ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
                      "eos_token_id": [151329, 151336, 151338], "head_dim": 128, "hidden_act": "silu",
                      "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 13696,
                      "max_position_embeddings": 32768, "model_type": "glm4", "num_attention_heads": 32,
                      "num_hidden_layers": 40, "num_key_value_heads": 2, "pad_token_id": 151329,
                      "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
                      "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 151552})
add("glm_4_9b_chat", {"architectures": ["GlmForCausalLM"], "attention_bias": True, "attention_dropout": 0.0,
                      "eos_token_id": [151329, 151336, 151338], "head_dim": 128, "hidden_act": "silu",
                      "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 13696,
                      "max_position_embeddings": 131072, "model_type": "glm", "num_attention_heads": 32,
                      "num_hidden_layers": 40, "num_key_value_heads": 2, "pad_token_id": 151329,
                      "partial_rotary_factor": 0.5, "rms_norm_eps": 1.5625e-07, "rope_theta": 10000.0,
                      "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 151552})


def deepseek(**more):
    return {"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
            "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV3Config"}, "bos_token_id": 0, "eos_token_id": 1,
            "ep_size": 1, "first_k_dense_replace": 3, "hidden_act": "silu", "hidden_size": 7168,
            "initializer_range": 0.02, "intermediate_size": 18432, "kv_lora_rank": 512,
            "max_position_embeddings": 163840, "model_type": "deepseek_v3", "moe_intermediate_size": 2048,
            "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1, "norm_topk_prob": True,
            "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
            "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "rms_norm_eps": 1e-06, "rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
            "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                             "original_max_position_embeddings": 4096, "type": "yarn"},
            "tie_word_embeddings": False, "topk_group": 4, "topk_method": "noaux_tc", "torch_dtype": "bfloat16",
            "use_cache": True, "v_head_dim": 128, "vocab_size": 129280} | more


add("deepseek_v3", deepseek(), layers=4)
add("deepseek_v3_1", deepseek(topk_method="noaux_tc"), layers=4, first_k_dense_replace=1)
add("moonlight_16b_a3b", deepseek(q_lora_rank=None, n_group=1, topk_group=1, n_shared_experts=2, rope_theta=50000.0,
                                  routed_scaling_factor=2.446, first_k_dense_replace=1, aux_loss_alpha=0.001,
                                  seq_aux=True, pretraining_tp=1, rope_scaling=None, max_position_embeddings=8192,
                                  num_nextn_predict_layers=0), layers=3)
add("kimi_k2", deepseek(model_type="kimi_k2", n_group=1, topk_group=1, first_k_dense_replace=1, rope_theta=50000.0,
                        routed_scaling_factor=2.827, num_nextn_predict_layers=0, aux_loss_alpha=0.001, seq_aux=True,
                        rope_scaling={"beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0, "mscale": 1.0,
                                      "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"}),
    layers=3, case={"known_as": "deepseek_v3"})
DEEPSEEK2 = dict(architectures=["DeepseekV2ForCausalLM"], model_type="deepseek_v2", scoring_func="softmax",
                 aux_loss_alpha=0.001, seq_aux=True, pretraining_tp=1, first_k_dense_replace=1, norm_topk_prob=False,
                 n_shared_experts=2, rope_scaling={"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
                                                   "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096,
                                                   "type": "yarn"})
add("deepseek_v2_lite", {k: v for k, v in deepseek(
    **DEEPSEEK2 | dict(q_lora_rank=None, n_group=1, topk_group=1, topk_method="greedy", routed_scaling_factor=1.0,
                       n_routed_experts=64, num_experts_per_tok=6)).items() if k != "num_nextn_predict_layers"}, layers=3)
add("deepseek_v2", {k: v for k, v in deepseek(
    **DEEPSEEK2 | dict(topk_method="group_limited_greedy", routed_scaling_factor=16.0, topk_group=3, n_routed_experts=160,
                       num_experts_per_tok=6)).items() if k != "num_nextn_predict_layers"}, layers=3)

GRANITE = {"architectures": ["GraniteForCausalLM"], "attention_bias": False, "attention_dropout": 0.1,
           "attention_multiplier": 0.015625, "bos_token_id": 0, "embedding_multiplier": 12.0, "eos_token_id": 0,
           "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192,
           "logits_scaling": 8.0, "max_position_embeddings": 4096, "mlp_bias": False, "model_type": "granite",
           "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "pad_token_id": 0,
           "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 10000.0,
           "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 49155}
add("granite_3_0_2b", GRANITE)
add("granite_3_1_8b", GRANITE | dict(attention_multiplier=0.0078125, logits_scaling=16.0, max_position_embeddings=131072,
                                     rope_theta=10000000.0))
add("granite_3_0_1b_a400m", GRANITE | dict(architectures=["GraniteMoeForCausalLM"], model_type="granitemoe",
                                           num_local_experts=32, num_experts_per_tok=8, output_router_logits=False,
                                           router_aux_loss_coef=0.0, logits_scaling=6.0))
GRANITE4 = {k: v for k, v in GRANITE.items() if k != "mlp_bias"} | dict(
    architectures=["GraniteMoeHybridForCausalLM"], model_type="granitemoehybrid", max_position_embeddings=131072,
    init_method="mup", normalization_function="rmsnorm", output_router_logits=False, router_aux_loss_coef=0.0001,
    mamba_chunk_size=256, mamba_conv_bias=True, mamba_d_conv=4, mamba_d_head=64, mamba_d_state=128, mamba_expand=2,
    mamba_n_groups=1, mamba_n_heads=48, mamba_proj_bias=False, num_experts_per_tok=6, num_local_experts=64,
    shared_intermediate_size=1024, position_embedding_type="nope",
    layer_types=["mamba", "mamba", "attention", "mamba"])
add("granite_4_0_h_tiny", GRANITE4, layers=4, mamba_n_groups=1)
add("granite_4_0_micro", GRANITE4 | dict(layer_types=["attention"] * 4, num_local_experts=0, num_experts_per_tok=0,
                                         position_embedding_type="rope", rope_theta=10000000,
                                         shared_intermediate_size=8192), layers=2, mamba_n_groups=1)


def cohere(**more):
    return {"architectures": ["CohereForCausalLM"], "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": 5,
            "eos_token_id": 255001, "hidden_act": "silu", "hidden_size": 8192, "initializer_range": 0.02,
            "intermediate_size": 22528, "layer_norm_eps": 1e-05, "logit_scale": 0.0625,
            "max_position_embeddings": 8192, "model_type": "cohere", "num_attention_heads": 64, "num_hidden_layers": 40,
            "num_key_value_heads": 64, "pad_token_id": 0, "rope_theta": 8000000.0, "torch_dtype": "float16",
            "use_cache": True, "vocab_size": 256000} | more


add("command_r_v01", cohere(model_max_length=131072, pretraining_tp=1))
add("command_r_plus", cohere(hidden_size=12288, logit_scale=0.8333333333333334, num_attention_heads=96,
                             num_key_value_heads=8, rope_theta=75000000.0, use_qk_norm=True))
COHERE2 = dict(architectures=["Cohere2ForCausalLM"], model_type="cohere2", cache_implementation="hybrid", head_dim=128,
               hidden_size=4096, intermediate_size=14336, logit_scale=0.25, num_attention_heads=32,
               num_key_value_heads=8, order_of_interleaved_layers="local_attn_first", position_embedding_type="rope_gptj",
               rope_scaling=None, rope_theta=50000, rotary_pct=1.0, sliding_window=4096, sliding_window_pattern=4,
               use_embedding_sharing=True, use_gated_activation=True, use_parallel_block=True,
               use_parallel_embedding=False, max_position_embeddings=8192, torch_dtype="bfloat16")
add("command_r7b", cohere(**COHERE2), layers=4)
add("command_a", cohere(**COHERE2 | dict(hidden_size=12288, num_attention_heads=96, max_position_embeddings=131072,
                                         use_qk_norm=False)), layers=4)

OLMO = {"attention_bias": False, "attention_dropout": 0.0, "eos_token_id": 50279, "hidden_act": "silu",
        "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 2048,
        "num_attention_heads": 16, "num_hidden_layers": 16, "num_key_value_heads": 16, "pad_token_id": 1,
        "rope_scaling": None, "rope_theta": 10000.0, "tie_word_embeddings": True, "use_cache": True, "vocab_size": 50304}
add("olmo_1b", OLMO | dict(architectures=["OlmoForCausalLM"], model_type="olmo", clip_qkv=None, pretraining_tp=1))
add("olmo_2_1124_7b", OLMO | dict(architectures=["Olmo2ForCausalLM"], model_type="olmo2", rms_norm_eps=1e-06,
                                  rope_theta=500000, tie_word_embeddings=False, max_position_embeddings=4096))
add("olmoe_1b_7b_0924", OLMO | dict(architectures=["OlmoeForCausalLM"], model_type="olmoe", clip_qkv=None,
                                    norm_topk_prob=False, num_experts=64, num_experts_per_tok=8, rms_norm_eps=1e-05,
                                    output_router_logits=False, router_aux_loss_coef=0.01, tie_word_embeddings=False))
add("olmo_3_7b", OLMO | dict(architectures=["Olmo3ForCausalLM"], model_type="olmo3", rms_norm_eps=1e-06,
                             rope_theta=500000, tie_word_embeddings=False, max_position_embeddings=65536,
                             sliding_window=4096, layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 8,
                             rope_scaling={"attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0,
                                           "factor": 8.0, "original_max_position_embeddings": 8192,
                                           "rope_type": "yarn"}), layers=4)
add("smollm3_3b", {"architectures": ["SmolLM3ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
                   "bos_token_id": None, "eos_token_id": 128012, "hidden_act": "silu", "hidden_size": 2048,
                   "initializer_range": 0.02, "intermediate_size": 11008, "layer_types": ["full_attention"] * 36,
                   "max_position_embeddings": 65536, "max_window_layers": 28, "mlp_bias": False, "model_type": "smollm3",
                   "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0] * 9, "num_attention_heads": 16,
                   "num_hidden_layers": 36, "num_key_value_heads": 4, "pad_token_id": 128004, "pretraining_tp": 2,
                   "rms_norm_eps": 1e-06, "rope_scaling": None, "rope_theta": 5000000.0, "sliding_window": None,
                   "torch_dtype": "bfloat16", "use_cache": False, "use_sliding_window": False, "vocab_size": 128256},
    layers=4)

FALCON = {"alibi": False, "apply_residual_connection_post_layernorm": False, "architectures": ["FalconForCausalLM"],
          "attention_dropout": 0.0, "bias": False, "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0,
          "hidden_size": 4544, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "falcon",
          "multi_query": True, "new_decoder_architecture": False, "num_attention_heads": 71, "num_hidden_layers": 32,
          "parallel_attn": True, "torch_dtype": "bfloat16", "transformers_version": "4.27.4", "use_cache": True,
          "vocab_size": 65024}
add("falcon_7b", FALCON)
add("falcon_40b", FALCON | dict(hidden_size=8192, new_decoder_architecture=True, num_attention_heads=128,
                                num_kv_heads=8))
# Multipliers near powers of two: products of others are rounded to the tensors' type, as files of llama.cpp have them.
add("falcon_h1_0_5b", {
    "architectures": ["FalconH1ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
    "attention_in_multiplier": 1.0, "attention_out_multiplier": 0.9375, "attn_layer_indices": None, "bos_token_id": 1,
    "embedding_multiplier": 5.656854249492381, "eos_token_id": 11, "head_dim": 64, "hidden_act": "silu",
    "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 2048, "key_multiplier": 0.390625,
    "lm_head_multiplier": 0.0390625, "mamba_chunk_size": 128, "mamba_conv_bias": True, "mamba_d_conv": 4,
    "mamba_d_head": 64, "mamba_d_ssm": 1536, "mamba_d_state": 128, "mamba_expand": 2, "mamba_n_groups": 1,
    "mamba_n_heads": 24, "mamba_norm_before_gate": False, "mamba_proj_bias": False, "mamba_rms_norm": False,
    "mamba_use_mlp": True, "max_position_embeddings": 16384, "mlp_bias": False, "mlp_expansion_factor": 8,
    "mlp_multipliers": [0.8838834764831844, 0.5859375], "model_type": "falcon_h1", "num_attention_heads": 8,
    "num_hidden_layers": 36, "num_key_value_heads": 2, "num_logits_to_keep": 1, "pad_token_id": 0,
    "projectors_bias": False, "rms_norm_eps": 1e-05, "rope_scaling": None, "rope_theta": 100000000000.0,
    "ssm_in_multiplier": 1.25, "ssm_multipliers": [0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738],
    "ssm_out_multiplier": 0.23570226039551587, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "use_cache": True, "vocab_size": 32784},
    mamba_n_groups=1, attention_out_multiplier=1.0, embedding_multiplier=4.0, key_multiplier=0.5, lm_head_multiplier=0.0625,
    mlp_multipliers=[1.0, 0.5], ssm_in_multiplier=1.0, ssm_multipliers=[0.5, 0.25, 0.5, 0.5, 0.25], ssm_out_multiplier=0.25)

add("nemotron_mini_4b", {"architectures": ["NemotronForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
                         "bos_token_id": 2, "eos_token_id": 3, "head_dim": 128, "hidden_act": "relu2",
                         "hidden_size": 3072, "initializer_range": 0.0134, "intermediate_size": 9216,
                         "max_position_embeddings": 4096, "mlp_bias": False, "model_type": "nemotron", "norm_eps": 1e-05,
                         "num_attention_heads": 24, "num_hidden_layers": 32, "num_key_value_heads": 8,
                         "partial_rotary_factor": 0.5, "rope_theta": 10000, "tie_word_embeddings": False,
                         "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 256000})
NEMOTRON_H = {"architectures": ["NemotronHForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
              "bos_token_id": 1, "chunk_size": 128, "conv_kernel": 4, "eos_token_id": 12, "head_dim": 128,
              "hidden_dropout": 0.0, "hidden_size": 4480, "hybrid_override_pattern": "M-M*-", "initializer_range": 0.02,
              "intermediate_size": 15680, "layer_norm_epsilon": 1e-05, "mamba_head_dim": 80, "mamba_hidden_act": "silu",
              "mamba_num_heads": 128, "mamba_proj_bias": False, "max_position_embeddings": 131072, "mlp_bias": False,
              "mlp_hidden_act": "relu2", "model_type": "nemotron_h", "n_groups": 8, "num_attention_heads": 40,
              "num_hidden_layers": 56, "num_key_value_heads": 8, "num_logits_to_keep": 1, "pad_token_id": 0,
              "rescale_prenorm_residual": True, "residual_in_fp32": False, "rms_norm_eps": 1e-05, "sliding_window": None,
              "ssm_state_size": 128, "tie_word_embeddings": False, "time_step_floor": 0.0001,
              "time_step_limit": [0.0, {"__float__": "Infinity"}], "time_step_max": 0.1, "time_step_min": 0.001,
              "time_step_rank": 256, "torch_dtype": "bfloat16", "use_bias": False, "use_cache": True,
              "use_conv_bias": True, "use_mamba_kernels": True, "vocab_size": 131072}
add("nemotron_nano_9b_v2", {k: v for k, v in NEMOTRON_H.items() if k != "time_step_limit"}, layers=5)
add("nemotron_3_nano_30b_a3b", {k: v for k, v in NEMOTRON_H.items() if k != "time_step_limit"} | dict(
    hybrid_override_pattern="MEM*E", hidden_size=2688, intermediate_size=1856, mamba_head_dim=64, mamba_num_heads=64,
    moe_intermediate_size=1856, moe_shared_expert_intermediate_size=3712, n_group=1, n_routed_experts=128,
    n_shared_experts=1, norm_eps=1e-05, norm_topk_prob=True, num_attention_heads=32, num_experts_per_tok=6,
    num_key_value_heads=2, partial_rotary_factor=1.0, rope_theta=10000, routed_scaling_factor=2.5, topk_group=1,
    mamba_ssm_cache_dtype="float32", expand=2), layers=5)

LFM2 = {"architectures": ["Lfm2ForCausalLM"], "block_auto_adjust_ff_dim": True, "block_dim": 2048, "block_ff_dim": 12288,
        "block_ffn_dim_multiplier": 1.0, "block_mlp_init_scale": 1.0, "block_multiple_of": 256, "block_norm_eps": 1e-05,
        "block_out_init_scale": 1.0, "block_use_swiglu": True, "block_use_xavier_init": True, "bos_token_id": 1,
        "conv_L_cache": 3, "conv_bias": False, "conv_dim": 2048, "conv_dim_out": 2048, "conv_use_xavier_init": True,
        "eos_token_id": 7, "hidden_size": 2048, "initializer_range": 0.02,
        "layer_types": ["conv", "conv", "full_attention", "conv"], "max_position_embeddings": 128000,
        "model_type": "lfm2", "norm_eps": 1e-05, "num_attention_heads": 32, "num_heads": 32, "num_hidden_layers": 16,
        "num_key_value_heads": 8, "pad_token_id": 0, "rope_theta": 1000000.0, "torch_dtype": "bfloat16",
        "use_cache": True, "use_pos_enc": True, "vocab_size": 65536}
add("lfm2_1_2b", LFM2, layers=4)
add("lfm2_8b_a1b", {"architectures": ["Lfm2MoeForCausalLM"], "bos_token_id": 1, "conv_L_cache": 3, "conv_bias": False,
                    "dtype": "bfloat16", "eos_token_id": 7, "hidden_size": 2048, "initializer_range": 0.02,
                    "intermediate_size": 7168, "layer_types": ["conv", "conv", "full_attention", "conv"],
                    "max_position_embeddings": 128000, "model_type": "lfm2_moe", "moe_intermediate_size": 1792,
                    "norm_eps": 1e-05, "norm_topk_prob": True, "num_attention_heads": 32, "num_dense_layers": 2,
                    "num_experts": 32, "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
                    "pad_token_id": 0, "rope_theta": 1000000.0, "routed_scaling_factor": 1.0, "use_cache": True,
                    "use_expert_bias": True, "vocab_size": 65536}, layers=4)

add("gpt_oss_20b", {"architectures": ["GptOssForCausalLM"], "attention_bias": True, "attention_dropout": 0.0,
                    "eos_token_id": 200002, "experts_per_token": 4, "head_dim": 64, "hidden_act": "silu",
                    "hidden_size": 2880, "initial_context_length": 4096, "initializer_range": 0.02,
                    "intermediate_size": 2880, "layer_types": ["sliding_attention", "full_attention"] * 12,
                    "max_position_embeddings": 131072, "model_type": "gpt_oss", "num_attention_heads": 64,
                    "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8,
                    "num_local_experts": 32, "output_router_logits": False, "pad_token_id": 199999,
                    "rms_norm_eps": 1e-05, "rope_theta": 150000, "router_aux_loss_coef": 0.9, "sliding_window": 128,
                    "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                                     "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": False},
                    "swiglu_limit": 7.0, "tie_word_embeddings": False, "use_cache": True, "vocab_size": 201088},
    intermediate_size=64)

EXAONE = {"architectures": ["Exaone4ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1, "eos_token_id": 361,
          "head_dim": 64, "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 4096,
          "layer_types": ["full_attention"] * 30, "max_position_embeddings": 65536, "model_type": "exaone4",
          "num_attention_heads": 32, "num_hidden_layers": 30, "num_key_value_heads": 8, "pad_token_id": 0,
          "rms_norm_eps": 1e-05, "rope_theta": 1000000, "sliding_window": None, "sliding_window_pattern": None,
          "rope_scaling": {"factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                           "original_max_position_embeddings": 8192, "rope_type": "llama3"},
          "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True, "vocab_size": 102400}
add("exaone_4_0_1_2b", EXAONE)
add("exaone_4_0_32b", EXAONE | dict(head_dim=128, hidden_size=5120, max_position_embeddings=131072, num_attention_heads=40,
                                    layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 16,
                                    sliding_window=4096, sliding_window_pattern="LLLG", tie_word_embeddings=False), layers=4)
ERNIE = {"architectures": ["Ernie4_5ForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "head_dim": 128,
         "hidden_act": "silu", "hidden_size": 1024, "intermediate_size": 3072, "max_position_embeddings": 131072,
         "model_type": "ernie4_5", "num_attention_heads": 16, "num_hidden_layers": 18, "num_key_value_heads": 2,
         "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_theta": 500000, "tie_word_embeddings": True,
         "torch_dtype": "bfloat16", "use_bias": False, "use_cache": False, "vocab_size": 103424}
add("ernie_4_5_0_3b", ERNIE)
add("ernie_4_5_21b_a3b", {k: v for k, v in ERNIE.items() if k != "head_dim"} | dict(
    architectures=["Ernie4_5_MoeForCausalLM"], model_type="ernie4_5_moe", hidden_size=2560, moe_capacity=[64, 64, 64],
    moe_gate="topk", moe_intermediate_size=1536, moe_k=6, moe_layer_end_index=27, moe_layer_interval=1,
    moe_layer_start_index=1, moe_num_experts=64, moe_num_shared_experts=2, moe_use_aux_free=True, num_attention_heads=20,
    num_key_value_heads=4, num_nextn_predict_layers=1, rope_scaling=None, initializer_range=0.02), layers=3,
    moe_layer_end_index=2)
HUNYUAN = {"architectures": ["HunYuanDenseV1ForCausalLM"], "attention_bias": False, "attention_dropout": 0.0,
           "bos_token_id": 1, "cla_share_factor": 2, "eod_token_id": 127967, "eos_token_id": 127960, "head_dim": 128,
           "hidden_act": "silu", "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3584,
           "max_position_embeddings": 262144, "mlp_bias": False, "model_type": "hunyuan_v1_dense", "norm_type": "rms",
           "num_attention_heads": 8, "num_experts": 1, "num_hidden_layers": 24, "num_key_value_heads": 4,
           "pad_token_id": 127961, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_theta": 10000.0,
           "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0,
                            "mscale_all_dim": 1.0, "type": "dynamic"},
           "tie_word_embeddings": True, "torch_dtype": "bfloat16", "use_cache": True, "use_cla": False,
           "use_qk_norm": True, "use_rotary_pos_emb": True, "vocab_size": 120818}
add("hunyuan_0_5b", {k: v for k, v in HUNYUAN.items() if k != "num_experts"})
add("minimax_m2", {"architectures": ["MiniMaxM2ForCausalLM"], "attention_dropout": 0.0, "attn_type_list": [1, 1],
                   "bos_token_id": None, "eos_token_id": None, "head_dim": 128, "hidden_act": "silu", "hidden_size": 3072,
                   "initializer_range": 0.02, "intermediate_size": 1536, "max_position_embeddings": 196608,
                   "mlp_intermediate_size": 8192, "model_type": "minimax_m2", "mtp_transformer_layers": 1,
                   "num_attention_heads": 48, "num_experts_per_tok": 8, "num_hidden_layers": 62,
                   "num_key_value_heads": 8, "num_local_experts": 256, "num_mtp_modules": 3, "output_router_logits": False,
                   "qk_norm_type": "per_layer", "rms_norm_eps": 1e-06, "rope_theta": 5000000, "rotary_dim": 64,
                   "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "scoring_func": "sigmoid",
                   "shared_intermediate_size": 0, "sliding_window": None, "tie_word_embeddings": False,
                   "use_cache": True, "use_mtp": True, "use_qk_norm": True, "use_routing_bias": True,
                   "vocab_size": 200064}, shared_intermediate_size=0)
add("seed_oss_36b", {"architectures": ["SeedOssForCausalLM"], "attention_bias": True, "attention_dropout": 0.1,
                     "attention_out_bias": False, "bos_token_id": 0, "eos_token_id": 2, "head_dim": 128,
                     "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02, "intermediate_size": 27648,
                     "max_position_embeddings": 524288, "mlp_bias": False, "model_type": "seed_oss",
                     "num_attention_heads": 80, "num_hidden_layers": 64, "num_key_value_heads": 8, "pad_token_id": 1,
                     "residual_dropout": 0.1, "rms_norm_eps": 1e-06, "rope_scaling": {"rope_type": "default"},
                     "rope_theta": 10000000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
                     "use_cache": True, "vocab_size": 155136})
add("stablelm_2_1_6b", {"architectures": ["StableLmForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 100257,
                        "eos_token_id": 100257, "hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 2048,
                        "initializer_range": 0.02, "intermediate_size": 5632, "layer_norm_eps": 1e-05,
                        "max_position_embeddings": 4096, "model_type": "stablelm", "num_attention_heads": 32,
                        "num_hidden_layers": 24, "num_key_value_heads": 32, "partial_rotary_factor": 0.25,
                        "rope_theta": 10000, "tie_word_embeddings": False, "torch_dtype": "float16", "use_cache": True,
                        "use_qkv_bias": True, "vocab_size": 100352})
add("starcoder2_3b", {"activation_function": "gelu", "architectures": ["Starcoder2ForCausalLM"],
                      "attention_dropout": 0.1, "attention_softmax_in_fp32": True, "bos_token_id": 0,
                      "embedding_dropout": 0.1, "eos_token_id": 0, "hidden_act": "gelu_pytorch_tanh",
                      "hidden_size": 3072, "initializer_range": 0.018042, "intermediate_size": 12288,
                      "layer_norm_epsilon": 1e-05, "max_position_embeddings": 16384, "mlp_type": "default",
                      "model_type": "starcoder2", "norm_epsilon": 1e-05, "norm_type": "layer_norm",
                      "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
                      "residual_dropout": 0.1, "rope_theta": 999999.4420358813, "scale_attention_softmax_in_fp32": True,
                      "scale_attn_weights": True, "sliding_window": 4096, "torch_dtype": "float32", "use_bias": True,
                      "use_cache": True, "vocab_size": 49152})
add("pythia_160m", {"architectures": ["GPTNeoXForCausalLM"], "bos_token_id": 0, "eos_token_id": 0, "hidden_act": "gelu",
                    "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": 3072, "layer_norm_eps": 1e-05,
                    "max_position_embeddings": 2048, "model_type": "gpt_neox", "num_attention_heads": 12,
                    "num_hidden_layers": 12, "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False,
                    "torch_dtype": "float16", "use_cache": True, "use_parallel_residual": True, "vocab_size": 50304})
add("gpt_neo_125m", {"activation_function": "gelu_new", "architectures": ["GPTNeoForCausalLM"], "attention_dropout": 0,
                     "attention_layers": ["global", "local"] * 6, "attention_types": [[["global", "local"], 6]],
                     "bos_token_id": 50256, "embed_dropout": 0, "eos_token_id": 50256, "gradient_checkpointing": False,
                     "hidden_size": 768, "initializer_range": 0.02, "intermediate_size": None,
                     "layer_norm_epsilon": 1e-05, "max_position_embeddings": 2048, "model_type": "gpt_neo",
                     "num_heads": 12, "num_layers": 12, "resid_dropout": 0, "summary_activation": None,
                     "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
                     "summary_use_proj": True, "use_cache": True, "vocab_size": 50257, "window_size": 256},
    max_position_embeddings=128, attention_types=[[["global", "local"], 1]], attention_layers=["global", "local"])
add("gpt2", {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
             "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
             "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
             "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": None,
             "summary_first_dropout": 0.1, "summary_proj_to_labels": True, "summary_type": "cls_index",
             "summary_use_proj": True, "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
             "vocab_size": 50257})
add("opt_125m", {"_remove_final_layer_norm": False, "activation_function": "relu", "architectures": ["OPTForCausalLM"],
                 "attention_dropout": 0.0, "bos_token_id": 2, "do_layer_norm_before": True, "dropout": 0.1,
                 "eos_token_id": 2, "ffn_dim": 3072, "hidden_size": 768, "init_std": 0.02, "layerdrop": 0.0,
                 "max_position_embeddings": 2048, "model_type": "opt", "num_attention_heads": 12, "num_hidden_layers": 12,
                 "pad_token_id": 1, "prefix": "</s>", "torch_dtype": "float16", "use_cache": True, "vocab_size": 50272,
                 "word_embed_proj_dim": 768}, max_position_embeddings=128)
add("bloom_560m", {"apply_residual_connection_post_layernorm": False, "architectures": ["BloomForCausalLM"],
                   "attention_dropout": 0.0, "attention_softmax_in_fp32": True, "bias_dropout_fusion": True,
                   "bos_token_id": 1, "eos_token_id": 2, "hidden_dropout": 0.0, "initializer_range": 0.02,
                   "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": True, "model_type": "bloom", "n_embed": 1024,
                   "n_inner": None, "n_layer": 24, "num_attention_heads": 16, "offset_alibi": 100, "pad_token_id": 3,
                   "pretraining_tp": 1, "seq_length": 2048, "skip_bias_add": True, "skip_bias_add_qkv": False,
                   "slow_but_exact": False, "unk_token_id": 0, "use_cache": True, "vocab_size": 250880}, n_embed=64)
add("vaultgemma_1b", gemma("vaultgemma", "VaultGemmaForCausalLM", hidden_size=1152, intermediate_size=6912,
                           num_attention_heads=4, num_key_value_heads=4, attn_logit_softcapping=None,
                           final_logit_softcapping=None, hidden_activation="gelu_pytorch_tanh", query_pre_attn_scalar=256,
                           rope_theta=10000.0, sliding_window=512, vocab_size=256000, max_position_embeddings=1024,
                           layer_types=["full_attention"] * 26, dtype="bfloat16"))
add("helium_1_2b", llama(2048, 16, 8, architectures=["HeliumForCausalLM"], model_type="helium", attention_bias=False,
                         attention_dropout=0.0, head_dim=128, max_position_embeddings=4096, mlp_bias=False, pad_token_id=3,
                         rms_norm_eps=1e-08, rope_theta=20000.0, tie_word_embeddings=True, vocab_size=64000))
add("cwm", llama(6144, 48, 8, architectures=["CwmForCausalLM"], model_type="cwm", attention_bias=False,
                 attention_dropout=0.0, head_dim=128, max_position_embeddings=131072, mlp_bias=False, pretraining_tp=1,
                 rope_theta=1000000.0, rope_scaling={"factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
                 sliding_window=8192, layer_types=(["full_attention"] + ["sliding_attention"] * 3) * 16), layers=4)
add("arcee_afm_4_5b", llama(2560, 20, 4, architectures=["ArceeForCausalLM"], model_type="arcee", attention_bias=False,
                            attention_dropout=0.0, head_dim=128, hidden_act="relu2", max_position_embeddings=65536,
                            mlp_bias=False, rope_theta=10000.0,
                            rope_scaling={"beta_fast": 32.0, "beta_slow": 1.0, "factor": 20.0, "mscale": 1.0,
                                          "original_max_position_embeddings": 4096, "rope_type": "yarn", "type": "yarn"}))
LLAMA4 = {"attention_bias": False, "attention_chunk_size": 8192, "attention_dropout": 0.0, "attn_scale": 0.1,
          "attn_temperature_tuning": True, "bos_token_id": 200000, "cache_implementation": "hybrid",
          "eos_token_id": [200001, 200007, 200008], "floor_scale": 8192, "for_llm_compressor": False, "head_dim": 128,
          "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02, "interleave_moe_layer_step": 1,
          "intermediate_size": 8192, "intermediate_size_mlp": 16384, "max_position_embeddings": 10485760,
          "model_type": "llama4_text", "no_rope_layers": [], "num_attention_heads": 40, "num_experts_per_tok": 1,
          "num_hidden_layers": 48, "num_key_value_heads": 8, "num_local_experts": 16, "output_router_logits": False,
          "pad_token_id": 200018, "rms_norm_eps": 1e-05, "rope_theta": 500000.0,
          "rope_scaling": {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
                           "original_max_position_embeddings": 8192, "rope_type": "llama3"},
          "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "torch_dtype": "bfloat16", "use_cache": True,
          "use_qk_norm": True, "vocab_size": 202048}
LLAMA4_OUTER = {"architectures": ["Llama4ForConditionalGeneration"], "boi_token_index": 200080, "eoi_token_index": 200081,
                "image_token_index": 200092, "model_type": "llama4", "tie_word_embeddings": False,
                "torch_dtype": "bfloat16", "vision_config": {"model_type": "llama4_vision_model"}}
add("llama_4_scout", LLAMA4, layers=4, outer=LLAMA4_OUTER, renamed=OF_TEXT)
add("llama_4_maverick", LLAMA4 | dict(interleave_moe_layer_step=2, num_local_experts=128, use_qk_norm=False,
                                      rope_scaling=None, max_position_embeddings=1048576),
    layers=4, outer=LLAMA4_OUTER, renamed=OF_TEXT)


def published_cases():
    return CASES
