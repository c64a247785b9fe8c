//! Values written as CPython writes them: `str()`, `repr()` and `json.dumps()`.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};
use std::fmt::Write;

/// Deeper values can only come from a template that nests its own lists.
const MAX_DEPTH: usize = 200;

pub struct JsonStyle {
    pub ensure_ascii: bool,
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
}

fn too_deep() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("value is nested deeper than {MAX_DEPTH}"))
}

fn as_f64(value: &Value) -> Option<f64> {
    (value.is_number() && !value.is_integer()).then(|| f64::try_from(value.clone()).ok())?
}

/// `str.isspace`: Unicode's white space and four control characters.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `repr(float)`: the shortest digits that read back; an exponent below 1e-4 and from 1e16 on.
pub fn float_repr(f: f64) -> String {
    if f.is_nan() {
        return "nan".into();
    }
    if f.is_infinite() {
        return if f < 0.0 { "-inf".into() } else { "inf".into() };
    }
    let scientific = format!("{f:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if f != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{f}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}

fn str_repr(out: &mut String, s: &str) {
    let quote = if s.contains('\'') && !s.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in s.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || (0x7f..=0xa0).contains(&(c as u32)) || c == '\u{ad}' => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// `repr(value)` for what a template can hold.
pub fn repr(out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::String => str_repr(out, value.as_str().unwrap_or_default()),
        ValueKind::Number => match as_f64(value) {
            Some(f) => out.push_str(&float_repr(f)),
            None => {
                let _ = write!(out, "{value}");
            }
        },
        ValueKind::Seq => {
            let (open, close) = if value.is_tuple() { ('(', ')') } else { ('[', ']') };
            out.push(open);
            let mut n = 0;
            for item in value.try_iter()?.checked() {
                if n > 0 {
                    out.push_str(", ");
                }
                repr(out, &item?, depth + 1)?;
                n += 1;
            }
            if n == 1 && open == '(' {
                out.push(',');
            }
            out.push(close);
        }
        ValueKind::Map => {
            out.push('{');
            for (i, key) in value.try_iter()?.checked().enumerate() {
                let key = key?;
                if i > 0 {
                    out.push_str(", ");
                }
                repr(out, &key, depth + 1)?;
                out.push_str(": ");
                repr(out, &value.get_item(&key)?, depth + 1)?;
            }
            out.push('}');
        }
        ValueKind::Undefined => out.push_str("Undefined"),
        _ => {
            let _ = write!(out, "{value}");
        }
    }
    Ok(())
}

/// `str(value)`; `None` means that the value's own text is already right.
pub fn to_str(value: &Value) -> Result<Option<String>, Error> {
    match value.kind() {
        ValueKind::Number if as_f64(value).is_none() => Ok(None),
        ValueKind::Seq | ValueKind::Map | ValueKind::Number => {
            let mut out = String::new();
            repr(&mut out, value, 0)?;
            Ok(Some(out))
        }
        _ => Ok(None),
    }
}

fn json_string(out: &mut String, s: &str, ensure_ascii: bool) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c if ensure_ascii && !(' '..='~').contains(&c) => {
                let mut units = [0u16; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn json_number(value: &Value) -> String {
    match as_f64(value) {
        Some(f) if f.is_nan() => "NaN".into(),
        Some(f) if f.is_infinite() => if f < 0.0 { "-Infinity" } else { "Infinity" }.into(),
        Some(f) => float_repr(f),
        None => value.to_string(),
    }
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Number => Ok(json_number(key)),
        kind => Err(Error::new(ErrorKind::InvalidOperation, format!("keys must be str, int, float, bool or None, not {kind}"))),
    }
}

fn newline(out: &mut String, style: &JsonStyle, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        (0..depth).for_each(|_| out.push_str(indent));
    }
}

/// `json.dumps(value, ...)`.
pub fn json(out: &mut String, value: &Value, style: &JsonStyle, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::String => json_string(out, value.as_str().unwrap_or_default(), style.ensure_ascii),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::None => out.push_str("null"),
        ValueKind::Number => out.push_str(&json_number(value)),
        ValueKind::Seq | ValueKind::Iterable => {
            let mut n = 0;
            out.push('[');
            for item in value.try_iter()?.checked() {
                if n > 0 {
                    out.push_str(&style.item_separator);
                }
                newline(out, style, depth + 1);
                json(out, &item?, style, depth + 1)?;
                n += 1;
            }
            if n > 0 {
                newline(out, style, depth);
            }
            out.push(']');
        }
        ValueKind::Map => json_object(out, value, style, depth)?,
        kind => {
            return Err(Error::new(ErrorKind::InvalidOperation, format!("a value of type {kind} is not JSON serializable")))
        }
    }
    Ok(())
}

fn json_object(out: &mut String, value: &Value, style: &JsonStyle, depth: usize) -> Result<(), Error> {
    let mut pairs = Vec::new();
    for key in value.try_iter()?.checked() {
        let key = key?;
        pairs.push((json_key(&key)?, value.get_item(&key)?));
    }
    if style.sort_keys {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
    }
    out.push('{');
    for (i, (key, item)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push_str(&style.item_separator);
        }
        newline(out, style, depth + 1);
        json_string(out, key, style.ensure_ascii);
        out.push_str(&style.key_separator);
        json(out, item, style, depth + 1)?;
    }
    if !pairs.is_empty() {
        newline(out, style, depth);
    }
    out.push('}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::float_repr;

    #[test]
    fn floats_are_written_as_cpython_writes_them() {
        for (f, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (5e-324, "5e-324"),
        ] {
            assert_eq!(float_repr(f), text);
        }
    }
}
