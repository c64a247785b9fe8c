//! Checks of a schema's text, before and beside the JSON parser: depth, and keys written twice. Linear in its length, and
//! nothing here recurses.

use std::collections::HashSet;

use crate::error::{clip, Error, Result};

pub const MAX_DEPTH: usize = 64;

/// The marks of a JSON text that stand outside of strings, and its strings whole. What is between them is passed over.
struct Marks<'a> {
    bytes: &'a [u8],
    at: usize,
}

enum Mark {
    Opens {
        is_object: bool,
    },
    Closes,
    Comma,
    /// With its quotes; ends where the text does if the last one is missing.
    String(std::ops::Range<usize>),
}

impl<'a> Marks<'a> {
    fn of(text: &'a str) -> Marks<'a> {
        Marks { bytes: text.as_bytes(), at: 0 }
    }

    /// Just behind the string that begins at `begin`.
    fn string_end(&self, begin: usize) -> usize {
        let mut end = begin + 1;
        while end < self.bytes.len() && self.bytes[end] != b'"' {
            end += if self.bytes[end] == b'\\' { 2 } else { 1 };
        }
        (end + 1).min(self.bytes.len())
    }
}

impl Iterator for Marks<'_> {
    /// With its place.
    type Item = (usize, Mark);

    fn next(&mut self) -> Option<Self::Item> {
        let is_mark = |b: &u8| matches!(b, b'{' | b'[' | b'}' | b']' | b',' | b'"');
        let at = self.at + self.bytes.get(self.at..)?.iter().position(is_mark)?;
        self.at = at + 1;
        let mark = match self.bytes[at] {
            b'{' => Mark::Opens { is_object: true },
            b'[' => Mark::Opens { is_object: false },
            b'}' | b']' => Mark::Closes,
            b',' => Mark::Comma,
            _ => {
                self.at = self.string_end(at);
                Mark::String(at..self.at)
            }
        };
        Some((at, mark))
    }
}

/// Depth of JSON text, by its brackets outside of strings. Whether it is JSON at all is the parser's matter.
pub fn check_depth(text: &str, limit: usize, what: &str) -> Result<()> {
    let mut depth = 0usize;
    for (at, mark) in Marks::of(text) {
        match mark {
            Mark::Opens { .. } => depth += 1,
            Mark::Closes => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return Err(Error::too_deep(what, limit, at));
        }
    }
    Ok(())
}

/// Refuses an object that names a key twice: readers differ in which of the two counts. REQUIRES: `source` is JSON.
pub fn check_keys(source: &str) -> Result<()> {
    let mut open: Vec<Option<HashSet<String>>> = Vec::new(); // of each bracket: the keys so far, or an array
    let mut is_key = false;
    for (at, mark) in Marks::of(source) {
        match mark {
            Mark::Opens { is_object } => {
                open.push(is_object.then(HashSet::new));
                is_key = is_object;
            }
            Mark::Closes => {
                open.pop();
                is_key = false;
            }
            Mark::Comma => is_key = matches!(open.last(), Some(Some(_))),
            Mark::String(place) => {
                if let (true, Some(Some(keys))) = (std::mem::take(&mut is_key), open.last_mut()) {
                    let key: String = serde_json::from_str(&source[place]).unwrap_or_default();
                    if let Some(twice) = keys.replace(key) {
                        let shown = clip(&twice, 60);
                        return Err(Error::invalid(format!("schema: the key {shown:?} is written twice (at byte {at})")));
                    }
                }
            }
        }
    }
    Ok(())
}
