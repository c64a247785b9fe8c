//! `unevaluatedProperties` and `unevaluatedItems`: what a value's other keywords speak of depends on which branches of
//! `anyOf`, `oneOf`, `if` and `dependentSchemas` hold. The branches are written out, and each is closed by itself.

use std::collections::BTreeSet;

use serde_json::{json, Map, Value};

use crate::error::{Error, Result};
use crate::schema::rewriter::Rewriter;
use crate::schema::words::{absent, all, any, cannot, child, list, named};

const MAX_BRANCHES: usize = 200;

/// Which properties and items a branch speaks of.
#[derive(Clone, Default)]
struct Seen {
    names: BTreeSet<String>,
    patterns: BTreeSet<String>,
    has_all_names: bool,
    n_items: usize,
    has_all_items: bool,
    has_contains: bool,
}

/// Schemas that hold together, and what they speak of.
#[derive(Clone, Default)]
struct Branch {
    parts: Vec<Value>,
    seen: Seen,
}

impl Branch {
    fn of(part: Value) -> Branch {
        Branch { parts: vec![part], seen: Seen::default() }
    }

    fn and(&self, other: &Branch) -> Branch {
        let (a, b) = (&self.seen, &other.seen);
        let seen = Seen {
            names: a.names.union(&b.names).cloned().collect(),
            patterns: a.patterns.union(&b.patterns).cloned().collect(),
            has_all_names: a.has_all_names || b.has_all_names,
            n_items: a.n_items.max(b.n_items),
            has_all_items: a.has_all_items || b.has_all_items,
            has_contains: a.has_contains || b.has_contains,
        };
        Branch { parts: self.parts.iter().chain(&other.parts).cloned().collect(), seen }
    }
}

fn product(left: &[Branch], right: &[Branch]) -> Vec<Branch> {
    left.iter().flat_map(|a| right.iter().map(move |b| a.and(b))).collect()
}

fn seen_by(map: &Map<String, Value>) -> Seen {
    let names = |key: &str| map.get(key).and_then(Value::as_object).into_iter().flat_map(|map| map.keys()).cloned().collect();
    Seen {
        names: names("properties"),
        patterns: names("patternProperties"),
        has_all_names: map.contains_key("additionalProperties"),
        n_items: map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len),
        has_all_items: map.contains_key("items"),
        has_contains: map.contains_key("contains"),
    }
}

impl Rewriter<'_> {
    /// A schema that has one of the two keywords.
    pub fn closed(&mut self, source: &Value, at: &str) -> Result<Value> {
        let branches = self.branches(source, at)?;
        Ok(any(branches.into_iter().map(|branch| all(branch.parts)).collect()))
    }

    /// One of them holds where the schema at `at` does. More of them than needed may: what one allows, the schema allows.
    fn branches(&mut self, source: &Value, at: &str) -> Result<Vec<Branch>> {
        let Some(map) = source.as_object() else {
            return Ok(if source == &Value::Bool(true) { vec![Branch::default()] } else { Vec::new() });
        };
        self.enter(at)?;
        let mut all_branches = vec![Branch { parts: self.local(map, at)?, seen: seen_by(map) }];
        for key in map.keys() {
            if let Some(more) = self.branches_of(map, key, at)? {
                all_branches = product(&all_branches, &more);
            }
            if all_branches.len() > MAX_BRANCHES {
                let message = format!("schema at {}: more than {MAX_BRANCHES} branches together", child(at, key));
                return Err(Error::limit(message));
            }
        }
        for branch in &mut all_branches {
            self.close(branch, map, at)?;
        }
        self.leave();
        Ok(all_branches)
    }

    fn branches_of(&mut self, map: &Map<String, Value>, key: &str, schema: &str) -> Result<Option<Vec<Branch>>> {
        let (value, at) = (&map[key], child(schema, key));
        Ok(Some(match key {
            "allOf" => {
                let mut together = vec![Branch::default()];
                for (i, part) in list(value, &at)?.iter().enumerate() {
                    together = product(&together, &self.branches(part, &child(&at, &i.to_string()))?);
                    limited(together.len(), &at)?;
                }
                together
            }
            "anyOf" => self.any_branches(list(value, &at)?, &at)?,
            "oneOf" => self.one_branches(list(value, &at)?, &at)?,
            "$ref" | "$dynamicRef" => {
                let (pointer, target) = self.referred(key, value, schema)?;
                self.branches(target, &pointer)?
            }
            "not" => vec![Branch::of(self.negated(value, &at)?)],
            "if" => self.conditional_branches(map, schema)?,
            "dependentSchemas" => {
                let mut together = vec![Branch::default()];
                for (name, source) in named(value, &at)? {
                    let present = vec![Branch::of(json!({"type": "object", "required": [name]}))];
                    let mut either = product(&present, &self.branches(source, &child(&at, name))?);
                    either.push(Branch::of(absent(name)));
                    together = product(&together, &either);
                    limited(together.len(), &at)?;
                }
                together
            }
            _ => return Ok(None),
        }))
    }

    /// Every choice of options that may hold together, at least one.
    fn any_branches(&mut self, options: &[Value], at: &str) -> Result<Vec<Branch>> {
        let mut chosen: Vec<Branch> = Vec::new();
        for (i, option) in options.iter().enumerate() {
            let own = self.branches(option, &child(at, &i.to_string()))?;
            limited(chosen.len().saturating_add(1).saturating_mul(own.len() + 1), at)?;
            let joined = product(&chosen, &own);
            chosen.extend(own);
            chosen.extend(joined);
        }
        Ok(chosen)
    }

    fn one_branches(&mut self, options: &[Value], at: &str) -> Result<Vec<Branch>> {
        let others = self.exclusions(options, at)?;
        let mut chosen = Vec::new();
        for (i, (option, other)) in options.iter().zip(others).enumerate() {
            let own = self.branches(option, &child(at, &i.to_string()))?;
            chosen.extend(product(&own, &[Branch::of(other)]));
            limited(chosen.len(), at)?;
        }
        Ok(chosen)
    }

    fn conditional_branches(&mut self, map: &Map<String, Value>, schema: &str) -> Result<Vec<Branch>> {
        let at = child(schema, "if");
        let mut holds = self.branches(&map["if"], &at)?;
        if let Some(then) = map.get("then") {
            holds = product(&holds, &self.branches(then, &child(schema, "then"))?);
        }
        // Without `then` and `else` nothing is asked, but what `if` speaks of counts where it holds.
        let is_idle = !map.contains_key("then") && !map.contains_key("else");
        let fails = if is_idle { Branch::default() } else { Branch::of(self.negated(&map["if"], &at)?) };
        let mut fails = vec![fails];
        if let Some(otherwise) = map.get("else") {
            fails = product(&fails, &self.branches(otherwise, &child(schema, "else"))?);
        }
        holds.extend(fails);
        Ok(holds)
    }

    /// What the branch does not speak of is left to the two keywords, and is spoken of then.
    fn close(&mut self, branch: &mut Branch, map: &Map<String, Value>, schema: &str) -> Result<()> {
        let seen = &mut branch.seen;
        if let Some(rest) = map.get("unevaluatedProperties") {
            if !seen.has_all_names && rest != &Value::Bool(true) {
                let rest = self.schema(rest, &child(schema, "unevaluatedProperties"))?;
                let known = |names: &BTreeSet<String>| {
                    names.iter().map(|name| (name.clone(), Value::Bool(true))).collect::<Map<String, Value>>()
                };
                let (names, patterns) = (known(&seen.names), known(&seen.patterns));
                let mut part = json!({"additionalProperties": rest});
                for (key, named) in [("properties", names), ("patternProperties", patterns)] {
                    if !named.is_empty() {
                        part[key] = named.into();
                    }
                }
                branch.parts.push(part);
            }
            seen.has_all_names = true;
        }
        if let Some(rest) = map.get("unevaluatedItems") {
            let at = child(schema, "unevaluatedItems");
            if !seen.has_all_items && rest != &Value::Bool(true) {
                if seen.has_contains {
                    return Err(cannot(&at));
                }
                let rest = self.schema(rest, &at)?;
                let first = vec![Value::Bool(true); seen.n_items];
                branch.parts.push(json!({"prefixItems": first, "items": rest}));
            }
            seen.has_all_items = true;
        }
        Ok(())
    }
}

fn limited(n: usize, at: &str) -> Result<()> {
    if n <= MAX_BRANCHES {
        return Ok(());
    }
    Err(Error::limit(format!("schema at {at}: more than {MAX_BRANCHES} branches together")))
}
