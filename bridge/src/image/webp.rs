//! WebP: lossy, lossless, with transparency; of an animation the first frame.

use std::io::{Cursor, ErrorKind};

use image_webp::{DecodingError, WebPDecoder};

use super::{check_size, cut_short, damaged, exif, Pixels};
use crate::error::{Error, Result};

const FORMAT: &str = "WebP";
/// Of chunks beside the pixels.
const CHUNK_BYTES: usize = 64 << 20;

fn fault(error: DecodingError, bytes: &[u8]) -> Error {
    let named = bytes.get(4..8).map_or(0, |size| u32::from_le_bytes([size[0], size[1], size[2], size[3]]));
    match error {
        DecodingError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => cut_short(FORMAT, bytes.len()),
        _ if u64::from(named) + 8 > bytes.len() as u64 => cut_short(FORMAT, bytes.len()),
        DecodingError::MemoryLimitExceeded => Error::limit("the WebP asks for too much memory; write it without extra chunks"),
        other => damaged(FORMAT, other),
    }
}

pub fn decode(bytes: &[u8]) -> Result<(Pixels, u16)> {
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|e| fault(e, bytes))?;
    decoder.set_memory_limit(CHUNK_BYTES);
    let (width, height) = decoder.dimensions();
    check_size(FORMAT, width.into(), height.into())?;
    let orientation = match decoder.exif_metadata() {
        Ok(Some(data)) => exif::orientation(&data),
        _ => 1,
    };
    let n_channels = if decoder.has_alpha() { 4 } else { 3 };
    let mut buffer = vec![0; width as usize * height as usize * n_channels];
    decoder.read_image(&mut buffer).map_err(|e| fault(e, bytes))?;
    let pixels = if n_channels == 4 { Pixels::of_four(width, height, buffer) } else { Pixels { width, height, rgb: buffer } };
    Ok((pixels, orientation))
}
