//! `object.name` and `object[key]` as jinja2's sandbox looks them up: a method of the object first for the one, an item
//! first for the other.

use std::rc::Rc;

use super::budget::Done;
use super::operators::position;
use super::value::{Function, LoopState, Value};

const STR: [&str; 47] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];
const LIST: [&str; 3] = ["copy", "count", "index"];
const DICT: [&str; 6] = ["copy", "fromkeys", "get", "items", "keys", "values"];
const TUPLE: [&str; 2] = ["count", "index"];
const INT: [&str; 6] = ["as_integer_ratio", "bit_count", "bit_length", "conjugate", "from_bytes", "to_bytes"];
const FLOAT: [&str; 5] = ["as_integer_ratio", "conjugate", "fromhex", "hex", "is_integer"];
/// What changes a value: the sandbox that `transformers` uses has it undefined.
const LIST_CHANGES: [&str; 8] = ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];
const DICT_CHANGES: [&str; 5] = ["clear", "pop", "popitem", "setdefault", "update"];
const CYCLER: [&str; 2] = ["next", "reset"];

fn method_of(object: &Value, name: &str) -> Option<Value> {
    let names: &[&'static str] = match object {
        Value::Str(_) => &STR,
        Value::List(_) => &LIST,
        Value::Dict(_) => &DICT,
        Value::Tuple(_) | Value::Range(_) => &TUPLE,
        Value::Int(_) | Value::Bool(_) => &INT,
        Value::Float(_) => &FLOAT,
        Value::Loop(_) => &["cycle", "changed"],
        Value::Function(f) if matches!(**f, Function::Cycler { .. }) => &CYCLER,
        _ => &[],
    };
    let name = names.iter().find(|n| **n == name)?;
    Some(Value::Function(Rc::new(Function::Method { receiver: object.clone(), name })))
}

fn is_change(object: &Value, name: &str) -> bool {
    match object {
        Value::List(_) => LIST_CHANGES.contains(&name),
        Value::Dict(_) => DICT_CHANGES.contains(&name),
        _ => false,
    }
}

fn loop_attribute(state: &LoopState, name: &str) -> Option<Value> {
    let at = state.index0.get();
    let n = state.items.len();
    let int = |i: usize| Value::Int(i as i128);
    let neighbour = |i: usize, words: &str| state.items.get(i).cloned().unwrap_or_else(|| Value::undefined(words));
    Some(match name {
        "index" => int(at + 1),
        "index0" => int(at),
        "revindex" => int(n - at),
        "revindex0" => int(n - at - 1),
        "first" => Value::Bool(at == 0),
        "last" => Value::Bool(at + 1 == n),
        "length" => int(n),
        "depth" => int(state.depth0 + 1),
        "depth0" => int(state.depth0),
        "previtem" => neighbour(at.wrapping_sub(1), "there is no previous item"),
        "nextitem" => neighbour(at + 1, "there is no next item"),
        _ => return None,
    })
}

fn own_attribute(object: &Value, name: &str) -> Option<Value> {
    match object {
        Value::Loop(state) => loop_attribute(state, name),
        Value::Tuple(items) => items.names.iter().position(|n| *n == name).map(|i| items.items[i].clone()),
        Value::Namespace(space) => {
            let values = space.values.borrow();
            values.iter().find(|v| v.0.as_str() == Some(name)).map(|v| v.1.clone())
        }
        Value::Int(_) | Value::Bool(_) => match name {
            "real" | "numerator" => object.as_int().map(Value::Int),
            "imag" => Some(Value::Int(0)),
            "denominator" => Some(Value::Int(1)),
            _ => None,
        },
        Value::Float(f) => match name {
            "real" => Some(Value::Float(*f)),
            "imag" => Some(Value::Float(0.0)),
            _ => None,
        },
        Value::Range(range) => match name {
            "start" => Some(Value::Int(range.start.into())),
            "stop" => Some(Value::Int(range.stop.into())),
            "step" => Some(Value::Int(range.step.into())),
            _ => None,
        },
        Value::Function(function) => match (&**function, name) {
            (Function::Cycler { items, at }, "current") => items.get(at.get()).cloned(),
            (Function::Macro { definition, .. }, "caller") => Some(Value::Bool(definition.takes_caller)),
            (Function::Macro { definition, .. }, "catch_kwargs") => Some(Value::Bool(definition.takes_more_named)),
            (Function::Macro { definition, .. }, "catch_varargs") => Some(Value::Bool(definition.takes_more)),
            _ => None,
        },
        _ => None,
    }
}

fn missing(object: &Value, name: &str) -> Value {
    let type_name = object.type_name();
    if is_change(object, name) {
        return Value::undefined(&format!("access to attribute '{name}' of '{type_name}' object is unsafe."));
    }
    Value::undefined(&format!("'{type_name} object' has no attribute '{name}'"))
}

/// The filter `attr`: never an item.
pub fn attribute_alone(object: &Value, name: &str) -> Done<Value> {
    object.check_defined()?;
    let own = own_attribute(object, name).or_else(|| method_of(object, name));
    Ok(own.unwrap_or_else(|| missing(object, name)))
}

pub fn attribute(object: &Value, name: &str) -> Done<Value> {
    object.check_defined()?;
    if let Some(value) = own_attribute(object, name).or_else(|| method_of(object, name)) {
        return Ok(value);
    }
    if let Value::Dict(dict) = object {
        if !is_change(object, name) {
            if let Some(value) = dict.get_name(name) {
                return Ok(value.clone());
            }
        }
    }
    Ok(missing(object, name))
}

pub fn item(object: &Value, key: &Value) -> Done<Value> {
    object.check_defined()?;
    let found = match (object, key.as_int()) {
        (Value::Dict(dict), _) => dict.get(key).ok().flatten().cloned(),
        (Value::List(items) | Value::Tuple(items), Some(index)) => {
            position(index, items.items.len()).map(|i| items.items[i].clone())
        }
        (Value::Range(range), Some(index)) => position(index, range.len()).map(|i| range.at(i)),
        (Value::Str(text), Some(index)) => {
            let s = text.as_str();
            super::budget::spend(1 + s.len() as u64 / 64)?;
            let length = if index < 0 { s.chars().count() } else { s.len() };
            match position(index, length).and_then(|i| s.char_indices().nth(i)) {
                Some((at, c)) => Some(Value::Str(text.slice(at, at + c.len_utf8())?)),
                None => None,
            }
        }
        _ => None,
    };
    if let Some(value) = found {
        return Ok(value);
    }
    match key.as_str() {
        Some(name) => {
            let own = own_attribute(object, name).or_else(|| method_of(object, name));
            Ok(own.unwrap_or_else(|| missing(object, name)))
        }
        None => Ok(Value::undefined(&format!("'{} object' has no such element", object.type_name()))),
    }
}
