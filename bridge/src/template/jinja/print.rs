//! `str()`, `repr()` and `json.dumps()`, with the writer of every character kept.

use super::budget::{fault, spend, Done};
use super::chars::is_printable;
use super::numbers::float_repr;
use super::text::{Builder, Str};
use super::value::{Function, Value, View};

impl Value {
    /// `str(value)`
    pub fn to_text(&self) -> Done<Str> {
        match self {
            Value::Str(s) => Ok(s.clone()),
            other => {
                let mut out = Builder::default();
                other.write(&mut out)?;
                out.finish()
            }
        }
    }

    /// `str(value)`, appended.
    pub fn write(&self, out: &mut Builder) -> Done<()> {
        match self {
            Value::Str(s) => out.push(s),
            Value::Undefined(_) => Ok(()),
            other => other.write_repr(out, 0),
        }
    }

    /// `repr(value)`, appended.
    pub fn write_repr(&self, out: &mut Builder, depth: u32) -> Done<()> {
        spend(1)?;
        match self {
            Value::Undefined(_) => out.push_own("Undefined"),
            Value::None => out.push_own("None"),
            Value::Bool(b) => out.push_own(if *b { "True" } else { "False" }),
            Value::Int(i) => out.push_own(&i.to_string()),
            Value::Float(f) => out.push_own(&float_repr(*f)),
            Value::Str(s) => write_quoted(s, out),
            Value::List(items) => write_items(&items.items, ("[", "]"), out, depth),
            Value::Tuple(items) => {
                let close = if items.items.len() == 1 { ",)" } else { ")" };
                write_items(&items.items, ("(", close), out, depth)
            }
            Value::Dict(dict) => write_pairs(dict.entries(), out, depth),
            Value::View(..) => {
                out.push_own(self.type_name())?;
                write_items(&self.iterate()?, ("([", "])"), out, depth)
            }
            Value::Range(r) if r.step == 1 => out.push_own(&format!("range({}, {})", r.start, r.stop)),
            Value::Range(r) => out.push_own(&format!("range({}, {}, {})", r.start, r.stop, r.step)),
            Value::Namespace(space) => {
                if depth > 50 {
                    return fault("namespaces in each other are printed");
                }
                out.push_own("<Namespace ")?;
                write_pairs(&space.values.borrow().clone(), out, depth + 1)?;
                out.push_own(">")
            }
            Value::Stream(stream) => out.push_own(&format!("<{} object>", stream.what)),
            Value::Loop(state) => out.push_own(&format!("<LoopContext {}/{}>", state.index0.get() + 1, state.items.len())),
            Value::Function(function) => match &**function {
                Function::Global(name) => out.push_own(&format!("<function {name}>")),
                Function::Method { name, .. } => out.push_own(&format!("<built-in method {name}>")),
                _ => out.push_own("<Macro>"),
            },
        }
    }
}

fn write_items(items: &[Value], ends: (&str, &str), out: &mut Builder, depth: u32) -> Done<()> {
    out.push_own(ends.0)?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_own(", ")?;
        }
        item.write_repr(out, depth)?;
    }
    out.push_own(ends.1)
}

fn write_pairs(pairs: &[(Value, Value)], out: &mut Builder, depth: u32) -> Done<()> {
    out.push_own("{")?;
    for (i, (key, value)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push_own(", ")?;
        }
        key.write_repr(out, depth)?;
        out.push_own(": ")?;
        value.write_repr(out, depth)?;
    }
    out.push_own("}")
}

/// Each character of the string that `escape` has words for is replaced by them, as the string's writer wrote it.
fn write_escaped(s: &Str, out: &mut Builder, escape: impl Fn(char) -> Option<String>) -> Done<()> {
    for (text, is_client) in s.stretches() {
        let mut plain = 0;
        for (at, c) in text.char_indices() {
            if let Some(words) = escape(c) {
                out.push_as(&text[plain..at], is_client)?;
                out.push_as(&words, is_client)?;
                plain = at + c.len_utf8();
            }
        }
        out.push_as(&text[plain..], is_client)?;
    }
    Ok(())
}

fn write_quoted(s: &Str, out: &mut Builder) -> Done<()> {
    let text = s.as_str();
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mark = if quote == '"' { "\"" } else { "'" };
    out.push_own(mark)?;
    write_escaped(s, out, |c| match c {
        '\\' => Some("\\\\".into()),
        '\n' => Some("\\n".into()),
        '\r' => Some("\\r".into()),
        '\t' => Some("\\t".into()),
        c if c == quote => Some(format!("\\{c}")),
        c if is_printable(c) => None,
        c if (c as u32) < 0x100 => Some(format!("\\x{:02x}", c as u32)),
        c if (c as u32) < 0x10000 => Some(format!("\\u{:04x}", c as u32)),
        c => Some(format!("\\U{:08x}", c as u32)),
    })?;
    out.push_own(mark)
}

pub struct JsonStyle {
    pub ensure_ascii: bool,
    pub indent: Option<Str>,
    pub item_separator: Str,
    pub key_separator: Str,
    pub sort_keys: bool,
}

fn json_string(s: &Str, style: &JsonStyle, out: &mut Builder) -> Done<()> {
    out.push_own("\"")?;
    write_escaped(s, out, |c| match c {
        '"' => Some("\\\"".into()),
        '\\' => Some("\\\\".into()),
        '\n' => Some("\\n".into()),
        '\r' => Some("\\r".into()),
        '\t' => Some("\\t".into()),
        '\u{8}' => Some("\\b".into()),
        '\u{c}' => Some("\\f".into()),
        c if (c as u32) < 0x20 => Some(format!("\\u{:04x}", c as u32)),
        c if style.ensure_ascii && !(' '..='~').contains(&c) => {
            let mut units = [0u16; 2];
            Some(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect())
        }
        _ => None,
    })?;
    out.push_own("\"")
}

fn json_number(value: &Value) -> String {
    match value {
        Value::Float(f) if f.is_nan() => "NaN".into(),
        Value::Float(f) if f.is_infinite() => if *f < 0.0 { "-Infinity" } else { "Infinity" }.into(),
        Value::Float(f) => float_repr(*f),
        other => other.as_int().unwrap_or(0).to_string(),
    }
}

fn newline(style: &JsonStyle, depth: usize, out: &mut Builder) -> Done<()> {
    let Some(indent) = &style.indent else { return Ok(()) };
    out.push_own("\n")?;
    out.repeat(indent, depth)
}

/// `json.dumps(value, ...)`, appended.
pub fn write_json(value: &Value, style: &JsonStyle, depth: usize, out: &mut Builder) -> Done<()> {
    spend(1)?;
    match value {
        Value::Str(s) => json_string(s, style, out),
        Value::Bool(b) => out.push_own(if *b { "true" } else { "false" }),
        Value::None => out.push_own("null"),
        Value::Int(_) | Value::Float(_) => out.push_own(&json_number(value)),
        Value::List(items) | Value::Tuple(items) => {
            out.push_own("[")?;
            for (i, item) in items.items.iter().enumerate() {
                if i > 0 {
                    out.push(&style.item_separator)?;
                }
                newline(style, depth + 1, out)?;
                write_json(item, style, depth + 1, out)?;
            }
            if !items.items.is_empty() {
                newline(style, depth, out)?;
            }
            out.push_own("]")
        }
        Value::Dict(dict) => json_object(dict.entries(), style, depth, out),
        other => fault(format!("Object of type {} is not JSON serializable", other.type_name())),
    }
}

fn json_key(key: &Value) -> Done<Str> {
    match key {
        Value::Str(s) => Ok(s.clone()),
        Value::Bool(b) => Str::own(if *b { "true" } else { "false" }),
        Value::None => Str::own("null"),
        Value::Int(_) | Value::Float(_) => Str::own(&json_number(key)),
        other => fault(format!("keys must be str, int, float, bool or None, not {}", other.type_name())),
    }
}

fn json_object(entries: &[(Value, Value)], style: &JsonStyle, depth: usize, out: &mut Builder) -> Done<()> {
    let mut pairs: Vec<&(Value, Value)> = entries.iter().collect();
    if style.sort_keys {
        super::value::sort(&mut pairs, &mut |a, b| Ok(a.0.order(&b.0, "<")? == Some(std::cmp::Ordering::Less)))?;
    }
    out.push_own("{")?;
    for (i, (key, item)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push(&style.item_separator)?;
        }
        newline(style, depth + 1, out)?;
        json_string(&json_key(key)?, style, out)?;
        out.push(&style.key_separator)?;
        write_json(item, style, depth + 1, out)?;
    }
    if !pairs.is_empty() {
        newline(style, depth, out)?;
    }
    out.push_own("}")
}

/// The views of a dict have a name each.
pub fn view_of(name: &str) -> View {
    match name {
        "keys" => View::Keys,
        "values" => View::Values,
        _ => View::Items,
    }
}
