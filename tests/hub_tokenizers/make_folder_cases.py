#!/usr/bin/env python3
"""Writes folders that have a vocabulary other than tokenizer.json, with cases: folders/NAME/ and in it cases.json
({"n_vocab": rows, "cases": [[text, ids, decoded], ...]}, ids without tokens before and behind). References:
`sentencepiece` and `tiktoken` by themselves, `transformers` for vocab.json with merges.txt.

    python3 make_folder_cases.py                                  the folders that are checked in
    python3 make_folder_cases.py --out FOLDER --cases 3000 --published    many, for CANDOR_FOLDER_CASES=FOLDER, with the files
                                                                 that the `mistral-common` package ships
"""

import argparse
import base64
import json
import pathlib
import random
import shutil
import tempfile

import sentencepiece
import tiktoken
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from make_tokenizer_cases import CONTRACTIONS, KIMI, SPLITS, TAIL, WORDS, byte_characters, llama2, random_text

HERE = pathlib.Path(__file__).resolve().parent
RULES = [("\uff21", "A"), ("\u00e9", "e"), ("e\u0301", "e"), ("\u2460", "1"), ("\u3042\u3044", "ai"), ("\u00a0", " "),
         ("\u3000", " "), ("\t", " "), ("\n", " "), ("\u00df", "ss"), ("\ud55c", "han"), ("\u4f60", "")]


def lines(seed):
    rng = random.Random(seed)
    return [" " * rng.choice([0, 0, 2, 4]) + " ".join(rng.choices(WORDS, k=12)) for _ in range(3000)]


def sentence_piece(folder, rules=None, **options):
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch)
        if rules is not None:
            rows = [" ".join(f"{ord(c):04X}" for c in a) + "\t" + " ".join(f"{ord(c):04X}" for c in b) for a, b in rules]
            (path / "rules.tsv").write_text("\n".join(rows) + "\n")
            options["normalization_rule_tsv"] = str(path / "rules.tsv")
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines(7)), model_prefix=str(path / "m"),
                                                 vocab_size=500, hard_vocab_limit=False, minloglevel=2,
                                                 character_coverage=0.98, **options)
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString((path / "m.model").read_bytes())
    model.trainer_spec.ClearField("input")
    model.trainer_spec.model_prefix = "m"
    model.normalizer_spec.normalization_rule_tsv = ""
    (folder / "tokenizer.model").write_bytes(model.SerializeToString())
    return by_sentence_piece(folder)


def by_sentence_piece(folder):
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    return len(model), model.encode, model.decode


def trained(words):
    """Tokens over bytes, in the order that they were learnt: {bytes: rank}."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(words, "isolated"),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=700, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    rng = random.Random(1)
    tok.train_from_iterator([random_text(rng) for _ in range(2000)], trainer)
    byte_of = {c: b for b, c in byte_characters().items()}
    pieces = sorted(tok.get_vocab().items(), key=lambda item: item[1])
    learnt = [bytes(byte_of[c] for c in piece) for piece, _ in pieces]
    learnt = [bytes([b]) for b in range(256)] + [piece for piece in learnt if len(piece) > 1]
    return {piece: rank for rank, piece in enumerate(learnt)}


def by_tiktoken(words, ranks, first=0, special=None):
    own = tiktoken.Encoding("own", pat_str=words, mergeable_ranks=ranks, special_tokens={})
    encode = lambda text: [first + i for i in own.encode_ordinary(text)]
    return first + len(ranks) + len(special or []), encode, lambda ids: own.decode([i - first for i in ids])


def ranks_file(ranks):
    return "".join(f"{base64.b64encode(piece).decode()} {rank}\n" for piece, rank in ranks.items())


def qwen(folder):
    from tokenizers import Regex
    ranks = trained(Regex(SPLITS["qwen2"]))
    (folder / "qwen.tiktoken").write_text(ranks_file(ranks))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "QWenTokenizer"}))
    return by_tiktoken(SPLITS["qwen2"], ranks, special=range(208))


def kimi(folder):
    from tokenizers import Regex
    ranks = trained(Regex(KIMI))
    (folder / "tiktoken.model").write_text(ranks_file(ranks))
    decoder = {str(len(ranks)): {"content": "[BOS]", "special": True}, str(len(ranks) + 4): {"content": "<|im_end|>", "special": True}}
    config = {"tokenizer_class": "TikTokenTokenizer", "bos_token": "[BOS]", "added_tokens_decoder": decoder}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return by_tiktoken(KIMI, ranks, special=range(256))


def tekken(folder, own_tokens=True):
    from tokenizers import Regex
    ranks = trained(Regex(SPLITS["tekken"]))
    vocab = [{"rank": rank, "token_bytes": base64.b64encode(piece).decode(), "token_str": None} for piece, rank in ranks.items()]
    state = {"config": {"pattern": SPLITS["tekken"], "num_vocab_tokens": len(ranks), "default_vocab_size": len(ranks) + 20,
                        "default_num_special_tokens": 30, "version": "v3"}, "vocab": vocab}
    if own_tokens:
        names = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
        state["special_tokens"] = [{"rank": i, "token_str": name, "is_control": True} for i, name in enumerate(names)]
    (folder / "tekken.json").write_text(json.dumps(state, separators=(",", ":")))
    return by_tekken(folder)


def by_tekken(folder):
    state = json.loads((folder / "tekken.json").read_text())
    config = state["config"]
    n = config["default_vocab_size"] - config["default_num_special_tokens"]
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in state["vocab"] if token["rank"] < n}
    return by_tiktoken(config["pattern"], ranks, config["default_num_special_tokens"])


def merges(folder, kind):
    import transformers
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=600, show_progress=False, special_tokens=["<|endoftext|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    rng = random.Random(3)
    tok.train_from_iterator([random_text(rng) for _ in range(2000)], trainer)
    tok.model.save(str(folder))
    added = {"<|im_start|>": 600, "<|im_end|>": 601}
    (folder / "added_tokens.json").write_text(json.dumps(added))
    named = {"eos_token": "<|endoftext|>", "additional_special_tokens": list(added)}
    (folder / "special_tokens_map.json").write_text(json.dumps(named))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind, **named}))
    other = getattr(transformers, kind)(vocab=str(folder / "vocab.json"), merges=str(folder / "merges.txt"))
    return 602, lambda text: other.encode(text, add_special_tokens=False), other.decode


def by_class(model_type, **config):
    """tokenizer.json beside a tokenizer_config.json that says something else."""
    def make(folder):
        import transformers
        (folder / "tokenizer.json").write_text(json.dumps(llama2(), separators=(",", ":")))
        named = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
        (folder / "tokenizer_config.json").write_text(json.dumps({**named, **config}))
        (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
        tok = transformers.AutoTokenizer.from_pretrained(str(folder))
        return len(tok), tok.encode, lambda ids: tok.decode(ids, skip_special_tokens=True)
    return make


def published(source):
    def make(folder):
        import mistral_common
        shutil.copy(pathlib.Path(mistral_common.__file__).parent / "data" / source,
                    folder / ("tekken.json" if source.startswith("tekken") else "tokenizer.model"))
        return by_tekken(folder) if source.startswith("tekken") else by_sentence_piece(folder)
    return make


LATER = {"567": {"content": "<|new|>", "special": True, "lstrip": False, "rstrip": False, "normalized": False,
                 "single_word": False}}
BPE = {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False}
USER = ["<table>", "\n\n", "<|x|>"]
KINDS = {
    "sentencepiece_bpe": lambda folder: sentence_piece(folder, **BPE),
    "sentencepiece_no_prefix": lambda folder: sentence_piece(folder, add_dummy_prefix=False, **BPE),
    "sentencepiece_unigram": lambda folder: sentence_piece(folder, RULES, model_type="unigram"),
    "sentencepiece_squeezed": lambda folder: sentence_piece(folder, RULES, model_type="bpe"),
    "sentencepiece_user": lambda folder: sentence_piece(folder, user_defined_symbols=USER, **BPE),
    "sentencepiece_no_prefix_user": lambda folder: sentence_piece(folder, add_dummy_prefix=False, user_defined_symbols=USER, **BPE),
    "qwen": qwen,
    "kimi": kimi,
    "tekken": tekken,
    "tekken_old": lambda folder: tekken(folder, False),
    "class_llama": by_class("llama", tokenizer_class="LlamaTokenizer", add_bos_token=False),
    "class_llama_legacy": by_class("llama", tokenizer_class="LlamaTokenizerFast", legacy=True, add_eos_token=True),
    "class_llama_bare": by_class("llama", tokenizer_class="LlamaTokenizer", add_prefix_space=False),
    "class_mistral": by_class("mistral", tokenizer_class="LlamaTokenizer", legacy=False, add_bos_token=False),
    "class_fast": by_class("llama", tokenizer_class="PreTrainedTokenizerFast", legacy=False, add_prefix_space=False),
    "class_added": by_class("llama", tokenizer_class="PreTrainedTokenizerFast", added_tokens_decoder=LATER),
    "gpt2": lambda folder: merges(folder, "GPT2Tokenizer"),
    "qwen2": lambda folder: merges(folder, "Qwen2Tokenizer"),
}
PUBLISHED = {
    "nmt_nfkc": lambda folder: sentence_piece(folder, model_type="unigram", normalization_rule_name="nmt_nfkc"),
    "nfkc_cf": lambda folder: sentence_piece(folder, model_type="bpe", normalization_rule_name="nfkc_cf"),
    "mistral_v1": published("tokenizer.model.v1"),
    "mistral_v3": published("mistral_instruct_tokenizer_240323.model.v3"),
    "mistral_v7": published("mistral_instruct_tokenizer_241114.model.v7"),
    "tekken_240718": published("tekken_240718.json"),
    "tekken_240911": published("tekken_240911.json"),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "folders")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--published", action="store_true")
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    kinds = {**KINDS, **(PUBLISHED if options.published else {})}
    for name in options.only or kinds:
        folder = options.out / name
        folder.mkdir(parents=True, exist_ok=True)
        n_vocab, encode, decode = kinds[name](folder)
        rng = random.Random(name)
        whole = name.startswith("class")
        tokens = USER if name.endswith("user") else ["<s>", "</s>", "<unk>", "<|new|>"] if whole else ()
        texts = ["", " ", "  ", "  a", "a  "] + [random_text(rng, tokens).replace("\u2581", "_") for _ in range(options.cases)]
        cases = [[text, list(ids), decode(ids)] for text in texts for ids in [encode(text)]]
        (folder / "cases.json").write_text(json.dumps({"n_vocab": n_vocab, "whole": whole, "cases": cases}, separators=(",", ":")))
        print(name, n_vocab, len(cases))


if __name__ == "__main__":
    main()
