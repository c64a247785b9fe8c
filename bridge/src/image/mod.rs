//! An image file's bytes as rows of RGB: JPEG, PNG, WebP, GIF (its first frame) and BMP. The formats are told by their first
//! bytes, the sizes are checked before anything is decoded, and the orientation of EXIF is obeyed. The pixels are those of
//! Pillow's `exif_transpose` and `convert("RGB")`: transparency is dropped, not blended, and CMYK is taken for Adobe's, which
//! is inverted. They differ in grey PNGs of 16 bits alone, of which Pillow makes all above 255 white: here a sample's upper
//! byte counts, as it does there in colours.

mod bmp;
mod exif;
mod gif;
mod jpeg;
mod pixels;
mod png;
mod webp;

use crate::error::{Error, Result};
pub use pixels::Pixels;

/// 192 MiB of RGB.
pub const MOST_PIXELS: u64 = 64 << 20;
pub const MOST_SIDE: u64 = 65_535;

const EXPECTED: &str = "expected JPEG, PNG, WebP, GIF or BMP";

/// What others name by mistake, by their first bytes.
const OTHERS: &[(&[u8], &str)] = &[
    (b"%PDF", "a PDF"),
    (b"II*\0", "a TIFF"),
    (b"MM\0*", "a TIFF"),
    (b"8BPS", "a Photoshop file"),
    (b"\0\0\x01\0", "an icon (ICO)"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL"),
    (b"\xff\x0a", "a JPEG XL"),
    (b"\0\0\0\x0cjP  ", "a JPEG 2000"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip file"),
];

/// Of `ftyp` boxes.
const BRANDS: &[(&[u8], &str)] =
    &[(b"avif", "an AVIF"), (b"avis", "an AVIF"), (b"hei", "a HEIC"), (b"hev", "a HEIC"), (b"mif", "a HEIF")];

/// A size that a header names, before memory is taken for it.
fn check_size(format: &str, width: u64, height: u64) -> Result<()> {
    if width == 0 || height == 0 {
        return Err(damaged(format, format!("it has {width} x {height} pixels")));
    }
    if width > MOST_SIDE || height > MOST_SIDE {
        return Err(Error::limit(format!(
            "the {format} has {width} x {height} pixels: a side may have {MOST_SIDE} at most; make it smaller"
        )));
    }
    if width * height > MOST_PIXELS {
        return Err(Error::limit(format!(
            "the {format} has {width} x {height} pixels: at most {MOST_PIXELS} are decoded; make it smaller"
        )));
    }
    Ok(())
}

fn damaged(format: &str, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the {format} is damaged: {why}"))
}

fn cut_short(format: &str, n_bytes: usize) -> Error {
    Error::invalid(format!("the {format} is cut short: its {n_bytes} bytes end before its pixels do"))
}

fn unknown(bytes: &[u8]) -> Error {
    if bytes.is_empty() {
        return Error::invalid(format!("the image is empty: {EXPECTED}"));
    }
    let named =
        |list: &[(&[u8], &'static str)], bytes: &[u8]| list.iter().find(|(start, _)| bytes.starts_with(start)).map(|row| row.1);
    if let Some(name) = named(OTHERS, bytes) {
        return Error::unsupported(format!("the image is {name}: {EXPECTED}"));
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        let name = named(BRANDS, &bytes[8..]).unwrap_or("a film (MP4)");
        return Error::unsupported(format!("the image is {name}: {EXPECTED}"));
    }
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(512)]).to_lowercase();
    if start.contains("<svg") {
        return Error::unsupported(format!("the image is an SVG: {EXPECTED}"));
    }
    if start.trim_start().starts_with('<') {
        return Error::unsupported(format!("the image is a text in HTML or XML: {EXPECTED}"));
    }
    let first: Vec<String> = bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    Error::invalid(format!("the image is of no known format (it begins with {}): {EXPECTED}", first.join(" ")))
}

pub fn decode(bytes: &[u8]) -> Result<Pixels> {
    let (pixels, orientation) = if bytes.starts_with(b"\xff\xd8\xff") {
        jpeg::decode(bytes)?
    } else if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        png::decode(bytes)?
    } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        webp::decode(bytes)?
    } else if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        (gif::decode(bytes)?, 1)
    } else if bytes.starts_with(b"BM") {
        (bmp::decode(bytes)?, 1)
    } else {
        return Err(unknown(bytes));
    };
    Ok(pixels.turned(orientation))
}
