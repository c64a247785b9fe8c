//! Comparisons, and jinja2's tests (`x is y`).

use std::cmp::Ordering;

use super::arguments::Args;
use super::ast::{Comparison, Operator};
use super::budget::{fault, Done};
use super::eval::Interp;
use super::operators::binary;
use super::value::Value;

pub fn compared(comparison: Comparison, a: &Value, b: &Value) -> Done<bool> {
    Ok(match comparison {
        Comparison::Equal => a.equals(b)?,
        Comparison::NotEqual => !a.equals(b)?,
        Comparison::In => b.contains(a)?,
        Comparison::NotIn => !b.contains(a)?,
        Comparison::Less => a.order(b, "<")? == Some(Ordering::Less),
        Comparison::Greater => a.order(b, ">")? == Some(Ordering::Greater),
        Comparison::LessEqual => matches!(a.order(b, "<=")?, Some(Ordering::Less | Ordering::Equal)),
        Comparison::GreaterEqual => matches!(a.order(b, ">=")?, Some(Ordering::Greater | Ordering::Equal)),
    })
}

pub const NAMES: [&str; 39] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "==" | "eq" | "equalto" => Comparison::Equal,
        "!=" | "ne" => Comparison::NotEqual,
        "<" | "lt" | "lessthan" => Comparison::Less,
        "<=" | "le" => Comparison::LessEqual,
        ">" | "gt" | "greaterthan" => Comparison::Greater,
        ">=" | "ge" => Comparison::GreaterEqual,
        "in" => Comparison::In,
        _ => return None,
    })
}

fn leaves(value: &Value, divisor: &Value, rest: i128) -> Done<bool> {
    binary(Operator::Modulo, value, divisor)?.equals(&Value::Int(rest))
}

fn about_itself(name: &str, value: &Value) -> Done<Option<bool>> {
    Ok(Some(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => value.is_none(),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => value.as_f64().is_some(),
        "string" => value.as_str().is_some(),
        "mapping" => matches!(value, Value::Dict(_)),
        "sequence" => value.len().is_some() && !matches!(value, Value::View(..) | Value::Loop(_)),
        "iterable" => value.is_iterable(),
        "callable" => matches!(value, Value::Function(_) | Value::Undefined(_) | Value::Loop(_)),
        "escaped" => matches!(value, Value::Str(s) if s.is_safe()),
        "odd" => leaves(value, &Value::Int(2), 1)?,
        "even" => leaves(value, &Value::Int(2), 0)?,
        "lower" => super::methods::is_lower(value.to_text()?.as_str()),
        "upper" => super::methods::is_upper(value.to_text()?.as_str()),
        _ => return Ok(None),
    }))
}

impl Interp<'_> {
    pub fn test(&mut self, name: &str, value: Value, arguments: Args) -> Done<bool> {
        if let Some(comparison) = comparison(name) {
            let other = arguments.bind(name, [""])?.needed(0)?;
            return compared(comparison, &value, &other);
        }
        if let Some(result) = about_itself(name, &value)? {
            arguments.bind::<0>(name, [])?;
            return Ok(result);
        }
        match name {
            "divisibleby" => leaves(&value, &arguments.bind(name, ["num"])?.needed(0)?, 0),
            "sameas" => Ok(value.is_same(&arguments.bind(name, ["other"])?.needed(0)?)),
            "filter" => Ok(value.as_str().is_some_and(|n| super::filters::NAMES.contains(&n))),
            "test" => Ok(value.as_str().is_some_and(|n| NAMES.contains(&n))),
            _ => fault(format!("No test named '{name}'")),
        }
    }
}
