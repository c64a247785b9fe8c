//! Schemas in the words that the compiler below has: `not`, `if`, `oneOf`, `dependentRequired`, `propertyNames`, `contains`,
//! `unevaluatedProperties` and others become combinations of the keywords that it enforces. The result allows what the
//! schema allows and nothing else, with one exception: where "no integer" is asked for, no number is allowed, for want of
//! a keyword that tells 1.5 from 1. What cannot be written so is refused with its place.

use serde_json::{json, Map, Value};

use crate::error::{clip, Error, Result, Status};
use crate::negation::are_apart;
use crate::references::References;
use crate::schema_check::{child, parts};
use crate::{arrays, formats, names};

/// Schemas visited, those that are written several times counted so.
const MAX_PARTS: usize = 20_000;
const MAX_DEPTH: usize = 128;
/// `oneOf` needs the square of this many copies.
const MAX_EXCLUSIVE: usize = 12;
const COUNTS: [&str; 6] = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
const REPLACED: [&str; 19] = [
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "format",
    "if",
    "maxContains",
    "minContains",
    "not",
    "oneOf",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
const DRAFTS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
];

pub(crate) struct Rewriter<'a> {
    root: &'a Value,
    references: References,
    /// Pointers of what is referred to; the place in it is the name in the result's `$defs`.
    targets: Vec<String>,
    n_parts: usize,
    depth: usize,
}

pub(crate) fn refused(at: &str, why: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("schema at {at}: {why}"))
}

/// The keyword at `at` stands where the schema cannot be written without it.
pub(crate) fn cannot(at: &str) -> Error {
    refused(at, "this keyword can't be enforced here, and is not ignored")
}

pub(crate) fn all(parts: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = parts.into_iter().filter(|p| !is_true(p)).collect();
    match kept.len() {
        _ if kept.contains(&Value::Bool(false)) => Value::Bool(false),
        0 => Value::Bool(true),
        1 => kept.remove(0),
        _ => json!({"allOf": kept}),
    }
}

pub(crate) fn any(options: Vec<Value>) -> Value {
    let mut kept: Vec<Value> = options.into_iter().filter(|o| *o != Value::Bool(false)).collect();
    match kept.len() {
        _ if kept.iter().any(is_true) => Value::Bool(true),
        0 => Value::Bool(false),
        1 => kept.remove(0),
        _ => json!({"anyOf": kept}),
    }
}

pub(crate) fn is_true(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

pub(crate) fn list<'v>(value: &'v Value, at: &str) -> Result<&'v Vec<Value>> {
    value.as_array().ok_or_else(|| Error::invalid(format!("schema at {at}: must be an array, is {}", shown(value))))
}

pub(crate) fn named<'v>(value: &'v Value, at: &str) -> Result<&'v Map<String, Value>> {
    value.as_object().ok_or_else(|| Error::invalid(format!("schema at {at}: must be an object, is {}", shown(value))))
}

/// A count; 2.0 is one too.
pub(crate) fn count(value: &Value, at: &str) -> Result<u64> {
    let whole = value.as_f64().filter(|x| *x >= 0.0 && x.fract() == 0.0 && *x <= f64::from(u32::MAX)).map(|x| x as u64);
    let number = value.as_u64().or(whole);
    number.ok_or_else(|| Error::invalid(format!("schema at {at}: must be a non-negative integer, is {}", shown(value))))
}

fn shown(value: &Value) -> String {
    clip(&value.to_string(), 60)
}

/// Whether the schema uses what is put differently here. REQUIRES: as for `plain`.
pub fn may_help(root: &Value) -> bool {
    let Some(map) = root.as_object() else { return false };
    let is_decimal_count = |key: &str| COUNTS.contains(&key) && map[key].is_f64();
    map.keys().any(|key| REPLACED.contains(&key.as_str()) || is_decimal_count(key))
        || parts(map, "").into_iter().any(|(part, _)| may_help(part))
}

/// The schema at `root`, written anew. REQUIRES: `schema_check::check` passed it.
pub fn plain(root: &Value) -> Result<Value> {
    let references = References::of(root)?;
    let mut rewriter = Rewriter { root, references, targets: Vec::new(), n_parts: 0, depth: 0 };
    let mut result = rewriter.schema(root, "")?;
    let mut definitions = Map::new();
    while definitions.len() < rewriter.targets.len() {
        let name = definitions.len();
        let at = rewriter.targets[name].clone();
        let schema = rewriter.schema(rewriter.target(&at)?, &at)?;
        definitions.insert(name.to_string(), schema);
    }
    if let (Value::Object(map), false) = (&mut result, definitions.is_empty()) {
        map.insert("$defs".into(), definitions.into());
    }
    Ok(result)
}

impl<'a> Rewriter<'a> {
    pub fn enter(&mut self, at: &str) -> Result<()> {
        self.n_parts += 1;
        self.depth += 1;
        if self.n_parts > MAX_PARTS {
            return Err(Error::limit(format!("schema at {at}: more than {MAX_PARTS} parts when its branches are written out")));
        }
        if self.depth > MAX_DEPTH {
            return Err(refused(at, "refers to itself where it cannot be written out"));
        }
        Ok(())
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    fn target(&self, pointer: &str) -> Result<&'a Value> {
        self.root.pointer(pointer).ok_or_else(|| Error::invalid(format!("schema: there is no {pointer}, which a $ref names")))
    }

    /// The pointer and the schema that the `$ref` or `$dynamicRef` at `at` leads to, from the schema at `schema`.
    pub fn referred(&self, key: &str, text: &Value, schema: &str) -> Result<(String, &'a Value)> {
        let at = child(schema, key);
        let text = text.as_str().ok_or_else(|| Error::invalid(format!("schema at {at}: must be a string")))?;
        let target = self.references.resolve(text, schema, &at)?;
        if key == "$dynamicRef" && self.references.is_dynamic(self.root, &target) {
            return Err(refused(&at, "several schemas have this $dynamicAnchor, and which is meant cannot be told here"));
        }
        let found = self.target(&target.pointer)?;
        Ok((target.pointer, found))
    }

    fn reference(&mut self, key: &str, text: &Value, schema: &str) -> Result<Value> {
        let (pointer, _) = self.referred(key, text, schema)?;
        if pointer.is_empty() {
            return Ok(json!({"$ref": "#"}));
        }
        let place = self.targets.iter().position(|known| *known == pointer).unwrap_or_else(|| {
            self.targets.push(pointer);
            self.targets.len() - 1
        });
        Ok(json!({"$ref": format!("#/$defs/{place}")}))
    }

    pub fn schema(&mut self, source: &Value, at: &str) -> Result<Value> {
        let Some(map) = source.as_object() else { return Ok(source.clone()) };
        self.enter(at)?;
        let result = if map.contains_key("unevaluatedProperties") || map.contains_key("unevaluatedItems") {
            self.closed(source, at)?
        } else {
            let mut parts = self.local(map, at)?;
            self.in_place(map, at, &mut parts)?;
            all(parts)
        };
        self.leave();
        Ok(result)
    }

    pub fn schemas(&mut self, sources: &Value, at: &str) -> Result<Vec<Value>> {
        list(sources, at)?.iter().enumerate().map(|(i, source)| self.schema(source, &child(at, &i.to_string()))).collect()
    }

    fn named_schemas(&mut self, sources: &Value, at: &str) -> Result<Value> {
        let pairs = named(sources, at)?.iter().map(|(name, s)| Ok((name.clone(), self.schema(s, &child(at, name))?)));
        Ok(Value::Object(pairs.collect::<Result<_>>()?))
    }

    /// What the schema says of the value's own parts: schemas that hold together. The first has the compiler's keywords.
    pub fn local(&mut self, map: &Map<String, Value>, schema: &str) -> Result<Vec<Value>> {
        let mut own = Map::new();
        let mut parts = Vec::new();
        for (key, value) in map {
            let at = child(schema, key);
            let kept = match key.as_str() {
                "type" | "pattern" | "required" | "multipleOf" => value.clone(),
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.clone(),
                _ if COUNTS.contains(&key.as_str()) => count(value, &at)?.into(),
                "properties" | "patternProperties" => self.named_schemas(value, &at)?,
                "prefixItems" => self.schemas(value, &at)?.into(),
                "additionalProperties" => self.schema(value, &at)?,
                "items" if value.is_array() => return Err(cannot(&at)),
                "items" => self.schema(value, &at)?,
                _ => {
                    parts.extend(self.local_part(map, key, schema)?);
                    continue;
                }
            };
            own.insert(key.clone(), kept);
        }
        parts.insert(0, own.into());
        Ok(parts)
    }

    fn local_part(&mut self, map: &Map<String, Value>, key: &str, schema: &str) -> Result<Option<Value>> {
        let (value, at) = (&map[key], child(schema, key));
        Ok(Some(match key {
            "const" | "enum" => json!({ key: value }),
            "format" => formats::schema(value),
            "dependentRequired" => names::dependent_required(value, &at)?,
            "propertyNames" => self.property_names(value, &at)?,
            "contains" => self.contains(map, schema)?,
            "uniqueItems" => arrays::unique_items(map, &at)?,
            "$schema" if !is_known_draft(value) => return Err(cannot(&at)),
            "dependencies" | "additionalItems" | "$recursiveRef" | "$recursiveAnchor" => return Err(cannot(&at)),
            _ => return Ok(None),
        }))
    }

    /// What holds for the value as a whole.
    fn in_place(&mut self, map: &Map<String, Value>, schema: &str, parts: &mut Vec<Value>) -> Result<()> {
        for (key, value) in map {
            let at = child(schema, key);
            match key.as_str() {
                "allOf" => parts.extend(self.schemas(value, &at)?),
                "anyOf" => parts.push(any(self.schemas(value, &at)?)),
                "oneOf" => parts.push(self.one_of(value, &at)?),
                "$ref" | "$dynamicRef" => parts.push(self.reference(key, value, schema)?),
                "not" => parts.push(self.negated(value, &at)?),
                "if" => parts.push(self.conditional(map, schema)?),
                "dependentSchemas" => parts.extend(self.dependent_schemas(value, &at)?),
                _ => {}
            }
        }
        Ok(())
    }

    /// `if` with `then` and `else`, either of which may be absent.
    pub fn conditional(&mut self, map: &Map<String, Value>, schema: &str) -> Result<Value> {
        let (then, otherwise) = (map.get("then"), map.get("else"));
        if then.is_none() && otherwise.is_none() {
            return Ok(Value::Bool(true));
        }
        let at = child(schema, "if");
        let mut holds = vec![self.schema(&map["if"], &at)?];
        let mut fails = vec![self.negated(&map["if"], &at)?];
        if let Some(then) = then {
            holds.push(self.schema(then, &child(schema, "then"))?);
        }
        if let Some(otherwise) = otherwise {
            fails.push(self.schema(otherwise, &child(schema, "else"))?);
        }
        Ok(any(vec![all(holds), all(fails)]))
    }

    fn one_of(&mut self, value: &Value, at: &str) -> Result<Value> {
        let sources = list(value, at)?;
        let options = self.schemas(value, at)?;
        let depth = self.depth;
        match self.exclusions(sources, at) {
            Ok(others) => Ok(any(options.into_iter().zip(others).map(|(one, other)| all(vec![one, other])).collect())),
            // The compiler below sees of some that no value satisfies two of them.
            Err(e) if e.status == Status::Unsupported => {
                self.depth = depth;
                Ok(json!({"oneOf": options}))
            }
            Err(e) => Err(e),
        }
    }

    /// For each option of a `oneOf`: none of the others.
    pub fn exclusions(&mut self, options: &[Value], at: &str) -> Result<Vec<Value>> {
        let overlaps = |i: usize, j: usize| i != j && !are_apart(&options[i], &options[j]);
        let n = options.len();
        let mut negations = vec![Value::Bool(true); n];
        for i in (0..n).filter(|i| (0..n).any(|j| overlaps(*i, j))) {
            if n > MAX_EXCLUSIVE {
                return Err(cannot(at));
            }
            negations[i] = self.negated(&options[i], &child(at, &i.to_string()))?;
        }
        let others = |i: usize| all((0..n).filter(|j| overlaps(i, *j)).map(|j| negations[j].clone()).collect());
        Ok((0..n).map(others).collect())
    }
}

fn is_known_draft(value: &Value) -> bool {
    value.as_str().is_some_and(|text| DRAFTS.contains(&text.trim_end_matches('#')))
}
