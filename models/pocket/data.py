"""Token files: the generator's documents, tokenised and packed back to back."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from bpe import SPECIALS, Tokenizer, count_words, train_merges
from generator import document, drill_document, talk_document

VOCAB_SIZE = 2048
TOKENIZER_SEEDS = range(0, 30_000)
HELDOUT_FIRST_SEED = 1_000_000_000
HELDOUT_BYTES = 32_000
TRAINING_TOKENS = {"train": 16_000_000, "talk": 5_000_000, "drill": 2_000_000}
CHUNK_DOCUMENTS = 12_500


def train_tokenizer(path: Path) -> Tokenizer:
    counts = count_words("".join(document(seed) for seed in TOKENIZER_SEEDS))
    Tokenizer(train_merges(counts, VOCAB_SIZE - 256 - len(SPECIALS))).save(path)
    return Tokenizer.load(path)


def heldout_texts() -> list[str]:
    """Documents of seeds that training never sees; every text is distinct."""
    texts, n_bytes, seed = {}, 0, HELDOUT_FIRST_SEED
    while n_bytes < HELDOUT_BYTES:
        text = document(seed)
        if len(text) > 120 and text not in texts:
            texts[text] = None
            n_bytes += len(text.encode())
        seed += 1
    return list(texts)


def write_heldout(path: Path, tokenizer: Tokenizer) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for text in heldout_texts():
            lines.write(json.dumps({"text": text, "tokens": tokenizer.encode(text)}, ensure_ascii=False) + "\n")


SOURCES = {"train": document, "talk": talk_document, "drill": drill_document}  # what the token files hold


def encode_chunk(task: tuple[str, str, int]) -> np.ndarray:
    source, tokenizer_path, first_seed = task
    tokenizer = Tokenizer.load(Path(tokenizer_path))
    banned = set(heldout_texts())
    ids: list[int] = []
    for seed in range(first_seed, first_seed + CHUNK_DOCUMENTS):
        text = SOURCES[source](seed)
        if text not in banned:
            ids += tokenizer.encode(text)
    return np.array(ids, dtype=np.uint16)


def write_tokens(path: Path, tokenizer_path: Path, n_tokens: int) -> None:
    """Writes at least n_tokens of the source that the file is named after."""
    chunks, total, first_seed = [], 0, 0
    with ProcessPoolExecutor(2) as pool:
        while total < n_tokens:
            tasks = [(path.stem, str(tokenizer_path), first_seed + i * CHUNK_DOCUMENTS) for i in range(4)]
            first_seed += 4 * CHUNK_DOCUMENTS
            for chunk in pool.map(encode_chunk, tasks):
                chunks.append(chunk)
                total += len(chunk)
    temporary = path.with_suffix(".tmp.npy")
    np.save(temporary, np.concatenate(chunks))
    temporary.rename(path)
