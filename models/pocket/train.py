"""Trains a Pocket model: seeded, resumable, one pass over the packed tokens.

    python3 train.py --work DIR --model main --steps 4000

Keeps DIR/<model>.pt and continues from it; a new --steps moves the end of the
learning-rate decay, so a slow machine can shorten a run that has begun.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")

import numpy as np
import torch
import torch.nn.functional as F

import data
from bpe import Tokenizer
from evaluate import heldout_loss, read_heldout
from model import Pocket, draft_config, main_config

HERE = Path(__file__).resolve().parent
SEED = 20260
N_THREADS = 2
BATCH_ROWS = 8
WARMUP_STEPS = 150
CLIP_NORM = 1.0
WEIGHT_DECAY = 0.1
CHECKPOINT_SECONDS = 180
CONFIGS = {"main": (main_config, 2e-3), "draft": (draft_config, 4e-3)}  # peak learning rate


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of tokens and checkpoints")
    parser.add_argument("--model", choices=tuple(CONFIGS), default="main")
    parser.add_argument("--steps", type=int, required=True, help="the step where the decay reaches zero")
    return parser.parse_args()


def learning_rate(step: int, n_steps: int, peak: float) -> float:
    warm = min(1.0, (step + 1) / WARMUP_STEPS)
    left = max(0.0, 1.0 - step / n_steps)
    return peak * warm * left


def make_optimizer(model: Pocket) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    norms = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.95), fused=True)


class Batches:
    """Windows of the packed tokens in a seeded order; a batch depends on its step alone."""

    def __init__(self, path: Path, context_tokens: int):
        self.tokens = np.load(path, mmap_mode="r")
        self.context_tokens = context_tokens
        n_windows = (len(self.tokens) - 1) // context_tokens
        self.order = np.random.default_rng(SEED).permutation(n_windows)

    def at(self, step: int) -> torch.Tensor:
        """[B, T + 1] ids."""
        first = step * BATCH_ROWS % (len(self.order) - BATCH_ROWS)
        starts = self.order[first:first + BATCH_ROWS] * self.context_tokens
        rows = [self.tokens[s:s + self.context_tokens + 1] for s in starts]
        return torch.from_numpy(np.stack(rows).astype(np.int64))


def save(path: Path, step: int, model: Pocket, optimizer: torch.optim.AdamW) -> None:
    temporary = path.with_suffix(".tmp")
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, temporary)
    temporary.rename(path)


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(N_THREADS)
    tokenizer = Tokenizer.load(HERE / "tokenizer.json")
    make_config, peak = CONFIGS[args.model]
    model = Pocket(make_config(len(tokenizer.tokens)))
    optimizer = make_optimizer(model)
    batches = Batches(args.work / "train.npy", model.config.context_tokens)
    documents = read_heldout(HERE / "heldout.txt")
    checkpoint, step = args.work / f"{args.model}.pt", 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]

    def loss_of(rows: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())

    compiled = torch.compile(loss_of)
    print(f"{args.model}: {model.n_parameters()} parameters, step {step} of {args.steps}", flush=True)
    saved_at, begun_at, first_step, recent = time.time(), time.time(), step, 0.0
    while step < args.steps:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps, peak)
        loss = compiled(batches.at(step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        recent += loss.item()
        if step % 50 == 0:
            speed = (step - first_step) * BATCH_ROWS * model.config.context_tokens / (time.time() - begun_at)
            print(f"step {step} loss {recent / 50:.4f} tokens/s {speed:.0f}", flush=True)
            recent = 0.0
        if time.time() - saved_at > CHECKPOINT_SECONDS or step == args.steps:
            save(checkpoint, step, model, optimizer)
            print(f"step {step} held-out loss {heldout_loss(model, documents):.4f}", flush=True)
            saved_at = time.time()


def prepare(work: Path) -> None:
    """Writes the tokenizer, the held-out text and the training tokens once."""
    work.mkdir(parents=True, exist_ok=True)
    tokenizer_path = HERE / "tokenizer.json"
    if (work / "train.npy").exists():
        return
    tokenizer = data.train_tokenizer(tokenizer_path)
    data.write_heldout(HERE / "heldout.txt", tokenizer)
    data.write_training_tokens(work / "train.npy", tokenizer_path, data.TRAINING_TOKENS)


if __name__ == "__main__":
    arguments = parse_arguments()
    prepare(arguments.work)
    train(arguments)
