#!/usr/bin/env python3
"""Makes the goldens of models that take images: a tiny random model of each projector, and what `transformers` computes.

    python3 make_goldens.py --converter FOLDER [--only NAME ...]

FOLDER is a checkout of llama.cpp. Needs torch, transformers, torchvision and pillow 12 (13 shrinks in another order where
the height shrinks more than the width, as the image of idefics2 does). goldens/NAME/ holds the folder as the
library saves it (bf16; weights by a formula, tests/families/golden_store.py), mmproj.gguf as llama.cpp's converter writes
it in bf16, and expected.json: the prompt's text and ids, with sums of the image's rows and the logits behind the prompt.
features.f32: the image's rows in f32, [n_rows, D], all tiles one after another. The image: image.png, made here.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers as tf
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "families"))
from golden_store import replace_weights  # noqa: E402

GOLDENS = HERE / "goldens"
LLAMA = HERE.parent / "families" / "goldens" / "llama"
TEXT = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=512, bos_token_id=0, eos_token_id=0, pad_token_id=0, tie_word_embeddings=False)
QUESTION = "what is this?"


def image():
    """Odd sides; smooth, with an edge."""
    y, x = np.mgrid[0:37, 0:50]
    rgb = np.stack([(x * 5 + y) % 256, (y * 6 + x * x // 20) % 256, np.where(x > y, 200, 40) + (x % 7)], axis=-1)
    return Image.fromarray(rgb.astype(np.uint8), "RGB")


def tokenizer(folder, specials, template):
    """The goldens' byte-level BPE with more special tokens behind it. Their ids by name."""
    read = json.loads((LLAMA / "tokenizer.json").read_text())
    n = len(read["model"]["vocab"])
    for i, special in enumerate(specials):
        read["added_tokens"].append(dict(id=n + i, content=special, single_word=False, lstrip=False, rstrip=False,
                                         normalized=False, special=True))
    (folder / "tokenizer.json").write_text(json.dumps(read))
    config = json.loads((LLAMA / "tokenizer_config.json").read_text())
    config["chat_template"] = template
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return {special: n + i for i, special in enumerate(specials)}


def template(mark):
    return ("{% for message in messages %}{{ message['role'] + ': ' }}{% if message['content'] is string %}"
            "{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] == 'image' %}"
            "{{ '" + mark + "' }}{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}{{ '\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}")


def smolvlm(folder):
    rows = [f"<row_{r}_col_{c}>" for r in (1, 2) for c in (1, 2)]
    ids = tokenizer(folder, ["<image>", "<fake_token_around_image>", "<global-img>", *rows], template("<image>"))
    vision = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3, image_size=32,
                  patch_size=4, layer_norm_eps=1e-6)
    config = tf.SmolVLMConfig(text_config=dict(TEXT, model_type="llama", vocab_size=304), vision_config=vision,
                              scale_factor=2, image_token_id=ids["<image>"], pad_token_id=0, tie_word_embeddings=False)
    tf.SmolVLMForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="SmolVLMImageProcessor", size=dict(longest_edge=64),
                     max_image_size=dict(longest_edge=32), image_mean=[0.5] * 3, image_std=[0.5] * 3, resample=1,
                     do_image_splitting=True, do_resize=True, do_rescale=True, do_normalize=True, do_pad=True,
                     do_convert_rgb=True, rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.SmolVLMForConditionalGeneration, ids["<image>"], expand_smolvlm


def expand_smolvlm(text, pixels):
    around, rows = "<fake_token_around_image>", "<image>" * 16
    tiles = "".join("".join(f"{around}<row_{r}_col_{c}>{rows}" for c in (1, 2)) + "\n" for r in (1, 2))
    return text.replace("<image>", f"{tiles}\n{around}<global-img>{rows}{around}")


def idefics2(folder):
    """Quarters of sizes of their own, a resampler of two blocks."""
    ids = tokenizer(folder, ["<image>", "<fake_token_around_image>"], template("<image>"))
    vision = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=3, image_size=48,
                  patch_size=4)
    perceiver = dict(hidden_size=64, rms_norm_eps=1e-5, resampler_n_latents=6, resampler_depth=2, resampler_n_heads=4,
                     resampler_head_dim=16, num_key_value_heads=2)
    config = tf.Idefics2Config(text_config=dict(TEXT, model_type="mistral", vocab_size=296, sliding_window=None),
                               vision_config=vision, perceiver_config=perceiver, image_token_id=ids["<image>"],
                               tie_word_embeddings=False)
    model = with_own_vectors(tf.Idefics2ForConditionalGeneration(config), ("vision_model", "connector"))
    model.to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="Idefics2ImageProcessor", size=dict(shortest_edge=24, longest_edge=40),
                     image_mean=[0.5] * 3, image_std=[0.5] * 3, resample=2, do_image_splitting=True, do_resize=True,
                     do_rescale=True, do_normalize=True, do_pad=True, do_convert_rgb=True, rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.Idefics2ForConditionalGeneration, ids["<image>"], expand_idefics2


def expand_idefics2(text, pixels):
    """As Idefics2Processor does."""
    around = "<fake_token_around_image>"
    text = text.replace("<image>", (around + "<image>" * 6 + around) * 5).replace(around * 2, around)
    return re.sub(rf"{around}(?=[^\s<])", f"{around} ", text)


def gemma3(folder):
    ids = tokenizer(folder, ["<start_of_image>", "<image_soft_token>", "<end_of_image>"], template("<start_of_image>"))
    vision = dict(hidden_size=48, intermediate_size=80, num_hidden_layers=2, num_attention_heads=2, image_size=32,
                  patch_size=4, vision_use_head=False)
    text = dict(TEXT, vocab_size=296, head_dim=16, sliding_window=24, layer_types=["sliding_attention", "full_attention"],
                query_pre_attn_scalar=16)
    config = tf.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=16,
                             boi_token_index=ids["<start_of_image>"], eoi_token_index=ids["<end_of_image>"],
                             image_token_index=ids["<image_soft_token>"], tie_word_embeddings=False)
    model = tf.Gemma3ForConditionalGeneration(config)
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight, std=0.15)
    model.to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="Gemma3ImageProcessor", size=dict(height=32, width=32), image_mean=[0.5] * 3,
                     image_std=[0.5] * 3, resample=2, do_resize=True, do_rescale=True, do_normalize=True,
                     do_pan_and_scan=False, image_seq_length=16, rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.Gemma3ForConditionalGeneration, ids["<image_soft_token>"], expand_gemma3


def expand_gemma3(text, pixels):
    return text.replace("<start_of_image>",
                        "\n\n<start_of_image>" + "<image_soft_token>" * 16 + "<end_of_image>\n\n")


QWEN_VISION = dict(hidden_size=32, intermediate_size=48, depth=3, num_heads=2, patch_size=4, spatial_merge_size=2,
                   temporal_patch_size=2, out_hidden_size=64, num_position_embeddings=36, in_channels=3)


def qwen_processor(folder, patch=4, least=16 * 16, most=40 * 32):
    """Fewer rows than the image has patches, so that it is made smaller, in a shape of its own."""
    processor = dict(image_processor_type="Qwen2VLImageProcessor", size=dict(shortest_edge=least, longest_edge=most),
                     image_mean=[0.5] * 3, image_std=[0.5] * 3, resample=3, patch_size=patch, merge_size=2,
                     temporal_patch_size=2, do_resize=True, do_rescale=True, do_normalize=True, do_convert_rgb=True,
                     rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")


def expand_qwen(text, pixels):
    n = int(pixels["image_grid_thw"].prod()) // 4
    return text.replace("<|image_pad|>", "<|image_pad|>" * n)


def qwen_tokens(folder):
    return tokenizer(folder, ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"],
                     template("<|vision_start|><|image_pad|><|vision_end|>"))


def qwen3vl(folder):
    ids = qwen_tokens(folder)
    text = dict(TEXT, vocab_size=292, head_dim=16,
                rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2],
                                     mrope_interleaved=True))
    config = tf.Qwen3VLConfig(text_config=text, vision_config=dict(QWEN_VISION, deepstack_visual_indexes=[0, 1]),
                              image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
                              vision_start_token_id=ids["<|vision_start|>"], vision_end_token_id=ids["<|vision_end|>"],
                              tie_word_embeddings=False)
    tf.Qwen3VLForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    qwen_processor(folder)
    return tf.Qwen3VLForConditionalGeneration, ids["<|image_pad|>"], expand_qwen


def qwen3vl_moe(folder):
    """Experts in two blocks of three."""
    ids = qwen_tokens(folder)
    text = dict(TEXT, vocab_size=292, num_hidden_layers=3, head_dim=16, num_experts=6, num_experts_per_tok=2,
                moe_intermediate_size=40, mlp_only_layers=[1], decoder_sparse_step=1,
                rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2],
                                     mrope_interleaved=True))
    config = tf.Qwen3VLMoeConfig(text_config=text, vision_config=dict(QWEN_VISION, deepstack_visual_indexes=[0, 2]),
                                 image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
                                 vision_start_token_id=ids["<|vision_start|>"],
                                 vision_end_token_id=ids["<|vision_end|>"], tie_word_embeddings=False)
    tf.Qwen3VLMoeForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    turn_experts(folder)
    qwen_processor(folder)
    return tf.Qwen3VLMoeForConditionalGeneration, ids["<|image_pad|>"], expand_qwen


def turn_experts(folder):
    """Inputs before outputs, as in published checkpoints; the library saves them the other way round, and reads both."""
    import safetensors.torch
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    turned = {name: tensor.transpose(1, 2).contiguous() if ".experts." in name else tensor
              for name, tensor in tensors.items()}
    safetensors.torch.save_file(turned, folder / "model.safetensors", {"format": "pt"})


def qwen2_5_vl(folder):
    """Windows of 8 x 8 patches, not all of them full, in two blocks of three."""
    ids = qwen_tokens(folder)
    text = dict(TEXT, vocab_size=292, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2]))
    vision = dict(hidden_size=32, intermediate_size=48, depth=3, num_heads=2, patch_size=14, spatial_merge_size=2,
                  temporal_patch_size=2, out_hidden_size=64, in_channels=3, window_size=112, fullatt_block_indexes=[1],
                  hidden_act="silu")
    config = tf.Qwen2_5_VLConfig(text_config=text, vision_config=vision, image_token_id=ids["<|image_pad|>"],
                                 video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
                                 vision_end_token_id=ids["<|vision_end|>"], tie_word_embeddings=False)
    tf.Qwen2_5_VLForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    qwen_processor(folder, 14, 168 * 112, 28 * 28 * 40)
    return tf.Qwen2_5_VLForConditionalGeneration, ids["<|image_pad|>"], expand_qwen


def qwen3_5(folder):
    ids = qwen_tokens(folder)
    text = dict(TEXT, vocab_size=292, num_hidden_layers=4, head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4,
                linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4,
                rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5,
                                     mrope_section=[4, 2, 2], mrope_interleaved=True))
    config = tf.Qwen3_5Config(text_config=text, vision_config=dict(QWEN_VISION, deepstack_visual_indexes=[]),
                              image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
                              vision_start_token_id=ids["<|vision_start|>"], vision_end_token_id=ids["<|vision_end|>"],
                              tie_word_embeddings=False)
    tf.Qwen3_5ForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    qwen_processor(folder)
    return tf.Qwen3_5ForConditionalGeneration, ids["<|image_pad|>"], expand_qwen


def with_own_vectors(model, parts=("vision_tower", "vision_model", "visual", "projector")):
    """Any numbers in vectors that the library begins with zeros or ones, and large ones in matrices: what an image shows
    must not vanish beside biases."""
    for name, parameter in model.named_parameters():
        if not any(part in name for part in parts):
            continue
        if parameter.numel() == max(parameter.shape):
            parameter.data += 0.1 * torch.randn_like(parameter)
        else:
            torch.nn.init.normal_(parameter, std=0.15)
    return model


CLIP_MEAN, CLIP_STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]


def llava(folder):
    ids = tokenizer(folder, ["<image>"], template("<image>"))
    vision = dict(model_type="clip_vision_model", hidden_size=48, intermediate_size=80, num_hidden_layers=3,
                  num_attention_heads=3, image_size=32, patch_size=8)
    config = tf.LlavaConfig(text_config=dict(TEXT, model_type="llama", vocab_size=296), vision_config=vision,
                            image_token_index=ids["<image>"], tie_word_embeddings=False)
    model = tf.LlavaForConditionalGeneration(config)
    # Long vectors in front of the activation: it is not the other GELU there.
    for layer in model.model.vision_tower.encoder.layers:
        torch.nn.init.normal_(layer.mlp.fc1.weight, std=0.3)
    with_own_vectors(model).to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="CLIPImageProcessor", size=dict(shortest_edge=32),
                     crop_size=dict(height=32, width=32), image_mean=CLIP_MEAN, image_std=CLIP_STD, resample=3,
                     do_resize=True, do_center_crop=True, do_rescale=True, do_normalize=True, do_convert_rgb=True,
                     rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.LlavaForConditionalGeneration, ids["<image>"], lambda text, pixels: text.replace("<image>", "<image>" * 16)


CANVASES = [[32, 64], [64, 32], [64, 64]]


def llava_next(folder):
    """Two by two tiles; the first and the last line of their rows is padding."""
    ids = tokenizer(folder, ["<image>"], template("<image>"))
    vision = dict(model_type="clip_vision_model", hidden_size=48, intermediate_size=80, num_hidden_layers=3,
                  num_attention_heads=3, image_size=32, patch_size=8)
    config = tf.LlavaNextConfig(text_config=dict(TEXT, model_type="mistral", vocab_size=296, sliding_window=None),
                                vision_config=vision, image_token_index=ids["<image>"], image_grid_pinpoints=CANVASES,
                                tie_word_embeddings=False)
    model = tf.LlavaNextForConditionalGeneration(config)
    with_own_vectors(model).to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="LlavaNextImageProcessor", size=dict(shortest_edge=32),
                     crop_size=dict(height=32, width=32), image_grid_pinpoints=CANVASES, image_mean=CLIP_MEAN,
                     image_std=CLIP_STD, resample=3, do_resize=True, do_center_crop=True, do_rescale=True,
                     do_normalize=True, do_pad=True, do_convert_rgb=True, rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.LlavaNextForConditionalGeneration, ids["<image>"], expand_llava_next


def expand_llava_next(text, pixels):
    processor = tf.LlavaNextProcessor.__new__(tf.LlavaNextProcessor)
    processor.image_processor = type("Images", (), dict(image_grid_pinpoints=CANVASES))
    processor.patch_size, processor.num_additional_image_tokens = 8, 0
    height, width = (int(side) for side in pixels["image_sizes"][0])
    return text.replace("<image>", "<image>" * processor._get_number_of_features(height, width, 32, 32))


def internvl(folder):
    return internvl_of(folder, dict(norm_type="layer_norm", attention_bias=True), "Qwen2", (1, 1))


def internvl_rms(folder):
    return internvl_of(folder, dict(norm_type="rms_norm", use_qk_norm=True), "Qwen3", (1, 6))


def internvl_of(folder, norms, text, tiles):
    ids = tokenizer(folder, ["<img>", "</img>", "<IMG_CONTEXT>"], template("<IMG_CONTEXT>"))
    # llama.cpp's converter knows the projector's names where there are four blocks.
    vision = dict(architectures=["InternVisionModel"], hidden_size=32, intermediate_size=48, num_hidden_layers=4,
                  num_attention_heads=2, image_size=[32, 32], patch_size=[8, 8], **norms)
    config = tf.InternVLConfig(text_config=dict(TEXT, model_type=text.lower(), vocab_size=296, head_dim=16),
                               vision_config=vision, image_token_id=ids["<IMG_CONTEXT>"], image_seq_length=4,
                               tie_word_embeddings=False)
    model = tf.InternVLForConditionalGeneration(config)
    with_own_vectors(model).to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="GotOcr2ImageProcessor", crop_to_patches=True, min_patches=tiles[0], max_patches=tiles[1],
                     size=dict(height=32, width=32), image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225],
                     resample=3, do_resize=True, do_rescale=True, do_normalize=True, do_convert_rgb=True,
                     rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.InternVLForConditionalGeneration, ids["<IMG_CONTEXT>"], expand_internvl


def expand_internvl(text, pixels):
    return text.replace("<IMG_CONTEXT>", "<img>" + "<IMG_CONTEXT>" * 4 * len(pixels["pixel_values"]) + "</img>")


def lfm2_vl(folder):
    """The sizes that llama.cpp's files have; its converter knows the names of three blocks and more."""
    return lfm2_vl_of(folder, dict(encoder_patch_size=16), dict(num_patches=256, hidden_size=24, num_hidden_layers=3))


def lfm2_vl_tiles(folder):
    sizes = dict(encoder_patch_size=4, min_image_tokens=4, max_image_tokens=16, tile_size=32, max_tiles=4,
                 max_pixels_tolerance=1.0)
    return lfm2_vl_of(folder, sizes, dict(num_patches=36, hidden_size=48, num_hidden_layers=2),
                      dict(projector_use_layernorm=False))


def lfm2_vl_of(folder, sizes, vision, projector={}):
    places = [f"<|img_row_{r}_col_{c}|>" for r in (1, 2) for c in (1, 2)]
    ids = tokenizer(folder, ["<image>", "<|image_start|>", "<|image_end|>", "<|img_thumbnail|>", *places],
                    template("<image>"))
    text = dict(TEXT, model_type="lfm2", vocab_size=304, layer_types=["conv", "full_attention"], conv_L_cache=3,
                block_auto_adjust_ff_dim=False)
    vision = dict(model_type="siglip2_vision_model", intermediate_size=48, num_attention_heads=2,
                  patch_size=sizes["encoder_patch_size"], vision_use_head=False, **vision)
    config = tf.Lfm2VlConfig(text_config=text, vision_config=vision, projector_hidden_size=48, **projector,
                             image_token_id=ids["<image>"], tie_word_embeddings=True)
    with_own_vectors(tf.Lfm2VlForConditionalGeneration(config)).to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="Lfm2VlImageProcessor", image_mean=[0.5] * 3, image_std=[0.5] * 3, resample=2,
                     do_resize=True, do_rescale=True, do_normalize=True, do_pad=True, rescale_factor=1 / 255, **sizes)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.Lfm2VlForConditionalGeneration, ids["<image>"], lambda text, pixels: expand_lfm2_vl(folder, text)


class Lfm2VlTokens:
    image_token, image_start_token, image_end_token = "<image>", "<|image_start|>", "<|image_end|>"
    image_thumbnail_token = "<|img_thumbnail|>"


def lfm2_vl_grid(folder):
    processor = tf.AutoImageProcessor.from_pretrained(folder)
    found = processor([image()], return_tensors="pt", return_row_col_info=True)
    return processor, found, int(found["image_rows"][0]), int(found["image_cols"][0]), [int(n) for n in found["image_sizes"][0]]


def expand_lfm2_vl(folder, text):
    processor, _, rows, cols, (height, width) = lfm2_vl_grid(folder)
    step = processor.encoder_patch_size * processor.downsample_factor
    tokens = tf.Lfm2VlProcessor._build_image_tokens(Lfm2VlTokens, rows, cols, (processor.tile_size // step) ** 2,
                                                    (height // step) * (width // step), True, True)
    return text.replace("<image>", tokens)


def lfm2_vl_pixels(folder):
    """As the library's processor, which knows torchvision alone, but resized by Pillow: a level more or less."""
    processor, found, rows, cols, (height, width) = lfm2_vl_grid(folder)
    side, patch = processor.tile_size, processor.encoder_patch_size
    parts = [image().resize((width, height), Image.BILINEAR)]
    if rows * cols > 1:
        whole = image().resize((cols * side, rows * side), Image.BILINEAR)
        parts = [whole.crop((x * side, y * side, (x + 1) * side, (y + 1) * side))
                 for y in range(rows) for x in range(cols)] + parts
    pixels, n_most = torch.zeros_like(found["pixel_values"]), found["pixel_values"].shape[1]
    for i, part in enumerate(parts):
        numbers = (torch.from_numpy(np.asarray(part).astype(np.float32)) - 127.5) / 127.5
        cut = numbers.reshape(part.height // patch, patch, part.width // patch, patch, 3).permute(0, 2, 1, 3, 4)
        pixels[i, :cut.shape[0] * cut.shape[1]] = cut.reshape(cut.shape[0] * cut.shape[1], -1)
    assert pixels.shape == found["pixel_values"].shape and n_most
    assert (pixels - found["pixel_values"]).abs().max() < 2.1 / 127.5
    return dict(pixel_values=pixels, pixel_attention_mask=found["pixel_attention_mask"],
                spatial_shapes=found["spatial_shapes"])


def pixtral_tokens(folder):
    return tokenizer(folder, ["[IMG]", "[IMG_BREAK]", "[IMG_END]"], template("[IMG]"))


def pixtral_processor(folder, patch, longest):
    processor = dict(image_processor_type="PixtralImageProcessor", patch_size=patch, size=dict(longest_edge=longest),
                     image_mean=CLIP_MEAN, image_std=CLIP_STD, resample=3, do_resize=True, do_rescale=True,
                     do_normalize=True, do_convert_rgb=True, rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")


def expand_pixtral(step):
    def expand(text, pixels):
        height, width = (int(side) // step for side in pixels["image_sizes"][0])
        line = "[IMG]" * width
        return text.replace("[IMG]", "[IMG_BREAK]".join([line] * height) + "[IMG_END]")
    return expand


def pixtral(folder):
    """The converter knows the names of three blocks and more."""
    ids = pixtral_tokens(folder)
    vision = dict(model_type="pixtral", hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
                  image_size=28, patch_size=8, hidden_act="gelu")
    config = tf.LlavaConfig(text_config=dict(TEXT, model_type="mistral", vocab_size=296, sliding_window=None),
                            vision_config=vision, image_token_index=ids["[IMG]"], vision_feature_layer=-1,
                            vision_feature_select_strategy="full", tie_word_embeddings=False)
    model = tf.LlavaForConditionalGeneration(config)
    with_own_vectors(model).to(torch.bfloat16).save_pretrained(folder)
    pixtral_processor(folder, 8, 28)
    return tf.LlavaForConditionalGeneration, ids["[IMG]"], expand_pixtral(8)


def mistral3(folder):
    ids = pixtral_tokens(folder)
    vision = dict(model_type="pixtral", hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=2,
                  image_size=32, patch_size=4, hidden_act="silu")
    rope = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=128, beta_fast=32.0,
                beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)
    text = dict(TEXT, model_type="ministral3", vocab_size=296, head_dim=16, sliding_window=None, rope_parameters=rope)
    config = tf.Mistral3Config(text_config=text, vision_config=vision, image_token_index=ids["[IMG]"],
                               spatial_merge_size=2, tie_word_embeddings=False)
    model = tf.Mistral3ForConditionalGeneration(config)
    with_own_vectors(model).to(torch.bfloat16).save_pretrained(folder)
    pixtral_processor(folder, 8, 32)
    return tf.Mistral3ForConditionalGeneration, ids["[IMG]"], expand_pixtral(8)


def gemma4(folder):
    """Inputs by block, keys and values of other blocks, a tower within bounds."""
    text = dict(num_hidden_layers=4, num_kv_shared_layers=2, hidden_size_per_layer_input=16, vocab_size_per_layer_input=296)
    model = gemma4_of(folder, text, dict(hidden_size=48, num_attention_heads=3, num_key_value_heads=3, head_dim=16,
                                         use_clipped_linears=True))
    rng = np.random.default_rng(5)
    for module in model.model.vision_tower.modules():
        if hasattr(module, "input_min"):
            for name in ("input", "output"):
                for end, sign in (("min", -1), ("max", 1)):
                    getattr(module, f"{name}_{end}").fill_(sign * rng.integers(4, 14) / 8)
    return gemma4_saved(folder, model)


def gemma4_wide(folder):
    """Rows of an image that see one another; rows of the tower that are brought to one scale."""
    text = dict(num_hidden_layers=3, hidden_size_per_layer_input=0, use_bidirectional_attention="vision")
    model = gemma4_of(folder, text, dict(hidden_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=24,
                                         standardize=True))
    tower = model.model.vision_tower
    tower.std_bias.normal_(std=0.5)
    tower.std_scale.normal_(std=0.1).add_(0.5)
    return gemma4_saved(folder, model)


def gemma4_of(folder, text, vision):
    ids = tokenizer(folder, ["<|image>", "<|image|>", "<image|>"], template("<|image|>"))
    kinds = ["sliding_attention", "full_attention"] * 2 if text["num_hidden_layers"] == 4 else [
        "sliding_attention", "sliding_attention", "full_attention"]
    rope = {"sliding_attention": dict(rope_type="default", rope_theta=1e4),
            "full_attention": dict(rope_type="proportional", rope_theta=1e6, partial_rotary_factor=0.25)}
    text = dict(TEXT, vocab_size=296, head_dim=16, global_head_dim=32, sliding_window=24, layer_types=kinds,
                final_logit_softcapping=30.0, rope_parameters=rope, **text)
    vision = dict(intermediate_size=80, num_hidden_layers=2, patch_size=4, pooling_kernel_size=3,
                  position_embedding_size=64, **vision)
    config = tf.Gemma4Config(text_config=text | dict(tie_word_embeddings=True), vision_config=vision, audio_config=None,
                             boi_token_id=ids["<|image>"], eoi_token_id=ids["<image|>"], image_token_id=ids["<|image|>"],
                             video_token_id=301, audio_token_id=302, boa_token_id=303, tie_word_embeddings=True)
    model = with_own_vectors(tf.Gemma4ForConditionalGeneration(config))
    torch.nn.init.normal_(model.model.vision_tower.patch_embedder.position_embedding_table, std=0.3)
    torch.nn.init.normal_(model.model.embed_vision.embedding_projection.weight, std=0.15)
    return model


def gemma4_saved(folder, model, processor_type="Gemma4ImageProcessor"):
    model.to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type=processor_type, patch_size=4, max_soft_tokens=70, pooling_kernel_size=3,
                     image_mean=[0.0] * 3, image_std=[1.0] * 3, resample=3, do_resize=True, do_rescale=True,
                     do_normalize=False, do_convert_rgb=True, image_seq_length=70, rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return type(model), model.config.image_token_id, expand_gemma4


def gemma4_unified(folder):
    """No tower: patches of 12 x 12 pixels become rows at once."""
    ids = tokenizer(folder, ["<|image>", "<|image|>", "<image|>"], template("<|image|>"))
    rope = {"sliding_attention": dict(rope_type="default", rope_theta=1e4),
            "full_attention": dict(rope_type="proportional", rope_theta=1e6, partial_rotary_factor=0.25)}
    text = dict(TEXT, vocab_size=296, num_hidden_layers=3, head_dim=16, global_head_dim=32, sliding_window=24,
                layer_types=["sliding_attention", "sliding_attention", "full_attention"], final_logit_softcapping=30.0,
                rope_parameters=rope, tie_word_embeddings=True)
    vision = dict(patch_size=4, pooling_kernel_size=3, mm_embed_dim=48, mm_posemb_size=32, output_proj_dims=48)
    config = tf.Gemma4UnifiedConfig(text_config=text, vision_config=vision, audio_config=dict(audio_embed_dim=32),
                                    boi_token_id=ids["<|image>"], eoi_token_id=ids["<image|>"],
                                    image_token_id=ids["<|image|>"], video_token_id=301, audio_token_id=302,
                                    boa_token_id=303, tie_word_embeddings=True)
    model = with_own_vectors(tf.Gemma4UnifiedForConditionalGeneration(config), ("embed_vision",))
    return gemma4_saved(folder, model, "Gemma4UnifiedImageProcessor")


def expand_gemma4(text, pixels):
    n_patches = int((pixels["image_position_ids"] >= 0).all(-1).sum())
    n = n_patches if pixels["pixel_values"].shape[-1] > 3 * 4 * 4 else n_patches // 9
    return text.replace("<|image|>", "<|image>" + "<|image|>" * n + "<image|>")


def qwen2_vl(folder):
    ids = qwen_tokens(folder)
    text = dict(TEXT, vocab_size=292, rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[4, 2, 2]))
    vision = dict(embed_dim=32, hidden_size=64, mlp_ratio=2, depth=3, num_heads=2, patch_size=8, spatial_merge_size=2,
                  temporal_patch_size=2, in_channels=3)
    config = tf.Qwen2VLConfig(text_config=text, vision_config=vision, image_token_id=ids["<|image_pad|>"],
                              video_token_id=ids["<|video_pad|>"], vision_start_token_id=ids["<|vision_start|>"],
                              vision_end_token_id=ids["<|vision_end|>"], tie_word_embeddings=False)
    model = tf.Qwen2VLForConditionalGeneration(config)
    with_own_vectors(model).to(torch.bfloat16).save_pretrained(folder)
    qwen_processor(folder, 8, 64 * 64, 128 * 128)
    return tf.Qwen2VLForConditionalGeneration, ids["<|image_pad|>"], expand_qwen


def llama4(folder):
    """Two by two tiles, partly black."""
    specials = ["<|image_start|>", "<|image_end|>", "<|image|>", "<|patch|>", "<|tile_x_separator|>", "<|tile_y_separator|>"]
    ids = tokenizer(folder, specials, template("<|image|>"))
    text = dict(TEXT, vocab_size=296, num_hidden_layers=4, intermediate_size=32, intermediate_size_mlp=96, head_dim=16,
                num_local_experts=4, num_experts_per_tok=1, interleave_moe_layer_step=2, attention_chunk_size=16,
                floor_scale=16, attn_scale=0.3, rope_parameters=dict(rope_type="default", rope_theta=5e5))
    vision = dict(hidden_size=32, intermediate_size=128, num_hidden_layers=3, num_attention_heads=2, image_size=32,
                  patch_size=4, vision_output_dim=48, projector_input_dim=48, projector_output_dim=48)
    config = tf.Llama4Config(text_config=text, vision_config=vision, image_token_index=ids["<|patch|>"],
                             boi_token_index=ids["<|image_start|>"], eoi_token_index=ids["<|image_end|>"],
                             tie_word_embeddings=False)
    # transformers 5.24 asks the text model's output for it.
    tf.modeling_outputs.MoeCausalLMOutputWithPast.image_outputs = None
    model = tf.Llama4ForConditionalGeneration(config)
    with_own_vectors(model).to(torch.bfloat16).save_pretrained(folder)
    processor = dict(image_processor_type="Llama4ImageProcessorFast", size=dict(height=32, width=32), max_patches=4,
                     resize_to_max_canvas=False, image_mean=[0.5] * 3, image_std=[0.5] * 3, resample=2, do_resize=True,
                     do_rescale=True, do_normalize=True, do_convert_rgb=True, rescale_factor=1 / 255)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")
    return tf.Llama4ForConditionalGeneration, ids["<|patch|>"], lambda text, pixels: expand_llama4(folder, text)


class Llama4Tokens:
    pass


def llama4_grid(folder):
    processor = tf.AutoImageProcessor.from_pretrained(folder)
    found = processor([image()], return_tensors="pt")
    return processor, found["pixel_values"], [int(n) for n in found["aspect_ratios"][0]]


def expand_llama4(folder, text):
    _, tiles, grid = llama4_grid(folder)
    n_rows = (tiles.shape[-1] // 4 // 2) ** 2
    return text.replace("<|image|>", tf.Llama4Processor._prompt_split_image(Llama4Tokens, grid, n_rows))


def llama4_pixels(folder):
    """As the library's processor, which knows torchvision alone, but resized by Pillow: a level more or less."""
    from transformers.models.llama4.image_processing_llama4 import get_max_res_without_distortion
    processor, found, (rows, cols) = llama4_grid(folder)
    side = processor.size["height"]
    size = (image().height, image().width)
    canvas = (rows * side, cols * side)
    limited = [min(max(length, side), most) for length, most in zip(size, canvas)]
    height, width = get_max_res_without_distortion(size, limited)
    whole = Image.new("RGB", canvas[::-1])
    whole.paste(image().resize((width, height), Image.BILINEAR))
    parts = [whole.crop((x * side, y * side, (x + 1) * side, (y + 1) * side)) for y in range(rows) for x in range(cols)]
    if rows * cols > 1:
        parts.append(image().resize((side, side), Image.BILINEAR))
    tiles = torch.stack([torch.from_numpy(np.asarray(part).copy()).permute(2, 0, 1) for part in parts])
    tiles = processor.rescale_and_normalize(tiles, True, 1 / 255, True, [0.5] * 3, [0.5] * 3)
    assert tiles.shape == found.shape and (tiles - found).abs().max() < 2.1 / 127.5, (tiles.shape, found.shape)
    return dict(pixel_values=tiles.float())


def gemma4_unified_pixels(folder):
    """As the library's processor, which knows torchvision alone, but resized by Pillow: a level more or less."""
    found = tf.AutoImageProcessor.from_pretrained(folder)([image()], return_tensors="pt")
    cols, rows = (found["image_position_ids"][0].max(dim=0).values + 1).tolist()
    side = int((found["pixel_values"].shape[-1] // 3) ** 0.5)
    numbers = torch.from_numpy(np.asarray(image().resize((cols * side, rows * side), Image.BICUBIC)).astype(np.float32)) / 255
    pixels = found["pixel_values"].clone()
    cut = numbers.reshape(rows, side, cols, side, 3).permute(0, 2, 1, 3, 4)
    pixels[0, :rows * cols] = cut.reshape(rows * cols, -1)
    assert (pixels - found["pixel_values"]).abs().max() < 2.1 / 255
    return dict(pixel_values=pixels, image_position_ids=found["image_position_ids"])


def masks_of_generate(model, ids, row_token):
    """forward() lets an image's rows see one another in every block, generate() in those with a window alone: as the other
    models of the family."""
    empty = torch.zeros(*ids.shape, model.config.text_config.hidden_size)
    return model.create_masks_for_generate(model.config, empty, None, None, torch.arange(ids.shape[1])[None],
                                           mm_token_type_ids=(ids == row_token).int())


MODELS = dict(smolvlm=smolvlm, idefics2=idefics2, gemma3=gemma3, gemma4=gemma4, gemma4_wide=gemma4_wide, gemma4_unified=gemma4_unified,
              llava=llava,
              llava_next=llava_next, internvl=internvl, internvl_rms=internvl_rms, lfm2_vl=lfm2_vl, llama4=llama4,
              lfm2_vl_tiles=lfm2_vl_tiles, qwen2_vl=qwen2_vl, qwen2_5_vl=qwen2_5_vl, qwen3vl=qwen3vl,
              qwen3vl_moe=qwen3vl_moe, qwen3_5=qwen3_5, pixtral=pixtral, mistral3=mistral3)


def features_of(model, pixels):
    found = model.get_image_features(**pixels)
    if isinstance(model, tf.Llama4ForConditionalGeneration):
        found = model.multi_modal_projector(found.last_hidden_state)
    deep = list(getattr(found, "deepstack_features", None) or [])
    while not torch.is_tensor(found):
        if isinstance(found, list):
            found = torch.cat([rows.reshape(-1, rows.shape[-1]) for rows in found])
        else:
            found = found.pooler_output if hasattr(found, "pooler_output") else found[0]
    deep = [one if torch.is_tensor(one) else torch.cat(list(one)) for one in deep]
    return torch.cat([found.reshape(-1, found.shape[-1]), *deep], dim=-1)


def published_name(name):
    for part in ("embeddings", "encoder", "post_layernorm"):
        name = name.replace(f"vision_tower.{part}", f"vision_tower.vision_model.{part}")
    return name


def as_published(folder, scratch):
    """The folder with the names of tensors that published checkpoints, and the converter, have."""
    import safetensors.torch
    shutil.copytree(folder, scratch)
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    renamed = {published_name(name): tensor for name, tensor in tensors.items()}
    if folder.name in ("pixtral", "mistral3"):  # the converter takes the embedding of [IMG_BREAK], under this name
        renamed = {"embed_tokens.weight" if name.endswith("embed_tokens.weight") else name: tensor
                   for name, tensor in tensors.items()}
    if folder.name.startswith("gemma4"):
        renamed = tensors
    if folder.name.startswith("internvl"):
        renamed = {name if "language_model" in name else "model." + name.removeprefix("model."): tensor
                   for name, tensor in tensors.items()}
        config = json.loads((folder / "config.json").read_text())
        processor = json.loads((folder / "preprocessor_config.json").read_text())
        config |= dict(min_dynamic_patch=processor["min_patches"], max_dynamic_patch=processor["max_patches"])
        (scratch / "config.json").write_text(json.dumps(config))
    safetensors.torch.save_file(renamed, scratch / "model.safetensors", {"format": "pt"})
    return scratch


def convert(folder, converter, out):
    wrapper = ("import sys, runpy; sys.path.insert(0, sys.argv[1]); sys.path.insert(0, sys.argv[1] + '/gguf-py');"
               "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')")
    subprocess.run([sys.executable, "-c", wrapper, converter, f"{converter}/convert_hf_to_gguf.py", folder, "--mmproj",
                    "--outtype", "bf16", "--outfile", out], check=True, stdout=subprocess.DEVNULL)


def write_llava(folder, converter):
    """The keys and names of llama.cpp's legacy-models/convert_image_encoder_to_gguf.py, which reads CLIP's own folders and
    writes f16; here the weights stay bf16."""
    sys.path.insert(0, f"{converter}/gguf-py")
    import gguf
    import safetensors.torch
    vision = json.loads((folder / "config.json").read_text())["vision_config"]
    n_blocks = vision["num_hidden_layers"] - 1
    writer = gguf.GGUFWriter(folder / "mmproj.gguf", "clip")
    writer.add_bool("clip.has_text_encoder", False)
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_bool("clip.has_llava_projector", True)
    writer.add_string("clip.projector_type", "mlp")
    for key, of in (("image_size", "image_size"), ("patch_size", "patch_size"), ("embedding_length", "hidden_size"),
                    ("feed_forward_length", "intermediate_size"), ("attention.head_count", "num_attention_heads")):
        writer.add_uint32(f"clip.vision.{key}", vision[of])
    writer.add_uint32("clip.vision.block_count", n_blocks)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", vision["layer_norm_eps"])
    writer.add_array("clip.vision.feature_layer", [n_blocks])
    writer.add_array("clip.vision.image_mean", CLIP_MEAN)
    writer.add_array("clip.vision.image_std", CLIP_STD)
    writer.add_bool("clip.use_gelu", False)
    if folder.name == "llava_next":
        writer.add_string("clip.vision.image_aspect_ratio", "anyres")
        writer.add_string("clip.vision.mm_patch_merge_type", "spatial_unpad")
        writer.add_array("clip.vision.image_grid_pinpoints", [side for pair in CANVASES for side in pair[::-1]])
    changes = (("model.", ""), ("vision_tower.", "v."), ("vision_model.", ""), ("multi_modal_projector.linear_1", "mm.0"),
               ("multi_modal_projector.linear_2", "mm.2"), ("encoder.layers", "blk"), ("embeddings.", ""), ("_proj", ""),
               ("self_attn.", "attn_"), ("layer_norm", "ln"), ("layernorm", "ln"), ("mlp.fc1", "ffn_down"),
               ("mlp.fc2", "ffn_up"), ("embedding", "embd"), ("layrnorm", "ln"))
    for name, tensor in safetensors.torch.load_file(folder / "model.safetensors").items():
        if not any(part in name for part in ("vision_tower", "projector", "image_newline")):
            continue
        for old, new in changes if "newline" not in name else [("model.", ""), ("image", "model.image")]:
            name = name.replace(old, new)
        if name.startswith(("v.post_ln.", f"v.blk.{n_blocks}.")):
            continue
        if tensor.dim() < 2 or name.startswith(("v.patch", "v.position")):
            writer.add_tensor(name, tensor.float().numpy())
        else:
            bits = tensor.view(torch.int16).numpy().view(np.uint16)
            writer.add_tensor(name, bits.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(name, converter):
    torch.manual_seed(7)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / name
        folder.mkdir()
        kind, row_token, expand = MODELS[name](folder)
        replace_weights(folder)
        image().save(folder / "image.png")
        model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        if name.startswith("lfm2_vl"):
            pixels = lfm2_vl_pixels(folder)
        elif name == "llama4":
            pixels = llama4_pixels(folder)
        elif name == "gemma4_unified":
            pixels = gemma4_unified_pixels(folder)
        else:
            processor = tf.AutoImageProcessor.from_pretrained(folder, backend="pil")
            pixels = dict(processor([image()], return_tensors="pt"))
        pixels.pop("rows", None), pixels.pop("cols", None), pixels.pop("num_crops", None)
        pixels.pop("num_patches", None), pixels.pop("num_soft_tokens_per_image", None)
        words = tf.PreTrainedTokenizerFast.from_pretrained(folder)
        messages = [dict(role="user", content=[dict(type="image"), dict(type="text", text=QUESTION)])]
        text = expand(words.apply_chat_template(messages, tokenize=False, add_generation_prompt=True), pixels)
        ids = words(text, return_tensors="pt", add_special_tokens=False).input_ids
        with torch.no_grad():
            features = features_of(model, pixels)
            inputs = dict(input_ids=ids, **pixels)
            if "qwen" in name or "gemma4" in name:
                inputs["mm_token_type_ids"] = (ids == row_token).int()
            if name == "gemma4_unified":
                inputs["attention_mask"] = masks_of_generate(model, ids, row_token)
            if name == "gemma3":
                inputs["token_type_ids"] = (ids == row_token).int()
            logits = model(**inputs).logits[0]
        if name == "mistral3":  # the class around the image processor gives it this side; published files have the tower's
            pixtral_processor(folder, 4, 32)
        if name in ("llava", "llava_next"):
            write_llava(folder, converter)
        elif name not in ("lfm2_vl_tiles", "idefics2"):  # files of llama.cpp have other sizes; it knows no such projector
            convert(as_published(folder, pathlib.Path(scratch) / "published"), converter, folder / "mmproj.gguf")
        target = GOLDENS / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in folder.iterdir():
            if path.name != "model.safetensors":
                shutil.copyfile(path, target / path.name)
        features.numpy().astype("<f4").tofile(target / "features.f32")
        logits[-1].numpy().astype("<f4").tofile(target / "last_logits.f32")
        expected = dict(text=text, ids=ids[0].tolist(), row_token=row_token, n_rows=features.shape[0],
                        width=features.shape[1], vocab=logits.shape[-1], question=QUESTION)
        (target / "expected.json").write_text(json.dumps(expected) + "\n")
        size = sum(path.stat().st_size for path in target.iterdir()) // 1024
        print(f"{name}: {size} KiB, {features.shape[0]} rows, {ids.shape[1]} tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--converter", required=True)
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    os.environ["TRANSFORMERS_VERBOSITY"] = "error"
    for name in arguments.only or MODELS:
        make(name, arguments.converter)


if __name__ == "__main__":
    main()
