//! A schema of an earlier draft in the keywords of draft 2020-12. References into what moves lead nowhere, and are then
//! refused.

use serde_json::{json, Map, Value};

use crate::schema::words::{holds, Holds};

const OF_2020: [&str; 2] = ["https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema"];
/// The compiler below passes over these in schemas of drafts that do not define them.
const LATER: [&str; 16] = [
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$anchor",
    "$dynamicAnchor",
];

/// Whether it has a keyword that its `$schema` may not define: the author meant it.
pub fn is_ahead_of_its_draft(root: &Value) -> bool {
    match root.get("$schema").and_then(Value::as_str) {
        Some(draft) => draft.trim_end_matches('#') != OF_2020[0] && has_later(root),
        None => false,
    }
}

fn has_later(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else { return false };
    map.iter().any(|(key, value)| {
        LATER.contains(&key.as_str())
            || match (holds(key), value) {
                (Some(Holds::Named), Value::Object(named)) => named.values().any(has_later),
                (Some(_), Value::Array(parts)) => parts.iter().any(has_later),
                (Some(_), part) => has_later(part),
                (None, _) => false,
            }
    })
}

/// REQUIRES: `check::check` passed it.
pub fn upgraded(schema: &Value) -> Value {
    let mut result = schema.clone();
    let has_old_ids = schema.get("$schema").and_then(Value::as_str).is_some_and(|draft| draft.contains("draft-04"));
    upgrade(&mut result, has_old_ids);
    result
}

/// What stands where no keyword holds schemas is taken for one: a reference may name it, and otherwise it has no effect.
fn upgrade(schema: &mut Value, has_old_ids: bool) {
    let inner = |part: &mut Value| upgrade(part, has_old_ids);
    match schema {
        Value::Array(items) => items.iter_mut().for_each(inner),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (holds(key), value) {
                    (Some(Holds::Named), Value::Object(named)) => named.values_mut().for_each(inner),
                    (None, Value::Object(named)) if key == "dependencies" => named.values_mut().for_each(inner),
                    (None, _) if key == "const" || key == "enum" => {}
                    (_, value) => inner(value),
                }
            }
            if has_old_ids {
                upgrade_id(map);
            }
            upgrade_items(map);
            upgrade_dependencies(map);
            upgrade_exclusive(map, "minimum", "exclusiveMinimum");
            upgrade_exclusive(map, "maximum", "exclusiveMaximum");
        }
        _ => {}
    }
}

fn upgrade_items(map: &mut Map<String, Value>) {
    let rest = map.remove("additionalItems");
    if !map.get("items").is_some_and(Value::is_array) {
        return;
    }
    if let Some(first) = map.remove("items") {
        map.insert("prefixItems".into(), first);
        map.extend(rest.map(|rest| ("items".to_string(), rest)));
    }
}

fn upgrade_dependencies(map: &mut Map<String, Value>) {
    if !map.get("dependencies").is_some_and(Value::is_object) {
        return;
    }
    let Some(Value::Object(all)) = map.remove("dependencies") else { return };
    let (names, schemas): (Map<_, _>, Map<_, _>) = all.into_iter().partition(|(_, value)| value.is_array());
    for (key, part) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
        if part.is_empty() {
            continue;
        }
        match map.contains_key(key) {
            true => add_all_of(map, json!({ key: part })),
            false => drop(map.insert(key.into(), part.into())),
        }
    }
}

fn add_all_of(map: &mut Map<String, Value>, part: Value) {
    if let Value::Array(parts) = map.entry("allOf").or_insert_with(|| json!([])) {
        parts.push(part);
    }
}

fn upgrade_exclusive(map: &mut Map<String, Value>, closed: &str, open: &str) {
    let Some(Value::Bool(is_open)) = map.get(open).cloned() else { return };
    map.remove(open);
    if !is_open {
        return;
    }
    if let Some(bound) = map.remove(closed) {
        map.insert(open.into(), bound);
    }
}

/// Draft 4's name for `$id`, which also gave anchors.
fn upgrade_id(map: &mut Map<String, Value>) {
    let Some(Value::String(id)) = map.get("id").cloned() else { return };
    match id.strip_prefix('#') {
        Some("") => {}
        Some(name) => drop(map.insert("$anchor".into(), name.into())),
        None => drop(map.insert("$id".into(), id.into())),
    }
    map.remove("id");
}
