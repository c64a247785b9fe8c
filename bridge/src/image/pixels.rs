//! RGB rows, and the eight ways in which a camera may have been held.

pub struct Pixels {
    pub width: u32,
    pub height: u32,
    /// 3 * width * height
    pub rgb: Vec<u8>,
}

const RGB: usize = 3;

impl Pixels {
    /// Black. The size was checked.
    pub fn new(width: u32, height: u32) -> Pixels {
        Pixels { width, height, rgb: vec![0; width as usize * height as usize * RGB] }
    }

    pub fn row_mut(&mut self, y: usize) -> &mut [u8] {
        let n = self.width as usize * RGB;
        &mut self.rgb[y * n..(y + 1) * n]
    }

    /// Keeps the first three of every four bytes.
    pub fn of_four(width: u32, height: u32, mut bytes: Vec<u8>) -> Pixels {
        let n = width as usize * height as usize;
        for i in 0..n {
            bytes.copy_within(4 * i..4 * i + RGB, RGB * i);
        }
        bytes.truncate(RGB * n);
        Pixels { width, height, rgb: bytes }
    }

    /// `orientation`: EXIF's, 1 to 8; others mean 1.
    pub fn turned(mut self, orientation: u16) -> Pixels {
        let (width, height) = (self.width as usize, self.height as usize);
        match orientation {
            2 => self.mirror(),
            3 => {
                self.mirror();
                self.flip();
            }
            4 => self.flip(),
            5 => return self.transposed(|x, y| (y, x)),
            6 => return self.transposed(|x, y| (y, height - 1 - x)),
            7 => return self.transposed(|x, y| (width - 1 - y, height - 1 - x)),
            8 => return self.transposed(|x, y| (width - 1 - y, x)),
            _ => {}
        }
        self
    }

    /// Left becomes right.
    fn mirror(&mut self) {
        for row in self.rgb.chunks_exact_mut(self.width as usize * RGB) {
            row.reverse();
            for pixel in row.chunks_exact_mut(RGB) {
                pixel.reverse();
            }
        }
    }

    /// Top becomes bottom.
    fn flip(&mut self) {
        let n = self.width as usize * RGB;
        let height = self.height as usize;
        for y in 0..height / 2 {
            let (upper, lower) = self.rgb.split_at_mut((height - 1 - y) * n);
            upper[y * n..(y + 1) * n].swap_with_slice(&mut lower[..n]);
        }
    }

    /// from: where the new pixel (x, y) comes from, as (x, y).
    fn transposed(self, from: impl Fn(usize, usize) -> (usize, usize)) -> Pixels {
        let mut turned = Pixels::new(self.height, self.width);
        let n = self.width as usize;
        for y in 0..n {
            for (x, pixel) in turned.row_mut(y).chunks_exact_mut(RGB).enumerate() {
                let (old_x, old_y) = from(x, y);
                let at = (old_y * n + old_x) * RGB;
                pixel.copy_from_slice(&self.rgb[at..at + RGB]);
            }
        }
        turned
    }
}
