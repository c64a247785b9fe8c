"""Trains Pocket's head for multi-token prediction: seeded, resumable. The model itself stays as it is.

    python3 train_head.py --work DIR --windows 9200

Every row of a window drafts several tokens, each from what the head gave before; each is trained towards what the
model says of the same place.
"""

import argparse
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")

import torch
import torch.nn.functional as F

from evaluate import load, read_heldout
from head import Head
from model import Pocket
from train import N_THREADS, SEED, Windows, learning_rate, make_optimizer, restore, save

HERE = Path(__file__).resolve().parent
N_DRAFTS = 4       # of each row
N_ROWS = 4         # windows of a step
PEAK_RATE = 2e-3
CLIP_NORM = 1.0
CHECKPOINT_SECONDS = 120
LOG_WINDOWS = 200


@torch.no_grad()
def hidden_of(model: Pocket, ids: torch.Tensor) -> torch.Tensor:
    """ids: [B, T] -> what the output matrix reads, [B, T, D]."""
    cos, sin = model.cos[:ids.shape[1]], model.sin[:ids.shape[1]]
    x = model.token_embd(ids)
    for block in model.blk:
        x = block(x, cos, sin)
    return model.output_norm(x)


class Divergence(torch.autograd.Function):
    """Summed cross entropy of logits [.., V] towards chances [.., V], whose gradient is the difference of chances."""

    @staticmethod
    def forward(ctx, logits: torch.Tensor, chances: torch.Tensor) -> torch.Tensor:
        said = logits.softmax(-1)
        loss = -(said.clamp_min(1e-30).log() * chances).sum()
        ctx.save_for_backward(said.sub_(chances))
        return loss

    @staticmethod
    def backward(ctx, scale: torch.Tensor):
        return ctx.saved_tensors[0].mul_(scale), None


def drafts_of(model: Pocket, head: Head, ids: torch.Tensor, is_coarse: bool = False):
    """For each draft of each row: its logits, [B, T', V], and the model's chances. ids: [B, T]; is_coarse: the head in
    bf16."""
    table = model.token_embd.weight
    with torch.no_grad():
        truth = hidden_of(model, ids)
        chances = F.linear(truth, table).softmax(-1)
    n_rows = ids.shape[1] - N_DRAFTS - 1
    embedded, hidden, kept = model.token_embd(ids), truth[:, :n_rows], []
    for i in range(N_DRAFTS):
        rope = (model.cos[i:i + n_rows], model.sin[i:i + n_rows])
        with torch.autocast("cpu", torch.bfloat16, enabled=is_coarse):
            hidden = head(embedded[:, i + 1:i + 1 + n_rows], hidden, rope, kept)
            said = F.linear(hidden, table)
        yield said, chances[:, i + 1:i + 1 + n_rows]


def train_step(model: Pocket, head: Head, optimizer: torch.optim.AdamW, ids: torch.Tensor) -> float:
    loss = torch.zeros(())
    for said, truth in drafts_of(model, head, ids, is_coarse=True):
        loss = loss + Divergence.apply(said, truth)
    loss = loss / (ids.shape[0] * ids.shape[1] * N_DRAFTS)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(head.parameters(), CLIP_NORM)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


@torch.no_grad()
def agreement(model: Pocket, head: Head, documents: list[list[int]]) -> str:
    """Of each draft on the held-out text: how often both say the same is likeliest, and what their chances share."""
    same, shared, n = [0.0] * N_DRAFTS, [0.0] * N_DRAFTS, 0
    for ids in documents:
        if len(ids) < N_DRAFTS + 3:
            continue
        for i, (said, truth) in enumerate(drafts_of(model, head, torch.tensor([ids]))):
            same[i] += (said.argmax(-1) == truth.argmax(-1)).sum().item()
            shared[i] += torch.minimum(said.softmax(-1), truth).sum().item()
        n += said.shape[1]
    return "; ".join(f"{a / n:.3f} {b / n:.3f}" for a, b in zip(same, shared))


def train(args: argparse.Namespace) -> None:
    torch.manual_seed(SEED)
    torch.set_num_threads(N_THREADS)
    model, _ = load(HERE / "pocket-f32.gguf")
    model.requires_grad_(False)
    head = Head(model.config)
    optimizer = make_optimizer(head)
    stories, talk = (Windows(args.work / f"{source}.npy", model.config.context_tokens) for source in ("train", "talk"))
    documents = read_heldout(HERE / "heldout.txt")
    checkpoint = args.work / "head.pt"
    window = restore(checkpoint, head, optimizer)
    n_parameters = sum(p.numel() for p in head.parameters())
    print(f"head: {n_parameters} parameters, window {window} of {args.windows}", flush=True)
    saved_at = logged_at = time.time()
    losses: list[float] = []
    while window < args.windows:
        for group in optimizer.param_groups:
            group.update(lr=learning_rate(window, args.windows, PEAK_RATE), betas=(0.9, 0.98))
        ids = torch.cat((stories.batch(window, N_ROWS // 2), talk.batch(window, N_ROWS // 2)))[:, :-1]
        losses.append(train_step(model, head, optimizer, ids))
        window += N_ROWS
        if window % LOG_WINDOWS == 0:
            speed = LOG_WINDOWS * model.config.context_tokens / (time.time() - logged_at)
            print(f"window {window} loss {sum(losses) / len(losses):.4f} tokens/s {speed:.0f}", flush=True)
            losses, logged_at = [], time.time()
        if time.time() - saved_at > CHECKPOINT_SECONDS or window >= args.windows:
            save(checkpoint, window, head, optimizer)
            print(f"window {window} agreement {agreement(model, head, documents)}", flush=True)
            saved_at = time.time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of tokens and checkpoints")
    parser.add_argument("--windows", type=int, required=True, help="the window where the decay reaches zero")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
