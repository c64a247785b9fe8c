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


def rope(theta=10000.0, **more):
    return {"rope_type": "default", "rope_theta": theta, **more}


def llama3_rope():
    return dict(rope_type="llama3", rope_theta=500000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
                original_max_position_embeddings=16)


def phi3_rope():
    return dict(rope_type="longrope", rope_theta=10000.0, original_max_position_embeddings=32, factor=8.0,
                partial_rotary_factor=1.0,
                short_factor=[1.0 + 0.02 * i for i in range(8)], long_factor=[1.0 + 0.3 * i for i in range(8)])


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
}
NOT_IN_LLAMA_CPP = {"xglm"}


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


def randomise(model):
    generator = torch.Generator().manual_seed(20)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        with torch.no_grad():
            if weight.dim() == 1 and name.endswith("weight"):
                weight.add_(0.2 * noise)  # a norm's gain: around what the library starts from
            elif weight.dim() == 1:
                weight.copy_(0.2 * noise)
            else:
                weight.copy_(noise * (1.5 / weight.shape[-1] ** 0.5 if not is_table(name) else 0.25))


def save_folder(name, folder):
    config_class, settings = MODELS[name]
    config = config_class(**settings)
    config.architectures = None
    model = tf.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    randomise(model)
    model.to(torch.bfloat16).save_pretrained(folder)
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
                                                              "model_arch": converter.model_arch})
    with torch.inference_mode():
        instance = converter(folder, gguf.LlamaFileType.MOSTLY_BF16, target, use_temp_file=False,
                             model_name="tiny")
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
        size = sum(path.stat().st_size for path in folder.iterdir()) // 1024
        print(f"{name}: largest logit {np.abs(logits).max():.3f}, {size} KiB")


if __name__ == "__main__":
    main()
