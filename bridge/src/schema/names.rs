//! What a schema says of an object's names: `propertyNames`, `dependentRequired`, `dependentSchemas`.

use serde_json::{json, Map, Value};

use crate::error::Result;
use crate::schema::rewriter::Rewriter;
use crate::schema::words::{absent, all, any, cannot, child, count, is_true, list, named};

const ANNOTATIONS: [&str; 8] =
    ["title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"];

pub fn dependent_required(value: &Value, at: &str) -> Result<Value> {
    let mut parts = Vec::new();
    for (name, needed) in named(value, at)? {
        let needed = list(needed, &child(at, name))?;
        if needed.is_empty() {
            continue;
        }
        let mut required = vec![Value::from(name.as_str())];
        required.extend(needed.iter().cloned());
        parts.push(any(vec![absent(name), json!({"type": "object", "required": required})]));
    }
    Ok(all(parts))
}

/// Objects that have only these names.
fn only(names: &[Value]) -> Value {
    let known: Map<String, Value> = names.iter().filter_map(Value::as_str).map(|n| (n.to_string(), true.into())).collect();
    json!({"properties": known, "additionalProperties": false})
}

fn only_matching(pattern: &str) -> Value {
    json!({"patternProperties": {pattern: true}, "additionalProperties": false})
}

impl Rewriter<'_> {
    pub fn dependent_schemas(&mut self, value: &Value, at: &str) -> Result<Vec<Value>> {
        let mut parts = Vec::new();
        for (name, source) in named(value, at)? {
            let schema = self.schema(source, &child(at, name))?;
            if !is_true(&schema) {
                let present = json!({"type": "object", "required": [name]});
                parts.push(any(vec![absent(name), all(vec![present, schema])]));
            }
        }
        Ok(parts)
    }

    pub fn property_names(&mut self, value: &Value, at: &str) -> Result<Value> {
        let Some(map) = value.as_object() else {
            return Ok(if is_true(value) { true.into() } else { json!({"maxProperties": 0}) });
        };
        if let (Some(text), 1) = (map.get("$ref"), map.len()) {
            self.enter(at)?;
            let (pointer, target) = self.referred("$ref", text, at)?;
            let names = self.property_names(target, &pointer)?;
            self.leave();
            return Ok(names);
        }
        let rest: Vec<&String> = map.keys().filter(|key| !ANNOTATIONS.contains(&key.as_str())).collect();
        let rest: Vec<&str> = rest.iter().map(|key| key.as_str()).filter(|key| !is_for_strings(key, &map[*key])).collect();
        match rest[..] {
            [] => Ok(true.into()),
            ["const"] => Ok(only(std::slice::from_ref(&map["const"]))),
            ["enum"] => Ok(only(list(&map["enum"], &child(at, "enum"))?)),
            ["pattern"] => Ok(only_matching(map["pattern"].as_str().unwrap_or_default())),
            _ if rest.iter().all(|key| matches!(*key, "minLength" | "maxLength")) => {
                let bound = |key: &str| map.get(key).map(|n| count(n, &child(at, key))).transpose();
                let most = bound("maxLength")?.map_or(String::new(), |n| n.to_string());
                Ok(only_matching(&format!("^(?s:.{{{},{most}}})$", bound("minLength")?.unwrap_or(0))))
            }
            _ => Err(cannot(&child(at, rest[0]))),
        }
    }
}

fn is_for_strings(key: &str, value: &Value) -> bool {
    key == "type" && (value == "string" || value.as_array().is_some_and(|types| types.contains(&"string".into())))
}
