//! jinja2's filters of sequences.

use super::arguments::{Args, Bound};
use super::ast::Operator;
use super::attributes::item;
use super::budget::{fault, room, spend, Done};
use super::dict::Dict;
use super::eval::Interp;
use super::methods::{join, with_case};
use super::operators::binary;
use super::text::{Builder, Str};
use super::value::{sort, Items, Stream, Value};
use std::cmp::Ordering;

/// The dotted parts of an attribute; numbers are indices.
type Path = Vec<Value>;

fn path_of(attribute: &Value) -> Done<Path> {
    match attribute {
        Value::None => Ok(Vec::new()),
        Value::Str(text) => {
            let part = |p: &str| p.parse::<i128>().map_or_else(|_| Value::own(p), |i| Ok(Value::Int(i)));
            text.as_str().split('.').map(part).collect()
        }
        other => Ok(vec![other.clone()]),
    }
}

fn follow(value: &Value, path: &Path, default: Option<&Value>) -> Done<Value> {
    let mut value = value.clone();
    for key in path {
        value = item(&value, key)?;
        if let (true, Some(default)) = (value.is_undefined(), default) {
            value = default.clone();
        }
    }
    Ok(value)
}

/// What an item is ordered by: strings without their case, unless that matters.
fn key_of(value: &Value, path: &Path, is_case_sensitive: bool) -> Done<Value> {
    match follow(value, path, None)? {
        Value::Str(text) if !is_case_sensitive => with_case(&text, "lower").map(Value::Str),
        other => Ok(other),
    }
}

fn comes_before(a: &Value, b: &Value, is_reversed: bool) -> Done<bool> {
    let order = if is_reversed { b.order(a, "<")? } else { a.order(b, "<")? };
    Ok(order == Some(Ordering::Less))
}

fn sorted(items: Vec<(Value, Value)>, is_reversed: bool) -> Done<Vec<Value>> {
    let mut items = items;
    sort(&mut items, &mut |a, b| comes_before(&a.0, &b.0, is_reversed))?;
    Ok(items.into_iter().map(|pair| pair.1).collect())
}

impl Interp<'_> {
    pub fn sequence_filter(&mut self, name: &str, value: Value, arguments: Args) -> Done<Value> {
        spend(1 + value.len().unwrap_or(0) as u64 / 4)?;
        match name {
            "list" => Value::list(value.iterate()?),
            "join" => {
                let mut given = arguments.bind(name, ["d", "attribute"])?;
                let path = given.take(1).map_or_else(|| Ok(Vec::new()), |a| path_of(&a))?;
                let separator = given.take(0).map_or_else(|| Str::own(""), |d| d.to_text())?;
                let items = value.iterate()?.iter().map(|i| follow(i, &path, None)).collect::<Done<Vec<_>>>()?;
                join(&separator.with_safety(false)?, &items, false).map(Value::Str)
            }
            "items" => items_of(&value),
            "first" => Ok(first(&value)?.unwrap_or_else(|| Value::undefined("No first item, sequence was empty."))),
            "last" => last(&value),
            "reverse" => reverse(&value),
            "dictsort" => dict_sort(&value, arguments.bind(name, ["case_sensitive", "by", "reverse"])?),
            "sort" => sort_filter(&value, arguments.bind(name, ["reverse", "case_sensitive", "attribute"])?),
            "unique" => unique(&value, arguments.bind(name, ["case_sensitive", "attribute"])?),
            "min" | "max" => extreme(name, &value, arguments.bind(name, ["case_sensitive", "attribute"])?),
            "sum" => {
                let mut given = arguments.bind(name, ["attribute", "start"])?;
                let path = given.take(0).map_or_else(|| Ok(Vec::new()), |a| path_of(&a))?;
                let start = given.take(1).unwrap_or(Value::Int(0));
                value.iterate()?.iter().try_fold(start, |sum, i| binary(Operator::Add, &sum, &follow(i, &path, None)?))
            }
            "batch" => batch(&value, arguments.bind(name, ["linecount", "fill_with"])?),
            "slice" => slices(&value, arguments.bind(name, ["slices", "fill_with"])?),
            "groupby" => group_by(&value, arguments.bind(name, ["attribute", "default", "case_sensitive"])?),
            "map" => self.map_filter(&value, arguments),
            "select" | "reject" | "selectattr" | "rejectattr" => self.select(name, &value, arguments),
            _ => fault(format!("No filter named '{name}'")),
        }
    }

    fn map_filter(&mut self, value: &Value, mut arguments: Args) -> Done<Value> {
        let mut results = Vec::new();
        if !value.truth() {
            return Stream::value(results, "generator");
        }
        if arguments.positional.is_empty() {
            let mut given = arguments.bind("map", ["attribute", "default"])?;
            let (Some(attribute), default) = (given.take(0), given.take(1)) else {
                return fault("map requires a filter argument");
            };
            let path = path_of(&attribute)?;
            for item in value.iterate()? {
                results.push(follow(&item, &path, default.as_ref())?);
            }
            return Stream::value(results, "generator");
        }
        let name = arguments.positional.remove(0).to_text()?;
        for item in value.iterate()? {
            let given = Args { positional: arguments.positional.clone(), named: arguments.named.clone() };
            results.push(self.filter(name.as_str(), item, given)?);
        }
        Stream::value(results, "generator")
    }

    fn select(&mut self, filter: &str, value: &Value, mut arguments: Args) -> Done<Value> {
        let mut path = Vec::new();
        if filter.ends_with("attr") {
            if arguments.positional.is_empty() {
                return fault("Missing parameter for attribute name");
            }
            path = path_of(&arguments.positional.remove(0))?;
        }
        let test = match arguments.positional.is_empty() {
            true => None,
            false => Some(arguments.positional.remove(0).to_text()?),
        };
        let wanted = filter.starts_with("select");
        let mut kept = Vec::new();
        let items = if value.truth() { value.iterate()? } else { Vec::new() };
        for item in items {
            let looked_at = follow(&item, &path, None)?;
            let passes = match &test {
                None => looked_at.truth(),
                Some(name) => {
                    let given = Args { positional: arguments.positional.clone(), named: arguments.named.clone() };
                    self.test(name.as_str(), looked_at, given)?
                }
            };
            if passes == wanted {
                kept.push(item);
            }
        }
        Stream::value(kept, "generator")
    }
}

fn items_of(value: &Value) -> Done<Value> {
    match value {
        Value::Undefined(_) => Stream::value(Vec::new(), "generator"),
        Value::Dict(dict) => {
            let pairs = dict.entries().iter().map(|e| Value::tuple(vec![e.0.clone(), e.1.clone()]));
            Stream::value(pairs.collect::<Done<_>>()?, "generator")
        }
        _ => fault("Can only get item pairs from a mapping."),
    }
}

fn first(value: &Value) -> Done<Option<Value>> {
    Ok(match value {
        Value::List(items) | Value::Tuple(items) => items.items.first().cloned(),
        Value::Stream(stream) => stream.next(),
        Value::Str(text) => match text.as_str().chars().next() {
            Some(c) => Some(Value::Str(text.slice(0, c.len_utf8())?)),
            None => None,
        },
        other => other.iterate()?.into_iter().next(),
    })
}

fn last(value: &Value) -> Done<Value> {
    let item = match value {
        Value::List(items) | Value::Tuple(items) => items.items.last().cloned(),
        Value::Stream(stream) => return fault(format!("'{}' object is not reversible", stream.what)),
        Value::Str(text) => match text.as_str().char_indices().next_back() {
            Some((at, _)) => Some(Value::Str(text.slice(at, text.as_str().len())?)),
            None => None,
        },
        other => other.iterate()?.pop(),
    };
    Ok(item.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")))
}

fn reverse(value: &Value) -> Done<Value> {
    if let Value::Str(text) = value {
        let mut out = Builder::like(text);
        for (at, c) in text.as_str().char_indices().rev() {
            out.push_range(text, at, at + c.len_utf8())?;
        }
        return out.finish().map(Value::Str);
    }
    let mut items = value.iterate()?;
    items.reverse();
    match value {
        Value::Stream(_) => Value::list(items),
        _ => Stream::value(items, "list_reverseiterator"),
    }
}

fn dict_sort(value: &Value, given: Bound<3>) -> Done<Value> {
    let Value::Dict(dict) = value else {
        value.check_defined()?;
        return fault(format!("'{} object' has no attribute 'items'", value.type_name()));
    };
    let by = given.text(1)?;
    let at = match by.as_ref().map_or("key", Str::as_str) {
        "key" => 0,
        "value" => 1,
        _ => return fault("You can only sort by either \"key\" or \"value\""),
    };
    let path = vec![Value::Int(at)];
    let keyed = dict.entries().iter().map(|e| {
        let pair = Value::tuple(vec![e.0.clone(), e.1.clone()])?;
        Ok((key_of(&pair, &path, given.truth(0, false))?, pair))
    });
    sorted(keyed.collect::<Done<_>>()?, given.truth(2, false)).and_then(Value::list)
}

fn sort_filter(value: &Value, mut given: Bound<3>) -> Done<Value> {
    let (is_reversed, is_case_sensitive) = (given.truth(0, false), given.truth(1, false));
    let paths: Vec<Path> = match given.take(2) {
        Some(Value::Str(names)) => {
            let part = |name: &str| names.part(name).map(Value::Str).and_then(|name| path_of(&name));
            names.as_str().split(',').map(part).collect::<Done<_>>()?
        }
        Some(other) => vec![path_of(&other)?],
        None => vec![Vec::new()],
    };
    let keyed = value.iterate()?.into_iter().map(|item| {
        let keys = paths.iter().map(|path| key_of(&item, path, is_case_sensitive)).collect::<Done<Vec<_>>>()?;
        Ok((Value::list(keys)?, item))
    });
    sorted(keyed.collect::<Done<_>>()?, is_reversed).and_then(Value::list)
}

fn unique(value: &Value, mut given: Bound<2>) -> Done<Value> {
    let is_case_sensitive = given.truth(0, false);
    let path = given.take(1).map_or_else(|| Ok(Vec::new()), |a| path_of(&a))?;
    let mut seen = Dict::empty();
    let mut kept = Vec::new();
    for item in value.iterate()? {
        let key = key_of(&item, &path, is_case_sensitive)?;
        if seen.get(&key)?.is_none() {
            seen.insert(key, Value::None)?;
            kept.push(item);
        }
    }
    Stream::value(kept, "generator")
}

fn extreme(name: &str, value: &Value, mut given: Bound<2>) -> Done<Value> {
    let is_case_sensitive = given.truth(0, false);
    let path = given.take(1).map_or_else(|| Ok(Vec::new()), |a| path_of(&a))?;
    let mut best: Option<(Value, Value)> = None;
    for item in value.iterate()? {
        let key = key_of(&item, &path, is_case_sensitive)?;
        let is_better = match &best {
            None => true,
            Some((known, _)) => comes_before(&key, known, name == "max")?,
        };
        if is_better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Value::undefined("No aggregated item, sequence was empty."), |b| b.1))
}

fn batch(value: &Value, mut given: Bound<2>) -> Done<Value> {
    let size = given.int(0, 0)?;
    let Some(size) = usize::try_from(size).ok().filter(|n| *n > 0) else { return fault("batch: linecount is not positive") };
    let fill = given.take(1).filter(|f| !f.is_none());
    let mut batches = Vec::new();
    for chunk in value.iterate()?.chunks(size) {
        let mut batch = chunk.to_vec();
        if let Some(fill) = &fill {
            room(size.saturating_mul(std::mem::size_of::<Value>()))?;
            batch.resize(size, fill.clone());
        }
        batches.push(Value::list(batch)?);
    }
    Stream::value(batches, "generator")
}

fn slices(value: &Value, mut given: Bound<2>) -> Done<Value> {
    let n = given.int(0, 0)?;
    let Some(n) = usize::try_from(n).ok().filter(|n| (1..=100_000).contains(n)) else {
        return fault("slice: slices is not from 1 to 100000");
    };
    let fill = given.take(1).filter(|f| !f.is_none());
    let items = value.iterate()?;
    let (size, with_extra) = (items.len() / n, items.len() % n);
    let mut results = Vec::new();
    for i in 0..n {
        let start = i * size + i.min(with_extra);
        let end = start + size + usize::from(i < with_extra);
        let mut part = items[start..end].to_vec();
        part.extend(fill.clone().filter(|_| i >= with_extra));
        results.push(Value::list(part)?);
    }
    Stream::value(results, "generator")
}

fn group_by(value: &Value, mut given: Bound<3>) -> Done<Value> {
    let is_case_sensitive = given.truth(2, false);
    let path = path_of(&given.needed(0)?)?;
    let default = given.take(1).filter(|d| !d.is_none());
    let lowered = |key: Value| match key {
        Value::Str(text) if !is_case_sensitive => with_case(&text, "lower").map(Value::Str),
        other => Ok(other),
    };
    let keyed = value.iterate()?.into_iter().map(|item| {
        let key = follow(&item, &path, default.as_ref())?;
        Ok((lowered(key.clone())?, Value::tuple(vec![key, item])?))
    });
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for pair in sorted(keyed.collect::<Done<_>>()?, false)? {
        let mut pair = pair.iterate()?;
        let (Some(item), Some(key)) = (pair.pop(), pair.pop()) else { continue };
        let sort_key = lowered(key.clone())?;
        match groups.last_mut() {
            Some(group) if group.0.equals(&sort_key)? => group.2.push(item),
            _ => groups.push((sort_key, key, vec![item])),
        }
    }
    let named = |group: (Value, Value, Vec<Value>)| {
        Items::named(vec![group.1, Value::list(group.2)?], &["grouper", "list"]).map(Value::Tuple)
    };
    Value::list(groups.into_iter().map(named).collect::<Done<_>>()?)
}
