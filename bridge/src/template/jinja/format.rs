//! `'%s' % x` and `'{}'.format(x)`.

use super::arguments::Args;
use super::attributes::{attribute, item};
use super::budget::{fault, Done, MAX_TEXT_BYTES};
use super::numbers::{float_repr, truncated, with_exponent};
use super::text::{Builder, Str};
use super::value::Value;

/// Digits behind a point: more than a float has.
const MAX_PRECISION: usize = 2000;

/// How a field is laid out.
#[derive(Default, Clone)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

fn checked_size(digits: &str, most: usize) -> Done<usize> {
    match digits.parse::<usize>() {
        _ if digits.is_empty() => Ok(0),
        Ok(size) if size <= most => Ok(size),
        _ => fault(format!("format: {digits} is too large, at most {most}")),
    }
}

/// `%g` and, without a precision, `repr`.
fn general(f: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let scientific = format!("{f:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| {
        if alternate || !digits.contains('.') {
            return digits.to_string();
        }
        digits.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    if exponent < -4 || exponent >= precision as i32 {
        return with_exponent(&trimmed(mantissa), exponent);
    }
    trimmed(&format!("{f:.*}", (precision as i32 - 1 - exponent).max(0) as usize))
}

/// Digits of a float without its sign.
fn float_digits(f: f64, spec: &Spec) -> String {
    let kind = spec.kind.unwrap_or(' ');
    let precision = spec.precision.unwrap_or(6);
    let f = f.abs();
    let digits = if f.is_nan() || f.is_infinite() {
        if f.is_nan() {
            "nan".to_string()
        } else {
            "inf".to_string()
        }
    } else {
        match kind.to_ascii_lowercase() {
            'f' => format!("{f:.precision$}"),
            '%' => format!("{:.precision$}%", f * 100.0),
            'e' => {
                let scientific = format!("{f:.precision$e}");
                let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
                with_exponent(mantissa, exponent.parse().unwrap_or(0))
            }
            'g' => general(f, precision, spec.alternate),
            _ => match spec.precision {
                None => float_repr(f),
                Some(p) => {
                    let digits = general(f, p, false);
                    if digits.contains(['.', 'e']) {
                        digits
                    } else {
                        digits + ".0"
                    }
                }
            },
        }
    };
    if kind.is_ascii_uppercase() {
        digits.to_uppercase()
    } else {
        digits
    }
}

fn int_digits(i: i128, spec: &Spec) -> String {
    let i = i.unsigned_abs();
    let (prefix, digits) = match spec.kind {
        Some('x') => ("0x", format!("{i:x}")),
        Some('X') => ("0X", format!("{i:X}")),
        Some('o') => ("0o", format!("{i:o}")),
        Some('b') => ("0b", format!("{i:b}")),
        _ => ("", i.to_string()),
    };
    if spec.alternate {
        format!("{prefix}{digits}")
    } else {
        digits
    }
}

fn grouped(digits: &str, separator: char) -> String {
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let mut out = String::new();
    for (i, c) in digits[..end].chars().enumerate() {
        if i > 0 && (end - i) % 3 == 0 {
            out.push(separator);
        }
        out.push(c);
    }
    out + &digits[end..]
}

/// A sign and digits, filled up to the width.
fn lay_out_number(is_negative: bool, digits: &str, spec: &Spec, out: &mut Builder) -> Done<()> {
    let digits = spec.grouping.map_or_else(|| digits.to_string(), |separator| grouped(digits, separator));
    let sign = match spec.sign {
        _ if is_negative => "-",
        Some('+') => "+",
        Some(' ') => " ",
        _ => "",
    };
    let missing = spec.width.saturating_sub(sign.len() + digits.len());
    let fill = Str::own(&spec.fill.unwrap_or(' ').to_string())?;
    let (left, inner, right) = match spec.align.unwrap_or('>') {
        '<' => (0, 0, missing),
        '^' => (missing / 2, 0, missing - missing / 2),
        '=' => (0, missing, 0),
        _ => (missing, 0, 0),
    };
    out.repeat(&fill, left)?;
    out.push_own(sign)?;
    out.repeat(&fill, inner)?;
    out.push_own(&digits)?;
    out.repeat(&fill, right)
}

fn lay_out_text(text: &Str, spec: &Spec, out: &mut Builder) -> Done<()> {
    let s = text.as_str();
    let end = spec.precision.and_then(|p| s.char_indices().nth(p)).map_or(s.len(), |(at, _)| at);
    let missing = spec.width.saturating_sub(s[..end].chars().count());
    let fill = Str::own(&spec.fill.unwrap_or(' ').to_string())?;
    let (left, right) = match spec.align.unwrap_or('<') {
        '>' => (missing, 0),
        '^' => (missing / 2, missing - missing / 2),
        _ => (0, missing),
    };
    out.repeat(&fill, left)?;
    out.push_range(text, 0, end)?;
    out.repeat(&fill, right)
}

fn lay_out_int(i: i128, spec: &Spec, out: &mut Builder) -> Done<()> {
    lay_out_number(i < 0, &int_digits(i, spec), spec, out)
}

fn lay_out_float(f: f64, spec: &Spec, out: &mut Builder) -> Done<()> {
    lay_out_number(f.is_sign_negative() && !f.is_nan(), &float_digits(f, spec), spec, out)
}

fn represented(value: &Value) -> Done<Str> {
    let mut out = Builder::default();
    value.write_repr(&mut out, 0)?;
    out.finish()
}

/// The text of `%` formats that is still to be read.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (part, rest) = self.rest.split_at(end);
        self.rest = rest;
        part
    }
}

/// The values that a `%` format asks for, one after the other.
struct Given<'a> {
    values: Vec<Value>,
    mapping: Option<&'a Value>,
    at: usize,
}

impl Given<'_> {
    fn next(&mut self) -> Done<Value> {
        self.at += 1;
        match self.values.get(self.at - 1) {
            Some(value) => Ok(value.clone()),
            None => fault("not enough arguments for format string"),
        }
    }

    fn size(&mut self, reader: &mut Reader<'_>, most: usize) -> Done<usize> {
        if !reader.rest.starts_with('*') {
            return checked_size(reader.take(|c| c.is_ascii_digit()), most);
        }
        reader.next();
        match self.next()?.as_int() {
            Some(n) => checked_size(&n.max(0).to_string(), most),
            None => fault("* wants int"),
        }
    }
}

/// `format % values`
pub fn percent(format: &Str, values: &Value) -> Done<Str> {
    let mut given = Given {
        values: match values {
            Value::Tuple(items) => items.items.clone(),
            other => vec![other.clone()],
        },
        mapping: matches!(values, Value::Dict(_)).then_some(values),
        at: 0,
    };
    let mut out = Builder::like(format);
    let mut reader = Reader { rest: format.as_str() };
    loop {
        let plain = reader.take(|c| c != '%');
        out.push_part(format, plain)?;
        if reader.next().is_none() {
            break;
        }
        percent_field(&mut reader, &mut given, &mut out)?;
    }
    let takes_one = !matches!(values, Value::Tuple(_));
    let may_be_left = takes_one && matches!(values, Value::Dict(_) | Value::List(_) | Value::Undefined(_));
    if given.at < given.values.len() && given.mapping.is_none() && !(may_be_left && given.at == 0) {
        return fault("not all arguments converted during string formatting");
    }
    out.finish()
}

fn percent_field(reader: &mut Reader<'_>, given: &mut Given<'_>, out: &mut Builder) -> Done<()> {
    let mut named = None;
    if reader.rest.starts_with('(') {
        reader.next();
        let key = reader.take(|c| c != ')');
        reader.next();
        let Some(mapping) = given.mapping else { return fault("format requires a mapping") };
        named = Some(item(mapping, &Value::own(key)?)?);
    }
    let flags = reader.take(|c| "#0- +".contains(c));
    let width = given.size(reader, MAX_TEXT_BYTES)?;
    let mut precision = None;
    if reader.rest.starts_with('.') {
        reader.next();
        precision = Some(given.size(reader, MAX_PRECISION)?);
    }
    reader.take(|c| "hlL".contains(c));
    let Some(kind) = reader.next() else { return fault("incomplete format") };
    if kind == '%' {
        return out.push_own("%");
    }
    let value = match named {
        Some(value) => value,
        None => given.next()?,
    };
    let left = flags.contains('-');
    let zeros = flags.contains('0') && !left;
    let sign = flags.contains('+').then_some('+').or(flags.contains(' ').then_some(' '));
    let mut spec = Spec { width, precision, sign, alternate: flags.contains('#'), kind: Some(kind), ..Spec::default() };
    spec.align = Some(if left { '<' } else { '>' });
    let is_number = !matches!(kind, 's' | 'r' | 'a' | 'c');
    if zeros && is_number {
        (spec.fill, spec.align) = (Some('0'), Some('='));
    }
    percent_value(&value, &spec, out)
}

fn percent_value(value: &Value, spec: &Spec, out: &mut Builder) -> Done<()> {
    let kind = spec.kind.unwrap_or('s');
    match kind {
        's' => lay_out_text(&value.to_text()?, spec, out),
        'r' | 'a' => lay_out_text(&represented(value)?, spec, out),
        'c' => match (value, value.as_int()) {
            (Value::Str(text), _) if text.as_str().chars().count() == 1 => lay_out_text(text, spec, out),
            (_, Some(i)) => match u32::try_from(i).ok().and_then(char::from_u32) {
                Some(c) => lay_out_text(&Str::own(&c.to_string())?, spec, out),
                None => fault("%c arg not in range(0x110000)"),
            },
            _ => fault("%c requires int or char"),
        },
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let i = match value {
                Value::Float(f) if matches!(kind, 'd' | 'i' | 'u') => truncated(*f)?,
                other => match other.as_int() {
                    Some(i) => i,
                    None => {
                        other.check_defined()?;
                        return fault(format!("%{kind} format: a number is required, not {}", other.type_name()));
                    }
                },
            };
            let mut digits = int_digits(i, spec);
            if let Some(precision) = spec.precision {
                digits = format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len())));
            }
            lay_out_number(i < 0, &digits, spec, out)
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => match value.as_f64() {
            Some(f) => lay_out_float(f, spec, out),
            None => {
                value.check_defined()?;
                fault(format!("must be real number, not {}", value.type_name()))
            }
        },
        _ => fault(format!("unsupported format character '{kind}'")),
    }
}

/// `format.format(...)`; `depth`: of fields inside of fields.
pub fn braces(format: &Str, arguments: &Args) -> Done<Str> {
    let mut out = Builder::like(format);
    let mut next = 0;
    write_braces(format, format.as_str(), arguments, &mut next, &mut out)?;
    out.finish()
}

fn write_braces(whole: &Str, text: &str, arguments: &Args, next: &mut usize, out: &mut Builder) -> Done<()> {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_part(whole, &rest[..at])?;
        let brace = &rest[at..at + 1];
        rest = &rest[at + 1..];
        if rest.starts_with(brace) {
            out.push_part(whole, &rest[..1])?;
            rest = &rest[1..];
            continue;
        }
        if brace == "}" {
            return fault("Single '}' encountered in format string");
        }
        let mut open = 1;
        let end = rest.char_indices().find(|(_, c)| {
            open += i32::from(*c == '{') - i32::from(*c == '}');
            open == 0
        });
        let Some((end, _)) = end else { return fault("expected '}' before end of string") };
        brace_field(&rest[..end], arguments, next, out)?;
        rest = &rest[end + 1..];
    }
    out.push_part(whole, rest)
}

fn brace_field(field: &str, arguments: &Args, next: &mut usize, out: &mut Builder) -> Done<()> {
    let (head, spec) = field.split_once(':').unwrap_or((field, ""));
    let (name, conversion) = match head.split_once('!') {
        Some((name, conversion)) => (name, Some(conversion)),
        None => (head, None),
    };
    let mut value = field_value(name, arguments, next)?;
    match conversion {
        None => {}
        Some("s") => value = Value::Str(value.to_text()?),
        Some("r" | "a") => value = Value::Str(represented(&value)?),
        Some(other) => return fault(format!("Unknown conversion specifier {other}")),
    }
    // A specification may hold fields itself.
    let spec = if spec.contains('{') {
        let whole = Str::own(spec)?;
        let mut inner = Builder::default();
        write_plain_fields(&whole, arguments, next, &mut inner)?;
        inner.finish()?
    } else {
        Str::own(spec)?
    };
    lay_out(&value, &parse_spec(spec.as_str())?, out)
}

fn write_plain_fields(whole: &Str, arguments: &Args, next: &mut usize, out: &mut Builder) -> Done<()> {
    let mut rest = whole.as_str();
    while let Some((before, behind)) = rest.split_once('{') {
        out.push_own(before)?;
        let Some((name, after)) = behind.split_once('}') else { return fault("expected '}' before end of string") };
        field_value(name, arguments, next)?.write(out)?;
        rest = after;
    }
    out.push_own(rest)
}

fn field_value(name: &str, arguments: &Args, next: &mut usize) -> Done<Value> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut path) = name.split_at(end);
    let positional = |i: usize| match arguments.positional.get(i) {
        Some(value) => Ok(value.clone()),
        None => fault("Replacement index out of range for positional args tuple"),
    };
    let mut value = if first.is_empty() {
        *next += 1;
        positional(*next - 1)?
    } else if let Ok(i) = first.parse::<usize>() {
        positional(i)?
    } else {
        match arguments.named.iter().find(|n| &*n.0 == first) {
            Some(named) => named.1.clone(),
            None => return fault(format!("KeyError: '{first}'")),
        }
    };
    while !path.is_empty() {
        if let Some(rest) = path.strip_prefix('.') {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            value = attribute(&value, &rest[..end])?;
            path = &rest[end..];
        } else {
            let Some((key, rest)) = path[1..].split_once(']') else { return fault("Missing ']' in format string") };
            let key = key.parse::<i128>().map_or_else(|_| Value::own(key), |i| Ok(Value::Int(i)))?;
            value = item(&value, &key)?;
            path = rest;
        }
    }
    Ok(value)
}

fn parse_spec(text: &str) -> Done<Spec> {
    let mut spec = Spec::default();
    let mut reader = Reader { rest: text };
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let is_align = |c: Option<char>| c.is_some_and(|c| "<>=^".contains(c));
    if is_align(second) {
        (spec.fill, spec.align) = (first, second);
        reader.next();
        reader.next();
    } else if is_align(first) {
        spec.align = reader.next();
    }
    spec.sign = reader.take(|c| "+- ".contains(c)).chars().next();
    spec.alternate = !reader.take(|c| c == '#').is_empty();
    if reader.rest.starts_with('0') && spec.align.is_none() {
        (spec.fill, spec.align) = (Some('0'), Some('='));
    }
    spec.width = checked_size(reader.take(|c| c.is_ascii_digit()), MAX_TEXT_BYTES)?;
    spec.grouping = reader.take(|c| matches!(c, ',' | '_')).chars().next();
    if reader.rest.starts_with('.') {
        reader.next();
        spec.precision = Some(checked_size(reader.take(|c| c.is_ascii_digit()), MAX_PRECISION)?);
    }
    spec.kind = reader.next();
    if reader.rest.is_empty() {
        Ok(spec)
    } else {
        fault("Invalid format specifier")
    }
}

fn lay_out(value: &Value, spec: &Spec, out: &mut Builder) -> Done<()> {
    let kind = spec.kind;
    let is_plain =
        spec.width == 0 && spec.precision.is_none() && kind.is_none() && spec.sign.is_none() && spec.grouping.is_none();
    match value {
        Value::Str(text) if matches!(kind, None | Some('s')) => lay_out_text(text, spec, out),
        Value::Float(f) => match kind {
            None | Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%' | 'n') => lay_out_float(*f, spec, out),
            Some(kind) => fault(format!("Unknown format code '{kind}' for object of type 'float'")),
        },
        Value::Bool(_) if kind.is_none() && is_plain => value.write(out),
        Value::Int(_) | Value::Bool(_) => {
            let i = value.as_int().unwrap_or(0);
            match kind {
                None | Some('d' | 'n' | 'x' | 'X' | 'o' | 'b') => lay_out_int(i, spec, out),
                Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') => lay_out_float(i as f64, spec, out),
                Some('c') => match u32::try_from(i).ok().and_then(char::from_u32) {
                    Some(c) => lay_out_text(&Str::own(&c.to_string())?, spec, out),
                    None => fault("%c arg not in range(0x110000)"),
                },
                Some(kind) => fault(format!("Unknown format code '{kind}' for object of type 'int'")),
            }
        }
        other if is_plain => other.write(out),
        other => fault(format!("unsupported format string passed to {}.__format__", other.type_name())),
    }
}
