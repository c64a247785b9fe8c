//! The orientation that EXIF data names. Data that are none, or that are damaged, name none: they are no part of the picture.

const ORIENTATION: u32 = 0x0112;

struct Tiff<'a> {
    bytes: &'a [u8],
    is_big: bool,
}

impl Tiff<'_> {
    fn number(&self, at: usize, n_bytes: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(n_bytes)?)?;
        let add = |sum: u32, byte: &u8| sum << 8 | u32::from(*byte);
        Some(if self.is_big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    fn orientation(&self) -> Option<u32> {
        if self.number(2, 2)? != 42 {
            return None;
        }
        let directory = self.number(4, 4)? as usize;
        for i in 0..self.number(directory, 2)? as usize {
            let entry = directory.checked_add(2 + 12 * i)?;
            if self.number(entry, 2)? != ORIENTATION {
                continue;
            }
            let n_bytes = match self.number(entry + 2, 2)? {
                1 => 1,
                3 => 2,
                4 => 4,
                _ => return None,
            };
            return if self.number(entry + 4, 4)? == 1 { self.number(entry + 8, n_bytes) } else { None };
        }
        None
    }
}

/// 1 to 8. `bytes`: a TIFF header and what follows, perhaps behind `Exif\0\0`.
pub fn orientation(bytes: &[u8]) -> u16 {
    let bytes = bytes.strip_prefix(b"Exif\0\0").unwrap_or(bytes);
    let is_big = bytes.starts_with(b"MM");
    if !is_big && !bytes.starts_with(b"II") {
        return 1;
    }
    match (Tiff { bytes, is_big }).orientation() {
        Some(n @ 1..=8) => n as u16,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::orientation;

    fn little(kind: u8, value: u8) -> Vec<u8> {
        let mut bytes = b"II*\0\x08\0\0\0\x01\0\x12\x01".to_vec();
        bytes.extend([kind, 0, 1, 0, 0, 0, value, 0, 0, 0]);
        bytes
    }

    #[test]
    fn both_byte_orders_and_whatever_is_damaged() {
        assert_eq!(orientation(&little(3, 6)), 6);
        assert_eq!(orientation(&[b"Exif\0\0", little(3, 8).as_slice()].concat()), 8);
        assert_eq!(orientation(b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x05\0\0"), 5);
        assert_eq!(orientation(&little(3, 9)), 1);
        assert_eq!(orientation(&little(7, 6)), 1);
        for n in 0..little(3, 6).len() - 2 {
            assert_eq!(orientation(&little(3, 6)[..n]), 1, "{n} bytes");
        }
        assert_eq!(orientation(b"II*\0\xff\xff\xff\xff"), 1);
    }
}
