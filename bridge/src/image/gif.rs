//! The first frame of a GIF, on the screen that the file names. What the frame does not cover has the transparent colour, or
//! else the first one, as in Pillow.

use std::io::{Cursor, ErrorKind};
use std::num::NonZeroU64;

use gif::{ColorOutput, DecodeOptions, DecodingError, MemoryLimit};

use super::{check_size, cut_short, damaged, Pixels, MOST_PIXELS};
use crate::error::{Error, Result};

const FORMAT: &str = "GIF";

fn fault(error: DecodingError, n_bytes: usize) -> Error {
    match error {
        DecodingError::Io(e) if e.kind() == ErrorKind::UnexpectedEof => cut_short(FORMAT, n_bytes),
        DecodingError::UnexpectedEof => cut_short(FORMAT, n_bytes),
        other => damaged(FORMAT, other),
    }
}

pub fn decode(bytes: &[u8]) -> Result<Pixels> {
    let n_bytes = bytes.len();
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(NonZeroU64::new(MOST_PIXELS).map_or(MemoryLimit::Unlimited, MemoryLimit::Bytes));
    options.check_frame_consistency(false);
    let mut decoder = options.read_info(Cursor::new(bytes)).map_err(|e| fault(e, n_bytes))?;
    let screen = (decoder.width(), decoder.height());
    let frame = decoder.next_frame_info().map_err(|e| fault(e, n_bytes))?.ok_or_else(|| damaged(FORMAT, "it has no frame"))?;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (n_cols, n_rows) = (usize::from(frame.width), usize::from(frame.height));
    let transparent = frame.transparent.unwrap_or(0);
    let local = frame.palette.clone();
    let width = (left + n_cols).max(screen.0.into());
    let height = (top + n_rows).max(screen.1.into());
    check_size(FORMAT, width as u64, height as u64)?;
    let mut colours: Vec<[u8; 3]> = (0..=255).map(|i| [i; 3]).collect();
    let palette = local.as_deref().or(decoder.global_palette()).unwrap_or_default();
    palette.chunks_exact(3).zip(&mut colours).for_each(|(from, to)| to.copy_from_slice(from));
    let mut indices = vec![0; n_cols * n_rows];
    decoder.read_into_buffer(&mut indices).map_err(|e| fault(e, n_bytes))?;
    let mut pixels = Pixels::new(width as u32, height as u32);
    if (n_cols, n_rows) != (width, height) {
        pixels.rgb.chunks_exact_mut(3).for_each(|pixel| pixel.copy_from_slice(&colours[usize::from(transparent)]));
    }
    if n_cols == 0 {
        return Ok(pixels);
    }
    for (y, row) in indices.chunks_exact(n_cols).enumerate() {
        for (pixel, index) in pixels.row_mut(top + y)[3 * left..].chunks_exact_mut(3).zip(row) {
            pixel.copy_from_slice(&colours[usize::from(*index)]);
        }
    }
    Ok(pixels)
}
