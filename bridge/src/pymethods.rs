//! Methods of `str`, `list` and `dict` that templates call: those of minijinja-contrib's pycompat, and some it lacks.

use minijinja::value::{from_args, Tuple, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use crate::python::is_space;
use crate::template::check_deadline;

fn triple(a: &str, b: &str, c: &str) -> Value {
    Value::from(Tuple::from([Value::from(a), Value::from(b), Value::from(c)]))
}

fn rsplit(s: &str, args: &[Value]) -> Result<Value, Error> {
    let (separator, max): (Option<&str>, Option<i64>) = from_args(args)?;
    let max = max.filter(|m| *m >= 0).map_or(usize::MAX, |m| m as usize);
    let mut parts: Vec<&str> = Vec::new();
    match separator {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(separator) => parts.extend(s.rsplitn(max.saturating_add(1), separator)),
        None => {
            let mut rest = s.trim_end_matches(is_space);
            while parts.len() < max {
                let Some(at) = rest.rfind(is_space) else { break };
                let word = rest[at..].trim_start_matches(is_space);
                parts.push(word);
                rest = rest[..at].trim_end_matches(is_space);
            }
            if !rest.is_empty() {
                parts.push(rest);
            }
        }
    }
    parts.reverse();
    Ok(Value::from_iter(parts.into_iter().map(Value::from)))
}

fn justify(s: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (width, fill): (i64, Option<&str>) = from_args(args)?;
    let missing = (width.clamp(0, 100_000) as usize).saturating_sub(s.chars().count());
    Ok(Value::from(match method {
        "ljust" => format!("{s}{}", fill.unwrap_or(" ").repeat(missing)),
        "rjust" => format!("{}{s}", fill.unwrap_or(" ").repeat(missing)),
        _ => {
            let (sign, digits) = s.split_at(usize::from(s.starts_with(['+', '-'])));
            format!("{sign}{}{digits}", "0".repeat(missing))
        }
    }))
}

fn string_method(s: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        // Python counts four control characters as space that Unicode does not.
        "strip" | "lstrip" | "rstrip" if args.first().is_none_or(Value::is_none) => Value::from(match method {
            "strip" => s.trim_matches(is_space),
            "lstrip" => s.trim_start_matches(is_space),
            _ => s.trim_end_matches(is_space),
        }),
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(s.strip_prefix(prefix).unwrap_or(s))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(s.strip_suffix(suffix).unwrap_or(s))
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            s.split_once(separator).map_or_else(|| triple(s, "", ""), |(a, b)| triple(a, separator, b))
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            s.rsplit_once(separator).map_or_else(|| triple("", "", s), |(a, b)| triple(a, separator, b))
        }
        "rsplit" => rsplit(s, args)?,
        "ljust" | "rjust" | "zfill" => justify(s, method, args)?,
        "casefold" => Value::from(s.to_lowercase()),
        "isdecimal" => Value::from(!s.is_empty() && s.chars().all(|c| c.is_numeric())),
        _ => return Ok(None),
    }))
}

pub fn unknown_method(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    check_deadline()?;
    if let Some(s) = value.as_str() {
        if let Some(result) = string_method(s, method, args)? {
            return Ok(result);
        }
    }
    match (value.kind(), method) {
        (ValueKind::Seq, "index") => {
            let (what,): (&Value,) = from_args(args)?;
            for (i, item) in value.try_iter()?.checked().enumerate() {
                if item? == *what {
                    return Ok(Value::from(i));
                }
            }
            Err(Error::new(ErrorKind::InvalidOperation, format!("{what} is not in list")))
        }
        (ValueKind::Seq | ValueKind::Map, "copy") => {
            let () = from_args(args)?;
            Ok(value.clone())
        }
        _ => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
    }
}
