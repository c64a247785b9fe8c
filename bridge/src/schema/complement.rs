//! Every value but some: what `const` and `enum` leave when they are negated.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{json, Value};

use crate::error::{Error, Result};
use crate::schema::words::{absent, all, any, of_types, other_types, refused, with_item, with_property};

/// Of the strings together; the pattern for the rest takes the square of it at worst.
const MAX_BYTES: usize = 512;
/// Whole numbers beyond it are not exact in the compiler's arithmetic.
const MAX_EXACT: f64 = 9007199254740992.0;

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A schema for all values that equal none of `values`.
pub fn not_one_of(values: &[Value], at: &str) -> Result<Value> {
    let types: Vec<&str> = values.iter().map(type_of).collect();
    let mut options = vec![of_types(&other_types(&types))];
    for of in ["boolean", "number", "string", "array", "object"] {
        let excluded: Vec<&Value> = values.iter().filter(|v| type_of(v) == of).collect();
        if excluded.is_empty() {
            continue;
        }
        options.push(match of {
            "boolean" => other_booleans(&excluded),
            "number" => other_numbers(&excluded, at)?,
            "string" => other_strings(&excluded, at)?,
            _ => all(excluded.into_iter().map(|value| differing(value, at)).collect::<Result<_>>()?),
        });
    }
    Ok(any(options))
}

fn other_booleans(excluded: &[&Value]) -> Value {
    let left = [true, false].into_iter().filter(|b| !excluded.contains(&&Value::Bool(*b)));
    any(left.map(|b| json!({"const": b})).collect())
}

/// The gaps between the numbers.
fn other_numbers(excluded: &[&Value], at: &str) -> Result<Value> {
    let mut sorted: Vec<&Value> = excluded.to_vec();
    let size = |value: &Value| value.as_f64().unwrap_or(f64::INFINITY);
    if sorted.iter().any(|value| size(value).abs() > MAX_EXACT) {
        return Err(refused(at, "a number beyond 2^53 cannot be excluded exactly"));
    }
    sorted.sort_by(|a, b| size(a).total_cmp(&size(b)));
    sorted.dedup_by(|a, b| size(a) == size(b));
    let mut gaps = vec![json!({"type": "number", "exclusiveMaximum": sorted[0]})];
    gaps.extend(sorted.windows(2).map(|w| json!({"type": "number", "exclusiveMinimum": w[0], "exclusiveMaximum": w[1]})));
    gaps.push(json!({"type": "number", "exclusiveMinimum": sorted[sorted.len() - 1]}));
    Ok(any(gaps))
}

/// One alternative for each beginning of a string: it ends there, or goes on as none of them does.
fn other_strings(excluded: &[&Value], at: &str) -> Result<Value> {
    let texts: BTreeSet<&str> = excluded.iter().filter_map(|value| value.as_str()).collect();
    if texts.iter().map(|text| text.len()).sum::<usize>() > MAX_BYTES {
        return Err(refused(at, format!("strings of more than {MAX_BYTES} bytes cannot be excluded")));
    }
    let mut next: BTreeMap<&str, BTreeSet<char>> = BTreeMap::new();
    for text in &texts {
        next.entry(*text).or_default();
        for (i, c) in text.char_indices() {
            next.entry(&text[..i]).or_default().insert(c);
        }
    }
    let alternatives = next.iter().map(|(beginning, followers)| {
        let quoted: String = followers.iter().map(|c| regex_syntax::escape(&c.to_string())).collect();
        let other = if quoted.is_empty() { "(?s:.)".to_string() } else { format!("[^{quoted}]") };
        let optional = if texts.contains(beginning) { "" } else { "?" };
        format!("{}(?:{other}(?s:.*)){optional}", regex_syntax::escape(beginning))
    });
    Ok(json!({"type": "string", "pattern": format!("^(?:{})$", alternatives.collect::<Vec<_>>().join("|"))}))
}

/// For values without an order or an alphabet: an array or object that differs from `value`.
pub fn differing(value: &Value, at: &str) -> Result<Value> {
    let mut options = Vec::new();
    match value {
        Value::Array(items) => {
            if !items.is_empty() {
                options.push(json!({"type": "array", "maxItems": items.len() - 1}));
            }
            options.push(json!({"type": "array", "minItems": items.len() + 1}));
            for (i, item) in items.iter().enumerate() {
                options.push(with_item(i, not_one_of(std::slice::from_ref(item), at)?));
            }
        }
        Value::Object(map) => {
            let names: Vec<&String> = map.keys().collect();
            options.push(json!({"type": "object", "required": names, "minProperties": names.len() + 1}));
            for (name, item) in map {
                options.push(all(vec![json!({"type": "object"}), absent(name)]));
                options.push(with_property(name, not_one_of(std::slice::from_ref(item), at)?));
            }
        }
        _ => return Err(Error::internal("a value with an order of its own")),
    }
    Ok(any(options))
}
