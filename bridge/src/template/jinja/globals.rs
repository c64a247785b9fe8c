//! Functions that every template has.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::arguments::Args;
use super::budget::{fault, now, Done, Fault, Kind};
use super::dict::Dict;
use super::eval::Interp;
use super::strftime;
use super::text::Str;
use super::value::{Function, Range, Value};

const NAMES: [&str; 7] = ["range", "dict", "namespace", "cycler", "joiner", "raise_exception", "strftime_now"];
/// jinja2's sandbox has the same limit.
const MAX_RANGE: usize = 100_000;
const MAX_DATE_FORMAT: usize = 4096;

pub fn add_to(variables: &mut HashMap<String, Value>) {
    for name in NAMES {
        variables.entry(name.to_string()).or_insert_with(|| Value::global(name));
    }
}

pub fn call(interp: &mut Interp<'_>, name: &str, arguments: Args) -> Done<Value> {
    match name {
        "range" => range(arguments),
        "dict" => pairs(arguments).and_then(Dict::of),
        "namespace" => {
            let pairs = pairs(arguments)?;
            Ok(interp.new_namespace(pairs))
        }
        "cycler" => {
            if arguments.positional.is_empty() {
                return fault("at least one item has to be provided");
            }
            Ok(Value::Function(Rc::new(Function::Cycler { items: arguments.positional, at: Cell::new(0) })))
        }
        "joiner" => {
            let separator = arguments.bind(name, ["sep"])?.text(0)?;
            let separator = separator.map_or_else(|| Str::own(", "), Ok)?;
            Ok(Value::Function(Rc::new(Function::Joiner { separator, is_used: Cell::new(false) })))
        }
        "raise_exception" => {
            let message = arguments.bind(name, ["message"])?.needed(0)?.to_text()?;
            Err(Box::new(Fault { kind: Kind::Raised, line: 0, message: message.as_str().to_string() }))
        }
        "strftime_now" => {
            let format = arguments.bind(name, ["format"])?.needed_text(0)?;
            if format.as_str().len() > MAX_DATE_FORMAT {
                return fault(format!("format of a date is longer than {MAX_DATE_FORMAT} bytes"));
            }
            Value::own(&strftime::strftime(format.as_str(), now()))
        }
        _ => fault(format!("'{name}' is not callable")),
    }
}

fn range(arguments: Args) -> Done<Value> {
    let n = arguments.positional.len();
    let bound = arguments.bind("range", ["", "", ""])?;
    let at = |i: usize, default: i64| -> Done<i64> {
        match i64::try_from(bound.int(i, default.into())?) {
            Ok(value) => Ok(value),
            Err(_) => fault("range() argument is out of range"),
        }
    };
    let range = match n {
        0 => return fault("range expected at least 1 argument, got 0"),
        1 => Range { start: 0, stop: at(0, 0)?, step: 1 },
        _ => Range { start: at(0, 0)?, stop: at(1, 0)?, step: at(2, 1)? },
    };
    if range.step == 0 {
        return fault("range() arg 3 must not be zero");
    }
    if range.len() > MAX_RANGE {
        return fault(format!("Range too big. The sandbox blocks ranges larger than MAX_RANGE={MAX_RANGE}"));
    }
    Ok(Value::Range(range))
}

/// `dict(...)`: of a dict or of pairs, and of names.
fn pairs(arguments: Args) -> Done<Vec<(Value, Value)>> {
    let mut pairs = Vec::new();
    if arguments.positional.len() > 1 {
        return fault("dict expected at most 1 argument");
    }
    match arguments.positional.first() {
        None => {}
        Some(Value::Dict(dict)) => pairs.extend_from_slice(dict.entries()),
        Some(other) => {
            other.check_defined()?;
            for pair in other.iterate()? {
                let mut pair = pair.iterate()?;
                let (Some(value), Some(key), 0) = (pair.pop(), pair.pop(), pair.len()) else {
                    return fault("dictionary update sequence needs pairs");
                };
                pairs.push((key, value));
            }
        }
    }
    for (name, value) in arguments.named {
        let key = Value::own(&name)?;
        pairs.retain(|p| p.0.as_str() != Some(&*name));
        pairs.push((key, value));
    }
    Ok(pairs)
}
