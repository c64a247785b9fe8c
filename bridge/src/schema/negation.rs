//! The values that a schema does not allow, as a schema. A keyword speaks of one type only, so that each gives values of
//! that type; `type` gives those of the others.

use serde_json::{json, Map, Value};

use crate::error::Result;
use crate::schema::complement::not_one_of;
use crate::schema::rewriter::Rewriter;
use crate::schema::words::{
    absent, all, any, cannot, child, count, equal, is_true, list, named, of_types, other_types, with_item, with_property,
    MAX_POSITIONS,
};

fn types_of(schema: &Value) -> Vec<&str> {
    let types = schema.get("type");
    let several = types.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    several.chain(types.and_then(Value::as_str)).map(|t| if t == "integer" { "number" } else { t }).collect()
}

fn listed(schema: &Value) -> Option<Vec<&Value>> {
    schema.get("const").map(|value| vec![value]).or_else(|| Some(schema.get("enum")?.as_array()?.iter().collect()))
}

/// Whether it is plain that no value satisfies both: by their types, the values they list, or those of a property that
/// objects must have.
pub fn are_apart(a: &Value, b: &Value) -> bool {
    let (types, others) = (types_of(a), types_of(b));
    if !types.is_empty() && !others.is_empty() && !types.iter().any(|t| others.contains(t)) {
        return true;
    }
    if let (Some(values), Some(others)) = (listed(a), listed(b)) {
        return !values.iter().any(|v| others.iter().any(|o| equal(v, o)));
    }
    if types != ["object"] && others != ["object"] {
        return false;
    }
    let required = [a, b].into_iter().filter_map(|schema| schema.get("required")?.as_array()).flatten();
    let property = |schema: &'_ Value, name: &str| schema.get("properties").and_then(|p| p.get(name)).cloned();
    required.filter_map(Value::as_str).any(|name| match (property(a, name), property(b, name)) {
        (Some(one), Some(other)) => are_apart(&one, &other),
        _ => false,
    })
}

/// The bound on the other side: what a count or a number below a least or above a greatest one is.
fn beyond(key: &str, value: &Value, at: &str) -> Result<Vec<Value>> {
    let number = |key: &str| match value.is_number() {
        true => Ok(vec![json!({"type": "number", key: value})]),
        false => Err(cannot(at)),
    };
    let below = |of: &str, key: &str| {
        let least = count(value, at)?;
        Ok(if least == 0 { Vec::new() } else { vec![json!({"type": of, key: least - 1})] })
    };
    let above = |of: &str, key: &str| Ok(vec![json!({"type": of, key: count(value, at)? + 1})]);
    match key {
        "minimum" => number("exclusiveMaximum"),
        "maximum" => number("exclusiveMinimum"),
        "exclusiveMinimum" => number("maximum"),
        "exclusiveMaximum" => number("minimum"),
        "minLength" => below("string", "maxLength"),
        "minItems" => below("array", "maxItems"),
        "minProperties" => below("object", "maxProperties"),
        "maxLength" => above("string", "minLength"),
        "maxItems" => above("array", "minItems"),
        "maxProperties" => above("object", "minProperties"),
        _ => Err(cannot(at)),
    }
}

impl Rewriter<'_> {
    pub fn negated(&mut self, source: &Value, at: &str) -> Result<Value> {
        let Some(map) = source.as_object() else { return Ok(Value::Bool(source == &Value::Bool(false))) };
        self.enter(at)?;
        let mut options = Vec::new();
        for (key, value) in map {
            options.extend(match self.whole_negated(map, key, at)? {
                Some(option) => vec![option],
                None => self.part_negated(map, key, value, &child(at, key))?,
            });
        }
        self.leave();
        Ok(any(options))
    }

    fn each_negated(&mut self, value: &Value, at: &str) -> Result<Vec<Value>> {
        list(value, at)?.iter().enumerate().map(|(i, source)| self.negated(source, &child(at, &i.to_string()))).collect()
    }

    /// Of keywords that speak of the value as a whole; nothing for others.
    fn whole_negated(&mut self, map: &Map<String, Value>, key: &str, schema: &str) -> Result<Option<Value>> {
        let (value, at) = (&map[key], child(schema, key));
        Ok(Some(match key {
            "allOf" => any(self.each_negated(value, &at)?),
            "anyOf" => all(self.each_negated(value, &at)?),
            "oneOf" => self.none_or_several(value, &at)?,
            "not" => self.schema(value, &at)?,
            "if" => self.conditional_negated(map, schema)?,
            "$ref" | "$dynamicRef" => {
                let (pointer, target) = self.referred(key, value, schema)?;
                self.negated(target, &pointer)?
            }
            "dependentSchemas" => {
                let mut options = Vec::new();
                for (name, source) in named(value, &at)? {
                    let fails = self.negated(source, &child(&at, name))?;
                    options.push(all(vec![json!({"type": "object", "required": [name]}), fails]));
                }
                any(options)
            }
            _ => return Ok(None),
        }))
    }

    fn none_or_several(&mut self, value: &Value, at: &str) -> Result<Value> {
        let options = self.schemas(value, at)?;
        let mut outcomes = vec![all(self.each_negated(value, at)?)];
        for (i, one) in options.iter().enumerate() {
            outcomes.extend(options[..i].iter().map(|other| all(vec![one.clone(), other.clone()])));
        }
        Ok(any(outcomes))
    }

    fn conditional_negated(&mut self, map: &Map<String, Value>, schema: &str) -> Result<Value> {
        let at = child(schema, "if");
        let mut outcomes = Vec::new();
        if let Some(then) = map.get("then") {
            outcomes.push(all(vec![self.schema(&map["if"], &at)?, self.negated(then, &child(schema, "then"))?]));
        }
        if let Some(otherwise) = map.get("else") {
            outcomes.push(all(vec![self.negated(&map["if"], &at)?, self.negated(otherwise, &child(schema, "else"))?]));
        }
        Ok(any(outcomes))
    }

    fn part_negated(&mut self, map: &Map<String, Value>, key: &str, value: &Value, at: &str) -> Result<Vec<Value>> {
        match key {
            "type" => {
                let names: Vec<&str> = value.as_array().map_or_else(
                    || value.as_str().into_iter().collect(),
                    |names| names.iter().filter_map(Value::as_str).collect(),
                );
                Ok(vec![of_types(&other_types(&names))])
            }
            "const" => Ok(vec![not_one_of(std::slice::from_ref(value), at)?]),
            "enum" => Ok(vec![not_one_of(list(value, at)?, at)?]),
            "properties" | "required" | "dependentRequired" | "additionalProperties" => self.names_negated(map, key, at),
            "items" | "prefixItems" | "contains" => self.items_negated(map, key, at),
            "patternProperties" if named(value, at)?.values().all(is_true) => Ok(Vec::new()),
            "propertyNames" | "unevaluatedItems" | "unevaluatedProperties" if is_true(value) => Ok(Vec::new()),
            "uniqueItems" if value == &Value::Bool(false) => Ok(Vec::new()),
            "multipleOf" | "pattern" | "format" | "patternProperties" | "propertyNames" | "uniqueItems" => Err(cannot(at)),
            "unevaluatedItems" | "unevaluatedProperties" | "dependencies" | "additionalItems" => Err(cannot(at)),
            "$recursiveRef" | "$recursiveAnchor" => Err(cannot(at)),
            _ if key.starts_with("min") || key.starts_with("max") || key.starts_with("exclusive") => match key {
                "minContains" | "maxContains" => Ok(Vec::new()), // with `contains`
                _ => beyond(key, value, at),
            },
            _ => Ok(Vec::new()),
        }
    }

    fn names_negated(&mut self, map: &Map<String, Value>, key: &str, at: &str) -> Result<Vec<Value>> {
        let value = &map[key];
        let mut options = Vec::new();
        let lacks = |name: &str| all(vec![json!({"type": "object"}), absent(name)]);
        match key {
            "properties" => {
                for (name, source) in named(value, at)? {
                    let fails = self.negated(source, &child(at, name))?;
                    if fails != Value::Bool(false) {
                        options.push(with_property(name, fails));
                    }
                }
            }
            "required" => options.extend(list(value, at)?.iter().filter_map(Value::as_str).map(lacks)),
            "dependentRequired" => {
                for (name, needed) in named(value, at)? {
                    let needed = list(needed, &child(at, name))?.iter().filter_map(Value::as_str);
                    options.extend(needed.map(|n| all(vec![with_property(name, true.into()), lacks(n)])));
                }
            }
            _ if is_true(value) => {}
            _ if value == &Value::Bool(false) && !map.contains_key("properties") && !map.contains_key("patternProperties") => {
                options.push(json!({"type": "object", "minProperties": 1}));
            }
            _ => return Err(cannot(at)),
        }
        Ok(options)
    }

    fn items_negated(&mut self, map: &Map<String, Value>, key: &str, at: &str) -> Result<Vec<Value>> {
        let value = &map[key];
        let n_first = map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        match key {
            "prefixItems" => {
                let fails = self.each_negated(value, at)?;
                let is_possible = |(_, item): &(usize, Value)| *item != Value::Bool(false);
                Ok(fails.into_iter().enumerate().filter(is_possible).map(|(i, item)| with_item(i, item)).collect())
            }
            "contains" if map.contains_key("minContains") || map.contains_key("maxContains") => Err(cannot(at)),
            "contains" => Ok(vec![json!({"type": "array", "items": self.negated(value, at)?})]),
            _ if is_true(value) => Ok(Vec::new()),
            _ if value == &Value::Bool(false) => Ok(vec![json!({"type": "array", "minItems": n_first + 1})]),
            _ => {
                let most = map.get("maxItems").map(|n| count(n, at)).transpose()?;
                let most = most.filter(|n| *n <= MAX_POSITIONS).ok_or_else(|| cannot(at))?;
                let fails = self.negated(value, at)?;
                Ok((n_first..most as usize).map(|i| with_item(i, fails.clone())).collect())
            }
        }
    }
}
