//! Schemas in the words that the compiler below has: `not`, `if`, `oneOf`, `dependentRequired`, `propertyNames`, `contains`,
//! `unevaluatedProperties` and others become combinations of the keywords that it enforces. The result allows what the
//! schema allows and nothing else, with one exception: where "no integer" is asked for, no number is allowed, for want of
//! a keyword that tells 1.5 from 1. What cannot be written so is refused with its place.

use serde_json::{json, Map, Value};

use crate::error::{Result, Status};
use crate::schema::negation::are_apart;
use crate::schema::rewriter::Rewriter;
use crate::schema::words::{all, any, cannot, child, count, list, named, parts};
use crate::schema::{arrays, formats, names};

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

/// Whether the schema uses what is put differently here. REQUIRES: as for `plain`.
pub fn may_help(root: &Value) -> bool {
    let Some(map) = root.as_object() else { return false };
    let is_decimal_count = |key: &str| COUNTS.contains(&key) && map[key].is_f64();
    map.keys().any(|key| REPLACED.contains(&key.as_str()) || is_decimal_count(key))
        || parts(map, "").into_iter().any(|(part, _)| may_help(part))
}

/// The schema at `root`, written anew. REQUIRES: `check::check` passed it.
pub fn plain(root: &Value) -> Result<Value> {
    let mut rewriter = Rewriter::of(root)?;
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

impl Rewriter<'_> {
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
