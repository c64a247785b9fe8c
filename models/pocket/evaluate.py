"""Held-out perplexity and greedy samples of the exported files.

    python3 evaluate.py             writes perplexity.json
    python3 evaluate.py --samples   prints answers to a fixed list of prompts
    python3 evaluate.py --answers   counts right answers: every small sum, and held-out questions
"""

import argparse
import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F

import gguf
from bpe import EOS, Tokenizer
from model import ModelConfig, Pocket

HERE = Path(__file__).resolve().parent
FILES = ("pocket-f32.gguf", "pocket-q8_0.gguf", "pocket-draft-q8_0.gguf")
DEFINITION = ("exp of the mean negative log-likelihood (natural log) of every token after the first, over all documents "
              "of heldout.txt; each document is evaluated alone from its bos, in f32, from the dequantised weights of the file")
SAMPLES = ("Once upon a time", "Tell me a story about a fox.", "Tell me a short story about Mia and a kite.",
           "What is 7 + 5?",
           "Who are you?", "Hello!", "What is the capital of France?", "Name three fruits.",
           "The fox is red. Give me the animal and its colour as JSON.",
           "Ann has 3 apples. Ben gives her 4 more. How many apples does Ann have now?")


def read_heldout(path: Path) -> list[list[int]]:
    return [json.loads(line)["tokens"] for line in path.read_text(encoding="utf-8").splitlines()]


@torch.no_grad()
def heldout_loss(model: Pocket, documents: list[list[int]]) -> float:
    """Mean negative log-likelihood of every token after its document's bos."""
    total, n_tokens = 0.0, 0
    for ids in documents:
        row = torch.tensor([ids])
        losses = F.cross_entropy(model(row[:, :-1])[0], row[0, 1:], reduction="sum")
        total += losses.item()
        n_tokens += len(ids) - 1
    return total / n_tokens


def load(path: Path) -> tuple[Pocket, Tokenizer]:
    """The model and the tokenizer, from nothing but the GGUF file."""
    reader = gguf.Reader(path)
    of = lambda key: reader.metadata["llama." + key]
    config = ModelConfig(of("vocab_size"), of("embedding_length"), of("block_count"), of("attention.head_count"),
                         of("attention.head_count_kv"), of("feed_forward_length"), of("context_length"),
                         of("attention.layer_norm_rms_epsilon"), of("rope.freq_base"))
    model = Pocket(config)
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in reader.tensors.items()})
    merges = [tuple(pair.split(" ")) for pair in reader.metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(merges)
    if tokenizer.tokens != reader.metadata["tokenizer.ggml.tokens"]:
        raise ValueError(f"{path.name}: the token list does not follow from the merges")
    return model, tokenizer


@torch.no_grad()
def generate(model: Pocket, tokenizer: Tokenizer, text: str, temperature: float = 0.0, max_tokens: int = 300) -> str:
    """Continues the text until the end token, greedily when temperature is 0."""
    ids = tokenizer.encode(text)
    n_prompt = len(ids)
    while len(ids) < min(n_prompt + max_tokens, model.config.context_tokens):
        logits = model(torch.tensor([ids]))[0, -1]
        if temperature > 0:
            next_id = int(torch.multinomial((logits / temperature).softmax(-1), 1))
        else:
            next_id = int(logits.argmax())
        if next_id == tokenizer.eos:
            break
        ids.append(next_id)
    return tokenizer.decode(ids[n_prompt:])


def chat_prompt(turns: list[tuple[str, str]]) -> str:
    """The chat template's text for (role, content) turns, ready for the assistant."""
    return "".join(f"<|{role}|>\n{content}<|end|>\n" for role, content in turns) + "<|assistant|>\n"


@torch.no_grad()
def is_answered(model: Pocket, tokenizer: Tokenizer, prompt: str, answer: str) -> bool:
    """Whether greedy decoding gives exactly the answer and ends."""
    ids, n_prompt = tokenizer.encode(prompt + answer + EOS), len(tokenizer.encode(prompt))
    best = model(torch.tensor([ids[:model.config.context_tokens]]))[0].argmax(-1).tolist()
    return best[n_prompt - 1:len(ids) - 1] == ids[n_prompt:]


def all_sums() -> list[tuple[str, str]]:
    """(prompt, answer) of every sum and difference within 0..20."""
    sums = [(a, "+", b, a + b) for a in range(21) for b in range(21 - a)]
    sums += [(a, "-", b, a - b) for a in range(21) for b in range(a + 1)]
    return [(chat_prompt([("user", f"What is {a} {sign} {b}?")]), f"{a} {sign} {b} = {c}.") for a, sign, b, c in sums]


def heldout_questions() -> list[tuple[str, str]]:
    """(conversation so far, answer) of every short answer to a question in the held-out conversations."""
    pairs = []
    for line in (HERE / "heldout.txt").read_text(encoding="utf-8").splitlines():
        parts = json.loads(line)["text"].split("<|assistant|>\n")
        for i in range(1, len(parts)):
            answer = parts[i].split(EOS)[0]
            if parts[i - 1].endswith(f"?{EOS}\n") and len(answer) < 80:
                pairs.append(("<|assistant|>\n".join(parts[:i]) + "<|assistant|>\n", answer))
    return pairs


def print_answers(model: Pocket, tokenizer: Tokenizer) -> None:
    for name, pairs in (("sums", all_sums()), ("held-out questions", heldout_questions())):
        wrong = [pair for pair in pairs if not is_answered(model, tokenizer, *pair)]
        print(f"{name}: {len(pairs) - len(wrong)} of {len(pairs)} exactly right")
        for prompt, answer in wrong[:8]:
            print(f"  not: {prompt.split('<|user|>')[-1].split(EOS)[0].strip()[-80:]} -> {answer}")


def write_perplexities(documents: list[list[int]]) -> None:
    results = {}
    for file in FILES:
        if (HERE / file).exists():
            loss = heldout_loss(load(HERE / file)[0], documents)
            results[file] = {"mean_nll": round(loss, 7), "perplexity": round(math.exp(loss), 6)}
    report = {"definition": DEFINITION, "documents": len(documents),
              "predicted_tokens": sum(len(ids) - 1 for ids in documents), "files": results}
    (HERE / "perplexity.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", action="store_true")
    parser.add_argument("--answers", action="store_true")
    torch.set_num_threads(2)
    args = parser.parse_args()
    model, tokenizer = load(HERE / "pocket-q8_0.gguf")
    if args.answers:
        print_answers(model, tokenizer)
        return
    if args.samples:
        for prompt in SAMPLES:
            print(f"> {prompt}\n{generate(model, tokenizer, chat_prompt([('user', prompt)]))}\n")
        return
    write_perplexities(read_heldout(HERE / "heldout.txt"))


if __name__ == "__main__":
    main()
