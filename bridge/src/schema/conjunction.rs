//! How many regular expressions a schema imposes on one string at once. Their intersection is built by the compiler below
//! in time that explodes with that number, before any limit of its own ends it: 20 patterns in 500 bytes took 16 s.

use std::collections::HashMap;

use serde_json::Value;

/// At 12, the worst found takes under a second; schemas in use have 1 or 2.
pub const MAX_PATTERNS: usize = 8;
/// Steps of all searches in a schema; references that lead back to themselves end by it, and by the depth. What is beyond
/// is not looked at: compiling has limits of its own, and this one says more.
const MAX_STEPS: usize = 400_000;
const MAX_DEPTH: usize = 128;

/// The searches in one schema.
pub struct Search<'a> {
    root: &'a Value,
    n_steps: usize,
}

impl<'a> Search<'a> {
    pub fn of(root: &'a Value) -> Search<'a> {
        Search { root, n_steps: 0 }
    }

    /// The most patterns on one string at or below `schema`, a part of the root.
    pub fn patterns_at_once(&mut self, schema: &'a Value) -> usize {
        self.most(&[schema], 0)
    }

    /// Adds `schema` and all that holds for the same value together with it; gives the number of patterns on it.
    fn gather(&mut self, schema: &'a Value, depth: usize, parts: &mut Vec<&'a Value>) -> usize {
        self.n_steps += 1;
        let Some(map) = schema.as_object() else { return 0 };
        if depth > MAX_DEPTH || self.n_steps > MAX_STEPS {
            return 0;
        }
        let mut n = usize::from(map.contains_key("pattern")) + usize::from(map.contains_key("format"));
        parts.push(schema);
        if let Some(Value::Array(all)) = map.get("allOf") {
            n += all.iter().map(|part| self.gather(part, depth + 1, parts)).sum::<usize>();
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(options)) = map.get(key) {
                n += options.iter().map(|option| self.gather(option, depth + 1, parts)).max().unwrap_or(0);
            }
        }
        if let Some(target) = map.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix('#')) {
            if let Some(target) = self.root.pointer(target) {
                n += self.gather(target, depth + 1, parts);
            }
        }
        n
    }

    /// The most patterns on one string at or below a value on which all of `schemas` hold.
    fn most(&mut self, schemas: &[&'a Value], depth: usize) -> usize {
        if depth > MAX_DEPTH || self.n_steps > MAX_STEPS {
            return 0;
        }
        let mut parts = Vec::new();
        let mut most: usize = schemas.iter().map(|schema| self.gather(schema, depth, &mut parts)).sum();
        let mut below: HashMap<&'a str, Vec<&'a Value>> = HashMap::new();
        let mut items: Vec<&Value> = Vec::new();
        for part in parts {
            for key in ["properties", "patternProperties"] {
                for (name, schema) in part.get(key).and_then(Value::as_object).into_iter().flatten() {
                    below.entry(name).or_default().push(schema);
                }
            }
            items.extend(["items", "additionalProperties"].iter().filter_map(|key| part.get(*key)));
        }
        below.insert("", items);
        // One schema alone is visited where it stands.
        for group in below.into_values().filter(|group| group.len() > 1) {
            most = most.max(self.most(&group, depth + 1));
        }
        most
    }
}
