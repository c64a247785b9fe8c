//! Checks of a schema's text, before and beside the JSON parser: depth, and keys written twice. Linear in its length, and
//! nothing here recurses.

use std::collections::HashSet;

use crate::error::{clip, Error, Result};

pub const MAX_DEPTH: usize = 64;

/// Depth of JSON text, by its brackets outside of strings. Whether it is JSON at all is the parser's matter.
pub fn check_depth(text: &str, limit: usize, what: &str) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, b) in text.bytes().enumerate() {
        if in_string {
            in_string = escaped || b != b'"';
            escaped = !escaped && b == b'\\';
            continue;
        }
        match b {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
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
    let bytes = source.as_bytes();
    let mut open: Vec<Option<HashSet<String>>> = Vec::new(); // of each bracket: the keys so far, or an array
    let (mut at, mut is_key) = (0usize, false);
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {
                open.push(Some(HashSet::new()));
                is_key = true;
            }
            b'[' => {
                open.push(None);
                is_key = false;
            }
            b'}' | b']' => {
                open.pop();
                is_key = false;
            }
            b',' => is_key = matches!(open.last(), Some(Some(_))),
            b'"' => {
                let end = string_end(bytes, at);
                if is_key {
                    let key: String = serde_json::from_str(&source[at..end]).unwrap_or_default();
                    if let Some(Some(keys)) = open.last_mut() {
                        if let Some(twice) = keys.replace(key) {
                            let shown = clip(&twice, 60);
                            return Err(Error::invalid(format!("schema: the key {shown:?} is written twice (at byte {at})")));
                        }
                    }
                }
                is_key = false;
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Just behind the string that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}
