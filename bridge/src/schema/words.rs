//! The words that all files of this folder share: where schemas stand in schemas and how a place is named, values as they
//! are read (with the place in every complaint), and schemas as they are written.

use serde_json::{json, Map, Value};

use crate::error::{clip, Error, Result};

const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];
/// Positions of an array that are told apart.
pub const MAX_POSITIONS: u64 = 8;

/// How a keyword's value holds schemas.
pub enum Holds {
    One,
    Many,  // an array of schemas
    Named, // an object of schemas
    OneOrMany,
}

pub fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "additionalProperties"
        | "additionalItems"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::Many,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Holds::Named,
        "items" => Holds::OneOrMany,
        _ => return None,
    })
}

pub fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

pub fn place(pointer: &str) -> &str {
    if pointer.is_empty() {
        "(root)"
    } else {
        pointer
    }
}

/// The schemas directly below one, with their pointers; what holds none is passed over.
pub fn parts<'a>(map: &'a Map<String, Value>, pointer: &str) -> Vec<(&'a Value, String)> {
    let mut found = Vec::new();
    for (key, inner) in map {
        let at = child(pointer, key);
        match (holds(key), inner) {
            (Some(Holds::Named), Value::Object(named)) => {
                found.extend(named.iter().map(|(name, schema)| (schema, child(&at, name))));
            }
            (Some(Holds::Many | Holds::OneOrMany), Value::Array(items)) => {
                found.extend(items.iter().enumerate().map(|(i, schema)| (schema, child(&at, &i.to_string()))));
            }
            (Some(Holds::One | Holds::OneOrMany), schema) => found.push((schema, at)),
            _ => {}
        }
    }
    found
}

pub fn shown(value: &Value) -> String {
    clip(&value.to_string(), 60)
}

/// The pointer of a key `x-guidance` (options of the compiler below, not the client's to set), if there is one.
pub fn find_guidance(root: &Value) -> Option<String> {
    let mut todo = vec![(root, String::new())];
    while let Some((value, pointer)) = todo.pop() {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    let at = child(&pointer, key);
                    if key == "x-guidance" {
                        return Some(at);
                    }
                    todo.push((inner, at));
                }
            }
            Value::Array(items) => {
                todo.extend(items.iter().enumerate().map(|(i, child)| (child, format!("{pointer}/{i}"))));
            }
            _ => {}
        }
    }
    None
}

pub fn refused(at: &str, why: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("schema at {at}: {why}"))
}

/// The keyword at `at` stands where the schema cannot be written without it.
pub fn cannot(at: &str) -> Error {
    refused(at, "this keyword can't be enforced here, and is not ignored")
}

pub fn all(parts: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = parts.into_iter().filter(|p| !is_true(p)).collect();
    match kept.len() {
        _ if kept.contains(&Value::Bool(false)) => Value::Bool(false),
        0 => Value::Bool(true),
        1 => kept.remove(0),
        _ => json!({"allOf": kept}),
    }
}

pub fn any(options: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = options.into_iter().filter(|o| *o != Value::Bool(false)).collect();
    match kept.len() {
        _ if kept.iter().any(is_true) => Value::Bool(true),
        0 => Value::Bool(false),
        1 => kept.remove(0),
        _ => json!({"anyOf": kept}),
    }
}

pub fn is_true(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

pub fn list<'v>(value: &'v Value, at: &str) -> Result<&'v Vec<Value>> {
    value.as_array().ok_or_else(|| Error::invalid(format!("schema at {at}: must be an array, is {}", shown(value))))
}

pub fn named<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>> {
    value.as_object().ok_or_else(|| Error::invalid(format!("schema at {at}: must be an object, is {}", shown(value))))
}

/// A count; 2.0 is one too.
pub fn count(value: &Value, at: &str) -> Result<u64> {
    let whole = value.as_f64().filter(|x| *x >= 0.0 && x.fract() == 0.0 && *x <= f64::from(u32::MAX)).map(|x| x as u64);
    let number = value.as_u64().or(whole);
    number.ok_or_else(|| Error::invalid(format!("schema at {at}: must be a non-negative integer, is {}", shown(value))))
}

/// As JSON Schema has it: 1 equals 1.0.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => a == b,
    }
}

/// The types that are not in `names`. "No integer" is no number at all here.
pub fn other_types(names: &[&str]) -> Vec<&'static str> {
    let is_listed = |t: &str| names.contains(&t) || (t == "number" && names.contains(&"integer"));
    TYPES.into_iter().filter(|t| !is_listed(t)).collect()
}

pub fn of_types(types: &[&str]) -> Value {
    match types {
        [] => Value::Bool(false),
        [one] => json!({"type": one}),
        _ => json!({"type": types}),
    }
}

pub fn absent(name: &str) -> Value {
    json!({"properties": {name: false}})
}

/// An array whose item at `position` is one of `item`.
pub fn with_item(position: usize, item: Value) -> Value {
    let mut items = vec![Value::Bool(true); position];
    items.push(item);
    json!({"type": "array", "minItems": position + 1, "prefixItems": items})
}

pub fn with_property(name: &str, value: Value) -> Value {
    json!({"type": "object", "required": [name], "properties": {name: value}})
}
