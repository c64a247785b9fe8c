//! Python's operators and subscripts.

use super::ast::Operator;
use super::budget::{fault, room, Done};
use super::format::percent;
use super::text::{Builder, Str};
use super::value::{Range, Value};

const ITEM: usize = std::mem::size_of::<Value>();

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::FloorDivide => "//",
        Operator::Modulo => "%",
        Operator::Power => "**",
    }
}

fn unsupported<T>(operator: Operator, a: &Value, b: &Value) -> Done<T> {
    let (a, b) = (a.type_name(), b.type_name());
    fault(format!("unsupported operand type(s) for {}: '{a}' and '{b}'", symbol(operator)))
}

pub fn binary(operator: Operator, a: &Value, b: &Value) -> Done<Value> {
    a.check_defined()?;
    match (operator, a, b) {
        (Operator::Modulo, Value::Str(format), _) => return percent(format, b).map(Value::Str),
        _ => b.check_defined()?,
    }
    match (operator, a, b) {
        (Operator::Add, Value::Str(x), Value::Str(y)) => joined(x, y).map(Value::Str),
        (Operator::Add, Value::List(x), Value::List(y)) => chained(&x.items, &y.items).and_then(Value::list),
        (Operator::Add, Value::Tuple(x), Value::Tuple(y)) => chained(&x.items, &y.items).and_then(Value::tuple),
        (Operator::Multiply, sequence @ (Value::Str(_) | Value::List(_) | Value::Tuple(_)), n)
        | (Operator::Multiply, n, sequence @ (Value::Str(_) | Value::List(_) | Value::Tuple(_))) => match n.as_int() {
            Some(n) => repeated(sequence, n),
            None => fault(format!("can't multiply sequence by non-int of type '{}'", n.type_name())),
        },
        _ => match (a.as_int(), b.as_int(), a.as_f64(), b.as_f64()) {
            (Some(x), Some(y), ..) if operator != Operator::Divide => integers(operator, x, y),
            (_, _, Some(x), Some(y)) => floats(operator, x, y).map(Value::Float),
            _ => unsupported(operator, a, b),
        },
    }
}

fn chained(a: &[Value], b: &[Value]) -> Done<Vec<Value>> {
    room((a.len() + b.len()) * ITEM)?;
    Ok([a, b].concat())
}

/// Markup escapes what is joined to it.
fn joined(a: &Str, b: &Str) -> Done<Str> {
    let mut out = Builder::default();
    out.is_safe = a.is_safe() || b.is_safe();
    for part in [a, b] {
        if out.is_safe && !part.is_safe() {
            out.push(&escaped(part)?)?;
        } else {
            out.push(part)?;
        }
    }
    out.finish()
}

/// `markupsafe.escape`
pub fn escaped(text: &Str) -> Done<Str> {
    if text.is_safe() {
        return Ok(text.clone());
    }
    let escaped = text.mapped(|t| {
        let t = t.replace('&', "&amp;").replace('>', "&gt;").replace('<', "&lt;");
        t.replace('\'', "&#39;").replace('"', "&#34;")
    })?;
    escaped.with_safety(true)
}

fn repeated(sequence: &Value, n: i128) -> Done<Value> {
    let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
    match sequence {
        Value::Str(text) => {
            let mut out = Builder::like(text);
            out.repeat(text, n)?;
            out.finish().map(Value::Str)
        }
        Value::List(items) | Value::Tuple(items) => {
            let n = if items.items.is_empty() { 0 } else { n };
            room(items.items.len().saturating_mul(n).saturating_mul(ITEM))?;
            let all = (0..n).flat_map(|_| items.items.iter().cloned()).collect();
            if matches!(sequence, Value::List(_)) {
                Value::list(all)
            } else {
                Value::tuple(all)
            }
        }
        _ => unsupported(Operator::Multiply, sequence, &Value::None),
    }
}

fn integers(operator: Operator, a: i128, b: i128) -> Done<Value> {
    if b == 0 && matches!(operator, Operator::FloorDivide | Operator::Modulo) {
        return fault("integer division or modulo by zero");
    }
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::FloorDivide => a.checked_div(b).map(|q| q - i128::from(a % b != 0 && (a < 0) != (b < 0))),
        Operator::Modulo => a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r }),
        Operator::Power if b < 0 => return floats(operator, a as f64, b as f64).map(Value::Float),
        Operator::Power => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        Operator::Divide => None,
    };
    match result {
        Some(value) => Ok(Value::Int(value)),
        None => fault(format!("{a} {} {b} is out of range", symbol(operator))),
    }
}

fn floats(operator: Operator, a: f64, b: f64) -> Done<f64> {
    if b == 0.0 && matches!(operator, Operator::Divide | Operator::FloorDivide | Operator::Modulo) {
        return fault("division by zero");
    }
    let remainder = || {
        let r = a % b;
        match r {
            0.0 => 0.0f64.copysign(b),
            r if (r < 0.0) != (b < 0.0) => r + b,
            r => r,
        }
    };
    Ok(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::FloorDivide => ((a - remainder()) / b).round(),
        Operator::Modulo => remainder(),
        Operator::Power if a == 0.0 && b < 0.0 => return fault("0.0 cannot be raised to a negative power"),
        Operator::Power if a < 0.0 && b.fract() != 0.0 => return fault("the result would be a complex number"),
        Operator::Power => a.powf(b),
    })
}

pub fn negative(value: &Value) -> Done<Value> {
    value.check_defined()?;
    match (value, value.as_int()) {
        (Value::Float(f), _) => Ok(Value::Float(-f)),
        (_, Some(i)) => Ok(Value::Int(i.saturating_neg())),
        _ => fault(format!("bad operand type for unary -: '{}'", value.type_name())),
    }
}

pub fn positive(value: &Value) -> Done<Value> {
    value.check_defined()?;
    match (value, value.as_int()) {
        (Value::Float(f), _) => Ok(Value::Float(*f)),
        (_, Some(i)) => Ok(Value::Int(i)),
        _ => fault(format!("bad operand type for unary +: '{}'", value.type_name())),
    }
}

/// An index from the front or, negative, from the back.
pub fn position(index: i128, length: usize) -> Option<usize> {
    let index = if index < 0 { index + length as i128 } else { index };
    usize::try_from(index).ok().filter(|i| *i < length)
}

fn bound(value: &Value) -> Done<Option<i128>> {
    match (value, value.as_int()) {
        (Value::None, _) => Ok(None),
        (_, Some(i)) => Ok(Some(i)),
        _ => {
            value.check_defined()?;
            fault("slice indices must be integers or None")
        }
    }
}

/// The indices that `sequence[start:stop:step]` takes.
fn slice_indices(length: usize, bounds: &[Value; 3]) -> Done<Vec<usize>> {
    let step = bound(&bounds[2])?.unwrap_or(1);
    if step == 0 {
        return fault("slice step cannot be zero");
    }
    let n = length as i128;
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let clamp = |value: Option<i128>, default: i128| match value {
        None => default,
        Some(i) => (if i < 0 { i + n } else { i }).clamp(low, high),
    };
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let start = clamp(bound(&bounds[0])?, first);
    let stop = clamp(bound(&bounds[1])?, last);
    room(length * std::mem::size_of::<usize>())?;
    let mut indices = Vec::new();
    let mut at = start;
    while if step > 0 { at < stop } else { at > stop } {
        indices.push(at as usize);
        at = at.saturating_add(step);
    }
    Ok(indices)
}

pub fn slice(value: &Value, bounds: &[Value; 3]) -> Done<Value> {
    value.check_defined()?;
    let length = value.len().unwrap_or(0);
    super::budget::spend(1 + length as u64 / 16)?;
    let pick = |items: &[Value]| -> Done<Vec<Value>> {
        Ok(slice_indices(length, bounds)?.into_iter().map(|i| items[i].clone()).collect())
    };
    match value {
        Value::Str(text) => slice_text(text, length, bounds).map(Value::Str),
        Value::List(items) => Value::list(pick(&items.items)?),
        Value::Tuple(items) => Value::tuple(pick(&items.items)?),
        Value::Range(range) => {
            let indices = slice_indices(length, bounds)?;
            let step = bound(&bounds[2])?.unwrap_or(1) as i64 * range.step;
            let start = indices.first().map_or(range.start, |i| range.start + *i as i64 * range.step);
            Ok(Value::Range(Range { start, stop: start + indices.len() as i64 * step, step }))
        }
        other => fault(format!("'{}' object cannot be sliced", other.type_name())),
    }
}

fn slice_text(text: &Str, length: usize, bounds: &[Value; 3]) -> Done<Str> {
    let indices = slice_indices(length, bounds)?;
    let s = text.as_str();
    let mut starts: Vec<usize> = s.char_indices().map(|(at, _)| at).collect();
    starts.push(s.len());
    let (Some(first), Some(last)) = (indices.first(), indices.last()) else { return text.slice(0, 0) };
    if indices.len() == last.wrapping_sub(*first).wrapping_add(1) {
        return text.slice(starts[*first], starts[last + 1]);
    }
    let mut out = Builder::like(text);
    for i in indices {
        out.push_range(text, starts[i], starts[i + 1])?;
    }
    out.finish()
}
