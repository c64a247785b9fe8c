"""Byte-level BPE: trains the merges and encodes text the way the engine does.

The alphabet is GPT-2's byte-to-unicode map, the split rule is Qwen2's. Ids:
the 256 bytes, then the merges in order, then the special tokens at the end.
"""

import json
from collections import Counter, defaultdict
from pathlib import Path

import regex

SPECIALS = ("<|begin|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
BOS, EOS = SPECIALS[0], SPECIALS[-1]
SPLIT = regex.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL_SPLIT = regex.compile("(" + "|".join(regex.escape(s) for s in SPECIALS) + ")")


def byte_alphabet() -> list[str]:
    """The printable character of each byte, indexed by the byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table, n_moved = {}, 0
    for byte in range(256):
        if byte in printable:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(256 + n_moved)
            n_moved += 1
    return [table[byte] for byte in range(256)]


ALPHABET = byte_alphabet()
BYTE_OF = {char: byte for byte, char in enumerate(ALPHABET)}


def count_words(text: str) -> Counter:
    counts = Counter()
    for piece in SPECIAL_SPLIT.split(text):
        if piece not in SPECIALS:
            counts.update(SPLIT.findall(piece))
    return counts


def train_merges(counts: Counter, n_merges: int) -> list[tuple[str, str]]:
    """The n most frequent merges; ties go to the smaller pair, so runs agree."""
    words = [[ALPHABET[b] for b in word.encode()] for word in counts]
    weights = list(counts.values())
    pair_counts, pair_words = Counter(), defaultdict(set)
    for i, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pair_counts[pair] += weights[i]
            pair_words[pair].add(i)
    merges = []
    while len(merges) < n_merges and pair_counts:
        best = min(pair_counts, key=lambda pair: (-pair_counts[pair], pair))
        if pair_counts[best] < 2:
            break
        merges.append(best)
        for i in pair_words.pop(best):
            word, weight = words[i], weights[i]
            for pair in zip(word, word[1:]):
                pair_counts[pair] -= weight
            words[i] = word = merge_pair(word, best)
            for pair in zip(word, word[1:]):
                pair_counts[pair] += weight
                pair_words[pair].add(i)
        del pair_counts[best]
    return merges


def merge_pair(word: list[str], pair: tuple[str, str]) -> list[str]:
    merged, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            merged.append(word[i] + word[i + 1])
            i += 2
        else:
            merged.append(word[i])
            i += 1
    return merged


class Tokenizer:
    def __init__(self, merges: list[tuple[str, str]]):
        self.merges = [tuple(pair) for pair in merges]
        self.rank = {pair: i for i, pair in enumerate(self.merges)}
        self.tokens = [*ALPHABET, *(a + b for a, b in self.merges), *SPECIALS]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.bos, self.eos = self.ids[BOS], self.ids[EOS]
        self.cache: dict[str, list[int]] = {}

    def encode_word(self, word: str) -> list[int]:
        parts = [ALPHABET[b] for b in word.encode()]
        while len(parts) > 1:
            best = min(zip(parts, parts[1:]), key=lambda pair: self.rank.get(pair, len(self.rank)))
            if best not in self.rank:
                break
            parts = merge_pair(parts, best)
        return [self.ids[part] for part in parts]

    def encode(self, text: str, add_bos: bool = True) -> list[int]:
        """Ids of the text; special tokens in the text become their ids."""
        ids = [self.bos] if add_bos else []
        for piece in SPECIAL_SPLIT.split(text):
            if piece in SPECIALS:
                ids.append(self.ids[piece])
                continue
            for word in SPLIT.findall(piece):
                known = self.cache.get(word)
                if known is None:
                    known = self.cache[word] = self.encode_word(word)
                ids += known
        return ids

    def decode(self, ids: list[int]) -> str:
        data = b"".join(self.tokens[i].encode() if i >= self.first_special
                        else bytes(BYTE_OF[c] for c in self.tokens[i]) for i in ids)
        return data.decode(errors="replace")

    @property
    def first_special(self) -> int:
        return len(self.tokens) - len(SPECIALS)

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"merges": [" ".join(pair) for pair in self.merges]}, ensure_ascii=False,
                                   indent=0))

    @staticmethod
    def load(path: Path) -> "Tokenizer":
        return Tokenizer([tuple(pair.split(" ")) for pair in json.loads(path.read_text())["merges"]])
