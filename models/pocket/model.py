"""The Pocket model: a Llama-architecture decoder in PyTorch.

Shapes in comments: B documents, T tokens, D model dim, H query heads, Hk K/V
heads, Dh head dim, F ffn, V vocab. Parameter names are the GGUF tensor names
with dots replaced by the module tree, so the export is a rename.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    ffn_dim: int
    context_tokens: int = 512
    norm_eps: float = 1e-5
    rope_base: float = 10000.0
    embedding_std: float = 0.02   # initial weights
    residual_gain: float = 1.0

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads


def main_config(vocab_size: int) -> ModelConfig:
    return ModelConfig(vocab_size, dim=256, n_layers=4, n_heads=4, n_kv_heads=2, ffn_dim=512)


def draft_config(vocab_size: int) -> ModelConfig:
    return ModelConfig(vocab_size, dim=128, n_layers=2, n_heads=2, n_kv_heads=1, ffn_dim=256,
                       embedding_std=0.05, residual_gain=0.2)


def rope_table(config: ModelConfig) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, each [T, Dh / 2]; pair i is dims (2i, 2i + 1)."""
    half = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    angles = torch.outer(torch.arange(config.context_tokens, dtype=torch.float64),
                         config.rope_base ** -half)
    return angles.cos().float(), angles.sin().float()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotates interleaved pairs. x: [B, H, T, Dh]; cos, sin: [T, Dh / 2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RmsNorm(nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


class Block(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        kv_dim = config.n_kv_heads * config.head_dim
        self.attn_norm = RmsNorm(config.dim, config.norm_eps)
        self.attn_q = nn.Linear(config.dim, config.dim, bias=False)
        self.attn_k = nn.Linear(config.dim, kv_dim, bias=False)
        self.attn_v = nn.Linear(config.dim, kv_dim, bias=False)
        self.attn_output = nn.Linear(config.dim, config.dim, bias=False)
        self.ffn_norm = RmsNorm(config.dim, config.norm_eps)
        self.ffn_gate = nn.Linear(config.dim, config.ffn_dim, bias=False)
        self.ffn_up = nn.Linear(config.dim, config.ffn_dim, bias=False)
        self.ffn_down = nn.Linear(config.ffn_dim, config.dim, bias=False)

    def attend(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """x: [B, T, D], already normalised."""
        n_rows, n_tokens, _ = x.shape
        heads = lambda y: y.view(n_rows, n_tokens, -1, self.config.head_dim).transpose(1, 2)
        q = rotate(heads(self.attn_q(x)), cos, sin)
        k = rotate(heads(self.attn_k(x)), cos, sin)
        v = heads(self.attn_v(x))
        group = self.config.n_heads // self.config.n_kv_heads
        mixed = F.scaled_dot_product_attention(
            q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1), is_causal=True)
        return self.attn_output(mixed.transpose(1, 2).reshape(n_rows, n_tokens, -1))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.attn_norm(x), cos, sin)
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Pocket(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.token_embd = nn.Embedding(config.vocab_size, config.dim)
        self.blk = nn.ModuleList(Block(config) for _ in range(config.n_layers))
        self.output_norm = RmsNorm(config.dim, config.norm_eps)
        cos, sin = rope_table(config)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.initialise()

    def initialise(self) -> None:
        residual_scale = self.config.residual_gain * (2 * self.config.n_layers) ** -0.5
        for name, weight in self.named_parameters():
            if weight.dim() < 2:
                continue
            is_residual = name.endswith(("attn_output.weight", "ffn_down.weight"))
            std = weight.shape[1] ** -0.5 * (residual_scale if is_residual else 1.0)
            nn.init.normal_(weight, std=self.config.embedding_std if name.startswith("token_embd") else std)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: [B, T] -> logits [B, T, V]. REQUIRES: T <= context_tokens."""
        n_tokens = ids.shape[1]
        cos, sin = self.cos[:n_tokens], self.sin[:n_tokens]
        x = self.token_embd(ids)
        for block in self.blk:
            x = block(x, cos, sin)
        return F.linear(self.output_norm(x), self.token_embd.weight)

    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())
