//! jinja2's filters: of text and numbers. Those of sequences: see `sequences.rs`.

use super::arguments::Args;
use super::attributes::{attribute_alone, item};
use super::budget::{fault, limit, Done, MAX_TEXT_BYTES};
use super::chars::{is_space, is_word};
use super::dict::Dict;
use super::eval::Interp;
use super::methods::{halves, lines, missing, padded, replace, strip, with_case};
use super::numbers::{parse_float, parse_int, round_float, round_int, truncated};
use super::operators::escaped;
use super::print::{write_json, JsonStyle};
use super::text::{Builder, Str};
use super::value::Value;

pub const NAMES: [&str; 50] = [
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "wordcount",
    "urlencode",
];

impl Interp<'_> {
    pub fn filter(&mut self, name: &str, value: Value, arguments: Args) -> Done<Value> {
        match name {
            "upper" | "lower" | "capitalize" => {
                arguments.bind::<0>(name, [])?;
                with_case(&value.to_text()?, name).map(Value::Str)
            }
            "trim" => {
                let chars = arguments.bind(name, ["chars"])?.text(0)?;
                strip(&value.to_text()?, chars.as_ref(), "strip").map(Value::Str)
            }
            "string" => value.to_text().map(Value::Str),
            "tojson" => to_json(&value, arguments),
            "default" | "d" => {
                let mut given = arguments.bind(name, ["default_value", "boolean"])?;
                let is_missing = value.is_undefined() || given.truth(1, false) && !value.truth();
                if is_missing {
                    given.take(0).map_or_else(|| Value::own(""), Ok)
                } else {
                    Ok(value)
                }
            }
            "length" | "count" => match value.len() {
                Some(n) => Ok(Value::Int(n as i128)),
                None => fault(format!("object of type '{}' has no len()", value.type_name())),
            },
            "replace" => {
                let mut given = arguments.bind(name, ["old", "new", "count"])?;
                let count = given.some_int(2)?.unwrap_or(-1);
                let (old, new) = (given.needed(0)?.to_text()?, given.needed(1)?.to_text()?);
                replace(&value.to_text()?, &old, &new, count).map(Value::Str)
            }
            "indent" => indent(&value, arguments),
            "int" | "float" | "abs" | "round" => number_filter(name, value, arguments),
            "attr" => attribute_alone(&value, arguments.bind(name, ["name"])?.needed_text(0)?.as_str()),
            "format" => format(&value, arguments),
            "safe" => value.to_text()?.with_safety(true).map(Value::Str),
            "e" | "escape" => escaped(&value.to_text()?).map(Value::Str),
            "forceescape" => escaped(&value.to_text()?.with_safety(false)?).map(Value::Str),
            _ => self.rarer_filter(name, value, arguments),
        }
    }

    fn rarer_filter(&mut self, name: &str, value: Value, arguments: Args) -> Done<Value> {
        match name {
            "title" => title(&value.to_text()?).map(Value::Str),
            "center" => {
                let width = arguments.bind(name, ["width"])?.int(0, 80)?;
                let text = value.to_text()?;
                let (left, right) = halves(missing(&text, width)?, width);
                padded(&text, &Str::own(" ")?, left, right).map(Value::Str)
            }
            "wordcount" => {
                let text = value.to_text()?;
                let n = text.as_str().split(|c| !is_word(c)).filter(|w| !w.is_empty()).count();
                Ok(Value::Int(n as i128))
            }
            "truncate" => truncate(&value, arguments),
            "filesizeformat" => file_size(&value, arguments.bind(name, ["binary"])?.truth(0, false)),
            "urlencode" => url_encoded(&value),
            "striptags" => without_tags(&value.to_text()?),
            "pprint" => {
                let mut out = Builder::default();
                value.write_repr(&mut out, 0)?;
                out.finish().map(Value::Str)
            }
            _ => self.sequence_filter(name, value, arguments),
        }
    }
}

/// `transformers`: `tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
fn to_json(value: &Value, arguments: Args) -> Done<Value> {
    let mut given = arguments.bind("tojson", ["ensure_ascii", "indent", "separators", "sort_keys"])?;
    let indent = match given.take(1) {
        None | Some(Value::None) => None,
        Some(Value::Str(text)) => Some(text),
        Some(other) => match other.as_int() {
            Some(n) if n <= 1000 => Some(Str::own(&" ".repeat(n.max(0) as usize))?),
            Some(n) => return limit(format!("tojson: an indent of {n} is more than 1000")),
            None => return fault(format!("tojson: indent is {}", other.type_name())),
        },
    };
    let mut separators = [Str::own(if indent.is_some() { "," } else { ", " })?, Str::own(": ")?];
    if let Some(pair) = given.take(2).filter(|pair| !pair.is_none()) {
        let pair = pair.iterate()?;
        let [Value::Str(items), Value::Str(keys)] = pair.as_slice() else { return fault("tojson: separators are two strings") };
        separators = [items.clone(), keys.clone()];
    }
    let [item_separator, key_separator] = separators;
    let (ensure_ascii, sort_keys) = (given.truth(0, false), given.truth(3, false));
    let style = JsonStyle { ensure_ascii, indent, item_separator, key_separator, sort_keys };
    let mut out = Builder::default();
    write_json(value, &style, 0, &mut out)?;
    out.finish().map(Value::Str)
}

fn indent(value: &Value, arguments: Args) -> Done<Value> {
    let given = arguments.bind("indent", ["width", "first", "blank"])?;
    let (first, blank) = (given.truth(1, false), given.truth(2, false));
    let Value::Str(text) = value else {
        value.check_defined()?;
        return fault(format!("indent: expected text, not {}", value.type_name()));
    };
    let width = match given.text(0) {
        Ok(Some(text)) => text,
        _ => {
            let n = given.int(0, 4)?;
            if n > MAX_TEXT_BYTES as i128 {
                return limit(format!("indent: a width of {n} is more than {MAX_TEXT_BYTES}"));
            }
            let mut spaces = Builder::like(text);
            spaces.repeat(&Str::own(" ")?, n.max(0) as usize)?;
            spaces.finish()?
        }
    };
    let mut with_end = Builder::like(text);
    with_end.push(text)?;
    with_end.push_own("\n")?;
    let mut out = Builder::like(text);
    for (i, line) in lines(&with_end.finish()?, false)?.iter().enumerate() {
        if i > 0 {
            out.push_own("\n")?;
        }
        let is_indented = if i == 0 { first } else { blank || !line.as_str().is_empty() };
        if is_indented {
            out.push(&width)?;
        }
        out.push(line)?;
    }
    out.finish().map(Value::Str)
}

fn to_int(value: &Value, base: i128) -> Done<Option<i128>> {
    let by_float = |text: &str| match parse_float(text) {
        Some(f) if f.is_nan() || f.is_infinite() => Ok(None),
        Some(f) => truncated(f).map(Some),
        None => Ok(None),
    };
    match value {
        Value::Undefined(_) => value.check_defined().map(|()| None),
        Value::Str(text) => match parse_int(text.as_str(), base) {
            Some(i) => Ok(Some(i)),
            None => by_float(text.as_str()),
        },
        Value::Float(f) if f.is_nan() => Ok(None),
        Value::Float(f) => truncated(*f).map(Some),
        other => Ok(other.as_int()),
    }
}

fn number_filter(name: &str, value: Value, arguments: Args) -> Done<Value> {
    match name {
        "int" => {
            let mut given = arguments.bind(name, ["default", "base"])?;
            let base = given.int(1, 10)?;
            Ok(match to_int(&value, base)? {
                Some(i) => Value::Int(i),
                None => given.take(0).unwrap_or(Value::Int(0)),
            })
        }
        "float" => {
            value.check_defined()?;
            let parsed = match &value {
                Value::Str(text) => parse_float(text.as_str()),
                other => other.as_f64(),
            };
            Ok(match parsed {
                Some(f) => Value::Float(f),
                None => arguments.bind(name, ["default"])?.take(0).unwrap_or(Value::Float(0.0)),
            })
        }
        "abs" => match (&value, value.as_int()) {
            (Value::Float(f), _) => Ok(Value::Float(f.abs())),
            (_, Some(i)) => Ok(Value::Int(i.saturating_abs())),
            _ => fault(format!("bad operand type for abs(): '{}'", value.type_name())),
        },
        _ => round(&value, arguments),
    }
}

fn round(value: &Value, arguments: Args) -> Done<Value> {
    let given = arguments.bind("round", ["precision", "method"])?;
    let precision = given.int(0, 0)?.clamp(-400, 400) as i64;
    let method = given.text(1)?;
    value.check_defined()?;
    let Some(f) = value.as_f64() else {
        return fault(format!("type {} doesn't define __round__ method", value.type_name()));
    };
    let unit = 10f64.powi(precision as i32);
    match method.as_ref().map_or("common", Str::as_str) {
        "common" => Ok(match value.as_int() {
            Some(i) => Value::Int(round_int(i, precision)),
            None => Value::Float(round_float(f, precision)),
        }),
        "ceil" => Ok(Value::Float((f * unit).ceil() / unit)),
        "floor" => Ok(Value::Float((f * unit).floor() / unit)),
        _ => fault("method must be common, ceil or floor"),
    }
}

fn format(value: &Value, arguments: Args) -> Done<Value> {
    let text = value.to_text()?;
    let values = match (arguments.positional.is_empty(), arguments.named.is_empty()) {
        (false, false) => return fault("can't handle positional and keyword arguments at the same time"),
        (_, true) => Value::tuple(arguments.positional)?,
        (true, false) => {
            let mut dict = Dict::empty();
            for (name, value) in arguments.named {
                dict.insert(Value::own(&name)?, value)?;
            }
            Value::Dict(dict.into())
        }
    };
    super::format::percent(&text, &values).map(Value::Str)
}

/// The first letter of each word is upper case; words begin behind white space, hyphens and opening brackets.
fn title(text: &Str) -> Done<Str> {
    let mut out = Builder::like(text);
    let ends_word = |c: char| is_space(c) || "-({[<".contains(c);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let gap = rest.find(|c| !ends_word(c)).unwrap_or(rest.len());
        out.push_part(text, &rest[..gap])?;
        rest = &rest[gap..];
        let end = rest.find(ends_word).unwrap_or(rest.len());
        out.push(&with_case(&text.part(&rest[..end])?, "capitalize")?)?;
        rest = &rest[end..];
    }
    out.finish()
}

fn truncate(value: &Value, arguments: Args) -> Done<Value> {
    let given = arguments.bind("truncate", ["length", "killwords", "end", "leeway"])?;
    let Value::Str(text) = value else {
        value.check_defined()?;
        return fault(format!("object of type '{}' cannot be truncated", value.type_name()));
    };
    let (length, leeway) = (given.int(0, 255)?, given.some_int(3)?.unwrap_or(5));
    let end = given.text(2)?.map_or_else(|| Str::own("..."), Ok)?;
    let n_end = end.as_str().chars().count() as i128;
    if length < n_end || leeway < 0 {
        return fault(format!("expected length >= {n_end}, got {length}, and leeway >= 0, got {leeway}"));
    }
    let s = text.as_str();
    if s.chars().count() as i128 <= length + leeway {
        return Ok(value.clone());
    }
    let cut = s.char_indices().nth((length - n_end) as usize).map_or(s.len(), |(at, _)| at);
    let kept = if given.truth(1, false) { &s[..cut] } else { s[..cut].rsplit_once(' ').map_or(&s[..cut], |(a, _)| a) };
    let mut out = Builder::like(text);
    out.push_part(text, kept)?;
    out.push(&end)?;
    out.finish().map(Value::Str)
}

fn file_size(value: &Value, is_binary: bool) -> Done<Value> {
    const DECIMAL: [&str; 8] = ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
    const BINARY: [&str; 8] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    let bytes = match value {
        Value::Str(text) => parse_float(text.as_str()),
        other => other.as_f64(),
    };
    let Some(bytes) = bytes else { return fault("filesizeformat: expected a number") };
    let (base, prefixes) = if is_binary { (1024.0, BINARY) } else { (1000.0, DECIMAL) };
    if bytes == 1.0 {
        return Value::own("1 Byte");
    }
    if bytes < base {
        return Value::own(&format!("{} Bytes", bytes as i64));
    }
    let mut unit = base * base;
    let mut at = 0;
    while at + 1 < prefixes.len() && bytes >= unit {
        unit *= base;
        at += 1;
    }
    Value::own(&format!("{:.1} {}", base * bytes / unit, prefixes[at]))
}

fn quoted(text: &Str, safe: &str) -> Done<Str> {
    text.mapped(|t| {
        t.bytes().fold(String::new(), |mut out, b| {
            if b.is_ascii_alphanumeric() || "_.-~".contains(b as char) || safe.contains(b as char) {
                out.push(b as char);
            } else {
                out.push_str(&format!("%{b:02X}"));
            }
            out
        })
    })
}

fn url_encoded(value: &Value) -> Done<Value> {
    let pairs = match value {
        Value::Dict(dict) => dict.entries().to_vec(),
        Value::List(_) | Value::Tuple(_) => {
            let split = |pair: Value| Ok((item(&pair, &Value::Int(0))?, item(&pair, &Value::Int(1))?));
            value.iterate()?.into_iter().map(split).collect::<Done<_>>()?
        }
        other => return quoted(&other.to_text()?, "/").map(Value::Str),
    };
    let mut out = Builder::default();
    for (i, (key, value)) in pairs.iter().enumerate() {
        out.push_own(if i > 0 { "&" } else { "" })?;
        out.push(&quoted(&key.to_text()?, " ")?.mapped(|t| t.replace(' ', "+"))?)?;
        out.push_own("=")?;
        out.push(&quoted(&value.to_text()?, " ")?.mapped(|t| t.replace(' ', "+"))?)?;
    }
    out.finish().map(Value::Str)
}

/// Without comments and tags, white space as single blanks. Entities stay as they are.
fn without_tags(text: &Str) -> Done<Value> {
    let mut plain = Builder::default();
    let mut rest = text.as_str();
    while let Some(at) = rest.find('<') {
        let end = if rest[at..].starts_with("<!--") { "-->" } else { ">" };
        let Some(to) = rest[at..].find(end) else { break };
        plain.push_part(text, &rest[..at])?;
        rest = &rest[at + to + end.len()..];
    }
    plain.push_part(text, rest)?;
    let words = super::methods::split(&Value::Str(plain.finish()?).to_text()?, None, -1, false)?;
    super::methods::join(&Str::own(" ")?, &words.iterate()?, false).map(Value::Str)
}
