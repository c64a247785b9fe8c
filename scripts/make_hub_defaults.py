#!/usr/bin/env python3
"""Writes src/model/hub/hub_defaults.inl: what the `transformers` library takes where a config.json leaves a key out.

    python3 scripts/make_hub_defaults.py [--check]

Needs transformers (VERSION below) and torch. For each model_type that Candor reads: every field of the library's
configuration class with its default, the other names of a field, keys that the class reads beside its fields, and
the rotary settings that hold where the folder has none. --check writes nothing and fails where the file differs.
A new model_type is a row in MODEL_TYPES, or in OWN where its class is not in the library.
"""

import argparse
import dataclasses
import inspect
import json
import math
import pathlib
import re
import sys

VERSION = "5.23.0"
ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "src/model/hub/hub_defaults.inl"
WIDTH = 116

MODEL_TYPES = """
afmoe arcee bamba bert bloom camembert codegen cohere cohere2 cwm deepseek_v2 deepseek_v3 distilbert dots1 ernie4_5 ernie4_5_moe exaone4 exaone_moe
falcon falcon_h1 flex_olmo gemma gemma2 gemma3_text gemma4_text glm glm4 glm4_moe glm4_moe_lite gpt2 gpt_bigcode
gpt_neo gpt_neox gpt_oss gptj granite gte granitemoe granitemoehybrid granitemoeshared helium hunyuan_v1_dense
hunyuan_v1_moe internlm3 jina_embeddings_v3 kimi_linear lfm2 lfm2_moe llama llama4_text minimax_m2 ministral ministral3 mistral mistral4
mixtral modernbert mpnet mpt nanochat nemotron nemotron_h nomic_bert olmo olmo2 olmo3 olmo_hybrid olmoe opt persimmon phi phi3 qwen2 qwen2_5_vl_text qwen2_moe
qwen3 qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next qwen3_vl_moe_text qwen3_vl_text roberta seed_oss smollm3 stablelm starcoder2 vaultgemma xglm xlm-roberta youtu
""".split()

# Classes that come with their checkpoints: the library's class that they follow, and what theirs has otherwise. A key
# whose default is MISSING has to be in the folder.
MISSING = object()
OWN = {
    "mimo": ("qwen2", {}),
    "llama_bidirec": ("llama", {"pooling": "avg", "temperature": 1.0}),
    "internlm2": ("llama", {"vocab_size": 103168, "bias": True}),
    "baichuan": ("llama", {"vocab_size": 64000, "max_position_embeddings": 4096, "model_max_length": None}),
    "minicpm": ("llama", {"tie_word_embeddings": True, "scale_emb": 1, "dim_model_base": 1, "scale_depth": 1}),
    "new": ("gte", {"rope_theta": 10000.0, "rope_scaling": None, "position_embedding_type": "rope",
                    "layer_norm_type": "layer_norm", "logn_attention_scale": False, "logn_attention_clip1": False,
                    "pack_qkv": True, "unpad_inputs": False, "use_memory_efficient_attention": False,
                    "type_vocab_size": 0}),
    "kimi_k2": ("deepseek_v3", {
        **{key: MISSING for key in ["n_group", "topk_group", "num_experts_per_tok", "first_k_dense_replace",
                                    "norm_topk_prob", "routed_scaling_factor", "n_shared_experts",
                                    "n_routed_experts", "moe_intermediate_size", "num_mtp_layers"]},
        "num_nextn_predict_layers": 0, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "moe_layer_freq": 1}),
}

# Keys that change no logit of a causal language model in evaluation: of training, of generation, of speed.
WITHOUT_EFFECT = """
_attn_implementation _attn_implementation_autoset _name_or_path _pre_quantization_dtype activation_dropout
add_cross_attention architectures attention_dropout attention_probs_dropout_prob attn_dropout attn_implementation
attn_pdrop attention_softmax_in_fp32 auto_map aux_loss_alpha bad_words_ids begin_suppress_tokens bos_token_id cache_dir
chunk_size chunk_size_feed_forward classifier_dropout cross_attention_hidden_size decoder_start_token_id
diversity_penalty do_sample dropout dtype early_stopping embd_pdrop embedding_dropout emb_pdrop
encoder_no_repeat_ngram_size eod_token_id eos_token_id exponential_decay_length_penalty finetuning_task
forced_bos_token_id forced_eos_token_id hidden_dropout id2label image_token_id init_device init_std
initializer_range is_decoder is_encoder_decoder label2id layerdrop length_penalty linear_a_log_max linear_a_log_min
embedding_initializer_range linear_dt_init_floor linear_dt_max linear_dt_min mamba_chunk_size mamba_ssm_cache_dtype max_length min_length
model_type moe_shared_expert_overlap n_ctx mtp_layers_block_type name_or_path no_repeat_ngram_size num_beam_groups num_beams
num_labels num_logits_to_keep num_return_sequences output_attentions output_hidden_states output_router_logits
output_scores pad_token_id prefix pretraining_tp problem_type pruned_heads quantization_config remove_invalid_values
reorder_and_upcast_attn repetition_penalty rescale_prenorm_residual residual_dropout resid_pdrop residual_in_fp32
return_dict return_dict_in_generate router_aux_loss_coef router_jitter_noise scale_attention_softmax_in_fp32
sep_token_id seq_aux slow_but_exact summary_activation summary_first_dropout summary_proj_to_labels summary_type
summary_use_proj suppress_tokens task_specific_params temperature tf_legacy_loss tie_encoder_decoder
tie_last_hidden_states time_step_floor time_step_max tokenizer_class top_k top_p torch_dtype torchscript transformers_version
typical_p use_bfloat16 use_cache use_mamba_kernels vision_config z_loss_coefficient hidden_dropout_prob
""".split()

# Older names of a key, which the class takes from what is left over.
OLDER_NAMES = {
    "bloom": {"n_embed": "hidden_size"},
    "falcon": {"n_embed": "hidden_size"},
    "modernbert": {"global_rope_theta": "rope_theta", "local_rope_theta": "rope_local_base_freq"},
    "lfm2": {"tie_embedding": "tie_word_embeddings", "block_ff_dim": "intermediate_size"},
    "nomic_bert": {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
                   "n_inner": "intermediate_size", "n_positions": "max_position_embeddings",
                   "layer_norm_epsilon": "layer_norm_eps"},
    "lfm2_moe": {"tie_embedding": "tie_word_embeddings"},
    "nemotron_h": {"mamba_n_groups": "n_groups", "mamba_d_conv": "conv_kernel", "mamba_expand": "expand",
                   "mamba_dt_min": "time_step_min", "mamba_dt_max": "time_step_max",
                   "mamba_dt_limit": "time_step_limit", "mamba_conv_bias": "use_conv_bias"},
}

# Classes that compute the rotated share of a head from its widths.
IMPLIED_SHARES = ["mistral4"]

# Classes that take rotary settings by kind of block alone.
STRICT_KINDS = ["modernbert"]

# Fields whose value the library computes from other keys, so that its class's own default never holds.
COMPUTED = {"modernbert": ["rope_theta", "rope_local_base_freq", "rope_scaling"], "kimi_linear": ["linear_attn_config"]}


def encode(value):
    if isinstance(value, float) and math.isinf(value):
        return {"__float__": "Infinity"}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if hasattr(value, "to_dict"):
        return {key: encode(item) for key, item in value.to_dict().items()
                if key not in WITHOUT_EFFECT and not key.startswith("_") and key != "per_layer_config"}
    return value


def code_of(cls):
    """The source of the class's model; "" where it is another family's."""
    path = pathlib.Path(inspect.getfile(cls))
    path = path.with_name(path.name.replace("configuration_", "modeling_"))
    return path.read_text() if path.exists() else ""


def other_keys(cls, fields):
    """Keys that the class, or its model's code, reads beside its fields."""
    source = inspect.getsource(inspect.getmodule(cls))
    names = set(re.findall(r'kwargs\.(?:get|pop|setdefault)\("(\w+)"', source))
    names |= set(re.findall(r'"(\w+)" in kwargs', source))
    names |= set(re.findall(r'getattr\(\s*(?:self\.)?\w*config, "(\w+)"', code_of(cls)))
    rotary = {"rope_scaling", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"}
    if "rope_parameters" in fields:
        names |= rotary
    return sorted(name for name in names - set(fields) - set(WITHOUT_EFFECT) if not name.startswith("_"))


def flat_of(parameters):
    return next((value for value in parameters.values() if isinstance(value, dict)), parameters)


def rotary_of(cls):
    """theta, partial: of settings that lack them. default: the settings where the folder has none. takes_theta,
    takes_partial: whether keys beside them count. uses_partial: whether unscaled rotation heeds a share; None where a
    share does not fit the model."""
    whole = getattr(cls(), "rope_parameters", None)
    if not isinstance(whole, dict) or not whole:
        return None
    if cls.model_type in STRICT_KINDS:
        return encode({"theta": cls.default_theta, "partial": None, "default": whole, "takes_theta": True,
                       "takes_partial": False, "uses_partial": False})
    probe = 12345.0
    flat = flat_of(cls(rope_parameters={"rope_type": "default"}).rope_parameters)
    with_theta = cls(rope_theta=probe).rope_parameters
    full = with_theta.get("full_attention", with_theta)
    partial = flat_of(cls(partial_rotary_factor=0.125).rope_parameters)
    model = code_of(cls)
    default_rule = model[model.index("def compute_default_rope"):] if "def compute_default_rope" in model else ""
    if cls.model_type in IMPLIED_SHARES:
        whole, flat = {key: value for key, value in whole.items() if key != "partial_rotary_factor"}, {}
    return encode({"theta": cls.default_theta, "partial": flat.get("partial_rotary_factor"), "default": whole,
                   "takes_theta": full.get("rope_theta") == probe,
                   "takes_partial": partial.get("partial_rotary_factor") == 0.125,
                   "uses_partial": "partial_rotary_factor" in default_rule.split("return inv_freq")[0] if model else None})


def row_of(model_type, mapping, base_fields):
    cls = mapping[model_type]
    fields = {}
    for field in dataclasses.fields(cls):
        if field.name in base_fields or field.name in WITHOUT_EFFECT or field.name == "rope_parameters":
            continue
        default = field.default if field.default is not dataclasses.MISSING else field.default_factory()
        fields[field.name] = encode(default)
    if model_type == "mpt":
        attention = inspect.getmodule(cls).MptAttentionConfig()
        fields["attn_config"] = encode(attention)
    fields.setdefault("tie_word_embeddings", True)
    fields = {cls.attribute_map.get(name, name): value for name, value in fields.items()}
    others = [cls.attribute_map.get(name, name)
              for name in other_keys(cls, [field.name for field in dataclasses.fields(cls)])]
    others.append("per_layer_config")
    names = {**cls.attribute_map, **OLDER_NAMES.get(model_type, {})}
    others = sorted(set(others) - set(fields) - set(names))
    return {"defaults": fields, "names": names, "others": others + COMPUTED.get(model_type, []),
            "rotary": rotary_of(cls)}


def rows():
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    if transformers.__version__ != VERSION:
        sys.exit(f"make_hub_defaults: transformers is {transformers.__version__}, expected {VERSION}")
    base = {field.name for field in dataclasses.fields(transformers.PretrainedConfig)}
    table = {name: row_of(name, CONFIG_MAPPING, base) for name in MODEL_TYPES}
    for name, (follows, own) in OWN.items():
        row = json.loads(json.dumps(table[follows]))
        for key, value in own.items():
            if value is MISSING:
                row["defaults"].pop(key, None)
                row["others"].append(key)
            else:
                row["defaults"][key] = value
        table[name] = row
    return dict(sorted(table.items()))


def wrapped(value):
    text, line = [], ""
    for part in re.split(r"(?<=,) ", json.dumps(value)):
        if line and len(line) + len(part) + 1 > WIDTH:
            text.append(line)
            line = ""
        line = f"{line} {part}" if line else part
    return "\n".join(text + [line])


def render(table):
    lines = [f"// Made by scripts/make_hub_defaults.py from the configuration classes of transformers {VERSION}.", "",
             f'constexpr std::string_view kLibrary = "transformers {VERSION}";', "",
             "constexpr std::string_view kWithoutEffect[] = {"]
    lines += [f'    "{name}",' for name in sorted(WITHOUT_EFFECT)] + ["};", "", "constexpr DefaultsText kDefaults[] = {"]
    for name, row in table.items():
        texts = [f'R"({wrapped(row[part])})"' for part in ("defaults", "names", "others", "rotary")]
        lines.append(f'{{"{name}",\n' + ",\n".join(texts) + "},")
    return "\n".join(lines + ["};", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    text = render(rows())
    if not parser.parse_args().check:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        sys.exit(f"make_hub_defaults: {TARGET.name} is not what the library says; run it without --check")


if __name__ == "__main__":
    main()
