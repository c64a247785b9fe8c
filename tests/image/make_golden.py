#!/usr/bin/env python3
"""Writes what the tests of src/image compare with: fitted.txt and canvases.txt (sizes of Llama 4 and LLaVA-NeXT), resized.txt (Pillow's Image.resize),
normalised.txt and prepared.txt (image processors of transformers 5); of pixels and numbers the first half of a SHA-256.
Prints how far the processors that resize with torchvision are from those that resize with Pillow. Needs numpy, torch,
torchvision, transformers, and a pillow below 13, whose resize takes its passes in another order (but for sizes).

    python3 tests/image/make_golden.py"""
import hashlib
import json
from pathlib import Path

import numpy as np
import PIL
from PIL import Image
from transformers.models.clip.image_processing_clip import CLIPImageProcessor
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.gemma3.image_processing_gemma3 import Gemma3ImageProcessor
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.gemma4.image_processing_gemma4 import Gemma4ImageProcessor
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil
from transformers.models.got_ocr2.image_processing_got_ocr2 import GotOcr2ImageProcessor
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
from transformers.models.idefics3.image_processing_idefics3 import Idefics3ImageProcessor
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.pixtral.image_processing_pixtral import PixtralImageProcessor
from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.siglip.image_processing_siglip import SiglipImageProcessor
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

FOLDER = Path(__file__).resolve().parent
CLASSES = {name: (fast, pil) for name, fast, pil in (
    ("CLIP", CLIPImageProcessor, CLIPImageProcessorPil), ("Gemma3", Gemma3ImageProcessor, Gemma3ImageProcessorPil),
    ("Gemma4", Gemma4ImageProcessor, Gemma4ImageProcessorPil),
    ("GotOcr2", GotOcr2ImageProcessor, GotOcr2ImageProcessorPil),
    ("Idefics3", Idefics3ImageProcessor, Idefics3ImageProcessorPil), ("Pixtral", PixtralImageProcessor, PixtralImageProcessorPil),
    ("Qwen2VL", Qwen2VLImageProcessor, Qwen2VLImageProcessorPil), ("Siglip", SiglipImageProcessor, SiglipImageProcessorPil))}
CLIP_MEAN, CLIP_STD = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
HALVES = [0.5, 0.5, 0.5]
FACTOR = 1 / 255

# name: configuration as it is published, side of a patch, merged patches, sizes of images (width, height).
CASES = {
    "siglip": ({"do_convert_rgb": None, "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": HALVES,
                "image_std": HALVES, "image_processor_type": "SiglipImageProcessor", "processor_class": "SiglipProcessor",
                "resample": 3, "rescale_factor": FACTOR, "size": {"height": 384, "width": 384}}, 14, 1,
               [(120, 77), (1, 1), (1, 900), (384, 384)]),
    "clip": ({"crop_size": 336, "do_center_crop": True, "do_normalize": True, "do_resize": True,
              "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": CLIP_MEAN, "image_std": CLIP_STD,
              "resample": 3, "size": 336}, 14, 1, [(120, 77), (77, 301), (500, 333), (1, 1)]),
    "clip_cropped_wider": ({"crop_size": {"height": 63, "width": 41}, "image_processor_type": "CLIPImageProcessorFast",
                            "size": {"shortest_edge": 50}, "resample": 2}, 14, 1, [(61, 60), (30, 90), (400, 60)]),
    "gemma3": ({"do_convert_rgb": None, "do_normalize": True, "do_pan_and_scan": None, "do_rescale": True, "do_resize": True,
                "image_mean": HALVES, "image_processor_type": "Gemma3ImageProcessor", "image_seq_length": 256,
                "image_std": HALVES, "pan_and_scan_max_num_crops": None, "pan_and_scan_min_crop_size": None,
                "pan_and_scan_min_ratio_to_activate": None, "processor_class": "Gemma3Processor", "resample": 2,
                "rescale_factor": FACTOR, "size": {"height": 896, "width": 896}}, 14, 1, [(120, 77), (1200, 300)]),
    "gemma3_scan": ({"do_pan_and_scan": True, "image_processor_type": "Gemma3ImageProcessor", "size": {"height": 112, "width": 112},
                     "pan_and_scan_min_crop_size": 64, "pan_and_scan_max_num_crops": 4,
                     "pan_and_scan_min_ratio_to_activate": 1.2}, 14, 1,
                    [(301, 100), (100, 301), (119, 100), (500, 64), (500, 63), (130, 100)]),
    "gemma4": ({"do_convert_rgb": True, "do_normalize": False, "do_rescale": True, "do_resize": True, "image_mean": [0.0] * 3,
                "image_processor_type": "Gemma4ImageProcessor", "image_seq_length": 280, "image_std": [1.0] * 3,
                "max_soft_tokens": 280, "patch_size": 16, "pooling_kernel_size": 3, "processor_class": "Gemma4Processor",
                "resample": 3, "rescale_factor": FACTOR, "size": None}, 16, 3, [(120, 77), (1, 1), (640, 427), (3, 900)]),
    "gemma4_small": ({"image_processor_type": "Gemma4ImageProcessor", "max_soft_tokens": 70, "patch_size": 4}, 4, 3,
                     [(120, 77), (77, 120), (900, 5), (5, 900), (2000, 3), (300, 200)]),
    "smolvlm": ({"do_convert_rgb": True, "do_image_splitting": True, "do_normalize": True, "do_pad": True, "do_rescale": True,
                 "do_resize": True, "image_mean": HALVES, "image_processor_type": "Idefics3ImageProcessor", "image_std": HALVES,
                 "max_image_size": {"longest_edge": 512}, "processor_class": "Idefics3Processor", "resample": 1,
                 "rescale_factor": FACTOR, "size": {"longest_edge": 2048}}, 16, 1, [(120, 77), (30, 260), (1, 1)]),
    "smolvlm_small": ({"image_processor_type": "Idefics3ImageProcessor", "max_image_size": {"longest_edge": 128},
                       "size": {"longest_edge": 384}, "resample": 1}, 16, 1,
                      [(120, 77), (600, 11), (11, 600), (383, 385), (1, 300)]),
    "smolvlm_one": ({"image_processor_type": "Idefics3ImageProcessor", "max_image_size": {"longest_edge": 128},
                     "size": {"longest_edge": 128}}, 16, 1, [(120, 77), (77, 120)]),
    "smolvlm_whole": ({"image_processor_type": "Idefics3ImageProcessor", "max_image_size": {"longest_edge": 128},
                       "size": {"longest_edge": 384}, "do_image_splitting": False}, 16, 1, [(120, 77), (9, 500)]),
    "qwen2_vl": ({"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
                  "image_mean": CLIP_MEAN, "image_std": CLIP_STD, "image_processor_type": "Qwen2VLImageProcessor",
                  "processor_class": "Qwen2VLProcessor"}, 14, 2, [(120, 77), (42, 70), (13, 9), (3000, 17), (1, 200)]),
    "qwen2_vl_few": ({"min_pixels": 3136, "max_pixels": 50000, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
                      "image_processor_type": "Qwen2VLImageProcessorFast"}, 14, 2, [(640, 427), (2000, 11)]),
    "qwen3_vl": ({"size": {"longest_edge": 16777216, "shortest_edge": 65536}, "patch_size": 16, "temporal_patch_size": 2,
                  "merge_size": 2, "image_mean": HALVES, "image_std": HALVES, "processor_class": "Qwen3VLProcessor",
                  "image_processor_type": "Qwen2VLImageProcessorFast"}, 16, 2, [(120, 77), (640, 427)]),
    "mistral3": ({"do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": CLIP_MEAN,
                  "image_std": CLIP_STD, "image_processor_type": "PixtralImageProcessorFast", "patch_size": 14, "resample": 3,
                  "processor_class": "PixtralProcessor", "rescale_factor": FACTOR, "size": {"longest_edge": 1540}}, 14, 2,
                 [(120, 77), (28, 28), (1600, 40), (1, 1)]),
    "pixtral": ({"image_processor_type": "PixtralImageProcessor", "patch_size": {"height": 16, "width": 16},
                 "size": {"longest_edge": 128}, "resample": 3}, 16, 1, [(120, 77), (300, 129), (129, 300), (1000, 9)]),
    "internvl": ({"crop_size": None, "crop_to_patches": False, "data_format": "channels_first", "do_center_crop": None,
                  "do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.485, 0.456, 0.406],
                  "image_std": [0.229, 0.224, 0.225], "image_processor_type": "GotOcr2ImageProcessorFast", "max_patches": 12,
                  "min_patches": 1, "processor_class": "InternVLProcessor", "resample": 3, "rescale_factor": FACTOR,
                  "size": {"height": 448, "width": 448}}, 14, 2, [(120, 77), (100, 420), (448, 448), (900, 450)]),
    "internvl_small": ({"crop_to_patches": True, "image_processor_type": "GotOcr2ImageProcessor", "max_patches": 12, "min_patches": 2,
                        "size": {"height": 56, "width": 56}}, 14, 2, [(120, 77), (100, 1000), (1000, 100), (60, 60), (301, 300)]),
    "got_ocr": ({"image_processor_type": "GotOcr2ImageProcessor", "size": {"height": 64, "width": 48}}, 16, 1, [(120, 77)]),
}
FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1}
RESIZES = [(33, 23, 64, 48), (33, 23, 7, 5), (33, 23, 33, 9), (33, 23, 70, 23), (1, 1, 5, 4), (97, 61, 48, 61), (300, 200, 3, 2),
           (1, 500, 6, 20), (500, 1, 20, 6), (640, 427, 224, 224), (64, 64, 63, 65)]
NORMALISED = [(HALVES, HALVES), (CLIP_MEAN, CLIP_STD), ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]


def half_hash(data):
    return hashlib.sha256(data).hexdigest()[:32]


def picture(width, height):
    """As the tests make it."""
    x, y, c = np.arange(width)[None, :, None], np.arange(height)[:, None, None], np.arange(3)[None, None, :]
    return Image.fromarray((((x * 37 + y * 101 + c * 53) ^ (x * y * 7 >> 3)) & 255).astype(np.uint8), "RGB")


def options(config, is_internvl):
    """Those that a processor's class takes; what the class around it adds."""
    left_out = ("image_processor_type", "processor_class", "feature_extractor_type", "data_format", "image_seq_length", "crop_size"
                if is_internvl else "")
    found = {key: value for key, value in config.items() if key not in left_out and value is not None}
    return {**found, **({"crop_to_patches": True} if is_internvl else {})}


def kind_of(config):
    name = config.get("image_processor_type") or config["feature_extractor_type"]
    for end in ("Fast", "ImageProcessor", "FeatureExtractor"):
        name = name.removesuffix(end)
    return name


def tiles_of(out, kind, patch, merge):
    """Bytes [3, height, width] of each tile, and the grid."""
    pixels = out["pixel_values"]
    if kind == "Gemma4":
        cols, rows = np.asarray(out["image_position_ids"])[0].max(axis=0) + 1
        parts = np.asarray(pixels)[0, :rows * cols].reshape(rows, cols, patch, patch, 3)
        return [parts.transpose(4, 0, 2, 1, 3).reshape(3, rows * patch, cols * patch)]
    if kind != "Qwen2VL":
        pixels = np.asarray(pixels)
        return [np.asarray(tile) for tile in (pixels[0] if kind == "Idefics3" else pixels)]
    _, rows, cols = np.asarray(out["image_grid_thw"])[0]
    parts = np.asarray(pixels).reshape(rows // merge, cols // merge, merge, merge, 3, -1, patch, patch)[:, :, :, :, :, 0]
    return [parts.transpose(4, 0, 2, 5, 1, 3, 6).reshape(3, rows * patch, cols * patch)]


def cut(tile, patch):
    _, height, width = tile.shape
    rows, cols = height // patch, width // patch
    whole = tile[:, :rows * patch, :cols * patch].reshape(3, rows, patch, cols, patch)
    return rows, cols, whole.transpose(1, 3, 0, 2, 4).astype(np.uint8).tobytes()


def prepared(config, patch, merge, image, which):
    kind = kind_of(config)
    more = {"patch_size": patch * merge} if kind == "Pixtral" else {}
    if kind == "Idefics3":
        more["return_row_col_info"] = True
    settings = {**options(config, config.get("processor_class") == "InternVLProcessor"), **more}
    settings.update(do_rescale=False, do_normalize=False)
    if kind == "CLIP" and which == 1:  # where black is added, torchvision's place counts
        import torch
        whole = CLASSES[kind][1](**{**settings, "do_center_crop": False})(image)
        crop = CLASSES[kind][0](**settings)
        tile = crop.center_crop(torch.from_numpy(np.asarray(whole["pixel_values"][0]).copy()), crop.crop_size)
        return [tile.numpy().astype(np.int64)]
    out = CLASSES[kind][which](**settings)(image, **({"patch_size": patch * merge} if kind == "Pixtral" else {}))
    tiles = tiles_of(out, kind, patch, merge)
    return [np.asarray(tile).astype(np.int64) for tile in tiles]


def write_prepared():
    lines, furthest = [], {}
    folder = FOLDER / "processors"
    folder.mkdir(exist_ok=True)
    for name, (config, patch, merge, sizes) in CASES.items():
        (folder / f"{name}.json").write_text(json.dumps(config, indent=1) + "\n")
        for width, height in sizes:
            image = picture(width, height)
            tiles, fast = (prepared(config, patch, merge, image, which) for which in (1, 0))
            assert len(tiles) == len(fast) and all(a.shape == b.shape for a, b in zip(tiles, fast)), (name, width, height)
            distance = max(int(np.abs(a - b).max()) for a, b in zip(tiles, fast))
            furthest[name] = max(furthest.get(name, 0), distance)
            for i, tile in enumerate(tiles):
                rows, cols, data = cut(tile, patch)
                lines.append(f"{name} {patch} {merge} {width} {height} {len(tiles)} {i} {rows} {cols} {half_hash(data)}")
    (FOLDER / "prepared.txt").write_text("\n".join(lines) + "\n")
    print("levels between Pillow and torchvision:", furthest)


def write_resized():
    lines = []
    for width, height, new_width, new_height in RESIZES:
        for name, number in FILTERS.items():
            data = picture(width, height).resize((new_width, new_height), number).tobytes()
            lines.append(f"{width} {height} {new_width} {new_height} {name} {half_hash(data)}")
    (FOLDER / "resized.txt").write_text("\n".join(lines) + "\n")


def write_normalised():
    """f32 of all bytes of the three channels, one channel after the other."""
    import torch
    levels = torch.arange(256, dtype=torch.uint8).reshape(1, 1, 1, 256).expand(1, 3, 1, 256).contiguous()
    processor = SiglipImageProcessor()
    lines = []
    for mean, std in NORMALISED:
        for rescale, normalise in ((True, True), (False, True), (True, False)):
            out = processor.rescale_and_normalize(levels, rescale, FACTOR, normalise, tuple(mean), tuple(std))
            words = " ".join(repr(x) for x in [*mean, *std])
            lines.append(f"{int(rescale)} {int(normalise)} {words} {half_hash(out.to(torch.float32).numpy().tobytes())}")
    (FOLDER / "normalised.txt").write_text("\n".join(lines) + "\n")


def write_fitted():
    """For Llama 4: image's width, height, tile's side, most tiles, whether the largest canvas is wanted; tiles down and across,
    height and width on them."""
    import torch
    from transformers.models.llama4 import image_processing_llama4 as llama
    from transformers.image_utils import SizeDict
    draw = np.random.default_rng(1)
    lines = []
    for i in range(300):
        side, most, largest = int(draw.choice([336, 32, 448])), int(draw.choice([16, 4, 12, 1])), i % 4 == 0
        width, height = (int(draw.integers(1, int(draw.choice([60, 700, 4000])))) for _ in range(2))
        llama.find_supported_resolutions.cache_clear()
        shapes = torch.tensor(llama.find_supported_resolutions(most, SizeDict(height=side, width=side)))
        canvas = llama.get_best_fit((height, width), shapes, resize_to_max_canvas=largest)
        limited = canvas if largest else [min(max(own, side), whole) for own, whole in zip((height, width), canvas)]
        size = [max(int(n), 1) for n in llama.get_max_res_without_distortion((height, width), limited)]
        lines.append(" ".join(map(str, [width, height, side, most, int(largest), *(int(n) // side for n in canvas), *size])))
    (FOLDER / "fitted.txt").write_text("\n".join(lines) + "\n")


def write_canvases():
    """For LLaVA-NeXT and its usual canvases: image's width and height, canvas's height and width, the image's on it; top, left,
    height and width of what is left of rows for patches of 14 pixels without the padding."""
    import torch
    from transformers.image_processing_utils import get_patch_output_size, select_best_resolution
    from transformers.models.llava_next.modeling_llava_next import unpad_image
    draw = np.random.default_rng(2)
    lines = []
    for _ in range(300):
        width, height = (int(draw.integers(1, int(draw.choice([60, 700, 4000])))) for _ in range(2))
        canvas = select_best_resolution((height, width), [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]])
        if canvas is None:
            continue
        size = get_patch_output_size(np.zeros((3, height, width), np.uint8), canvas, "channels_first")
        places = torch.stack(torch.meshgrid(torch.arange(canvas[0] // 14), torch.arange(canvas[1] // 14), indexing="ij"))
        left = unpad_image(places, (height, width))
        if left.numel() == 0:
            continue
        part = [*left[:, 0, 0].tolist(), *left.shape[1:]]
        lines.append(" ".join(map(str, [width, height, *canvas, *size, *part])))
    (FOLDER / "canvases.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write_fitted()
    write_canvases()
    assert int(PIL.__version__.split(".")[0]) < 13, "a Pillow below 13 is needed: the order of passes is another one there"
    write_resized()
    write_normalised()
    write_prepared()
