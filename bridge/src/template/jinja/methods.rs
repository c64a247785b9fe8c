//! Methods of `str`, `list`, `dict` and the rest, as CPython has them.

use super::arguments::{Args, Bound};
use super::budget::{fault, limit, spend, Done, MAX_TEXT_BYTES};
use super::chars::*;
use super::eval::Interp;
use super::text::{Builder, Str};
use super::value::{Function, LoopState, Value};

pub fn call(interp: &mut Interp<'_>, receiver: &Value, name: &'static str, arguments: Args) -> Done<Value> {
    match receiver {
        Value::Str(text) => {
            spend(1 + text.as_str().len() as u64 / 64)?;
            string_method(text, name, arguments)
        }
        Value::List(items) | Value::Tuple(items) => match name {
            "copy" => {
                arguments.bind::<0>(name, [])?;
                Ok(receiver.clone())
            }
            _ => search_list(&items.items, name, arguments),
        },
        Value::Range(_) => search_list(&receiver.iterate()?, name, arguments),
        Value::Dict(dict) => match name {
            "get" => {
                let mut given = arguments.bind(name, ["", ""])?;
                let key = given.needed(0)?;
                Ok(match dict.get(&key)? {
                    Some(value) => value.clone(),
                    None => given.take(1).unwrap_or(Value::None),
                })
            }
            "keys" | "values" | "items" => {
                arguments.bind::<0>(name, [])?;
                Ok(Value::View(dict.clone(), super::print::view_of(name)))
            }
            "copy" => {
                arguments.bind::<0>(name, [])?;
                Ok(receiver.clone())
            }
            _ => fault(format!("dict.{name}() is not supported")),
        },
        Value::Loop(state) => loop_method(state, name, arguments),
        Value::Float(f) if name == "is_integer" => Ok(Value::Bool(f.is_finite() && f.fract() == 0.0)),
        Value::Int(i) if name == "bit_length" => Ok(Value::Int(i128::from(128 - i.unsigned_abs().leading_zeros()))),
        Value::Function(function) => match (&**function, name) {
            (Function::Cycler { .. }, "next") => interp.call(receiver, Args::default()),
            (Function::Cycler { at, .. }, _) => {
                at.set(0);
                Ok(Value::None)
            }
            _ => fault(format!("{name}() is not supported")),
        },
        other => fault(format!("{}.{name}() is not supported", other.type_name())),
    }
}

fn search_list(items: &[Value], name: &str, arguments: Args) -> Done<Value> {
    let what = arguments.bind(name, [""])?.needed(0)?;
    let mut n = 0;
    for (i, item) in items.iter().enumerate() {
        if item.equals(&what)? {
            if name == "index" {
                return Ok(Value::Int(i as i128));
            }
            n += 1;
        }
    }
    if name == "index" {
        fault("value is not in list")
    } else {
        Ok(Value::Int(n))
    }
}

fn loop_method(state: &LoopState, name: &str, arguments: Args) -> Done<Value> {
    let values = arguments.positional;
    if name == "cycle" {
        if values.is_empty() {
            return fault("no items for cycling given");
        }
        return Ok(values[state.index0.get() % values.len()].clone());
    }
    let mut last = state.last_changed.borrow_mut();
    let mut is_same = last.as_ref().is_some_and(|l| l.len() == values.len());
    for (a, b) in last.iter().flatten().zip(&values) {
        is_same = is_same && a.equals(b)?;
    }
    *last = Some(values);
    Ok(Value::Bool(!is_same))
}

fn string_method(text: &Str, name: &'static str, arguments: Args) -> Done<Value> {
    if let Some(answer) = asked(text.as_str(), name) {
        arguments.bind::<0>(name, [])?;
        return Ok(Value::Bool(answer));
    }
    match name {
        "upper" | "lower" | "casefold" | "title" | "swapcase" | "capitalize" => {
            arguments.bind::<0>(name, [])?;
            with_case(text, name).map(Value::Str)
        }
        "strip" | "lstrip" | "rstrip" => {
            let chars = arguments.bind(name, [""])?.text(0)?;
            strip(text, chars.as_ref(), name).map(Value::Str)
        }
        "split" | "rsplit" => {
            let given = arguments.bind(name, ["sep", "maxsplit"])?;
            split(text, given.text(0)?.as_ref(), given.int(1, -1)?, name == "rsplit")
        }
        "splitlines" => {
            let keeps = arguments.bind(name, ["keepends"])?.truth(0, false);
            Value::list(lines(text, keeps)?.into_iter().map(Value::Str).collect())
        }
        "replace" => {
            let given = arguments.bind(name, ["", "", "count"])?;
            let (old, new, count) = (given.needed_text(0)?, given.needed_text(1)?, given.int(2, -1)?);
            replace(text, &old, &new, count).map(Value::Str)
        }
        "find" | "rfind" | "index" | "rindex" | "count" | "startswith" | "endswith" => search(text, name, arguments),
        "partition" | "rpartition" => {
            let separator = arguments.bind(name, [""])?.needed_text(0)?;
            partition(text, &separator, name)
        }
        "removeprefix" | "removesuffix" => {
            let part = arguments.bind(name, [""])?.needed_text(0)?;
            let s = text.as_str();
            let rest = if name == "removeprefix" { s.strip_prefix(part.as_str()) } else { s.strip_suffix(part.as_str()) };
            text.part(rest.unwrap_or(s)).map(Value::Str)
        }
        "join" => {
            let items = arguments.bind(name, [""])?.needed(0)?;
            items.check_defined()?;
            join(text, &items.iterate()?, true).map(Value::Str)
        }
        "format" => super::format::braces(text, &arguments).map(Value::Str),
        "format_map" => {
            let given = arguments.bind(name, [""])?.needed(0)?;
            let Value::Dict(dict) = &given else { return fault("format_map() takes a dict") };
            let named = dict.entries().iter().filter_map(|(k, v)| Some((k.as_str()?.into(), v.clone())));
            super::format::braces(text, &Args { positional: Vec::new(), named: named.collect() }).map(Value::Str)
        }
        "ljust" | "rjust" | "center" | "zfill" => justify(text, name, arguments.bind(name, ["", ""])?).map(Value::Str),
        "expandtabs" => expand_tabs(text, arguments.bind(name, ["tabsize"])?.int(0, 8)?).map(Value::Str),
        _ => fault(format!("str.{name}() is not supported")),
    }
}

pub fn is_lower(s: &str) -> bool {
    s.chars().any(char::is_lowercase) && !s.chars().any(char::is_uppercase)
}

pub fn is_upper(s: &str) -> bool {
    s.chars().any(char::is_uppercase) && !s.chars().any(char::is_lowercase)
}

fn is_title(s: &str) -> bool {
    let is_cased = |c: char| c.is_lowercase() || c.is_uppercase();
    s.chars().any(is_cased) && titled(s) == s
}

/// The methods that ask about a string.
fn asked(s: &str, name: &str) -> Option<bool> {
    let all = |is: fn(char) -> bool| !s.is_empty() && s.chars().all(is);
    Some(match name {
        "isalnum" => all(is_alnum),
        "isalpha" => all(is_letter),
        "isascii" => s.is_ascii(),
        "isdecimal" => all(is_decimal),
        "isdigit" => all(is_digit),
        "isnumeric" => all(is_numeric),
        "isidentifier" => all(is_word) && !s.starts_with(is_numeric),
        "islower" => is_lower(s),
        "isupper" => is_upper(s),
        "istitle" => is_title(s),
        "isprintable" => s.chars().all(is_printable),
        "isspace" => all(is_space),
        _ => return None,
    })
}

pub fn with_case(text: &Str, name: &str) -> Done<Str> {
    match name {
        "upper" => text.mapped(str::to_uppercase),
        "lower" => text.mapped(str::to_lowercase),
        "casefold" => text.mapped(|t| t.to_lowercase().replace('\u{df}', "ss")),
        "title" => text.mapped(titled),
        "swapcase" => text.mapped(swapped),
        _ => {
            let first = text.as_str().chars().next().map_or(0, char::len_utf8);
            let mut out = Builder::like(text);
            out.push(&text.slice(0, first)?.mapped(str::to_uppercase)?)?;
            out.push(&text.slice(first, text.as_str().len())?.mapped(str::to_lowercase)?)?;
            out.finish()
        }
    }
}

pub fn strip(text: &Str, chars: Option<&Str>, name: &str) -> Done<Str> {
    let is_stripped = |c: char| chars.map_or_else(|| is_space(c), |chars| chars.as_str().contains(c));
    let mut s = text.as_str();
    if let Some(chars) = chars {
        spend((s.len() as u64 / 64) * (1 + chars.as_str().len() as u64 / 8))?;
    }
    if name != "rstrip" {
        s = s.trim_start_matches(is_stripped);
    }
    if name != "lstrip" {
        s = s.trim_end_matches(is_stripped);
    }
    text.part(s)
}

fn words(s: &str, most: usize, from_right: bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = if from_right { s.trim_end_matches(is_space) } else { s.trim_start_matches(is_space) };
    while parts.len() < most {
        let cut = if from_right { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(at) = cut else { break };
        if from_right {
            parts.push(rest[at..].trim_start_matches(is_space));
            rest = rest[..at].trim_end_matches(is_space);
        } else {
            parts.push(&rest[..at]);
            rest = rest[at..].trim_start_matches(is_space);
        }
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

pub fn split(text: &Str, separator: Option<&Str>, most: i128, from_right: bool) -> Done<Value> {
    let s = text.as_str();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = match separator.map(Str::as_str) {
        Some("") => return fault("empty separator"),
        Some(separator) if from_right => s.rsplitn(most.saturating_add(1), separator).collect(),
        Some(separator) => s.splitn(most.saturating_add(1), separator).collect(),
        None => words(s, most, from_right),
    };
    if from_right {
        parts.reverse();
    }
    Value::list(parts.into_iter().map(|part| text.part(part).map(Value::Str)).collect::<Done<_>>()?)
}

pub fn lines(text: &Str, keeps_ends: bool) -> Done<Vec<Str>> {
    let mut lines = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(ends_line) {
        let length = if rest[at..].starts_with("\r\n") { 2 } else { rest[at..].chars().next().map_or(1, char::len_utf8) };
        lines.push(text.part(&rest[..if keeps_ends { at + length } else { at }])?);
        rest = &rest[at + length..];
    }
    if !rest.is_empty() {
        lines.push(text.part(rest)?);
    }
    Ok(lines)
}

pub fn replace(text: &Str, old: &Str, new: &Str, count: i128) -> Done<Str> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let mut out = Builder::like(text);
    let mut done = 0;
    for (at, found) in text.as_str().match_indices(old.as_str()).take(count) {
        out.push_range(text, done, at)?;
        out.push(new)?;
        done = at + found.len();
    }
    out.push_range(text, done, text.as_str().len())?;
    out.finish()
}

pub fn join(separator: &Str, items: &[Value], only_text: bool) -> Done<Str> {
    let mut out = Builder::like(separator);
    for (i, item) in items.iter().enumerate() {
        if only_text && item.as_str().is_none() {
            return fault(format!("sequence item {i}: expected str instance, {} found", item.type_name()));
        }
        if i > 0 {
            out.push(separator)?;
        }
        item.write(&mut out)?;
    }
    out.finish()
}

/// The byte range of `s[start:end]`, and how many characters stand before it. None: it begins behind the end.
fn window(s: &str, start: Option<i128>, end: Option<i128>) -> Option<(usize, usize, usize)> {
    if start.is_none() && end.is_none() {
        return Some((0, s.len(), 0));
    }
    let n = s.chars().count() as i128;
    let at = |i: i128| (if i < 0 { (i + n).max(0) } else { i }) as usize;
    let (start, end) = (at(start.unwrap_or(0)), at(end.unwrap_or(n)));
    let offset = |i: usize| s.char_indices().nth(i).map_or(s.len(), |(at, _)| at);
    (start as i128 <= n && start <= end).then(|| (offset(start), offset(end), start))
}

fn affixes(what: &Value, name: &str) -> Done<Vec<Str>> {
    let one = |value: &Value| match value {
        Value::Str(text) => Ok(text.clone()),
        other => {
            other.check_defined()?;
            fault(format!("{name} first arg must be str or a tuple of str, not {}", other.type_name()))
        }
    };
    match what {
        Value::Tuple(items) => items.items.iter().map(one).collect(),
        other => Ok(vec![one(other)?]),
    }
}

fn search(text: &Str, name: &str, arguments: Args) -> Done<Value> {
    let mut given = arguments.bind(name, ["", "", ""])?;
    let (start, end) = (given.some_int(1)?, given.some_int(2)?);
    let what = given.needed(0)?;
    let wanted = affixes(&what, name)?;
    let is_affix = matches!(name, "startswith" | "endswith");
    if !is_affix && matches!(what, Value::Tuple(_)) {
        return fault(format!("{name}() argument 1 must be str, not tuple"));
    }
    let found = window(text.as_str(), start, end).and_then(|(from, to, before)| {
        let s = &text.as_str()[from..to];
        let first = wanted.first().map_or("", Str::as_str);
        let at = match name {
            "startswith" => wanted.iter().any(|w| s.starts_with(w.as_str())).then_some(0),
            "endswith" => wanted.iter().any(|w| s.ends_with(w.as_str())).then_some(0),
            "count" => return Some(s.matches(first).count()),
            "rfind" | "rindex" => s.rfind(first),
            _ => s.find(first),
        };
        at.map(|at| before + s[..at].chars().count())
    });
    Ok(match (name, found) {
        ("startswith" | "endswith", found) => Value::Bool(found.is_some()),
        ("index" | "rindex", None) => return fault("substring not found"),
        ("count", None) => Value::Int(0),
        (_, found) => Value::Int(found.map_or(-1, |n| n as i128)),
    })
}

fn partition(text: &Str, separator: &Str, name: &str) -> Done<Value> {
    let (s, part) = (text.as_str(), separator.as_str());
    if part.is_empty() {
        return fault("empty separator");
    }
    let at = if name == "partition" { s.find(part) } else { s.rfind(part) };
    let (a, b) = match at {
        Some(at) => (at, at + part.len()),
        None if name == "partition" => (s.len(), s.len()),
        None => (0, 0),
    };
    let part = |from: usize, to: usize| text.slice(from, to).map(Value::Str);
    Value::tuple(vec![part(0, a)?, part(a, b)?, part(b, s.len())?])
}

/// `n` copies of `fill` to the left and `m` to the right.
pub fn padded(text: &Str, fill: &Str, n: usize, m: usize) -> Done<Str> {
    let mut out = Builder::like(text);
    out.repeat(fill, n)?;
    out.push(text)?;
    out.repeat(fill, m)?;
    out.finish()
}

/// How many characters are missing to the width.
pub fn missing(text: &Str, width: i128) -> Done<usize> {
    if width > MAX_TEXT_BYTES as i128 {
        return limit(format!("a width of {width} is more than {MAX_TEXT_BYTES}"));
    }
    Ok((width.max(0) as usize).saturating_sub(text.as_str().chars().count()))
}

/// As `str.center` shares what is missing.
pub fn halves(missing: usize, width: i128) -> (usize, usize) {
    let left = missing / 2 + (missing & width as usize & 1);
    (left, missing - left)
}

fn justify(text: &Str, name: &str, given: Bound<2>) -> Done<Str> {
    let width = given.int(0, 0)?;
    let missing = missing(text, width)?;
    if name == "zfill" {
        let sign = usize::from(text.as_str().starts_with(['+', '-']));
        let mut out = Builder::like(text);
        out.push_range(text, 0, sign)?;
        out.repeat(&Str::own("0")?, missing)?;
        out.push_range(text, sign, text.as_str().len())?;
        return out.finish();
    }
    let fill = given.text(1)?.map_or_else(|| Str::own(" "), Ok)?;
    if fill.as_str().chars().count() != 1 {
        return fault("The fill character must be exactly one character long");
    }
    let (left, right) = match name {
        "ljust" => (0, missing),
        "rjust" => (missing, 0),
        _ => halves(missing, width),
    };
    padded(text, &fill, left, right)
}

fn expand_tabs(text: &Str, size: i128) -> Done<Str> {
    let size = size.clamp(0, 1 << 16) as usize;
    let space = Str::own(" ")?;
    let mut out = Builder::like(text);
    let mut column = 0;
    for (at, c) in text.as_str().char_indices() {
        match c {
            '\t' if size > 0 => {
                let n = size - column % size;
                out.repeat(&space, n)?;
                column += n;
            }
            '\t' => {}
            c => {
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                out.push_range(text, at, at + c.len_utf8())?;
            }
        }
    }
    out.finish()
}
