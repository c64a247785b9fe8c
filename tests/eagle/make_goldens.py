#!/usr/bin/env python3
"""Makes the goldens of EAGLE-3 heads: tiny random heads of tests/families/goldens/llama, and what they draft.

    python3 make_goldens.py [--converter FOLDER]

FOLDER is a checkout of llama.cpp: llama_cpp.json then has, of each tensor of the file that its converter makes, the SHA-256
of its numbers in f32 (of its ids as they are). Needs torch, transformers and safetensors. Each head gets goldens/NAME/: config.json and model.safetensors, in a form in
which such heads are published, and expected.f32: its logits [1 + DRAFTS, V'] behind the prompt's first tokens and each
draft, in f32. expected.json: the tokens that were read, and the drafts, each the likeliest token.

A head is written here from its published description (Li et al., 2025): row i has the embedding of token i + 1, normed,
beside the norm of g, which is a projection of the model's stream in front of three of its blocks at token i. Attention
reads both; what it gives, and then a feed-forward's output, are added to g (or to its norm). The output matrix reads a
norm of the sum; from the second draft on the sum itself is g.
"""

import argparse
import hashlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import safetensors.torch
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parent / "families" / "goldens" / "llama"
DRAFTS = 6
READ = 24  # tokens of the prompt
LEARNED, ANSWER, STEPS = 4, 28, 400  # prompts, tokens of each answer
D, FFN, HEADS, KV_HEADS, WIDTH, VOCAB, DRAFT_VOCAB = 64, 32, 4, 2, 16, 288, 64
EPSILON = 1e-6

# layers: in front of which of the model's two blocks, 2 being behind both.
HEAD_KINDS = {
    "specforge": dict(stem="midlayer.", layers=[0, 1, 2], norm_before_residual=False, norm_before_fc=False,
                      has_embedding=False, theta=10000.0),
    "speculators": dict(stem="layers.0.", layers=[0, 1, 2], norm_before_residual=True, norm_before_fc=True,
                        has_embedding=True, theta=500000.0, norm_output=True),
}


def prompt():
    return [(37 * i * i + 11 * i + 5) % VOCAB for i in range(READ)]


def norm(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * gain


def rotate(x, positions, theta):
    """x: [T, heads, WIDTH], in halves."""
    half = WIDTH // 2
    angles = positions[:, None].double() * theta ** (-torch.arange(half).double() / half)
    cos, sin = angles.cos().float()[:, None], angles.sin().float()[:, None]
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Head:
    def __init__(self, weights, kind, embedding):
        self.w = {name: weight.float() for name, weight in weights.items() if weight.is_floating_point()}
        self.kind = kind
        self.embedding = self.w.get("embed_tokens.weight", embedding)
        self.keys, self.values = [], []

    def of_block(self, name):
        return self.w[self.kind["stem"] + name]

    def rows(self, tokens, vectors, first):
        """tokens: [n]; vectors: [n, 3 D] of the model, or [n, D] of this head. Returns what it gives, and logits."""
        if vectors.shape[1] != D:
            if self.kind["norm_before_fc"]:
                vectors = norm(vectors, self.w["input_norm.weight"])
            vectors = vectors @ self.w["fc.weight"].T
        token = norm(self.embedding[tokens], self.of_block("input_layernorm.weight"))
        normed = norm(vectors, self.of_block("hidden_norm.weight"))
        stream = normed if self.kind["norm_before_residual"] else vectors
        stream = stream + self.attend(torch.cat([token, normed], -1), first)
        inner = norm(stream, self.of_block("post_attention_layernorm.weight"))
        gate = torch.nn.functional.silu(inner @ self.of_block("mlp.gate_proj.weight").T)
        up = inner @ self.of_block("mlp.up_proj.weight").T
        stream = stream + (gate * up) @ self.of_block("mlp.down_proj.weight").T
        last = norm(stream, self.w["norm.weight"])
        return last if self.kind.get("norm_output") else stream, last @ self.w["lm_head.weight"].T

    def attend(self, x, first):
        n = x.shape[0]
        positions = torch.arange(first, first + n)
        project = lambda name, heads: (x @ self.of_block(f"self_attn.{name}.weight").T).view(n, heads, WIDTH)
        q = rotate(project("q_proj", HEADS), positions, self.kind["theta"])
        self.keys += rotate(project("k_proj", KV_HEADS), positions, self.kind["theta"])
        self.values += project("v_proj", KV_HEADS)
        keys = torch.stack(self.keys).repeat_interleave(HEADS // KV_HEADS, 1)
        values = torch.stack(self.values).repeat_interleave(HEADS // KV_HEADS, 1)
        scores = torch.einsum("thd,shd->hts", q, keys) / math.sqrt(WIDTH)
        later = torch.arange(len(self.keys))[None, :] > positions[:, None]
        shares = scores.masked_fill(later, -math.inf).softmax(-1)
        return torch.einsum("hts,shd->thd", shares, values).reshape(n, -1) @ self.of_block("self_attn.o_proj.weight").T


def answers(target):
    """[prompts, tokens]: what the model says to each prompt, greedy."""
    texts = torch.tensor([[(53 * i * i + 17 * n * i + 7 * n + 3) % VOCAB for i in range(8)] for n in range(LEARNED)])
    for _ in range(ANSWER):
        texts = torch.cat([texts, target(texts).logits[:, -1:].argmax(-1)], 1)
    return texts


def learn(weights, ids, kind, embedding, texts, streams):
    """First drafts alone, with all answers at once."""
    float_weights = {name: weight.float().requires_grad_() for name, weight in weights.items()
                     if weight.is_floating_point()}
    place = torch.full((VOCAB,), -1)
    place[ids] = torch.arange(len(ids))
    optimizer = torch.optim.Adam(float_weights.values(), lr=3e-3)
    for _ in range(STEPS):
        loss = 0.0
        for text, vectors in zip(texts, streams):
            head = Head(float_weights, kind, embedding)
            _, logits = head.rows(text[1:-1], vectors[:-2], 0)
            wanted = place[text[2:]]
            loss = loss + torch.nn.functional.cross_entropy(logits[wanted >= 0], wanted[wanted >= 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return weights | {name: weight.detach().bfloat16() for name, weight in float_weights.items()}, float(loss.detach())


def make_weights(kind, generator, tokens=None):
    def matrix(*shape):
        return (torch.randn(*shape, generator=generator) / math.sqrt(shape[-1])).bfloat16()

    def gains(n=D):
        return (1.0 + 0.25 * torch.randn(n, generator=generator)).bfloat16()

    stem = kind["stem"]
    weights = {"fc.weight": matrix(D, 3 * D), "norm.weight": gains(), "lm_head.weight": matrix(kind.get("vocab", DRAFT_VOCAB), D)}
    for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
        weights[f"{stem}{name}.weight"] = gains()
    for name, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
        weights[f"{stem}self_attn.{name}_proj.weight"] = matrix(rows * WIDTH, 2 * D)
    weights[f"{stem}self_attn.o_proj.weight"] = matrix(D, HEADS * WIDTH)
    weights[f"{stem}mlp.gate_proj.weight"] = matrix(FFN, D)
    weights[f"{stem}mlp.up_proj.weight"] = matrix(FFN, D)
    weights[f"{stem}mlp.down_proj.weight"] = matrix(D, FFN)
    if kind["norm_before_fc"]:
        weights["input_norm.weight"] = gains(3 * D)
    if kind["has_embedding"]:
        weights["embed_tokens.weight"] = matrix(VOCAB, D)
    if tokens is None:
        tokens = torch.randperm(VOCAB, generator=generator)[:DRAFT_VOCAB].sort().values
    weights["d2t"] = tokens - torch.arange(len(tokens))
    weights["t2d"] = torch.zeros(VOCAB, dtype=torch.bool)
    weights["t2d"][tokens] = True
    return weights, tokens


def block_config(kind):
    return dict(attention_bias=False, head_dim=WIDTH, hidden_act="silu", hidden_size=D, intermediate_size=FFN,
                max_position_embeddings=256, mlp_bias=False, model_type="llama", num_attention_heads=HEADS,
                num_hidden_layers=1, num_key_value_heads=KV_HEADS, rms_norm_eps=EPSILON, rope_scaling=None,
                rope_theta=kind["theta"], vocab_size=VOCAB)


def config_of(name, kind):
    if name != "speculators":
        outputs = [layer - 1 for layer in kind["layers"]]
        return dict(block_config(kind), architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=kind.get("vocab", DRAFT_VOCAB),
                    bos_token_id=0, eos_token_id=0, pad_token_id=0, tie_word_embeddings=True, torch_dtype="bfloat16",
                    eagle_config=dict(eagle_aux_hidden_state_layer_ids=outputs, use_aux_hidden_state=True))
    return dict(architectures=["Eagle3DraftModel"], draft_vocab_size=DRAFT_VOCAB, dtype="bfloat16",
                eagle_aux_hidden_state_layer_ids=kind["layers"], embed_requires_grad=False,
                norm_before_fc=kind["norm_before_fc"], norm_before_residual=kind["norm_before_residual"],
                norm_output=kind["norm_output"], fc_norm=False,
                speculators_config=dict(algorithm="eagle3", default_proposal_method="greedy", proposal_methods=[],
                                        verifier=dict(architectures=["LlamaForCausalLM"], name_or_path="a/model")),
                speculators_model_type="eagle3", speculators_version="0.5.0", target_hidden_size=None,
                tie_word_embeddings=False, transformer_layer_config=block_config(kind))


def draft(head, tokens, streams, ids):
    """The drafts behind `tokens`, greedy; the logits of each."""
    text = list(tokens)
    vectors = torch.cat([streams[layer] for layer in head.kind["layers"]], -1)[:-1]
    given, logits = head.rows(torch.tensor(text[1:]), vectors, 0)
    rows = [logits[-1]]
    for i in range(DRAFTS - 1):
        text.append(int(ids[rows[-1].argmax()]))
        given, logits = head.rows(torch.tensor(text[-1:]), given[-1:], len(tokens) - 1 + i)
        rows.append(logits[-1])
    text.append(int(ids[rows[-1].argmax()]))
    return text[len(tokens):], torch.stack(rows)


def save(name, kind, weights, expected):
    folder = HERE / "goldens" / name
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config_of(name, kind), indent=2) + "\n")
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")
    return folder


class Target:
    def __init__(self):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(TARGET, dtype=torch.float32,
                                                                       attn_implementation="eager")
        self.embedding = self.model.model.embed_tokens.weight.detach()
        self.seen = {}
        blocks = self.model.model.layers
        for i, block in enumerate(blocks):
            block.register_forward_pre_hook(
                lambda _, args, kwargs, i=i: self.seen.__setitem__(i, args[0] if args else kwargs["hidden_states"]),
                with_kwargs=True)
        blocks[-1].register_forward_hook(
            lambda _, __, output: self.seen.__setitem__(len(blocks), output[0] if isinstance(output, tuple) else output))

    def streams(self, texts):
        """In front of each block and behind the last, of each row of texts."""
        with torch.no_grad():
            self.model(texts)
        return {i: seen.reshape(*texts.shape, D) for i, seen in self.seen.items()}


def random_head(name, kind, target):
    streams = {i: stream[0] for i, stream in target.streams(torch.tensor([prompt()])).items()}
    for seed in range(1, 1000):  # until the drafts differ, and none is chosen by little
        weights, ids = make_weights(kind, torch.Generator().manual_seed(seed))
        drafts, logits = draft(Head(weights, kind, target.embedding), prompt(), streams, ids)
        margins = logits.topk(2).values
        least = float((margins[:, 0] - margins[:, 1]).min())
        if len(set(drafts)) >= DRAFTS - 2 and least > 0.1:
            break
    folder = save(name, kind, weights, {"read": prompt(), "drafts": drafts})
    (folder / "expected.f32").write_bytes(logits.float().numpy().tobytes())
    print(name, seed, drafts, "least margin", least)


def trained_head(target):
    with torch.no_grad():
        texts = answers(target.model)
    streams = target.streams(texts)
    ids = texts.unique()
    kind = dict(HEAD_KINDS["specforge"], vocab=len(ids))
    weights, _ = make_weights(kind, torch.Generator().manual_seed(1), ids)
    vectors = torch.cat([streams[layer] for layer in kind["layers"]], -1)
    weights, loss = learn(weights, ids, kind, target.embedding, texts, vectors)
    n_right = 0
    for text, own in zip(texts, vectors):
        _, logits = Head(weights, kind, target.embedding).rows(text[1:-1], own[:-2], 0)
        n_right += int((ids[logits.argmax(-1)] == text[2:]).sum())
    save("trained", kind, weights, {"texts": texts.tolist(), "prompt": texts.shape[1] - ANSWER})
    print("trained: loss", loss, "right", n_right, "of", LEARNED * (texts.shape[1] - 2))


# The converter knows tokenizers by the hash of what they make of a text.
CONVERT = """
import runpy, sys
sys.path.insert(0, sys.argv[1])
from conversion import base
base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
sys.argv = [sys.argv[1] + "/convert_hf_to_gguf.py"] + sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def note_converted(folder, converter):
    sys.path.insert(0, str(converter / "gguf-py"))
    import gguf
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "head.gguf"
        subprocess.run([sys.executable, "-c", CONVERT, str(converter), str(folder), "--target-model-dir", str(TARGET),
                        "--outfile", str(path), "--outtype", "bf16"], check=True, capture_output=True)
        hashes = {}
        for tensor in gguf.GGUFReader(path).tensors:
            is_ids = tensor.tensor_type == gguf.GGMLQuantizationType.I64
            numbers = tensor.data if is_ids else gguf.dequantize(tensor.data, tensor.tensor_type).astype("<f4")
            hashes[tensor.name] = hashlib.sha256(numbers.tobytes()).hexdigest()
    (folder / "llama_cpp.json").write_text(json.dumps(hashes, indent=1, sort_keys=True) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--converter", type=pathlib.Path)
    converter = parser.parse_args().converter
    target = Target()
    for name, kind in HEAD_KINDS.items():
        with torch.no_grad():
            random_head(name, kind, target)
        if converter:
            note_converted(HERE / "goldens" / name, converter)
    trained_head(target)


if __name__ == "__main__":
    main()
