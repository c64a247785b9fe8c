//! What a schema's keywords say about numbers and names, checked with the place as a JSON pointer: wrong types, bounds
//! that leave nothing, keys written twice. The compiler below would say most of it without the place, and nothing of
//! the keys.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::error::{clip, Error, Result};

const NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// No number beyond it is written where a bound asks for one.
const MOST_REACHED: f64 = 9223372036854775808.0;

fn wrong(pointer: &str, key: &str, message: impl fmt::Display) -> Error {
    Error::invalid(format!("schema at {pointer}/{key}: {message}"))
}

fn shown(value: &Value) -> String {
    clip(&value.to_string(), 60)
}

fn check_number(map: &Map<String, Value>, pointer: &str, key: &str) -> Result<()> {
    let Some(value) = map.get(key) else { return Ok(()) };
    let Some(number) = value.as_f64() else {
        // Draft 4 writes exclusive bounds as booleans; the compiler below refuses or reads them by itself.
        if value.is_boolean() && key.starts_with("exclusive") {
            return Ok(());
        }
        return Err(wrong(pointer, key, format!("must be a number, is {}", shown(value))));
    };
    let is_out_of_reach = match key {
        "minimum" | "exclusiveMinimum" => number > MOST_REACHED,
        "maximum" | "exclusiveMaximum" => number < -MOST_REACHED,
        _ => false,
    };
    if is_out_of_reach {
        return Err(Error::limit(format!("schema at {pointer}/{key}: {} is beyond the limit of 2^63", shown(value))));
    }
    if key == "multipleOf" && number <= 0.0 {
        return Err(wrong(pointer, key, format!("must be above 0, is {}", shown(value))));
    }
    Ok(())
}

fn check_order(map: &Map<String, Value>, pointer: &str, least: &str, most: &str) -> Result<()> {
    let (Some(low), Some(high)) = (map.get(least), map.get(most)) else { return Ok(()) };
    let (Some(low), Some(high)) = (low.as_f64(), high.as_f64()) else { return Ok(()) };
    let is_open = least.starts_with("exclusive") || most.starts_with("exclusive");
    if low > high || (is_open && low == high) {
        return Err(wrong(pointer, least, format!("{low} leaves nothing below {most}, {high}: no value satisfies both")));
    }
    Ok(())
}

fn check_required(map: &Map<String, Value>, pointer: &str) -> Result<()> {
    let Some(required) = map.get("required") else { return Ok(()) };
    // Draft 3 and OpenAPI's neighbours write a boolean beside a property's type; it means nothing in this draft.
    let Some(names) = required.as_array() else {
        return Err(wrong(pointer, "required", format!("must be an array of names, is {}", shown(required))));
    };
    match names.iter().find(|name| !name.is_string()) {
        Some(name) => Err(wrong(pointer, "required", format!("{} is not a name", shown(name)))),
        None => Ok(()),
    }
}

/// Keywords of one schema object.
pub fn check(map: &Map<String, Value>, pointer: &str) -> Result<()> {
    for key in NUMBERS {
        check_number(map, pointer, key)?;
    }
    for least in ["minimum", "exclusiveMinimum"] {
        for most in ["maximum", "exclusiveMaximum"] {
            check_order(map, pointer, least, most)?;
        }
    }
    for (least, most) in [("minItems", "maxItems"), ("minLength", "maxLength"), ("minProperties", "maxProperties")] {
        check_order(map, pointer, least, most)?;
    }
    check_required(map, pointer)
}

/// Refuses an object that names a key twice: readers differ in which of the two counts. REQUIRES: `source` is JSON.
pub fn unique_keys(source: &str) -> Result<()> {
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
