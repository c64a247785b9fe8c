#!/usr/bin/env python3
"""Makes the goldens of encoders: a tiny random model of each family, what the reference makes of two texts, and a GGUF.

    python3 make_goldens.py [--converter FOLDER] [--only NAME ...] [--sparse NAME ...]

Needs torch, transformers, tokenizers and sentence-transformers; FOLDER is a checkout of llama.cpp. Each model gets
goldens/NAME/: the folder as the libraries save it (bf16), and expected.json: the tokens of both texts and of them as a
pair, hidden states of the first, in f32; vectors as sentence-transformers pools them; what the head makes of the pair,
or of each token; model.gguf where llama.cpp's converter knows the family.
"""

import argparse
import copy
import json
import pathlib
import shutil
import sys

import numpy as np
import tokenizers
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ["the small engine reads every word of a text at once, and then it says what it has read of the text",
         "naïve cafés ask: why?"]
CORPUS = (HERE.parent.parent / "docs/architecture.md").read_text().splitlines()[:120]
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48,
             max_position_embeddings=96)


def word_piece():
    tokenizer = tokenizers.BertWordPieceTokenizer(lowercase=True)
    tokenizer.train_from_iterator(CORPUS, vocab_size=160, min_frequency=1, limit_alphabet=60, show_progress=False)
    vocab = tokenizer.get_vocab()
    tokenizer = tokenizer._tokenizer
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])])
    return tokenizer, dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                           mask_token="[MASK]")


def mpnet_pieces():
    marks = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>"]
    tokenizer = tokenizers.BertWordPieceTokenizer(lowercase=True, unk_token="[UNK]", sep_token="</s>", cls_token="<s>",
                                                  pad_token="<pad>", mask_token="<mask>")
    tokenizer.train_from_iterator(CORPUS, vocab_size=160, min_frequency=1, limit_alphabet=60, show_progress=False,
                                  special_tokens=marks)
    tokenizer = tokenizer._tokenizer
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False,
                                                                       trim_offsets=True)
    return tokenizer, dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="[UNK]", cls_token="<s>",
                           sep_token="</s>", mask_token="<mask>")


def byte_bpe(marks):
    tokenizer = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    tokenizer.train_from_iterator(CORPUS, vocab_size=300, special_tokens=marks, show_progress=False)
    return tokenizer._tokenizer


def roberta_bpe():
    tokenizer = byte_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer, dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>", cls_token="<s>",
                           sep_token="</s>", mask_token="<mask>")


def modern_bpe():
    tokenizer = byte_bpe(["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)])
    return tokenizer, dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                           mask_token="[MASK]")


def ending_bpe():
    """As Qwen3-Embedding's: an end token behind each text."""
    tokenizer = byte_bpe(["<|endoftext|>"])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A <|endoftext|> $B <|endoftext|>", special_tokens=[("<|endoftext|>", 0)])
    return tokenizer, dict(eos_token="<|endoftext|>", pad_token="<|endoftext|>")


def unigram():
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    tokenizer.train_from_iterator(CORPUS, tokenizers.trainers.UnigramTrainer(
        vocab_size=160, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], unk_token="<unk>",
        show_progress=False))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer, dict(bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>", cls_token="<s>",
                           sep_token="</s>", mask_token="<mask>")


def rope(theta):
    return {"rope_type": "default", "rope_theta": theta}


DISTIL = dict(dim=32, n_layers=2, n_heads=2, hidden_dim=48, max_position_embeddings=96)
MODERN_ROPE = {"full_attention": rope(160000.0), "sliding_attention": rope(10000.0)}
GEMMA = dict(SIZES, num_hidden_layers=6, num_key_value_heads=1, head_dim=16, sliding_window=8, query_pre_attn_scalar=16,
             layer_types=["sliding_attention"] * 5 + ["full_attention"], use_bidirectional_attention=True,
             rope_parameters={"sliding_attention": rope(1e4), "full_attention": rope(1e6)})
SEQUENCES, TOKENS, PLAIN = "ForSequenceClassification", "ForTokenClassification", "Model"
# name: class's stem, settings, class's end, tokenizer, labels, pooling ("" for no sentence-transformers), dense sizes
MODELS = {
    "bert": ("Bert", SIZES, PLAIN, word_piece, 0, "mean normalised", []),
    "bert_pairs": ("Bert", SIZES, SEQUENCES, word_piece, 1, "", []),
    "bert_tokens": ("Bert", SIZES, TOKENS, word_piece, 3, "", []),
    "roberta_pairs": ("Roberta", dict(SIZES, max_position_embeddings=98), SEQUENCES, roberta_bpe, 3, "", []),
    "xlm_roberta": ("XLMRoberta", dict(SIZES, max_position_embeddings=98), PLAIN, unigram, 0, "cls", []),
    "xlm_roberta_pairs": ("XLMRoberta", dict(SIZES, max_position_embeddings=98), SEQUENCES, unigram, 1, "", []),
    "camembert": ("Camembert", dict(SIZES, max_position_embeddings=98), TOKENS, unigram, 2, "", []),
    "distilbert": ("DistilBert", DISTIL, SEQUENCES, word_piece, 2, "mean", []),
    "modernbert": ("ModernBert", dict(SIZES, num_hidden_layers=4, local_attention=8, classifier_pooling="mean",
                                      rope_parameters=MODERN_ROPE, global_attn_every_n_layers=3), SEQUENCES, modern_bpe,
                   1, "cls normalised", []),
    "mpnet": ("MPNet", dict(SIZES, max_position_embeddings=98), PLAIN, mpnet_pieces, 0, "mean normalised", []),
    "mpnet_pairs": ("MPNet", dict(SIZES, num_hidden_layers=1, max_position_embeddings=98), SEQUENCES, mpnet_pieces, 1, "",
                    []),
    "nomic_bert": ("NomicBert", dict(SIZES, rope_parameters=rope(1000.0)), PLAIN, word_piece, 0, "mean", []),
    "gte": ("Gte", dict(SIZES, rope_parameters=rope(20000.0)), SEQUENCES, unigram, 1, "cls normalised", []),
    "jina_v3": ("JinaEmbeddingsV3", dict(SIZES, rope_parameters=rope(20000.0)), PLAIN, unigram, 0, "mean normalised",
                []),
    "gemma_embedding": ("Gemma3Text", GEMMA, PLAIN, ending_bpe, 0, "mean normalised", [(32, 64), (64, 24)]),
    "bert_weighted": ("Bert", dict(SIZES, num_hidden_layers=1), PLAIN, word_piece, 0, "weighted normalised", []),
    "bert_late": ("Bert", dict(SIZES, num_hidden_layers=1), PLAIN, word_piece, 0, "tokens normalised", [(32, 12)]),
    "llama_labels": ("Llama", dict(SIZES, num_key_value_heads=1, head_dim=16, rope_parameters=rope(1e4)), SEQUENCES,
                     ending_bpe, 3, "", []),
    "qwen3_labels": ("Qwen3", dict(SIZES, num_key_value_heads=1, head_dim=16, tie_word_embeddings=True,
                                   rope_parameters=rope(1e6)), SEQUENCES, ending_bpe, 1, "", []),
    "qwen2_tokens": ("Qwen2", dict(SIZES, num_key_value_heads=1, rope_parameters=rope(1e6)), TOKENS, ending_bpe, 2, "",
                     []),
    "mistral_embedding": ("Mistral", dict(SIZES, num_key_value_heads=1, head_dim=16, sliding_window=None,
                                          rope_parameters=rope(1e4)), PLAIN, ending_bpe, 0, "last normalised", []),
    "qwen3_embedding": ("Qwen3", dict(SIZES, num_key_value_heads=1, head_dim=16, tie_word_embeddings=True,
                                      rope_parameters=rope(1e6)), PLAIN, ending_bpe, 0, "last normalised", []),
}


# As their makers published them: the golden that it is made of, other beginnings of tensors' names, keys of config.json.
PUBLISHED = {
    "new": ("gte", ("gte.", "new."), {"model_type": "new", "architectures": ["NewForSequenceClassification"],
                                      "rope_theta": 20000.0, "rope_parameters": None, "layer_norm_type": "layer_norm",
                                      "position_embedding_type": "rope", "logn_attention_scale": False,
                                      "pack_qkv": True, "unpad_inputs": False}),
    "nomic_published": ("nomic_bert", ("nomic_bert.", ""), {
        "hidden_size": None, "num_hidden_layers": None, "num_attention_heads": None, "intermediate_size": None,
        "max_position_embeddings": None, "layer_norm_eps": None, "hidden_act": None, "rope_parameters": None,
        "head_dim": None, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_inner": 48, "n_positions": 96,
        "layer_norm_epsilon": 1e-12, "activation_function": "swiglu", "rotary_emb_base": 1000,
        "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
        "rotary_scaling_factor": None, "causal": False, "prenorm": False, "qkv_proj_bias": False,
        "mlp_fc1_bias": False, "mlp_fc2_bias": False, "use_rms_norm": False, "parallel_block": False,
        "scale_attn_by_inverse_layer_idx": False, "max_trained_positions": 2048}),
}


def publish(name):
    source, (old, new), keys = PUBLISHED[name]
    folder = HERE / "goldens" / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "goldens" / source, folder, ignore=shutil.ignore_patterns("model.gguf"))
    tensors = load_file(folder / "model.safetensors")
    save_file({new + key[len(old):] if key.startswith(old) else key: value for key, value in tensors.items()},
              folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text()) | keys
    json.dump({key: value for key, value in config.items() if value is not None or key in ("rotary_emb_scale_base",)},
              open(folder / "config.json", "w"), indent=1)


def randomise(model, seed):
    """Weights large enough that every part shows in the result."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        is_gain = parameter.dim() == 1 and name.endswith("weight")
        scale = 0.1 if parameter.dim() == 1 else 1.5 * parameter.shape[-1] ** -0.5
        values = torch.randn(parameter.shape, generator=generator) * scale + (1.0 if is_gain else 0.0)
        if "Gemma3" in type(model).__name__ and is_gain:
            values -= 1.0
        parameter.data = values.to(torch.bfloat16).to(torch.float32)


def save_modules(folder, pooling, dense, hidden):
    words = pooling.split()
    modules = [("", "Transformer")]
    flags = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "last": "pooling_mode_lasttoken",
             "weighted": "pooling_mode_weightedmean_tokens"}
    if words[0] in flags:  # ColBERT's kind has a vector for each token
        modules.append(("1_Pooling", "Pooling"))
        (folder / "1_Pooling").mkdir()
        json.dump({"word_embedding_dimension": hidden, **{flag: name == words[0] for name, flag in flags.items()}},
                  open(folder / "1_Pooling/config.json", "w"))
    for i, (n_in, n_out) in enumerate(dense):
        path = folder / f"{i + 2}_Dense"
        path.mkdir()
        act = "torch.nn.modules.activation.Tanh" if i == 0 and len(dense) > 1 else "torch.nn.modules.linear.Identity"
        json.dump({"in_features": n_in, "out_features": n_out, "bias": i == 0, "activation_function": act},
                  open(path / "config.json", "w"))
        generator = torch.Generator().manual_seed(i)
        tensors = {"linear.weight": torch.randn(n_out, n_in, generator=generator) * n_in**-0.5}
        if i == 0:
            tensors["linear.bias"] = torch.randn(n_out, generator=generator) * 0.1
        save_file(tensors, path / "model.safetensors")
        modules.append((path.name, "Dense"))
    if "normalised" in words:
        modules.append((f"{len(modules)}_Normalize", "Normalize"))
    json.dump([{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
               for i, (path, kind) in enumerate(modules)], open(folder / "modules.json", "w"))
    json.dump({"max_seq_length": 64 if folder.name == "bert" else 92, "do_lower_case": False}, open(folder / "sentence_bert_config.json", "w"))
    json.dump({"prompts": {"query": "the query: ", "document": "a text: "}, "default_prompt_name": None,
               "similarity_fn_name": "cosine"}, open(folder / "config_sentence_transformers.json", "w"))


def rounded(values):
    return [round(float(x), 7) for x in np.asarray(values).ravel()]


def vectors_of(model, tokenizer, name):
    """As sentence-transformers computes them; of a head's folder by its base."""
    _, _, _, _, _, pooling, dense = MODELS[name]
    words = pooling.split()
    rows = []
    for text in TEXTS:
        encoded = tokenizer(text, return_tensors="pt")
        encoded.pop("token_type_ids", None)
        hidden = model(**encoded).last_hidden_state[0]
        weights = torch.arange(1, len(hidden) + 1, dtype=torch.float32)
        vector = {"mean": hidden.mean(0), "cls": hidden[0], "last": hidden[-1], "tokens": hidden.T,
                  "weighted": (hidden * weights[:, None]).sum(0) / weights.sum()}[words[0]]
        for i, (n_in, n_out) in enumerate(dense):
            tensors = load_file(HERE / "goldens" / name / f"{i + 2}_Dense/model.safetensors")
            vector = tensors["linear.weight"] @ vector
            if i == 0:
                vector = (vector.T + tensors["linear.bias"]).T
            vector = torch.tanh(vector) if i == 0 and len(dense) > 1 else vector
        vector = vector.T
        rows.append(vector / vector.norm(dim=-1, keepdim=True) if "normalised" in words else vector)
    return [rounded(row) for row in rows]


def with_marks(settings, stem, tokenizer, marks):
    """Settings of a model whose vocabulary and marks are the tokenizer's."""
    ids = {key: tokenizer.convert_tokens_to_ids(text) for key, text in marks.items()}
    settings = dict(settings, vocab_size=len(tokenizer), pad_token_id=ids["pad_token"],
                    bos_token_id=ids.get("bos_token", ids.get("cls_token")),
                    eos_token_id=ids.get("eos_token", ids.get("sep_token")))
    if stem == "ModernBert":
        settings.update(cls_token_id=ids["cls_token"], sep_token_id=ids["sep_token"])
    return settings


@torch.no_grad()
def make(name, has_converter):
    stem, settings, ending, make_tokenizer, n_labels, pooling, dense = MODELS[name]
    folder = HERE / "goldens" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    raw, marks = make_tokenizer()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw, **marks)
    settings = with_marks(settings, stem, tokenizer, marks)
    if n_labels:
        settings["id2label"] = {i: f"label {i}" for i in range(n_labels)}
    config = getattr(tf, f"{stem}Config")(**settings)
    config._attn_implementation = "eager"
    model = getattr(tf, f"{stem}{ending}")(config).eval().float()
    randomise(model, seed=len(name))
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for extra in ("special_tokens_map.json", "generation_config.json"):
        (folder / extra).unlink(missing_ok=True)
    if pooling:
        save_modules(folder, pooling, dense, 32)
    base = model.base_model if n_labels else model
    encoded = tokenizer(TEXTS[0], return_tensors="pt")
    encoded.pop("token_type_ids", None)
    pair = tokenizer(*TEXTS, return_tensors="pt", return_token_type_ids=True)
    has_types = getattr(config, "type_vocab_size", 0) > 1 and make_tokenizer is word_piece
    if not has_types:
        pair["token_type_ids"] = torch.zeros_like(pair["input_ids"])
    expected = {"texts": TEXTS, "tokens": encoded["input_ids"][0].tolist(), "pair": pair["input_ids"][0].tolist(),
                "types": pair["token_type_ids"][0].tolist(),
                "hidden": rounded(base(**encoded).last_hidden_state), "dim": 32}
    takes_types = has_types or stem in ("Roberta", "XLMRoberta", "NomicBert", "Gte", "JinaEmbeddingsV3")
    if not takes_types:
        pair.pop("token_type_ids")
    if ending == SEQUENCES:
        expected["pair_labels"] = rounded(model(**pair).logits)
    if ending == TOKENS:
        expected["token_labels"] = rounded(model(**encoded).logits)
    if pooling:
        expected["vectors"] = vectors_of(base, tokenizer, name)
    json.dump(expected, open(folder / "expected.json", "w"))
    if has_converter and name in CONVERTED:
        convert(folder)
    print(name, sum(p.numel() for p in model.parameters()), expected.get("pair_labels"))


def jina_v2_hidden(tensors, tokens):
    """jina-embeddings-v2 as its paper and its configuration say: SIZES, two heads."""
    def norm(x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], tensors[name + ".weight"], tensors[name + ".bias"], 1e-12)

    def linear(x, name):
        return torch.nn.functional.linear(x, tensors[name + ".weight"], tensors.get(name + ".bias"))

    n, n_heads, width = len(tokens), SIZES["num_attention_heads"], SIZES["hidden_size"]
    x = tensors["embeddings.word_embeddings.weight"][tokens] + tensors["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    places = torch.arange(n)
    slopes = torch.tensor([2.0 ** (-8 * (head + 1) / n_heads) for head in range(n_heads)])
    bias = -slopes[:, None, None] * (places[None, :] - places[:, None]).abs()
    for layer in range(SIZES["num_hidden_layers"]):
        stem = f"encoder.layer.{layer}."
        q, k, v = (linear(x, f"{stem}attention.self.{part}").view(n, n_heads, -1).transpose(0, 1)
                   for part in ("query", "key", "value"))
        shares = torch.softmax(q @ k.transpose(1, 2) / (width // n_heads) ** 0.5 + bias, -1)
        heads = (shares @ v).transpose(0, 1).reshape(n, width)
        x = norm(linear(heads, stem + "attention.output.dense") + x, stem + "attention.output.LayerNorm")
        gate, up = linear(x, stem + "mlp.gated_layers").chunk(2, -1)
        x = norm(linear(torch.nn.functional.gelu(gate) * up, stem + "mlp.wo") + x, stem + "mlp.layernorm")
    return x


# name: class's stem, settings, tokenizer, pooling, activation
SPARSE = {
    "bert_splade": ("Bert", dict(SIZES, num_hidden_layers=1), word_piece, "max", "relu"),
    "distilbert_splade": ("DistilBert", dict(DISTIL, n_layers=1, tie_word_embeddings=False), word_piece, "max",
                          "log1p_relu"),
    "roberta_splade": ("Roberta", dict(SIZES, num_hidden_layers=1, max_position_embeddings=98), roberta_bpe, "sum",
                       "relu"),
    "modernbert_splade": ("ModernBert", dict(SIZES, num_hidden_layers=1, local_attention=8,
                                             rope_parameters=MODERN_ROPE, global_attn_every_n_layers=3), modern_bpe,
                          "max", "relu"),
}


def entries(vector):
    """[[token, weight]] of a dense vector."""
    return [[i, round(float(x), 7)] for i, x in enumerate(vector) if x > 0]


@torch.no_grad()
def make_sparse(name):
    """SPLADE, as sentence-transformers reads the folder that it wrote itself."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder.modules import SpladePooling
    from sentence_transformers.base.modules import Transformer
    stem, settings, make_tokenizer, pooling, activation = SPARSE[name]
    folder = HERE / "goldens" / name
    shutil.rmtree(folder, ignore_errors=True)
    raw, marks = make_tokenizer()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=92, **marks)
    settings = with_marks(settings, stem, tokenizer, marks)
    model = getattr(tf, f"{stem}ForMaskedLM")(getattr(tf, f"{stem}Config")(**settings)).eval().float()
    randomise(model, seed=len(name))
    model.tie_weights()
    base = HERE / "goldens" / "base"
    model.save_pretrained(base)
    tokenizer.save_pretrained(base)
    module = Transformer(str(base), transformer_task="fill-mask", model_kwargs={"attn_implementation": "eager"})
    encoder = SparseEncoder(modules=[module, SpladePooling(pooling_strategy=pooling, activation_function=activation)],
                            device="cpu")
    vectors = encoder.encode(TEXTS, convert_to_sparse_tensor=False)
    encoder.bfloat16().save_pretrained(str(folder), create_model_card=False)
    shutil.rmtree(base)
    for extra in ("special_tokens_map.json", "generation_config.json", "README.md"):
        (folder / extra).unlink(missing_ok=True)
    tokens = [tokenizer(text)["input_ids"] for text in TEXTS]
    json.dump({"texts": TEXTS, "tokens": tokens[0], "sparse": [entries(vector) for vector in vectors]},
              open(folder / "expected.json", "w"))
    print(name, [len(entries(vector)) for vector in vectors])


@torch.no_grad()
def make_bge_m3():
    """BGE M3's three kinds of vectors, as its paper and its makers' FlagEmbedding say: a dense one, weights of words,
    and one for each token."""
    MODELS["bge_m3"] = MODELS["xlm_roberta"][:5] + ("cls normalised", [])
    make("bge_m3", False)
    folder = HERE / "goldens/bge_m3"
    generator = torch.Generator().manual_seed(3)
    layers = {"sparse_linear": torch.nn.Linear(32, 1), "colbert_linear": torch.nn.Linear(32, 16)}
    for name, layer in layers.items():
        for parameter in layer.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
        torch.save(layer.state_dict(), folder / f"{name}.pt")
    expected = json.load(open(folder / "expected.json"))
    model = tf.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    expected["sparse"], expected["token_vectors"] = [], []
    for text in TEXTS:
        encoded = tokenizer(text, return_tensors="pt")
        encoded.pop("token_type_ids", None)
        hidden = model(**encoded).last_hidden_state[0]
        weights = torch.relu(layers["sparse_linear"](hidden))[:, 0]
        words = {}
        for token, weight in zip(encoded["input_ids"][0].tolist(), weights.tolist()):
            if token not in tokenizer.all_special_ids and weight > 0:
                words[token] = max(words.get(token, 0.0), weight)
        expected["sparse"].append([[token, round(weight, 7)] for token, weight in sorted(words.items())])
        vectors = layers["colbert_linear"](hidden)
        expected["token_vectors"].append(rounded(vectors / vectors.norm(dim=-1, keepdim=True)))
    json.dump(expected, open(folder / "expected.json", "w"))


@torch.no_grad()
def make_jina_v2(has_converter):
    name = "jina_v2"
    folder = HERE / "goldens" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    raw, marks = word_piece()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw, **marks)
    width, ffn = SIZES["hidden_size"], SIZES["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": (len(tokenizer), width),
              "embeddings.token_type_embeddings.weight": (2, width), "embeddings.LayerNorm": width}
    for layer in range(SIZES["num_hidden_layers"]):
        stem = f"encoder.layer.{layer}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= {f"{stem}attention.{part}.weight": (width, width), f"{stem}attention.{part}.bias": (width,)}
        shapes |= {stem + "attention.output.LayerNorm": width, stem + "mlp.layernorm": width,
                   stem + "mlp.gated_layers.weight": (2 * ffn, width), stem + "mlp.wo.weight": (width, ffn),
                   stem + "mlp.wo.bias": (width,)}
    generator, tensors = torch.Generator().manual_seed(3), {}
    for key, shape in shapes.items():
        if isinstance(shape, int):
            tensors[key + ".weight"] = 1 + 0.1 * torch.randn(shape, generator=generator)
            tensors[key + ".bias"] = 0.1 * torch.randn(shape, generator=generator)
        else:
            scale = 0.1 if len(shape) == 1 else 1.5 * shape[-1] ** -0.5
            tensors[key] = scale * torch.randn(shape, generator=generator)
    tensors = {key: value.to(torch.bfloat16) for key, value in tensors.items()}
    save_file(tensors, folder / "model.safetensors")
    tensors = {key: value.float() for key, value in tensors.items()}
    tokenizer.save_pretrained(folder)
    for extra in ("special_tokens_map.json",):
        (folder / extra).unlink(missing_ok=True)
    json.dump({"architectures": ["JinaBertForMaskedLM"], "model_type": "bert", "position_embedding_type": "alibi",
               "feed_forward_type": "geglu", "emb_pooler": "mean", "model_max_length": 96, "hidden_act": "gelu",
               "layer_norm_eps": 1e-12, "type_vocab_size": 2, "vocab_size": len(tokenizer), "pad_token_id": 0,
               "torch_dtype": "bfloat16", **SIZES}, open(folder / "config.json", "w"), indent=1)
    save_modules(folder, "mean normalised", [], width)
    pair = tokenizer(*TEXTS, return_token_type_ids=True)
    hidden = [jina_v2_hidden(tensors, tokenizer(text)["input_ids"]) for text in TEXTS]
    vectors = [rows.mean(0) / rows.mean(0).norm() for rows in hidden]
    json.dump({"texts": TEXTS, "tokens": tokenizer(TEXTS[0])["input_ids"], "pair": pair["input_ids"],
               "types": pair["token_type_ids"], "hidden": rounded(hidden[0]), "dim": width,
               "vectors": [rounded(vector) for vector in vectors]}, open(folder / "expected.json", "w"))
    if has_converter:
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"tokenizer_class": "BertTokenizer"}))
        CONVERTED[name] = "JinaBertModel"
        convert(folder)
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    print(name, rounded(vectors[0][:3]))


@torch.no_grad()
def make_scaled():
    """GTE as NewModel with "ntk" scaling: base * factor, frequencies / factor^(2 / width) (its modeling code)."""
    folder = HERE / "goldens/new_scaled"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "goldens/new", folder)
    factor, base, width = 2.0, 20000.0, 16
    config = json.loads((folder / "config.json").read_text())
    json.dump(config | {"rope_scaling": {"type": "ntk", "factor": factor}}, open(folder / "config.json", "w"), indent=1)
    settings = tf.GteConfig.from_pretrained(HERE / "goldens/gte")
    settings._attn_implementation = "eager"
    model = tf.GteForSequenceClassification.from_pretrained(HERE / "goldens/gte", config=settings,
                                                            dtype=torch.float32).eval()
    inverse = 1.0 / ((base * factor) ** (torch.arange(0, width, 2).float() / width)) / factor ** (2 / width)
    for name, module in model.named_modules():
        if hasattr(module, "inv_freq"):
            module.inv_freq = inverse
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    expected = json.loads((folder / "expected.json").read_text())
    encoded = tokenizer(TEXTS[0], return_tensors="pt")
    encoded.pop("token_type_ids", None)
    pair = tokenizer(*TEXTS, return_tensors="pt")
    pair["token_type_ids"] = torch.zeros_like(pair["input_ids"])
    expected["hidden"] = rounded(model.base_model(**encoded).last_hidden_state)
    expected["pair_labels"] = rounded(model(**pair).logits)
    vectors = []
    for text in TEXTS:
        encoded = tokenizer(text, return_tensors="pt")
        encoded.pop("token_type_ids", None)
        vector = model.base_model(**encoded).last_hidden_state[0, 0]
        vectors.append(rounded(vector / vector.norm()))
    expected["vectors"] = vectors
    json.dump(expected, open(folder / "expected.json", "w"))
    print("new_scaled", expected["pair_labels"])


TASKS = {"retrieval.query": "the query: ", "separation": "", "text-matching": "a text: "}


@torch.no_grad()
def make_tasks():
    """jina-embeddings-v3 as published: adapters for tasks on every matrix and table, W + B A * alpha / rank."""
    folder = HERE / "goldens/jina_v3_published"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / "goldens/jina_v3", folder)
    plain = tf.JinaEmbeddingsV3Model.from_pretrained(HERE / "goldens/jina_v3", dtype=torch.float32).state_dict()
    generator = torch.Generator().manual_seed(11)
    rank, alpha = 2, 1.0
    tensors, adapters = {}, {}

    def keep(name, value):
        tensors[name] = value.to(torch.bfloat16).contiguous()

    def adapted(module, weight):
        n_out, n_in = weight.shape
        is_table = "embeddings" in module
        shape = ((n_out, rank), (rank, n_in)) if is_table else ((rank, n_in), (n_out, rank))
        a, b = (torch.randn(len(TASKS), *one, generator=generator).mul(0.4).to(torch.bfloat16) for one in shape)
        tensors[f"{module}.parametrizations.weight.original"] = weight.to(torch.bfloat16).contiguous()
        tensors[f"{module}.parametrizations.weight.0.lora_A"] = a
        tensors[f"{module}.parametrizations.weight.0.lora_B"] = b
        products = a.float() @ b.float() if is_table else b.float() @ a.float()
        return [product * alpha / rank for product in products]

    changes = [{} for _ in TASKS]  # of the library's names

    def note(name, deltas):
        for change, delta in zip(changes, deltas):
            change[name] = delta

    for name in ("word_embeddings", "token_type_embeddings"):
        key = f"roberta.embeddings.{name}"
        source = key if f"{key}.weight" in plain else f"embeddings.{name}"
        note(f"{source}.weight", adapted(key, plain[f"{source}.weight"]))
    stem = "roberta." if any(name.startswith("roberta.") for name in plain) else ""
    for end in ("weight", "bias"):
        keep(f"roberta.emb_ln.{end}", plain[f"{stem}embeddings.LayerNorm.{end}"])
    for layer in range(SIZES["num_hidden_layers"]):
        there, here = f"{stem}layers.{layer}.", f"roberta.encoder.layers.{layer}."
        parts = [there + f"self_attn.{part}_proj." for part in "qkv"]
        deltas = adapted(here + "mixer.Wqkv", torch.cat([plain[part + "weight"] for part in parts]))
        for i, part in enumerate(parts):
            note(part + "weight", [delta[32 * i:32 * (i + 1)] for delta in deltas])
        keep(here + "mixer.Wqkv.bias", torch.cat([plain[part + "bias"] for part in parts]))
        for new, old in (("mixer.out_proj", "self_attn.o_proj"), ("mlp.fc1", "mlp.fc1"), ("mlp.fc2", "mlp.fc2")):
            note(f"{there}{old}.weight", adapted(here + new, plain[f"{there}{old}.weight"]))
            keep(f"{here}{new}.bias", plain[f"{there}{old}.bias"])
        for new, old in (("norm1", "post_attention_layernorm"), ("norm2", "post_mlp_layernorm")):
            for end in ("weight", "bias"):
                keep(f"{here}{new}.{end}", plain[f"{there}{old}.{end}"])
    adapted("roberta.pooler.dense", torch.zeros(32, 32))
    keep("roberta.pooler.dense.bias", torch.zeros(32))
    save_file(tensors, folder / "model.safetensors")
    own = json.loads((folder / "config.json").read_text())
    kept = {key: own[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                                      "max_position_embeddings", "layer_norm_eps", "hidden_act", "vocab_size",
                                      "type_vocab_size", "pad_token_id", "bos_token_id", "eos_token_id") if key in own}
    json.dump(kept | {"model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"], "pad_token_id": 1,
                      "type_vocab_size": plain[[n for n in plain if "token_type" in n][0]].shape[0],
                      "position_embedding_type": "rotary", "rotary_emb_base": 20000.0, "use_flash_attn": True,
                      "use_reg_tokens": False, "load_trained_adapters": True, "lora_adaptations": list(TASKS),
                      "lora_alpha": 1, "lora_dropout_p": 0.0, "lora_main_params_trainable": False, "lora_rank": rank,
                      "matryoshka_dimensions": [16, 32], "task_instructions": TASKS, "truncate_dim": None,
                      "emb_pooler": None}, open(folder / "config.json", "w"), indent=1)
    tokenizer = tf.AutoTokenizer.from_pretrained(folder)
    expected = json.loads((folder / "expected.json").read_text())
    expected["tasks"] = {}
    for change, (task, prompt) in zip(changes, TASKS.items()):
        config = tf.JinaEmbeddingsV3Config.from_pretrained(HERE / "goldens/jina_v3")
        config._attn_implementation = "eager"
        model = tf.JinaEmbeddingsV3Model.from_pretrained(HERE / "goldens/jina_v3", config=config,
                                                         dtype=torch.float32).eval()
        state = dict(model.named_parameters())
        for name, delta in change.items():
            name = name if name in state else name.removeprefix("roberta.")
            state[name].data += delta
        vectors = []
        for text in TEXTS:
            encoded = tokenizer(prompt + text, return_tensors="pt")
            encoded.pop("token_type_ids", None)
            vector = model(**encoded).last_hidden_state[0].mean(0)
            vectors.append(rounded(vector / vector.norm()))
        expected["tasks"][task] = vectors
    json.dump(expected, open(folder / "expected.json", "w"))
    print("jina_v3_published", len(tensors))


def nomic_moe_hidden(tensors, tokens, every, n_used):
    """nomic-embed-text-v2-moe as its modeling code says: SIZES, two heads, base 10000."""
    def norm(x, name):
        return torch.nn.functional.layer_norm(x, (32,), tensors[name + ".weight"], tensors[name + ".bias"], 1e-5)

    def linear(x, name):
        return torch.nn.functional.linear(x, tensors[name + ".weight"], tensors.get(name + ".bias"))

    gelu = torch.nn.functional.gelu
    x = tensors["embeddings.word_embeddings.weight"][tokens] + tensors["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "emb_ln")
    angles = torch.outer(torch.arange(len(tokens)).float(), 10000.0 ** (-torch.arange(0, 16, 2).float() / 16))
    cos, sin = angles.cos().repeat(1, 2)[:, None], angles.sin().repeat(1, 2)[:, None]
    for layer in range(4):
        stem = f"encoder.layers.{layer}."
        q, k, v = linear(x, stem + "attn.Wqkv").view(-1, 3, 2, 16).unbind(1)
        q, k = (y * cos + torch.cat([-y[..., 8:], y[..., :8]], -1) * sin for y in (q, k))
        weights = (torch.einsum("qhd,khd->hqk", q, k) / 4.0).softmax(-1)
        heads = torch.einsum("hqk,khd->qhd", weights, v).reshape(-1, 32)
        x = norm(linear(heads, stem + "attn.out_proj") + x, stem + "norm1")
        if layer % every != 1:
            x = norm(linear(gelu(linear(x, stem + "mlp.fc1")), stem + "mlp.fc2") + x, stem + "norm2")
            continue
        shares = linear(x, stem + "mlp.router.layer").softmax(-1)
        best = shares.topk(n_used, -1)
        up, down = (tensors[stem + f"mlp.experts.mlp.{name}"].view(-1, 48, 32) for name in ("w1", "w2"))
        out = torch.zeros_like(x)
        for row in range(len(x)):
            for share, expert in zip(best.values[row], best.indices[row]):
                out[row] += share * (gelu(up[expert] @ x[row]) @ down[expert])
        x = norm(out + tensors[stem + "mlp.experts.bias"] + x, stem + "norm2")
    return x


@torch.no_grad()
def make_nomic_moe():
    folder = HERE / "goldens/nomic_moe"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    raw, marks = unigram()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw, **marks)
    tokenizer.save_pretrained(folder)
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    generator = torch.Generator().manual_seed(21)
    shapes = {"embeddings.word_embeddings.weight": (len(tokenizer), 32), "emb_ln.weight": (32,), "emb_ln.bias": (32,),
              "embeddings.token_type_embeddings.weight": (1, 32)}
    for layer in range(4):
        stem = f"encoder.layers.{layer}."
        own = {"attn.Wqkv.weight": (96, 32), "attn.Wqkv.bias": (96,), "attn.out_proj.weight": (32, 32),
               "attn.out_proj.bias": (32,), "norm1.weight": (32,), "norm1.bias": (32,), "norm2.weight": (32,),
               "norm2.bias": (32,)}
        if layer % 2 == 1:
            own |= {"mlp.router.layer.weight": (4, 32), "mlp.experts.mlp.w1": (4 * 48, 32),
                    "mlp.experts.mlp.w2": (4 * 48, 32), "mlp.experts.bias": (32,)}
        else:
            own |= {"mlp.fc1.weight": (48, 32), "mlp.fc1.bias": (48,), "mlp.fc2.weight": (32, 48), "mlp.fc2.bias": (32,)}
        shapes |= {stem + name: shape for name, shape in own.items()}
    tensors = {}
    for name, shape in shapes.items():
        is_gain = len(shape) == 1 and name.endswith("weight")
        scale = 0.2 if len(shape) == 1 else 1.5 * shape[-1] ** -0.5
        values = torch.randn(shape, generator=generator) * scale + (1.0 if is_gain else 0.0)
        tensors[name] = values.to(torch.bfloat16)
    save_file(tensors, folder / "model.safetensors")
    json.dump({"model_type": "nomic_bert", "architectures": ["NomicBertModel"], "activation_function": "gelu",
               "add_pooling_layer": False, "causal": False, "expert_choice_router": False, "ffn_div": 1,
               "layer_norm_epsilon": 1e-5, "max_trained_positions": 2048, "mlp_fc1_bias": True, "mlp_fc2_bias": True,
               "moe_every_n_layers": 2, "moe_impl": "megablocks", "moe_normalize_expert_weights": False,
               "moe_resid_pdrop": 0.0, "moe_top_k": 2, "n_embd": 32, "n_head": 2, "n_inner": 48, "n_layer": 4,
               "n_positions": 96, "num_experts": 4, "num_shared_experts": 0, "parallel_block": False, "prenorm": False,
               "qkv_proj_bias": True, "rotary_emb_base": 10000, "rotary_emb_fraction": 1.0,
               "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "rotary_scaling_factor": None,
               "router_aux_loss_coef": 0.1, "scale_attn_by_inverse_layer_idx": False, "type_vocab_size": 1,
               "use_rms_norm": False, "vocab_size": len(tokenizer), "pad_token_id": 1},
              open(folder / "config.json", "w"), indent=1)
    save_modules(folder, "mean normalised", [], 32)
    floats = {name: value.float() for name, value in tensors.items()}
    hidden = [nomic_moe_hidden(floats, tokenizer(text)["input_ids"], 2, 2) for text in TEXTS]
    means = [each.mean(0) for each in hidden]
    pair = tokenizer(*TEXTS)
    json.dump({"texts": TEXTS, "tokens": tokenizer(TEXTS[0])["input_ids"], "pair": pair["input_ids"],
               "types": [0] * len(pair["input_ids"]), "hidden": rounded(hidden[0]), "dim": 32,
               "vectors": [rounded(mean / mean.norm()) for mean in means]}, open(folder / "expected.json", "w"))
    print("nomic_moe", sum(value.numel() for value in tensors.values()))


@torch.no_grad()
def make_yes():
    """bge-reranker-v2-gemma: a decoder whose logit of "Yes" is the score; the pair as FlagEmbedding makes it."""
    folder = HERE / "goldens/gemma_reranker"
    shutil.rmtree(folder, ignore_errors=True)
    raw = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    raw.train_from_iterator(CORPUS + ["Yes", "Yes|"] * 200, vocab_size=320, show_progress=False,
                            special_tokens=["<pad>", "<eos>", "<bos>"])
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw._tokenizer, pad_token="<pad>", eos_token="<eos>",
                                           bos_token="<bos>")
    config = tf.GemmaConfig(**SIZES | dict(max_position_embeddings=512), num_key_value_heads=1, head_dim=16,
                            hidden_activation="gelu_pytorch_tanh", rope_parameters=rope(1e4),
                            vocab_size=len(tokenizer), pad_token_id=0, eos_token_id=1, bos_token_id=2)
    config._attn_implementation = "eager"
    model = tf.GemmaForCausalLM(config).eval().float()
    randomise(model, seed=9)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 and name.endswith("norm.weight"):
            parameter.data = (parameter.data - 1.0).to(torch.bfloat16).float()
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    (folder / "README.md").write_text("A tiny one, of random weights, after BAAI/bge-reranker-v2-gemma.\n")
    def ids(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]
    prompt = ("Given a query A and a passage B, determine whether the passage contains an answer to the query by "
              "providing a prediction of either 'Yes' or 'No'.")
    tokens = [tokenizer.bos_token_id] + ids(f"A: {TEXTS[1]}") + ids("\n") + ids(f"B: {TEXTS[0]}") + ids("\n") + ids(prompt)
    logits = model(input_ids=torch.tensor([tokens])).logits[0, -1]
    json.dump({"texts": TEXTS, "pair": tokens, "pair_labels": rounded(logits[[ids("Yes")[0]]])},
              open(folder / "expected.json", "w"))
    print("gemma_reranker", len(ids("Yes")), rounded(logits[[ids("Yes")[0]]]))


# name: class's stem, pooling, what config.json says otherwise
BOTH_WAYS = {
    "llama_embed": ("Llama", "mean normalised", {"model_type": "llama_bidirec", "pooling": "avg",
                                                 "architectures": ["LlamaBidirectionalModel"]}),
    "gte_qwen2": ("Qwen2", "last normalised", {"architectures": ["Qwen2Model"],
                                               "auto_map": {"AutoModel": "modeling_qwen.Qwen2Model"}}),
}


@torch.no_grad()
def make_both_ways(name):
    """Decoders whose rows see all of a text, as the code beside their checkpoints lets them."""
    stem, pooling, changes = BOTH_WAYS[name]
    folder = HERE / "goldens" / name
    shutil.rmtree(folder, ignore_errors=True)
    raw, marks = ending_bpe()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw, **marks)
    config = getattr(tf, f"{stem}Config")(**SIZES, num_key_value_heads=1, rope_parameters=rope(1e4),
                                          vocab_size=len(tokenizer), pad_token_id=0, bos_token_id=None, eos_token_id=0)
    config._attn_implementation = "eager"
    model = getattr(tf, f"{stem}Model")(config).eval().float()
    randomise(model, seed=len(name))
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "special_tokens_map.json").unlink(missing_ok=True)
    save_modules(folder, pooling, [], 32)
    own = json.loads((folder / "config.json").read_text())
    json.dump(own | changes, open(folder / "config.json", "w"), indent=1)

    def hidden(text):
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        return model(input_ids=ids, attention_mask=torch.zeros(1, 1, ids.shape[1], ids.shape[1])).last_hidden_state[0]

    rows = [hidden(text) for text in TEXTS]
    vectors = [each.mean(0) if pooling.startswith("mean") else each[-1] for each in rows]
    pair = tokenizer(*TEXTS)["input_ids"]
    json.dump({"texts": TEXTS, "tokens": tokenizer(TEXTS[0])["input_ids"], "pair": pair, "types": [0] * len(pair),
               "hidden": rounded(rows[0]), "dim": 32, "vectors": [rounded(each / each.norm()) for each in vectors]},
              open(folder / "expected.json", "w"))
    print(name, sum(parameter.numel() for parameter in model.parameters()))


def make_decoders():
    for name in BOTH_WAYS:
        make_both_ways(name)


def yes_no_bpe():
    tokenizer = tokenizers.ByteLevelBPETokenizer(add_prefix_space=False)
    words = ["yes", "no", "|", "yes no |"] * 200
    tokenizer.train_from_iterator(CORPUS + words, vocab_size=320, show_progress=False,
                                  special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return tokenizer._tokenizer, dict(eos_token="<|im_end|>", pad_token="<|endoftext|>")


@torch.no_grad()
def make_yes_no():
    """Qwen3-Reranker: a decoder that answers yes or no; the GGUF file is as llama.cpp's converter writes it."""
    folder, made = HERE / "goldens/qwen3_reranker", HERE / "goldens/qwen3-reranker"
    for path in (folder, made):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    raw, marks = yes_no_bpe()
    tokenizer = tf.PreTrainedTokenizerFast(tokenizer_object=raw, **marks)
    config = tf.Qwen3Config(**SIZES | dict(max_position_embeddings=512), num_key_value_heads=1, head_dim=16,
                            tie_word_embeddings=True, rope_parameters=rope(1e6), vocab_size=len(tokenizer),
                            pad_token_id=0, eos_token_id=2, bos_token_id=None)
    config._attn_implementation = "eager"
    model = tf.Qwen3ForCausalLM(config).eval().float()
    randomise(model, seed=5)
    copy.deepcopy(model).to(torch.bfloat16).save_pretrained(made)
    tokenizer.save_pretrained(made)
    CONVERTED[made.name] = "Qwen3ForCausalLM"
    convert(made)
    (made / "generation_config.json").unlink(missing_ok=True)
    (made / "README.md").write_text("# Qwen3-Reranker\n\nA tiny one, of random weights.\n")
    for file in list(made.iterdir()):
        shutil.move(file, folder / file.name)
    made.rmdir()
    import gguf
    fields = gguf.GGUFReader(folder / "model.gguf").fields
    template = fields["tokenizer.chat_template.rerank"].contents()
    prompt = template.replace("{query}", TEXTS[1]).replace("{document}", TEXTS[0])
    tokens = tokenizer(prompt, return_tensors="pt")["input_ids"]
    yes, no = (tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    logits = model(input_ids=tokens).logits[0, -1]
    json.dump({"texts": TEXTS, "pair": tokens[0].tolist(), "pair_labels": rounded(logits[[yes, no]])},
              open(folder / "expected.json", "w"))
    print("qwen3_reranker", rounded(logits[[yes, no]]))


# What llama.cpp's converter knows, with the tokens that this library's vocabulary has.
CONVERTED = {"bert": "BertModel", "bert_pairs": "BertForSequenceClassification",
             "distilbert": "DistilBertForSequenceClassification", "modernbert": "ModernBertForSequenceClassification",
             "gemma_embedding": "Gemma3TextModel"}


def convert(folder):
    import conversion.base as base
    import gguf
    from conversion import get_model_class
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
    settings = base.ModelBase.load_hparams(folder, False)
    kind = get_model_class(CONVERTED[folder.name])
    settings.setdefault("layer_norm_eps", settings.get("norm_eps"))  # published files have both names
    more = {"sentence_transformers_dense_modules": True} if folder.name == "gemma_embedding" else {}
    if folder.name in ("gemma_embedding", "qwen3-reranker"):  # vocabularies are sought in SentencePiece files
        kind = type(kind.__name__, (kind,), {"model_arch": kind.model_arch, "set_vocab": base.TextModel._set_vocab_gpt2})
    kind(folder, gguf.LlamaFileType.MOSTLY_BF16, folder / "model.gguf", use_temp_file=False, model_name="tiny",
         hparams=settings, **more).write()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--converter", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    others = [make_scaled, make_tasks, make_nomic_moe, make_yes, make_decoders]
    parser.add_argument("--others", nargs="*", default=[one.__name__ for one in others])
    parser.add_argument("--sparse", nargs="*", default=list(SPARSE))
    args = parser.parse_args()
    if args.converter:
        sys.path[:0] = [str(args.converter / "gguf-py"), str(args.converter)]
    for name in args.only:
        make(name, args.converter is not None)
    for name in args.sparse:
        make_sparse(name)
    if args.sparse:
        make_bge_m3()
    for make_one in others:
        if make_one.__name__ in args.others:
            make_one()
    if args.only:
        make_jina_v2(args.converter is not None)
    if args.only and args.converter:
        make_yes_no()
    for name, (source, _, _) in PUBLISHED.items():
        if source in args.only:
            publish(name)


if __name__ == "__main__":
    main()
