"""Trains a Pocket model: seeded, resumable, one pass over the packed tokens.

    python3 train.py --work DIR --model main --windows 30000

A window is 512 tokens; a step takes a few windows. Keeps DIR/<model>.pt and
continues from it; a new --windows moves the end of the learning-rate decay, so
that a slow machine can shorten a run that has begun.
"""

import argparse
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")

import numpy as np
import torch
import torch.nn.functional as F

import data
from bpe import Tokenizer
from evaluate import heldout_loss, read_heldout
from model import ModelConfig, Pocket, draft_config, main_config

HERE = Path(__file__).resolve().parent
SEED = 20260
N_THREADS = 2
WARMUP_WINDOWS = 1200
DECAY_FRACTION = 0.5  # the last part of the run, where the rate falls to zero
CLIP_NORM = 1.0
WEIGHT_DECAY = 0.1
CHECKPOINT_SECONDS = 180
LOG_WINDOWS = 400


@dataclass(frozen=True)
class Phase:
    """The batch and its optimizer settings up to a window."""

    end_window: int
    n_rows: int
    peak_rate: float
    beta2: float
    n_talk_rows: int = 0   # of n_rows, those from the short conversations
    n_drill_rows: int = 0  # and those from the drills


@dataclass(frozen=True)
class Recipe:
    make_config: Callable[[int], ModelConfig]
    phases: tuple[Phase, ...]
    rebalance_at: int = -1  # the window of rebalance(); -1: never

    def phase_at(self, window: int) -> Phase:
        return next(phase for phase in self.phases if window < phase.end_window)


NEVER = 1 << 40
RECIPES = {
    "main": Recipe(main_config, (Phase(6624, 8, 2e-3, 0.95), Phase(11268, 2, 1e-3, 0.99),
                                Phase(20400, 2, 1e-3, 0.99, n_talk_rows=1),
                                Phase(26400, 4, 2e-3, 0.99, n_talk_rows=1, n_drill_rows=2),
                                Phase(NEVER, 4, 2e-3, 0.99, n_drill_rows=3)),
                   rebalance_at=7660),
    "draft": Recipe(draft_config, (Phase(NEVER, 4, 2e-3, 0.98, n_talk_rows=2),)),
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of tokens and checkpoints")
    parser.add_argument("--model", choices=tuple(RECIPES), default="main")
    parser.add_argument("--windows", type=int, required=True, help="the window where the decay reaches zero")
    return parser.parse_args()


def learning_rate(window: int, n_windows: int, peak: float) -> float:
    warm = min(1.0, (window + 1) / WARMUP_WINDOWS)
    left = max(0.0, 1.0 - window / n_windows)
    return peak * warm * min(1.0, left / DECAY_FRACTION)


def make_optimizer(model: Pocket) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    norms = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, fused=True)


class Windows:
    """Windows of the packed tokens in a seeded order."""

    def __init__(self, path: Path, context_tokens: int):
        self.tokens = np.load(path, mmap_mode="r")
        self.context_tokens = context_tokens
        n_windows = (len(self.tokens) - 1) // context_tokens
        self.order = np.random.default_rng(SEED).permutation(n_windows)

    def batch(self, first: int, n_rows: int) -> torch.Tensor:
        """[B, T + 1] ids of windows [first, first + n_rows)."""
        chosen = self.order[np.arange(first, first + n_rows) % len(self.order)] * self.context_tokens
        rows = self.tokens[chosen[:, None] + np.arange(self.context_tokens + 1)]
        return torch.from_numpy(rows.astype(np.int64))


def save(path: Path, window: int, model: Pocket, optimizer: torch.optim.AdamW) -> None:
    temporary = path.with_suffix(".tmp")
    torch.save({"window": window, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, temporary)
    temporary.rename(path)


def restore(path: Path, model: Pocket, optimizer: torch.optim.AdamW) -> int:
    """The window to continue from; 0 without a checkpoint."""
    if not path.exists():
        return 0
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["window"]


def train_step(model: Pocket, optimizer: torch.optim.AdamW, rows: torch.Tensor) -> float:
    """One update on rows [B, T + 1]; returns the mean loss before it."""
    loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


@torch.no_grad()
def rebalance(model: Pocket, optimizer: torch.optim.AdamW) -> None:
    """Makes the token embedding four times, the blocks' outputs half as large.

    The initial embedding is small beside what the blocks add, so that later
    blocks hardly see which token a row holds and copying is slow to learn. The
    norms make the change almost free: the held-out loss rises by about 0.02.
    """
    for name, weight in model.named_parameters():
        scale = 4.0 if name == "token_embd.weight" else 0.25 if name == "output_norm.weight" else 0.5
        if scale == 0.5 and not name.endswith(("attn_output.weight", "ffn_down.weight")):
            continue
        weight *= scale
        optimizer.state[weight]["exp_avg"] /= scale
        optimizer.state[weight]["exp_avg_sq"] /= scale * scale


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(N_THREADS)
    tokenizer = Tokenizer.load(HERE / "tokenizer.json")
    recipe = RECIPES[args.model]
    model = Pocket(recipe.make_config(len(tokenizer.tokens)))
    optimizer = make_optimizer(model)
    stories, talk, drill = (Windows(args.work / f"{source}.npy", model.config.context_tokens)
                            for source in ("train", "talk", "drill"))
    documents = read_heldout(HERE / "heldout.txt")
    checkpoint = args.work / f"{args.model}.pt"
    window = restore(checkpoint, model, optimizer)
    print(f"{args.model}: {model.n_parameters()} parameters, window {window} of {args.windows}", flush=True)
    saved_at = logged_at = time.time()
    losses: list[float] = []
    while window < args.windows:
        if window == recipe.rebalance_at:
            rebalance(model, optimizer)
        phase = recipe.phase_at(window)
        for group in optimizer.param_groups:
            group.update(lr=learning_rate(window, args.windows, phase.peak_rate), betas=(0.9, phase.beta2))
        n_story_rows = phase.n_rows - phase.n_talk_rows - phase.n_drill_rows
        rows = torch.cat((stories.batch(window, n_story_rows), talk.batch(window // 2, phase.n_talk_rows),
                          drill.batch(window // 2, phase.n_drill_rows)))
        losses.append(train_step(model, optimizer, rows))
        window += phase.n_rows
        if window % LOG_WINDOWS == 0:
            speed = LOG_WINDOWS * model.config.context_tokens / (time.time() - logged_at)
            print(f"window {window} loss {sum(losses) / len(losses):.4f} tokens/s {speed:.0f}", flush=True)
            losses, logged_at = [], time.time()
        if time.time() - saved_at > CHECKPOINT_SECONDS or window >= args.windows:
            save(checkpoint, window, model, optimizer)
            print(f"window {window} held-out loss {heldout_loss(model, documents):.4f}", flush=True)
            saved_at = time.time()


def prepare(work: Path) -> None:
    """Writes the tokenizer, the held-out text and the training tokens where they are missing."""
    work.mkdir(parents=True, exist_ok=True)
    tokenizer_path = HERE / "tokenizer.json"
    if not tokenizer_path.exists():
        data.train_tokenizer(tokenizer_path)
    if not (HERE / "heldout.txt").exists():
        data.write_heldout(HERE / "heldout.txt", Tokenizer.load(tokenizer_path))
    for source, n_tokens in data.TRAINING_TOKENS.items():
        path = work / f"{source}.npy"
        if not path.exists():
            data.write_tokens(path, tokenizer_path, n_tokens)


if __name__ == "__main__":
    arguments = parse_arguments()
    prepare(arguments.work)
    train(arguments)
