"""What the goldens of quantised folders share: goldens/llama again under a name of its own, with quantised tensors and a
configuration that says so, and the kept logits of the `transformers` library on the prompt of make_goldens.py, computed by
eager attention in f32."""

import json

import safetensors.torch
import torch
import transformers as tf

from golden_store import GOLDENS, KEPT_ROWS

SOURCE = GOLDENS / "llama"
N_TOKENS = 48


class GoldenFolder:
    """tensors: those of goldens/llama; model: the library's, whose weights a caller replaces by what codes mean."""

    def __init__(self, name, quantization):
        self.folder = GOLDENS / name
        self.folder.mkdir(exist_ok=True)
        config = json.loads((SOURCE / "config.json").read_text())
        config["quantization_config"] = quantization
        (self.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        self.vocabulary = config["vocab_size"]
        self.tensors = safetensors.torch.load_file(SOURCE / "model.safetensors")
        self.model = tf.AutoModelForCausalLM.from_pretrained(SOURCE, dtype=torch.float32, attn_implementation="eager").eval()

    def write_tensors(self, tensors):
        path = self.folder / "model.safetensors"
        safetensors.torch.save_file(tensors, path)
        path.chmod(0o644)

    def write_logits(self, name):
        """[T / 3, V], little-endian f32."""
        ids = [(37 * i * i + 11 * i + 5) % self.vocabulary for i in range(N_TOKENS)]
        with torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0][KEPT_ROWS]
        (self.folder / name).write_bytes(logits.float().numpy().tobytes())


def is_quantised(name):
    """Matrices of the blocks; embedding, head and norms stay as they are."""
    return name.endswith("_proj.weight")
