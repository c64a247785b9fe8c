#!/usr/bin/env python3
"""Writes the folder of a model that takes images: a published shape with random weights, for timing (docs/performance.md,
"Images").

    python3 scripts/make_image_shape.py smolvlm-256m|gemma-3-4b|qwen3-vl-2b FOLDER

`candor quantize FOLDER text.gguf` makes its text model, llama.cpp's converter with --mmproj its tower. The tokenizer is
that of the tests' tiny models. Needs torch, transformers and pillow; uses no network.
"""

import argparse
import json
import pathlib
import sys

import safetensors.torch
import torch
import transformers as tf

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "vision"))
from make_goldens import published_name, qwen_tokens, template, tokenizer  # noqa: E402

HALVES = dict(image_mean=[0.5] * 3, image_std=[0.5] * 3, do_resize=True, do_rescale=True, do_normalize=True,
              rescale_factor=1 / 255)
SPECIALS = dict(bos_token_id=0, eos_token_id=0, pad_token_id=0)


def smolvlm(folder):
    rows = [f"<row_{r}_col_{c}>" for r in range(1, 5) for c in range(1, 5)]
    ids = tokenizer(folder, ["<image>", "<fake_token_around_image>", "<global-img>", *rows], template("<image>"))
    text = dict(SPECIALS, model_type="llama", hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
                num_attention_heads=9, num_key_value_heads=3, head_dim=64, vocab_size=49280,
                max_position_embeddings=8192, tie_word_embeddings=True)
    vision = dict(hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, image_size=512,
                  patch_size=16)
    config = tf.SmolVLMConfig(text_config=text, vision_config=vision, scale_factor=4, image_token_id=ids["<image>"],
                              tie_word_embeddings=True)
    processor = dict(HALVES, image_processor_type="SmolVLMImageProcessor", size=dict(longest_edge=2048), resample=1,
                     max_image_size=dict(longest_edge=512), do_image_splitting=True, do_pad=True, do_convert_rgb=True)
    return tf.SmolVLMForConditionalGeneration, config, processor


def gemma3(folder):
    ids = tokenizer(folder, ["<start_of_image>", "<image_soft_token>", "<end_of_image>"], template("<start_of_image>"))
    text = dict(SPECIALS, hidden_size=2560, intermediate_size=10240, num_hidden_layers=34, num_attention_heads=8,
                num_key_value_heads=4, head_dim=256, vocab_size=262208, sliding_window=1024,
                max_position_embeddings=8192, query_pre_attn_scalar=256, tie_word_embeddings=True)
    vision = dict(hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16,
                  image_size=896, patch_size=14, vision_use_head=False)
    config = tf.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=256,
                             boi_token_index=ids["<start_of_image>"], eoi_token_index=ids["<end_of_image>"],
                             image_token_index=ids["<image_soft_token>"], tie_word_embeddings=True)
    processor = dict(HALVES, image_processor_type="Gemma3ImageProcessor", size=dict(height=896, width=896), resample=2,
                     do_pan_and_scan=False, image_seq_length=256)
    return tf.Gemma3ForConditionalGeneration, config, processor


def qwen3vl(folder):
    ids = qwen_tokens(folder)
    rope = dict(rope_type="default", rope_theta=5000000.0, mrope_section=[24, 20, 20], mrope_interleaved=True)
    text = dict(SPECIALS, hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16,
                num_key_value_heads=8, head_dim=128, vocab_size=151936, max_position_embeddings=8192,
                rope_parameters=rope, tie_word_embeddings=True)
    vision = dict(hidden_size=1024, intermediate_size=4096, depth=24, num_heads=16, patch_size=16, spatial_merge_size=2,
                  temporal_patch_size=2, out_hidden_size=2048, num_position_embeddings=2304, in_channels=3,
                  deepstack_visual_indexes=[5, 11, 17])
    config = tf.Qwen3VLConfig(text_config=text, vision_config=vision, image_token_id=ids["<|image_pad|>"],
                              video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
                              vision_end_token_id=ids["<|vision_end|>"], tie_word_embeddings=True)
    processor = dict(HALVES, image_processor_type="Qwen2VLImageProcessor", patch_size=16, merge_size=2, resample=3,
                     size=dict(shortest_edge=65536, longest_edge=16777216), temporal_patch_size=2, do_convert_rgb=True)
    return tf.Qwen3VLForConditionalGeneration, config, processor


SHAPES = {"smolvlm-256m": smolvlm, "gemma-3-4b": gemma3, "qwen3-vl-2b": qwen3vl}


def fill(model):
    """Without a mean, as trained weights; vectors stay what a fresh model has (ones for norms, zeros for biases)."""
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(std=weight.shape[-1]**-0.5, generator=random)
            elif not torch.isfinite(weight).all():
                weight.zero_()


def rename(path):
    """The names that the converter knows."""
    tensors = {published_name(name): tensor for name, tensor in safetensors.torch.load_file(path).items()}
    safetensors.torch.save_file(tensors, path.with_suffix(".renamed"), {"format": "pt"})
    path.with_suffix(".renamed").replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    kind, config, processor = SHAPES[args.shape](args.folder)
    torch.set_default_dtype(torch.bfloat16)
    model = kind(config)
    fill(model)
    model.save_pretrained(args.folder, max_shard_size="64GB")
    rename(args.folder / "model.safetensors")
    (args.folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")


if __name__ == "__main__":
    main()
