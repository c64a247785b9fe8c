//! What can be said about a JSON schema before it is compiled, with the place as a JSON pointer: wrong types of keywords,
//! counts above the limit, bad patterns, references that would need fetching, schemas that no finite value satisfies.
//! Callers have bounded the depth (`json_text::check_depth`), so that recursion here is bounded too.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::error::{clip, Error, Result, Status};
use crate::schema::conjunction::{self, Search};
use crate::schema::pattern::{self, MAX_REPEAT};
use crate::schema::words::{child, count, find_guidance, holds, parts, place, shown, Holds};
use crate::schema::{keywords, value_check};

const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];
const MAX_SUBSCHEMAS: usize = 50_000;
const MAX_PROPERTIES: usize = 3000;
const MAX_PATTERN_PROPERTIES: usize = 16;

fn wrong(pointer: &str, message: impl std::fmt::Display) -> Error {
    Error::invalid(format!("schema at {}: {message}", place(pointer)))
}

/// Calls `visit` for the schema at `value` and every schema below it.
fn walk<'a>(value: &'a Value, pointer: &str, visit: &mut dyn FnMut(&'a Value, &str) -> Result<()>) -> Result<()> {
    visit(value, pointer)?;
    let Some(map) = value.as_object() else { return Ok(()) };
    for (key, inner) in map {
        match holds(key) {
            Some(Holds::Named) if !inner.is_object() => {
                return Err(wrong(&child(pointer, key), format!("must be an object, is {}", shown(inner))));
            }
            Some(Holds::Many) if !inner.is_array() => {
                return Err(wrong(&child(pointer, key), format!("must be an array, is {}", shown(inner))));
            }
            _ => {}
        }
    }
    for (schema, at) in parts(map, pointer) {
        walk(schema, &at, visit)?;
    }
    Ok(())
}

fn check_type(value: &Value, pointer: &str) -> Result<()> {
    let names: Vec<&Value> = value.as_array().map_or_else(|| vec![value], |all| all.iter().collect());
    for name in names {
        if !name.as_str().is_some_and(|n| TYPES.contains(&n)) {
            return Err(wrong(pointer, format!("{} is not a type (one of {})", shown(name), TYPES.join(", "))));
        }
    }
    Ok(())
}

fn check_count(map: &Map<String, Value>, key: &str, pointer: &str) -> Result<()> {
    let Some(value) = map.get(key) else { return Ok(()) };
    let at = child(pointer, key);
    let count = count(value, &at)?;
    // A maximum above the limit is no burden; a minimum above it is an answer that no context can hold.
    let limit = if key.starts_with("min") { MAX_REPEAT } else { u64::from(u32::MAX / 2) };
    if count > limit {
        return Err(Error::limit(format!("schema at {at}: {count} is above the limit of {limit}")));
    }
    Ok(())
}

fn check_pattern(pattern: &Value, pointer: &str) -> Result<()> {
    let text = pattern.as_str().ok_or_else(|| wrong(pointer, format!("must be a string, is {}", shown(pattern))))?;
    pattern::check(text, &format!("schema at {}", place(pointer)))
}

/// The compiler below takes time quadratic in these.
fn check_names(map: &Map<String, Value>, pointer: &str) -> Result<()> {
    for (key, limit) in [("properties", MAX_PROPERTIES), ("patternProperties", MAX_PATTERN_PROPERTIES)] {
        let n = map.get(key).and_then(Value::as_object).map_or(0, Map::len);
        if n > limit {
            return Err(Error::limit(format!("schema at {}: {n} names, more than {limit}", child(pointer, key))));
        }
    }
    Ok(())
}

fn check_conjunction<'a>(search: &mut Search<'a>, schema: &'a Value, pointer: &str) -> Result<()> {
    // Without one of these there is one schema for a value, and so at most a pattern and a format.
    if !["allOf", "anyOf", "oneOf", "$ref"].iter().any(|key| schema.get(key).is_some()) {
        return Ok(());
    }
    let n = search.patterns_at_once(schema);
    if n > conjunction::MAX_PATTERNS {
        let message =
            format!("schema at {}: {n} patterns for one string, more than {}", place(pointer), conjunction::MAX_PATTERNS);
        return Err(Error::limit(message));
    }
    Ok(())
}

fn check_one(value: &Value, pointer: &str, has_ids: bool) -> Result<()> {
    let map = match value {
        Value::Bool(_) => return Ok(()),
        Value::Object(map) => map,
        other => return Err(wrong(pointer, format!("must be an object or a boolean, is {}", shown(other)))),
    };
    if let Some(types) = map.get("type") {
        check_type(types, &child(pointer, "type"))?;
    }
    for key in ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"] {
        check_count(map, key, pointer)?;
    }
    value_check::check(map, pointer)?;
    check_names(map, pointer)?;
    if let Some(pattern) = map.get("pattern") {
        check_pattern(pattern, &child(pointer, "pattern"))?;
    }
    if let Some(Value::Object(patterns)) = map.get("patternProperties") {
        for pattern in patterns.keys() {
            let at = child(&child(pointer, "patternProperties"), pattern);
            check_pattern(&Value::String(pattern.clone()), &at)?;
        }
    }
    if let Some(Value::Array(options)) = map.get("enum") {
        if options.is_empty() {
            return Err(wrong(&child(pointer, "enum"), "is empty: no value satisfies it"));
        }
    }
    if let Some(reference) = map.get("$ref") {
        let at = child(pointer, "$ref");
        let text = reference.as_str().ok_or_else(|| wrong(&at, "must be a string"))?;
        // With $id in the schema a reference may name a part of it by URI; the compiler resolves that, and never fetches.
        if !text.starts_with('#') && !has_ids {
            let message = format!("schema at {at}: {:?} is outside of the schema, and nothing is fetched", clip(text, 200));
            return Err(Error::unsupported(message));
        }
    }
    Ok(())
}

/// The least fixpoint of "some finite value satisfies this", in doubt yes. Only references by pointer are followed.
struct Productive<'a> {
    root: &'a Value,
    known: HashMap<String, bool>,
    changed: bool,
}

impl Productive<'_> {
    fn of_ref(&mut self, reference: &str) -> bool {
        match self.known.get(reference) {
            Some(known) => *known,
            None => {
                self.known.insert(reference.to_string(), false);
                self.changed = true;
                false
            }
        }
    }

    fn of(&mut self, schema: &Value) -> bool {
        let Some(map) = schema.as_object() else { return true };
        let mut all = true;
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(options)) = map.get(key) {
                all &= options.iter().fold(false, |any, option| self.of(option) | any);
            }
        }
        if let Some(Value::Array(parts)) = map.get("allOf") {
            all &= parts.iter().fold(true, |every, part| self.of(part) & every);
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            if reference == "#" || reference.starts_with("#/") {
                all &= self.of_ref(reference);
            }
        }
        all && self.of_type(map)
    }

    fn of_type(&mut self, map: &Map<String, Value>) -> bool {
        match map.get("type").and_then(Value::as_str) {
            Some("object") => {
                let required = map.get("required").and_then(Value::as_array);
                let properties = map.get("properties").and_then(Value::as_object);
                let (Some(required), Some(properties)) = (required, properties) else { return true };
                required
                    .iter()
                    .filter_map(|name| properties.get(name.as_str()?))
                    .fold(true, |every, schema| self.of(schema) & every)
            }
            Some("array") => {
                let min_items = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
                min_items == 0 || map.contains_key("prefixItems") || map.get("items").is_none_or(|items| self.of(items))
            }
            _ => true,
        }
    }
}

fn check_productive(root: &Value) -> Result<()> {
    let mut analysis = Productive { root, known: HashMap::new(), changed: true };
    let mut root_is = false;
    // Each round settles at least one reference, and a chain of references settles in as many rounds as it is long.
    for _ in 0..256 {
        if !analysis.changed {
            break;
        }
        analysis.changed = false;
        root_is = analysis.of(root);
        for reference in analysis.known.keys().cloned().collect::<Vec<_>>() {
            if analysis.known[&reference] {
                continue;
            }
            let target = if reference == "#" { Some(analysis.root) } else { analysis.root.pointer(&reference[1..]) };
            if target.is_none_or(|schema| analysis.of(schema)) {
                analysis.known.insert(reference, true);
                analysis.changed = true;
            }
        }
    }
    if !root_is && !analysis.changed {
        return Err(wrong("", "no finite value satisfies it: a $ref leads back to itself with nothing else to choose"));
    }
    Ok(())
}

pub fn check<'a>(root: &'a Value) -> Result<()> {
    if let Some(pointer) = find_guidance(root) {
        return Err(Error::unsupported(format!("schema at {pointer}: x-guidance is not accepted")));
    }
    let mut n_schemas = 0usize;
    let mut has_ids = false;
    let mut seen = HashSet::new();
    walk(root, "", &mut |schema, pointer| {
        n_schemas += 1;
        seen.insert(pointer.to_string());
        has_ids |= schema.get("$id").or_else(|| schema.get("id")).is_some();
        Ok(())
    })?;
    if n_schemas > MAX_SUBSCHEMAS {
        return Err(Error::limit(format!("schema has {n_schemas} parts, more than {MAX_SUBSCHEMAS}")));
    }
    let referred = keywords::referred(root);
    let mut search = Search::of(root);
    let mut judge = |schema: &'a Value, pointer: &str| {
        check_one(schema, pointer, has_ids)?;
        if let Some(map) = schema.as_object() {
            keywords::check(map, pointer)?;
        }
        check_conjunction(&mut search, schema, pointer)
    };
    walk(root, "", &mut judge)?;
    // What stands where no keyword holds schemas is one by being referred to.
    for target in referred.iter().filter(|target| !seen.contains(**target)) {
        if let Some(schema) = root.pointer(target) {
            walk(schema, target, &mut judge)?;
        }
    }
    check_productive(root)
}

/// Adds the place to a compiler's complaint about keywords, which names only the keywords.
pub fn locate(root: &Value, message: &str) -> Error {
    let Some(list) = message.split("Unimplemented keys: ").nth(1) else {
        return Error::new(Status::Invalid, format!("schema: {message}"));
    };
    let list = list.lines().next().unwrap_or_default();
    let names: Vec<String> = serde_json::from_str(list).unwrap_or_default();
    let mut found = None;
    let _ = walk(root, "", &mut |schema, pointer| {
        if found.is_none() {
            found = names.iter().find(|name| schema.get(name.as_str()).is_some()).map(|name| child(pointer, name));
        }
        Ok(())
    });
    match found {
        Some(at) => Error::unsupported(format!("schema at {at}: this keyword can't be enforced, and is not ignored")),
        None => Error::unsupported(format!("schema: keywords {list} can't be enforced, and are not ignored")),
    }
}
