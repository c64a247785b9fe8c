//! PNG, row by row, so that no image of 16 bits and transparency is in memory as a whole. Of an animation the image that
//! viewers without animation show.

use std::io::{Cursor, ErrorKind};

use png::{BitDepth, ColorType, DecodingError, Transformations};

use super::{check_size, cut_short, damaged, exif, Pixels};
use crate::error::{Error, Result};

const FORMAT: &str = "PNG";
/// Of chunks beside the pixels.
const CHUNK_BYTES: usize = 64 << 20;

/// How samples of a row become RGB.
struct RowFormat {
    colour: ColorType,
    depth: BitDepth,
    /// Of 256 colours; those that the file does not name are grey.
    palette: Vec<[u8; 3]>,
}

impl RowFormat {
    fn of(info: &png::Info) -> Result<RowFormat> {
        let mut palette: Vec<[u8; 3]> = (0..=255).map(|i| [i; 3]).collect();
        match &info.palette {
            Some(named) => named.chunks_exact(3).zip(&mut palette).for_each(|(from, to)| to.copy_from_slice(from)),
            None if info.color_type == ColorType::Indexed => return Err(damaged(FORMAT, "it has no palette")),
            None => {}
        }
        Ok(RowFormat { colour: info.color_type, depth: info.bit_depth, palette })
    }

    /// Samples of less than a byte, as bytes.
    fn unpack(&self, row: &[u8], n_samples: usize) -> Vec<u8> {
        let bits = self.depth as usize;
        let most = (1u16 << bits) as u8 - 1;
        (0..n_samples).map(|i| row[i * bits / 8] >> (8 - bits - i * bits % 8) & most).collect()
    }

    fn write(&self, row: &[u8], to: &mut [u8]) {
        let n = to.len() / 3;
        let is_small = matches!(self.depth, BitDepth::One | BitDepth::Two | BitDepth::Four);
        let unpacked = if is_small { self.unpack(row, n) } else { Vec::new() };
        let bytes = if is_small { unpacked.as_slice() } else { row };
        let (step, n_channels) = (if self.depth == BitDepth::Sixteen { 2 } else { 1 }, self.colour.samples());
        let factor = match self.depth {
            BitDepth::One => 255,
            BitDepth::Two => 85,
            BitDepth::Four => 17,
            _ => 1,
        };
        for (pixel, from) in to.chunks_exact_mut(3).zip(bytes.chunks_exact(step * n_channels)) {
            match self.colour {
                ColorType::Rgb | ColorType::Rgba => pixel.copy_from_slice(&[from[0], from[step], from[2 * step]]),
                ColorType::Indexed => pixel.copy_from_slice(&self.palette[usize::from(from[0])]),
                ColorType::Grayscale | ColorType::GrayscaleAlpha => pixel.fill(from[0] * factor),
            }
        }
    }
}

fn fault(error: DecodingError, n_bytes: usize) -> Error {
    match error {
        DecodingError::IoError(e) if e.kind() == ErrorKind::UnexpectedEof => cut_short(FORMAT, n_bytes),
        DecodingError::LimitsExceeded => Error::limit("the PNG asks for too much memory; write it without extra chunks"),
        other => damaged(FORMAT, other),
    }
}

/// Of the chunk eXIf, which may stand behind the pixels.
fn orientation(bytes: &[u8]) -> u16 {
    let mut rest = &bytes[8..];
    while let Some(head) = rest.get(..8) {
        let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(data) = rest.get(8..size.saturating_add(8)) else { break };
        if &head[4..] == b"eXIf" {
            return exif::orientation(data);
        }
        rest = rest.get(size + 12..).unwrap_or_default();
    }
    1
}

/// Width and height, where the file is long enough to have them: the first chunk's.
fn size_of(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    Some((number(16)?, number(20)?))
}

pub fn decode(bytes: &[u8]) -> Result<(Pixels, u16)> {
    let n_bytes = bytes.len();
    let (width, height) = size_of(bytes).ok_or_else(|| cut_short(FORMAT, n_bytes))?;
    check_size(FORMAT, width.into(), height.into())?;
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: CHUNK_BYTES });
    decoder.set_transformations(Transformations::IDENTITY);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(|e| fault(e, n_bytes))?;
    let (width, height) = reader.info().size();
    check_size(FORMAT, width.into(), height.into())?;
    let format = RowFormat::of(reader.info())?;
    let mut pixels = Pixels::new(width, height);
    let mut y = 0;
    let mut partial = vec![0; (width as usize + 8) * 3]; // a row may end within a byte
    while let Some(row) = reader.next_interlaced_row().map_err(|e| fault(e, n_bytes))? {
        match row.interlace() {
            png::InterlaceInfo::Null(_) => {
                if y == height as usize {
                    break;
                }
                format.write(row.data(), pixels.row_mut(y));
                y += 1;
            }
            png::InterlaceInfo::Adam7(pass) => {
                let part = &mut partial[..row.data().len() * 8 / format_bits(&format).max(1) * 3];
                format.write(row.data(), part);
                png::expand_interlaced_row(&mut pixels.rgb, width as usize * 3, part, pass, 24);
            }
        }
    }
    Ok((pixels, orientation(bytes)))
}

/// Of a pixel.
fn format_bits(format: &RowFormat) -> usize {
    format.depth as usize * format.colour.samples()
}
