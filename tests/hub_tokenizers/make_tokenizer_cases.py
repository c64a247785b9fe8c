#!/usr/bin/env python3
"""Trains a small tokenizer of every kind that docs/models.md claims, with the `tokenizers` library, and writes it with
cases to cases/: NAME.json (tokenizer.json) and NAME.cases.json ([[text, ids, decoded], ...]). Texts hold special tokens
as they are written; decoded leaves them out.

    python3 make_tokenizer_cases.py                                  the cases that are checked in
    python3 make_tokenizer_cases.py --out FOLDER --cases 10000       many, for CANDOR_TOKENIZER_CASES=FOLDER
"""

import argparse
import json
import pathlib
import random
import tempfile
import unicodedata

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).resolve().parent

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPLITS = {
    "llama3": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL,
    "qwen2": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL,
    "qwen35": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + TAIL,
    "gpt4o": CASED + "*" + LOWER + "+" + CONTRACTIONS + "?|" + CASED + "+" + LOWER + "*" + CONTRACTIONS +
             r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL,
    "tekken": CASED + "*" + LOWER + "+|" + CASED + "+" + LOWER + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + TAIL,
    "bloom": " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
}
DEEPSEEK3 = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|""" + "[^\r\n" + r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
             r"| ?[\p{P}\p{S}]+" + "[\r\n]*|" + r"\s*" + "[\r\n]+|" + r"\s+(?!\S)|\s+"]
WORDS = ("the river and wind told old tree another tale in night she heard then slept HELLO World don't we'll I'm 's it's "
         "caf\u00e9 na\u00efve stra\u00dfe \u0434\u043e\u043c \u043d\u043e\u0447\u044c \u4f60\u597d \u4e16\u754c "
         "\u3053\u3093\u306b\u3061\u306f \ud55c\uad6d\uc5b4 \u0645\u0631\u062d\u0628\u0627 \u0928\u092e\u0938\u094d\u0924\u0947 "
         "x=1; for(i=0;i<10;++i) 2024 3.14 1,000,000 ... --- \U0001F600 \U0001F468\u200d\U0001F469 e\u0301 A\u030a ").split()


def random_text(rng, tokens=()):
    parts = []
    for _ in range(rng.randint(1, 14)):
        kind = rng.random()
        if kind < 0.05 and tokens:
            parts.append(rng.choice(tokens))
        elif kind < 0.5:
            parts.append(rng.choice(WORDS))
        elif kind < 0.65:
            parts.append(rng.choice([" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u00a0", "\u3000"]))
        elif kind < 0.75:
            parts.append(str(rng.randint(0, 10 ** rng.randint(1, 9))))
        else:
            for _ in range(rng.randint(1, 5)):
                while True:
                    code = rng.randrange(1, 0x30000 if rng.random() < 0.3 else 0x3000)
                    if unicodedata.category(chr(code)) not in ("Cs", "Cn", "Co"):
                        break
                parts.append(chr(code))
        if rng.random() < 0.6:
            parts.append(" ")
    return "".join(parts)


# Expressions that no scanner is written for, as published or nearly: they run in the general engine.
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
          r"\s+(?!\S)|\s")
HAN = r"[\p{Han}]+|"
NO_HAN = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
NO_HAN_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = (HAN + NO_HAN + "*" + NO_HAN_LOWER + "+" + CONTRACTIONS + "?|" + NO_HAN + "+" + NO_HAN_LOWER + "*" + CONTRACTIONS +
        r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL)
DEEPSEEK_LLM = ["[\r\n]", "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u0370-\u0373\u0386\u0410-\u044f]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$",
                "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]
THREES = r"\d{1,3}(?=(?:\d{3})*\b)"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def split(expression, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(expression), behavior, invert)


def own_bytes(use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def falcon():
    return [pre_tokenizers.Punctuation("contiguous"), own_bytes(True), pre_tokenizers.Digits(individual_digits=False),
            split("[0-9][0-9][0-9]")]


def byte_level(split=None, ignore_merges=False, normalizer=None, digits=False, steps=None):
    tok = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tok.normalizer = normalizer
    own = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None)
    if steps is not None:
        tok.pre_tokenizer = pre_tokenizers.Sequence(steps)
    elif split is not None:
        expressions = split if isinstance(split, list) else [split]
        splits = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in expressions]
        tok.pre_tokenizer = pre_tokenizers.Sequence([*splits, own])
    elif digits:
        tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), own])
    else:
        tok.pre_tokenizer = own
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<|begin|>", "<|end|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    rng = random.Random(1)
    tok.train_from_iterator([random_text(rng) for _ in range(2000)], trainer)
    tok.post_processor = processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", 0)])
    return tok


# The bytes that UTF-8 never uses, and some that it does, as a training text may lack them.
HOLES = [0x00, 0x0B, 0x5E, 0xB8, 0xC0, 0xC1, 0xF1, 0xF2, 0xF3] + list(range(0xF5, 0x100))


def byte_characters():
    """By byte, as ByteLevel writes it."""
    own = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    others = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(0x100 + i) for i, b in enumerate(others)}}


def with_holes(digits=False, **unknown):
    """gpt2 without the tokens that hold one of those bytes; `unknown`: of the model."""
    state = json.loads(byte_level(digits=digits).to_str())
    absent = {byte_characters()[byte] for byte in HOLES}
    kept = [piece for piece, _ in sorted(state["model"]["vocab"].items(), key=lambda item: item[1])
            if not absent & set(piece)]
    state["model"]["vocab"] = {piece: i for i, piece in enumerate(kept)}
    state["model"]["merges"] = [pair for pair in state["model"]["merges"] if not absent & set("".join(pair))]
    state["model"].update(unknown)
    return state


def needs_holes(text):
    return bool(set(HOLES) & set(text.encode()))


def sentence_piece(metaspace, prefix, strips=False):
    """A SentencePiece BPE model, as transformers turns one into a tokenizer.json: every pair that makes a piece."""
    rng = random.Random(2)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m"
        lines = iter([" ".join(rng.choices(WORDS, k=12)) for _ in range(3000)])
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_prefix=str(path), vocab_size=600,
                                                 model_type="bpe", byte_fallback=True, character_coverage=0.98,
                                                 normalization_rule_name="identity", remove_extra_whitespaces=False,
                                                 hard_vocab_limit=False, minloglevel=2)
        model = sentencepiece.SentencePieceProcessor(model_file=f"{path}.model")
    vocab = {model.id_to_piece(i): i for i in range(len(model))}
    scores = {piece: model.get_score(i) for piece, i in vocab.items()}
    ordinary = {p for p, i in vocab.items() if not (model.is_control(i) or model.is_unknown(i) or model.is_byte(i))}
    merges = [(piece[:cut], piece[cut:], scores[piece]) for piece in ordinary for cut in range(1, len(piece))
              if piece[:cut] in ordinary and piece[cut:] in ordinary]
    merges.sort(key=lambda merge: (-merge[2], vocab[merge[0]], vocab[merge[1]]))
    tok = Tokenizer(models.BPE(vocab=vocab, merges=[(a, b) for a, b, _ in merges], unk_token="<unk>", fuse_unk=True,
                               byte_fallback=True))
    if metaspace:
        tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first" if prefix else "never", split=False)
    else:
        steps = [normalizers.Prepend("\u2581")] if prefix else []
        tok.normalizer = normalizers.Sequence(steps + [normalizers.Replace(" ", "\u2581")])
    last = [decoders.Strip(" ", 1, 0)] if prefix else []
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()] + last)
    tok.add_special_tokens([special("<unk>"), special("<s>"), special("</s>")])
    if strips:
        tok.add_special_tokens([special("<|left|>", lstrip=True), special("<|right|>", rstrip=True)])
        tok.add_tokens([AddedToken("<word>", normalized=False, rstrip=True)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tok


def code_text(rng, tokens=()):
    """Lines that are indented, runs of spaces, tabs and newlines between words."""
    parts = []
    for _ in range(rng.randint(1, 5)):
        parts.append(rng.choice(["", " ", "\t"]) * rng.randint(0, 12) + random_text(rng, tokens))
        parts.append("\n" * rng.choice([0, 1, 1, 2, 3, 5, 9]))
        parts.append("\u2581" * rng.choice([0, 0, 0, 1, 2, 5]))
    return "".join(parts)


def trained_pieces(specials, own):
    """[(piece, score, type)] of a SentencePiece BPE model with the settings of Llama 2 and Gemma. `own` come right
    behind `specials`, as user-defined pieces of score 0."""
    rng = random.Random(5)
    lines = [" " * rng.choice([0, 0, 2, 4, 8]) + " ".join(rng.choices(WORDS, k=12)) for _ in range(3000)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m"
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=str(path), vocab_size=900,
                                                 model_type="bpe", byte_fallback=True, character_coverage=0.98,
                                                 split_digits=True, allow_whitespace_only_pieces=True,
                                                 normalization_rule_name="identity", remove_extra_whitespaces=False,
                                                 hard_vocab_limit=False, minloglevel=2)
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString(path.with_suffix(".model").read_bytes())
    control, user_defined = 3, 4
    pieces = [(piece, 0.0, control) for piece in specials] + [(piece, 0.0, user_defined) for piece in own]
    taken = {piece for piece, _, _ in pieces}
    return pieces + [(p.piece, p.score, p.type) for p in model.pieces if p.type != control and p.piece not in taken]


def pair_merges(pieces, specials):
    """Every pair that makes a piece, by the piece's score, then the longest left part, then the longest right one."""
    vocab = {piece: i for i, (piece, _, _) in enumerate(pieces)}
    merges = []
    for piece, score, _ in pieces:
        pairs = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        known = [(a, b) for a, b in pairs if a in vocab and b in vocab and not {a, b, piece} & set(specials)]
        merges += [(score, a, b) for a, b in sorted(known, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))]
    merges.sort(key=lambda merge: (merge[0], len(merge[1]), len(merge[2])), reverse=True)
    return [(a, b) for _, a, b in merges]


def from_pieces(pieces, specials, prefix):
    vocab = {piece: i for i, (piece, _, _) in enumerate(pieces)}
    tok = Tokenizer(models.BPE(vocab=vocab, merges=pair_merges(pieces, specials), unk_token="<unk>", fuse_unk=True,
                               byte_fallback=True))
    marks = normalizers.Replace(" ", "\u2581")
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), marks]) if prefix else marks
    last = [decoders.Strip(" ", 1, 0)] if prefix else []
    tok.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()] + last)
    tok.add_special_tokens([special(piece) for piece in specials])
    return tok


def llama2():
    """As published: merges written as one string, and no pre-tokenizer."""
    specials = ["<unk>", "<s>", "</s>"]
    tok = from_pieces(trained_pieces(specials, []), specials, True)
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    state = json.loads(tok.to_str())
    state["model"]["merges"] = [" ".join(merge) for merge in state["model"]["merges"]]
    return state


def gemma():
    """As published: runs of newlines and of marks are pieces of their own, and a split that finds nothing."""
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
    own = [c * n for c in ("\n", "\t") for n in range(1, 9)] + ["\u2581" * n for n in range(2, 32)] + ["<table>", "</td>"]
    tok = from_pieces(trained_pieces(specials, own), specials, False)
    tok.add_tokens([AddedToken(piece, normalized=False) for piece in own])
    tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tok.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    return json.loads(tok.to_str())


def plain_unknown(state):
    """The same with an unknown token that is no added token."""
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] != "<unk>"]
    return state


def special(text, **flags):
    return AddedToken(text, special=True, normalized=False, **flags)


SQUEEZE = normalizers.Replace(Regex(" {2,}"), " ")


def unigram(normalizer, pre_tokenizer, byte_fallback=False):
    """A model of the library's own trainer."""
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizer
    tok.pre_tokenizer = pre_tokenizer
    rng = random.Random(3)
    lines = [" ".join(rng.choices(WORDS, k=12)) for _ in range(2000)]
    extra = [f"<0x{i:02X}>" for i in range(256)] if byte_fallback else []
    trainer = trainers.UnigramTrainer(vocab_size=400 + len(extra), unk_token="<unk>", show_progress=False,
                                      special_tokens=["<unk>", "<s>", "</s>"] + extra)
    tok.train_from_iterator(lines, trainer)
    if byte_fallback:
        state = json.loads(tok.to_str())
        state["model"]["byte_fallback"] = True
        state["added_tokens"] = [t for t in state["added_tokens"] if not t["content"].startswith("<0x")]
        tok = Tokenizer.from_str(json.dumps(state))
    metaspace = json.loads(tok.to_str())["pre_tokenizer"]
    metaspace = metaspace.get("pretokenizers", [metaspace])[-1]
    own = decoders.Metaspace(prepend_scheme=metaspace["prepend_scheme"], split=True)
    if not metaspace["split"]:  # that one drops every mark of the first token
        own = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.decoder = decoders.Sequence([decoders.ByteFallback(), own]) if byte_fallback else own
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return tok


def compiled_rules():
    """A small "precompiled_charsmap" by SentencePiece's own compiler."""
    rules = [("\uff21", "A"), ("\u00e9", "e"), ("e\u0301", "e"), ("\u2460", "1"), ("\u3042\u3044", "ai"), ("\u00a0", " "),
             ("\u3000", " "), ("\t", " "), ("\n", " "), ("\u00df", "ss"), ("\ud55c", "han"), ("\u4f60", "")]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        lines = [" ".join(f"{ord(c):04X}" for c in a) + "\t" + " ".join(f"{ord(c):04X}" for c in b) for a, b in rules]
        (path / "rules.tsv").write_text("\n".join(lines) + "\n")
        rng = random.Random(4)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([" ".join(rng.choices(WORDS, k=12)) for _ in range(300)]),
            model_prefix=str(path / "m"), vocab_size=200, hard_vocab_limit=False, minloglevel=2,
            normalization_rule_tsv=str(path / "rules.tsv"))
        model = sentencepiece_model_pb2.ModelProto()
        model.ParseFromString((path / "m.model").read_bytes())
    return normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)


def word_piece(**normalizer):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=12))
    tok.normalizer = normalizers.BertNormalizer(**normalizer)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece(cleanup=False)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=500, special_tokens=specials, show_progress=False)
    rng = random.Random(6)
    tok.train_from_iterator([" ".join(rng.choices(WORDS, k=12)) for _ in range(2000)], trainer)
    tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tok


KINDS = {
    "wordpiece": lambda: word_piece(),
    "wordpiece_cased": lambda: word_piece(lowercase=False),
    "wordpiece_plain": lambda: word_piece(clean_text=False, handle_chinese_chars=False, strip_accents=False),
    "gpt2": lambda: byte_level(),
    "digits": lambda: byte_level(digits=True),
    "llama3": lambda: byte_level(SPLITS["llama3"], ignore_merges=True),
    "dbrx": lambda: byte_level(SPLITS["llama3"]),
    "qwen2": lambda: byte_level(SPLITS["qwen2"], normalizer=normalizers.NFC()),
    "qwen35": lambda: byte_level(SPLITS["qwen35"], normalizer=normalizers.NFC()),
    "gpt4o": lambda: byte_level(SPLITS["gpt4o"]),
    "tekken": lambda: byte_level(SPLITS["tekken"], ignore_merges=True),
    "bloom": lambda: byte_level(SPLITS["bloom"]),
    "gpt4o_removed": lambda: byte_level(steps=[split(SPLITS["gpt4o"], "removed", True), own_bytes()], ignore_merges=True),
    "gpt2_split": lambda: byte_level(GPT2),
    "gpt2_space": lambda: byte_level(steps=[pre_tokenizers.ByteLevel(add_prefix_space=True)]),
    "cl100k": lambda: byte_level(CL100K, ignore_merges=True),
    "kimi": lambda: byte_level(KIMI),
    "deepseek_llm": lambda: byte_level(steps=[*map(split, DEEPSEEK_LLM), pre_tokenizers.Digits(individual_digits=True),
                                              own_bytes()]),
    "falcon": lambda: byte_level(steps=falcon()),
    "threes": lambda: byte_level([THREES, SPLITS["gpt4o"]]),
    "behaviors": lambda: byte_level(steps=[split(r"\n", "merged_with_previous"), split(r"\p{Lu}", "merged_with_next"),
                                           split(r"[aeiou]", "contiguous"), split(r"\t", "removed"), own_bytes()]),
    "words": lambda: byte_level(steps=[pre_tokenizers.Whitespace(), own_bytes()]),
    "insides": lambda: byte_level(r"(?<=\p{L})\p{N}+(?!\p{N})|(?<![\p{L}\p{N}])\w{2,4}?\b|(?>\s+|\S\s)\p{L}|^.|\B[^\w\s]$"),
    "sentencepiece": lambda: sentence_piece(False, True),
    "deepseek3": lambda: byte_level(DEEPSEEK3),
    "sentencepiece_no_prefix": lambda: sentence_piece(False, False),
    "metaspace": lambda: sentence_piece(True, True),
    "strips": lambda: sentence_piece(False, True, strips=True),
    "llama2": llama2,
    "gemma": gemma,
    "gpt2_holes": lambda: with_holes(),
    "digits_holes": lambda: with_holes(digits=True),
    "gpt2_unknown": lambda: with_holes(unk_token="<|end|>"),
    "gpt2_fused": lambda: with_holes(unk_token="<|end|>", fuse_unk=True),
    "llama2_plain": lambda: plain_unknown(llama2()),
    "unigram_plain": lambda: plain_unknown(json.loads(unigram(normalizers.Sequence(
        [normalizers.Strip(), normalizers.NFKC(), SQUEEZE]), pre_tokenizers.Metaspace()).to_str())),
    "bytes_nfkd": lambda: byte_level(normalizer=normalizers.Sequence(
        [normalizers.NFKD(), normalizers.Lowercase()])),
    "bytes_nfd": lambda: byte_level(normalizer=normalizers.Sequence(
        [normalizers.Strip(), normalizers.NFD(), normalizers.Replace("e", "ee"), normalizers.Prepend("> ")])),
    "bytes_nfkc": lambda: byte_level(normalizer=normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), SQUEEZE])),
    "unigram": lambda: unigram(normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), SQUEEZE]),
                               pre_tokenizers.Metaspace()),
    "unigram_words": lambda: unigram(normalizers.Sequence([compiled_rules(), SQUEEZE]), pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])),
    "unigram_first": lambda: unigram(normalizers.NFC(), pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
    "unigram_bytes": lambda: unigram(normalizers.NFC(), pre_tokenizers.Metaspace(prepend_scheme="never"), True),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "cases")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--only", nargs="*", default=list(KINDS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        made = KINDS[name]()
        state = made if isinstance(made, dict) else json.loads(made.to_str())
        tok = Tokenizer.from_str(json.dumps(state))
        (options.out / f"{name}.json").write_text(json.dumps(state, separators=(",", ":")))
        rng = random.Random(name)
        tokens = [token.content for token in tok.get_added_tokens_decoder().values()]
        if name in ("llama2_plain", "unigram_plain"):
            tokens += ["<unk>", "<unk><unk>"]
        text = code_text if name in ("llama2", "llama2_plain", "gemma") else random_text
        texts = ["", " ", "  ", "   ", "  a", "a  "] + [text(rng, tokens) for _ in range(options.cases)]
        if name.endswith("_holes"):
            texts = [text for text in texts if not needs_holes(text)]
        cases = []
        for text in texts:
            ids = tok.encode(text).ids
            cases.append([text, ids, tok.decode(ids, skip_special_tokens=True)])
        (options.out / f"{name}.cases.json").write_text(json.dumps(cases, separators=(",", ":")))
        print(name, tok.get_vocab_size(), len(cases))


if __name__ == "__main__":
    main()
