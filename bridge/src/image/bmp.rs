//! BMP as Windows and OS/2 write it: palettes of 1, 4 and 8 bits, colours of 16, 24 and 32, masks, run lengths. A fourth byte
//! is no transparency here.

use super::{check_size, cut_short, damaged, Pixels};
use crate::error::{Error, Result};

const FORMAT: &str = "BMP";
const FILE_HEADER: usize = 14;

const RAW: u32 = 0;
const RLE8: u32 = 1;
const RLE4: u32 = 2;
const MASKS: u32 = 3;

/// Little-endian numbers at a place; what lies behind the end is an error.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&self, at: usize, n_bytes: usize) -> Result<u32> {
        let bytes = self.0.get(at..at + n_bytes).ok_or_else(|| cut_short(FORMAT, self.0.len()))?;
        Ok(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }

    fn word(&self, at: usize) -> Result<u32> {
        self.number(at, 2)
    }

    fn long(&self, at: usize) -> Result<u32> {
        self.number(at, 4)
    }
}

struct Header {
    width: u32,
    height: u32,
    is_top_down: bool,
    bits: u32,
    compression: u32,
    /// Red, green, blue: of 16 and 32 bits.
    masks: [u32; 3],
    palette_at: usize,
    n_colours: usize,
    colour_bytes: usize,
    pixels_at: usize,
}

impl Header {
    fn read(bytes: &Bytes) -> Result<Header> {
        let size = bytes.long(FILE_HEADER)? as usize;
        let pixels_at = bytes.long(10)? as usize;
        let at = FILE_HEADER + 4;
        let palette_at = FILE_HEADER + size;
        if size == 12 {
            let (width, height, bits) = (bytes.word(at)?, bytes.word(at + 2)?, bytes.word(at + 6)?);
            let header = Header {
                width,
                height,
                is_top_down: false,
                bits,
                compression: RAW,
                masks: [0; 3],
                palette_at,
                n_colours: 0,
                colour_bytes: 3,
                pixels_at,
            };
            return header.completed(bytes);
        }
        if !matches!(size, 40 | 52 | 56 | 64 | 108 | 124) {
            return Err(Error::unsupported(format!(
                "the BMP has a header of {size} bytes: expected 12, 40, 52, 56, 64, 108 or 124"
            )));
        }
        let height = bytes.long(at + 4)?;
        let is_top_down = height >> 24 == 0xff;
        let header = Header {
            width: bytes.long(at)?,
            height: if is_top_down { height.wrapping_neg() } else { height },
            is_top_down,
            bits: bytes.word(at + 10)?,
            compression: bytes.long(at + 12)?,
            masks: [0; 3],
            palette_at,
            n_colours: bytes.long(at + 28)? as usize,
            colour_bytes: 4,
            pixels_at,
        };
        header.completed(bytes)
    }

    fn completed(mut self, bytes: &Bytes) -> Result<Header> {
        check_size(FORMAT, self.width.into(), self.height.into())?;
        let (bits, compression) = (self.bits, self.compression);
        let is_known = match compression {
            RAW => matches!(bits, 1 | 4 | 8 | 16 | 24 | 32),
            RLE8 => bits == 8,
            RLE4 => bits == 4,
            MASKS => matches!(bits, 16 | 32),
            _ => false,
        };
        if !is_known {
            return Err(Error::unsupported(format!("the BMP has {bits} bits in compression {compression}: expected 1, 4, 8, 16, 24 or 32 bits, or run lengths; convert it")));
        }
        if self.n_colours == 0 || self.n_colours > 256 {
            self.n_colours = 256.min(1 << bits.min(8));
        }
        self.masks = if bits == 16 { [0x7c00, 0x3e0, 0x1f] } else { [0xff_0000, 0xff00, 0xff] };
        if compression == MASKS {
            // Behind the 40 bytes of the oldest header, or inside a longer one at the same place.
            let at = FILE_HEADER + 40;
            self.masks = [bytes.long(at)?, bytes.long(at + 4)?, bytes.long(at + 8)?];
            if self.masks == [0; 3] && bits == 32 {
                self.masks = [0xff_0000, 0xff00, 0xff];
            }
        }
        Ok(self)
    }

    fn palette(&self, bytes: &Bytes) -> Result<Vec<[u8; 3]>> {
        let mut colours: Vec<[u8; 3]> = (0..=255).map(|i| [i; 3]).collect();
        let named = bytes.0.get(self.palette_at..).unwrap_or_default();
        for (colour, from) in colours.iter_mut().zip(named.chunks_exact(self.colour_bytes)).take(self.n_colours) {
            *colour = [from[2], from[1], from[0]];
        }
        Ok(colours)
    }
}

/// A field of a word, stretched to 0 to 255.
fn field(word: u32, mask: u32) -> u8 {
    if mask == 0 {
        return 0;
    }
    let most = u64::from(mask >> mask.trailing_zeros());
    let value = u64::from((word & mask) >> mask.trailing_zeros());
    (value * 255 / most).min(255) as u8
}

fn write_row(header: &Header, palette: &[[u8; 3]], row: &[u8], to: &mut [u8]) {
    let bits = header.bits as usize;
    for (x, pixel) in to.chunks_exact_mut(3).enumerate() {
        match bits {
            24 => pixel.copy_from_slice(&[row[3 * x + 2], row[3 * x + 1], row[3 * x]]),
            16 | 32 => {
                let n = bits / 8;
                let word = row[n * x..n * (x + 1)].iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
                for (channel, mask) in pixel.iter_mut().zip(header.masks) {
                    *channel = field(word, mask);
                }
            }
            _ => {
                let most = (1u16 << bits) as u8;
                let index = row[x * bits / 8] >> (8 - bits - x * bits % 8) & most.wrapping_sub(1);
                pixel.copy_from_slice(&palette[usize::from(index)]);
            }
        }
    }
}

/// Indices of all pixels, in the order of the file; what the runs leave out is 0.
fn unrolled(header: &Header, mut runs: &[u8]) -> Vec<u8> {
    let width = header.width as usize;
    let most = width * header.height as usize;
    let mut indices = vec![0; most];
    let (mut x, mut line) = (0, 0);
    let of_four = |byte: u8, i: usize| if i.is_multiple_of(2) { byte >> 4 } else { byte & 15 };
    while let [first, second, rest @ ..] = runs {
        runs = rest;
        let n = usize::from(*first);
        match (*first, *second) {
            (0, 0) => (x, line) = (0, line + 1),
            (0, 1) => break,
            (0, 2) => {
                let [right, up, rest @ ..] = runs else { break };
                (x, line) = (x + usize::from(*right), line + usize::from(*up));
                runs = rest;
            }
            (0, n) => {
                let n = usize::from(n);
                let n_bytes = if header.compression == RLE4 { n.div_ceil(2) } else { n };
                let Some(stored) = runs.get(..n_bytes) else { break };
                for i in 0..n {
                    let index = if header.compression == RLE4 { of_four(stored[i / 2], i) } else { stored[i] };
                    put(&mut indices, width, (x + i, line), index);
                }
                x += n;
                runs = runs.get(n_bytes + n_bytes % 2..).unwrap_or_default();
            }
            (_, byte) => {
                for i in 0..n {
                    put(&mut indices, width, (x + i, line), if header.compression == RLE4 { of_four(byte, i) } else { byte });
                }
                x += n;
            }
        }
    }
    indices
}

fn put(indices: &mut [u8], width: usize, (x, line): (usize, usize), index: u8) {
    if x < width {
        if let Some(at) = indices.get_mut(line * width + x) {
            *at = index;
        }
    }
}

pub fn decode(file: &[u8]) -> Result<Pixels> {
    let bytes = Bytes(file);
    let header = Header::read(&bytes)?;
    let palette = header.palette(&bytes)?;
    let (width, height) = (header.width as usize, header.height as usize);
    let stored = file.get(header.pixels_at..).ok_or_else(|| damaged(FORMAT, "its pixels lie behind its end"))?;
    let mut pixels;
    if matches!(header.compression, RLE8 | RLE4) {
        let indices = unrolled(&header, stored);
        pixels = Pixels::new(header.width, header.height);
        for (pixel, index) in pixels.rgb.chunks_exact_mut(3).zip(indices) {
            pixel.copy_from_slice(&palette[usize::from(index)]);
        }
    } else {
        let n_bytes = (width * header.bits as usize).div_ceil(32) * 4;
        if stored.len() / n_bytes < height && stored.len() < n_bytes * (height - 1) + (width * header.bits as usize).div_ceil(8)
        {
            return Err(cut_short(FORMAT, file.len()));
        }
        pixels = Pixels::new(header.width, header.height);
        for (y, row) in stored.chunks(n_bytes).take(height).enumerate() {
            write_row(&header, &palette, row, pixels.row_mut(y));
        }
    }
    Ok(if header.is_top_down { pixels } else { pixels.turned(4) })
}
