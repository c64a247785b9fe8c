#!/usr/bin/env python3
"""Writes tests/image/files, small encoded images, and decoded.txt, what becomes of each: its size and the FNV-1a hash of
its RGB as Pillow has it (exif_transpose, then convert("RGB")), or "!" and a part of the error. Needs Pillow.

    python3 tests/image/make_images.py"""
import io
import random
import struct
import zlib
from pathlib import Path

from PIL import Image, ImageOps

FOLDER = Path(__file__).resolve().parent
WIDTH, HEIGHT = 33, 23
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def picture(width=WIDTH, height=HEIGHT):
    """Slopes with an edge: what subsampling and filters show."""
    image = Image.new("RGB", (width, height))
    image.putdata([((x * 7 + y * 2) % 256, (x * y + 30) % 256 if x > y else 200, 255 - (y * 9) % 256)
                   for y in range(height) for x in range(width)])
    return image


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_rows(samples, width, height, bits, n_channels):
    """Rows under the five filters in turn."""
    n_bytes = (width * bits * n_channels + 7) // 8
    step = max(1, bits * n_channels // 8)
    before, out = bytes(n_bytes), b""
    for y in range(height):
        value, n_bits, row = 0, 0, bytearray()
        for sample in samples(y, width):
            value, n_bits = value << bits | sample, n_bits + bits
            while n_bits >= 8:
                row.append(value >> n_bits - 8 & 255)
                n_bits -= 8
        if n_bits:
            row.append(value << 8 - n_bits & 255)
        kind = y % 5
        filtered = bytearray([kind])
        for i, byte in enumerate(row):
            left = row[i - step] if i >= step else 0
            corner = before[i - step] if i >= step else 0
            up = before[i]
            near = min((left, up, corner), key=lambda v: abs(left + up - corner - v))
            filtered.append(byte - (0, left, up, (left + up) // 2, near)[kind] & 255)
        out += filtered
        before = bytes(row)
    return out


def png(colour, bits, interlaced=False, width=WIDTH, height=HEIGHT, before=b"", behind=b""):
    """And the upper bytes of its samples, pixel by pixel."""
    n_channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    source = random.Random(colour * 100 + bits)
    limit = 16 if colour == 3 else 1 << bits
    pixels = [[[source.randrange(min(limit, 1 << bits)) for _ in range(n_channels)] for _ in range(width)] for _ in range(height)]
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, int(interlaced))
    data = b""
    for x0, y0, dx, dy in ADAM7 if interlaced else ((0, 0, 1, 1),):
        part = [row[x0::dx] for row in pixels[y0::dy]]
        if part and part[0]:
            data += png_rows(lambda y, _: [s for p in part[y] for s in p], len(part[0]), len(part), bits, n_channels)
    palette = chunk(b"PLTE", bytes(source.randrange(256) for _ in range(3 * min(16, 1 << bits)))) if colour == 3 else b""
    file = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + before + chunk(b"IDAT", zlib.compress(data, 9)) + behind
            + chunk(b"IEND", b""))
    return file, pixels


def exif(orientation, is_big=True):
    order, mark = (">", b"MM\0*") if is_big else ("<", b"II*\0")
    return mark + struct.pack(order + "IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def bmp(bits, compression, data, masks=b"", width=WIDTH, height=HEIGHT, palette=b""):
    head = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(data), 0, 0, len(palette) // 4, 0)
    start = 14 + len(head) + len(masks) + len(palette)
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + head + masks + palette + data


def jpegs():
    image = picture()
    for name, sub in (("444", 0), ("422", 1), ("420", 2)):
        yield f"jpeg_{name}.jpg", saved(image, "JPEG", quality=80, subsampling=sub)
    yield "jpeg_progressive.jpg", saved(image, "JPEG", quality=90, progressive=True)
    yield "jpeg_restarts.jpg", saved(image, "JPEG", quality=60, restart_marker_blocks=2)
    yield "jpeg_grey.jpg", saved(image.convert("L"), "JPEG", quality=80)
    yield "jpeg_cmyk.jpg", saved(image.convert("CMYK"), "JPEG", quality=80)
    yield "jpeg_rgb.jpg", saved(image, "JPEG", quality=80, keep_rgb=True)
    yield "jpeg_one_pixel.jpg", saved(picture(1, 1), "JPEG")
    for i in range(1, 9):
        yield f"jpeg_turned_{i}.jpg", saved(picture(19, 10), "JPEG", quality=70, exif=b"Exif\0\0" + exif(i, i % 2 == 0))


def pngs():
    for colour, depths in ((0, (1, 2, 4, 8)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16))):
        for bits in depths:
            yield f"png_{colour}_{bits}.png", png(colour, bits, width=13, height=7)[0]
    yield "png_interlaced_2_8.png", png(2, 8, True, width=11, height=9)[0]
    yield "png_interlaced_3_1.png", png(3, 1, True, width=11, height=9)[0]
    yield "png_interlaced_0_2_tiny.png", png(0, 2, True, width=1, height=2)[0]
    yield "png_transparent_colour.png", png(2, 8, width=5, height=5, before=chunk(b"tRNS", bytes(6)))[0]
    yield "png_transparent_palette.png", png(3, 4, width=9, height=5, before=chunk(b"tRNS", bytes(range(16))))[0]
    yield "png_one_pixel.png", png(2, 8, width=1, height=1)[0]
    yield "png_turned_6.png", png(2, 8, width=9, height=5, before=chunk(b"eXIf", exif(6)))[0]
    yield "png_turned_behind_5.png", png(2, 8, width=9, height=5, behind=chunk(b"eXIf", exif(5)))[0]


def others():
    image, small = picture(), picture(12, 9)
    frames = [image.quantize(16), image.rotate(180).quantize(16)]
    gif = saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=50)
    yield "gif_animated.gif", gif
    yield "gif_interlaced.gif", saved(small.quantize(8), "GIF", interlace=True)
    plain = saved(small.quantize(8), "GIF", interlace=False)
    yield "gif_on_larger_screen.gif", plain[:6] + struct.pack("<HH", 20, 14) + plain[10:]
    yield "gif_on_smaller_screen.gif", plain[:6] + struct.pack("<HH", 5, 4) + plain[10:]
    clear = saved(small.quantize(8), "GIF", transparency=3)
    yield "gif_transparent.gif", clear[:6] + struct.pack("<HH", 20, 14) + clear[10:]
    yield "gif_grey.gif", saved(small.convert("L"), "GIF")
    yield "gif_one_pixel.gif", saved(picture(1, 1), "GIF")
    alpha = small.convert("RGBA")
    alpha.putalpha(Image.linear_gradient("L").resize(alpha.size))
    yield "webp_lossy.webp", saved(image, "WEBP", quality=70)
    yield "webp_lossless.webp", saved(image, "WEBP", lossless=True)
    yield "webp_lossy_alpha.webp", saved(alpha, "WEBP", quality=70)
    yield "webp_lossless_alpha.webp", saved(alpha, "WEBP", lossless=True, exact=True)
    yield "webp_animated.webp", saved(image, "WEBP", save_all=True, append_images=[image.rotate(180)], quality=70)
    yield "webp_turned_8.webp", saved(small, "WEBP", quality=70, exif=b"Exif\0\0" + exif(8))
    yield "webp_one_pixel.webp", saved(picture(1, 1), "WEBP")
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        yield f"bmp_{mode.lower()}.bmp", saved(small.convert(mode), "BMP")
    words = struct.pack("<64H", *(i * 1021 % 65536 for i in range(64)))
    yield "bmp_555.bmp", bmp(16, 0, words, width=8, height=8)
    yield "bmp_565.bmp", bmp(16, 3, words, struct.pack("<III", 0xF800, 0x7E0, 0x1F), width=8, height=8)
    yield "bmp_top_down.bmp", bmp(24, 0, bytes(range(96)), width=8, height=-4)
    colours = bytes(i * 37 % 256 for i in range(64))
    yield "bmp_4.bmp", bmp(4, 0, bytes(i * 29 % 256 for i in range(32)), width=8, height=8, palette=colours)
    runs = b"\x05\x01\x03\x02\0\0" + b"\0\x03\x01\x02\x03\0\x05\x04\0\0" + b"\x08\x07\0\x01"
    yield "bmp_rle8.bmp", bmp(8, 1, runs, width=8, height=3, palette=colours)
    runs = b"\x05\x12\x03\x34\0\0" + b"\0\x04\x12\x34\x04\x56\0\0" + b"\x08\x71\0\x01"
    yield "bmp_rle4.bmp", bmp(4, 2, runs, width=8, height=3, palette=colours)


def own_values():
    """Where Pillow has other values: of grey in 16 bits it makes white of all above 255."""
    file, pixels = png(0, 16, width=13, height=7)
    yield "png_0_16.png", file, 13, 7, bytes(pixel[0] >> 8 for row in pixels for pixel in row for _ in range(3))


def refused():
    whole = dict(list(jpegs()) + list(pngs()) + list(others()))
    for name in ("jpeg_420.jpg", "jpeg_progressive.jpg", "png_2_8.png", "gif_animated.gif", "webp_lossy.webp", "bmp_rgb.bmp"):
        part = 3 if name == "gif_animated.gif" else 2
        yield "cut_" + name, whole[name][:len(whole[name]) // part], "is cut short"
    yield "cut_webp_lossless.webp", whole["webp_lossless.webp"][:60], "the WebP is cut short"
    for name in ("jpeg_420.jpg", "png_2_8.png", "gif_interlaced.gif", "webp_lossy.webp", "bmp_rgb.bmp"):
        yield "head_" + name, whole[name][:20], "is cut short"
    broken = bytearray(whole["png_2_8.png"])
    broken[60] ^= 0x55
    yield "broken_png.png", bytes(broken), "the PNG is damaged"
    size = "30000 x 30000 pixels: at most 67108864"
    head = struct.pack(">IIBBBBB", 30000, 30000, 8, 2, 0, 0, 0)
    yield "bomb_png.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))), "the PNG has " + size
    jpeg = whole["jpeg_420.jpg"]
    frame = jpeg.index(b"\xff\xc0")
    yield "bomb_jpeg.jpg", jpeg[:frame + 5] + struct.pack(">HH", 30000, 30000) + jpeg[frame + 9:], "the JPEG has " + size
    gif = whole["gif_interlaced.gif"]
    yield "bomb_gif.gif", gif[:6] + struct.pack("<HH", 30000, 30000) + gif[10:], "the GIF has " + size
    yield "bomb_bmp.bmp", bmp(24, 0, b"", width=30000, height=30000), "the BMP has " + size
    side = struct.pack("<I", 29999)[:3]
    webp = b"VP8X" + struct.pack("<I", 10) + bytes(4) + side + side + whole["webp_lossless.webp"][12:]
    yield "bomb_webp.webp", b"RIFF" + struct.pack("<I", 4 + len(webp)) + b"WEBP" + webp, "the WebP has " + size
    yield "long_png.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 70000, 1, 8, 2, 0, 0, 0)), "a side may have 65535"
    yield "empty.png", b"", "the image is empty"
    yield "drawing.svg", b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "an SVG: expected JPEG, PNG, WebP, GIF or BMP"
    yield "page.pdf", b"%PDF-1.7\n", "a PDF: expected JPEG, PNG, WebP, GIF or BMP"
    yield "photo.heic", b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIC: expected"
    yield "photo.avif", b"\0\0\0\x18ftypavif\0\0\0\0", "an AVIF: expected"
    yield "page.html", b"<!doctype html><p>404", "HTML or XML: expected"
    yield "words.txt", b"no image", "of no known format (it begins with 6e 6f 20 69)"


def main():
    files = FOLDER / "files"
    files.mkdir(exist_ok=True)
    for old in files.iterdir():
        old.unlink()
    lines = []
    for name, data in [*jpegs(), *pngs(), *others()]:
        (files / name).write_bytes(data)
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
        lines.append(f"{name} {image.width} {image.height} {fnv(image.tobytes()):016x}")
    for name, data, width, height, rgb in own_values():
        (files / name).write_bytes(data)
        lines.append(f"{name} {width} {height} {fnv(rgb):016x}")
    for name, data, error in refused():
        (files / name).write_bytes(data)
        lines.append(f"{name} ! {error}")
    (FOLDER / "decoded.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
