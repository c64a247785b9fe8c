//! JPEG by libjpeg-turbo, whose pixels others' are compared with: the models learned from them, and decoders of other
//! ancestry differ by some levels in a tenth of the pixels. Sizes are read here, before the library sees the file.

use std::ffi::{c_char, c_int, c_uchar, c_ulong, c_void, CStr};

use super::{check_size, cut_short, damaged, exif, Pixels};
use crate::error::{Error, Result};

const FORMAT: &str = "JPEG";

extern "C" {
    fn tjInitDecompress() -> *mut c_void;
    fn tjDecompress2(
        handle: *mut c_void,
        file: *const c_uchar,
        n_bytes: c_ulong,
        pixels: *mut c_uchar,
        width: c_int,
        pitch: c_int,
        height: c_int,
        pixel_format: c_int,
        flags: c_int,
    ) -> c_int;
    fn tjGetErrorStr2(handle: *mut c_void) -> *const c_char;
    fn tjDestroy(handle: *mut c_void) -> c_int;
}

const RGB: c_int = 0;
const CMYK: c_int = 11;
/// No more than 500 scans.
const LIMIT_SCANS: c_int = 32768;
/// How the library begins to say what it passes over: the pixels are there, and others show them, too. Its own code for a
/// warning stays when an error follows.
const WARNINGS: &[&str] =
    &["Corrupt JPEG data", "Unknown Adobe color", "Inconsistent progression", "Warning:", "Invalid SOS parameters"];
const END: &[u8] = b"\xff\xd9";

struct Header {
    width: u32,
    height: u32,
    n_components: u8,
    orientation: u16,
}

/// The segments up to the frame's. A file that libjpeg would read otherwise is one that it refuses, or whose pixels do not
/// fill what was checked: it is given the size as well.
fn header(bytes: &[u8]) -> Result<Header> {
    let early = || cut_short(FORMAT, bytes.len());
    let mut orientation = None;
    let mut at = 2;
    loop {
        while *bytes.get(at).ok_or_else(early)? != 0xff {
            at += 1;
        }
        while *bytes.get(at).ok_or_else(early)? == 0xff {
            at += 1;
        }
        let marker = bytes[at];
        at += 1;
        if matches!(marker, 0 | 0x01 | 0xd0..=0xd8) {
            continue;
        }
        if matches!(marker, 0xd9 | 0xda) {
            return Err(damaged(FORMAT, "it has no frame"));
        }
        let size = usize::from(u16::from_be_bytes([*bytes.get(at).ok_or_else(early)?, *bytes.get(at + 1).ok_or_else(early)?]));
        let segment = bytes.get(at + 2..at + size.max(2)).ok_or_else(early)?;
        if marker == 0xe1 && segment.starts_with(b"Exif\0\0") {
            orientation.get_or_insert_with(|| exif::orientation(segment));
        }
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            let [precision, h1, h0, w1, w0, n_components, ..] = *segment else {
                return Err(damaged(FORMAT, "its frame has no size"));
            };
            if precision != 8 {
                return Err(Error::unsupported(format!("the JPEG has samples of {precision} bits: expected 8; convert it")));
            }
            let (width, height) = (u32::from(u16::from_be_bytes([w1, w0])), u32::from(u16::from_be_bytes([h1, h0])));
            return Ok(Header { width, height, n_components, orientation: orientation.unwrap_or(1) });
        }
        at += size.max(2);
    }
}

struct Decoder(*mut c_void);

impl Decoder {
    fn new() -> Result<Decoder> {
        // SAFETY: no preconditions.
        let handle = unsafe { tjInitDecompress() };
        if handle.is_null() {
            return Err(Error::limit("the JPEG needs more memory than a helper has"));
        }
        Ok(Decoder(handle))
    }

    /// Of a call that did not go well. It shows the first warning, or the error, alone.
    fn fault(&self, bytes: &[u8]) -> Option<Error> {
        // SAFETY: the handle lives; the text is copied before the next call.
        let text = unsafe { CStr::from_ptr(tjGetErrorStr2(self.0)) }.to_string_lossy().into_owned();
        let lower = text.to_lowercase();
        if lower.contains("premature end") || !bytes.windows(END.len()).any(|pair| pair == END) {
            return Some(cut_short(FORMAT, bytes.len()));
        }
        if WARNINGS.iter().any(|start| text.starts_with(start)) {
            return None;
        }
        if lower.contains("insufficient memory") || lower.contains("scans") {
            return Some(Error::limit(format!("the JPEG asks for too much: {text}")));
        }
        Some(damaged(FORMAT, text))
    }

    /// n: bytes of a pixel of this format.
    fn pixels(&mut self, bytes: &[u8], header: &Header, pixel_format: c_int, n: usize) -> Result<Vec<u8>> {
        let mut pixels = vec![0; header.width as usize * header.height as usize * n];
        // SAFETY: the buffer holds `height` rows without gaps, and the library writes no other.
        let code = unsafe {
            tjDecompress2(
                self.0,
                bytes.as_ptr(),
                bytes.len() as c_ulong,
                pixels.as_mut_ptr(),
                header.width as c_int,
                0,
                header.height as c_int,
                pixel_format,
                LIMIT_SCANS,
            )
        };
        match if code == 0 { None } else { self.fault(bytes) } {
            None => Ok(pixels),
            Some(error) => Err(error),
        }
    }
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: the handle is not used again.
        unsafe { tjDestroy(self.0) };
    }
}

/// As Pillow does: the four are inverted, as Adobe writes them, and the product of two bytes is rounded.
fn cmyk_to_rgb(pixel: &mut [u8]) {
    let white = u32::from(pixel[3]);
    for value in &mut pixel[..3] {
        let product = (255 - u32::from(*value)) * white + 128;
        *value = white.saturating_sub(((product >> 8) + product) >> 8) as u8;
    }
}

pub fn decode(bytes: &[u8]) -> Result<(Pixels, u16)> {
    let header = header(bytes)?;
    check_size(FORMAT, header.width.into(), header.height.into())?;
    let (width, height) = (header.width, header.height);
    let mut decoder = Decoder::new()?;
    let pixels = match header.n_components {
        1 | 3 => Pixels { width, height, rgb: decoder.pixels(bytes, &header, RGB, 3)? },
        4 => {
            let mut cmyk = decoder.pixels(bytes, &header, CMYK, 4)?;
            cmyk.chunks_exact_mut(4).for_each(cmyk_to_rgb);
            Pixels::of_four(width, height, cmyk)
        }
        n => return Err(Error::unsupported(format!("the JPEG has {n} components: expected 1, 3 or 4; convert it"))),
    };
    Ok((pixels, header.orientation))
}
