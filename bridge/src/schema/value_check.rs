//! What a schema's keywords say about numbers and names, checked with the place as a JSON pointer: wrong types, bounds
//! that leave nothing, keys written twice. The compiler below would say most of it without the place, and nothing of
//! the keys.

use std::fmt;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::schema::words::shown;

const NUMBERS: [&str; 5] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

/// No number beyond it is written where a bound asks for one.
const MOST_REACHED: f64 = 9223372036854775808.0;

fn wrong(pointer: &str, key: &str, message: impl fmt::Display) -> Error {
    Error::invalid(format!("schema at {pointer}/{key}: {message}"))
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
