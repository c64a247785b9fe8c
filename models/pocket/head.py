"""Pocket's head for multi-token prediction: one block that drafts the tokens behind the next one.

A row of the head begins as a projection of two norms: of the newest token's embedding, and of what the model's output
matrix read for the token before it. The block, a norm and the same output matrix then give the token behind. From its
second draft on the head reads what it gave to the output matrix itself (DeepSeek-AI, "DeepSeek-V3", 2024; Li et al.,
"EAGLE-3", 2025, for training on its own outputs).

Shapes in comments: B windows, T tokens, D model dim, H query heads, Dh head dim, V vocab.
"""

import torch
import torch.nn.functional as F
from torch import nn

from model import Block, ModelConfig, RmsNorm, rotate


class Head(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.enorm = RmsNorm(config.dim, config.norm_eps)
        self.hnorm = RmsNorm(config.dim, config.norm_eps)
        self.eh_proj = nn.Linear(2 * config.dim, config.dim, bias=False)
        self.block = Block(config)
        self.norm = RmsNorm(config.dim, config.norm_eps)
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                is_residual = name.endswith(("attn_output.weight", "ffn_down.weight"))
                nn.init.normal_(weight, std=weight.shape[1] ** -0.5 * (0.5 if is_residual else 1.0))

    def heads_of(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], -1, self.config.head_dim).transpose(1, 2)

    def attend(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, kept: list) -> torch.Tensor:
        """x: [B, T, D], normalised. kept: keys and values of the drafts before, [B, H, T, Dh] each: those of the
        first see one another, those of the others are seen by the drafts behind them alone."""
        block, n_tokens = self.block, x.shape[1]
        group = self.config.n_heads // self.config.n_kv_heads
        q = rotate(self.heads_of(block.attn_q(x)), cos, sin)
        k = rotate(self.heads_of(block.attn_k(x)), cos, sin).repeat_interleave(group, 1)
        v = self.heads_of(block.attn_v(x)).repeat_interleave(group, 1)
        kept.append((k, v))
        first_k, first_v = kept[0]
        scale = self.config.head_dim ** -0.5
        later = torch.full((n_tokens, n_tokens), float("-inf")).triu(1)
        scores = [q @ first_k.transpose(-1, -2) * scale + later]
        scores += [(q * own_k).sum(-1, keepdim=True) * scale for own_k, _ in kept[1:]]
        weights = torch.cat(scores, -1).softmax(-1)
        mixed = weights[..., :n_tokens] @ first_v
        for i, (_, own_v) in enumerate(kept[1:]):
            mixed = mixed + weights[..., n_tokens + i, None] * own_v
        return block.attn_output(mixed.transpose(1, 2).reshape(x.shape))

    def forward(self, embedded: torch.Tensor, hidden: torch.Tensor, rope: tuple, kept: list) -> torch.Tensor:
        """embedded, hidden: [B, T, D] -> what the output matrix reads, [B, T, D]."""
        x = self.eh_proj(torch.cat((self.enorm(embedded), self.hnorm(hidden)), -1))
        x = x + self.attend(self.block.attn_norm(x), *rope, kept)
        h = self.block.ffn_norm(x)
        x = x + self.block.ffn_down(F.silu(self.block.ffn_gate(h)) * self.block.ffn_up(h))
        return self.norm(x)
