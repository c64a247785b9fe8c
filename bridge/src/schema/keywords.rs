//! Which words of a schema are keywords. By the standard a word that is none is a note: the rest is obeyed, and such words
//! are named, since most often one is a misspelt keyword or one of another dialect.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::error::{clip, Error, Result};
use crate::schema::formats;
use crate::schema::words::{child, holds, Holds};

/// Enforced, or judged where they are compiled.
const ASSERTIONS: [&str; 52] = [
    "$anchor",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// They say something about a value and allow or forbid none; the last ones are OpenAPI's.
const ANNOTATIONS: [&str; 15] = [
    "$comment",
    "title",
    "description",
    "default",
    "deprecated",
    "examples",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "discriminator",
    "example",
    "externalDocs",
    "xml",
];
const MOST_EDITS: usize = 2;
const MOST_NAMED: usize = 16;
const MOST_LOOKED_AT: usize = 10_000;
/// Of a pointer in a message.
const MOST_BYTES: usize = 200;

/// Pointers that `$ref`s of the schema name, sorted, once each.
pub(crate) fn referred(root: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    let mut left = vec![root];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#')));
                left.extend(map.values());
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Of the standard, and not enforced in any words.
pub(crate) fn check(map: &Map<String, Value>, pointer: &str) -> Result<()> {
    if map.contains_key("$recursiveRef") {
        let at = child(pointer, "$recursiveRef");
        return Err(Error::unsupported(format!("schema at {at}: this keyword can't be enforced, and is not ignored")));
    }
    Ok(())
}

/// Words that begin with "x-" are notes by custom.
fn is_known(word: &str) -> bool {
    ASSERTIONS.contains(&word) || ANNOTATIONS.contains(&word) || word.starts_with("x-")
}

/// A search through all schemas of one, with the way to where it is.
struct Search<'a> {
    referred: Vec<&'a str>,
    visited: HashSet<*const Value>,
    path: Vec<Cow<'a, str>>,
    n_looked_at: usize,
    found: Vec<String>,
}

impl<'a> Search<'a> {
    fn is_over(&self) -> bool {
        self.found.len() > MOST_NAMED || self.n_looked_at > MOST_LOOKED_AT
    }

    fn pointer(&self, word: &str) -> String {
        let parent = self.path.iter().fold(String::new(), |at, key| child(&at, key));
        child(&parent, word)
    }

    /// A place of definitions holds what a `$ref` names.
    fn is_place(&self, pointer: &str) -> bool {
        let inside = format!("{pointer}/");
        let first = self.referred.partition_point(|target| *target < inside.as_str());
        self.referred.get(first).is_some_and(|target| target.starts_with(&inside))
    }

    fn look_at(&mut self, word: &'a str, value: &'a Value) {
        let is_format = word == "format" && formats::is_note(value);
        if self.is_over() || (is_known(word) && !is_format) {
            return;
        }
        self.n_looked_at += 1;
        let at = self.pointer(word);
        if is_format {
            self.found.push(format!("the format {} at {} is not known", quoted(value), quoted(&at.into())));
        } else if !self.is_place(&at) {
            let meant = nearest(word).map_or(String::new(), |keyword| format!(" (did you mean {keyword}?)"));
            self.found.push(format!("the word at {} is no keyword of JSON Schema{meant}", quoted(&at.into())));
        }
    }

    fn walk(&mut self, schema: &'a Value) {
        let Some(map) = schema.as_object() else { return };
        if self.is_over() || !self.visited.insert(schema) {
            return;
        }
        for (word, value) in map {
            self.look_at(word, value);
            self.path.push(word.into());
            match (holds(word), value) {
                (Some(Holds::Named), Value::Object(named)) => {
                    named.iter().for_each(|(name, part)| self.step(name.into(), part));
                }
                (Some(Holds::Many | Holds::OneOrMany), Value::Array(parts)) => {
                    parts.iter().enumerate().for_each(|(i, part)| self.step(i.to_string().into(), part));
                }
                (Some(Holds::One | Holds::OneOrMany), part) => self.walk(part),
                _ => {}
            }
            self.path.pop();
        }
    }

    fn step(&mut self, key: Cow<'a, str>, schema: &'a Value) {
        self.path.push(key);
        self.walk(schema);
        self.path.pop();
    }
}

/// Safe to print on one line.
fn quoted(text: &Value) -> String {
    clip(&text.to_string(), MOST_BYTES)
}

/// What has no effect in a schema, a sentence each; the last says so where there is more. REQUIRES: its depth is bounded.
pub fn without_effect(root: &Value) -> Vec<String> {
    let referred = referred(root);
    let targets = referred.clone();
    let mut search = Search { referred, visited: HashSet::new(), path: vec![], n_looked_at: 0, found: vec![] };
    search.walk(root);
    // What stands where no keyword holds schemas is one by being referred to.
    for target in targets {
        if let Some(schema) = root.pointer(target) {
            search.path = target.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~").into()).collect();
            search.walk(schema);
        }
    }
    let mut found = search.found;
    if found.len() > MOST_NAMED {
        found.truncate(MOST_NAMED);
        found.push("there are more such words in it".into());
    }
    found
}

fn nearest(word: &str) -> Option<&'static str> {
    let lower = word.to_lowercase();
    let known = ASSERTIONS.iter().map(|keyword| (edits(&lower, &keyword.to_lowercase()), *keyword));
    known.min().filter(|(n, keyword)| *n <= MOST_EDITS && *n < keyword.len() / 2).map(|(_, keyword)| keyword)
}

/// Letters to insert, remove or replace. Both are short, or their lengths say enough.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > MOST_EDITS {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_that_are_no_keywords_are_named_with_their_place_and_what_was_meant() {
        let found = without_effect(&json!({"properties": {"a/b": {"type": "string", "maxlenght": 3}}, "nullable": true}));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].contains("\"/properties/a~1b/maxlenght\"") && found[0].contains("did you mean maxLength?"),
            "{found:?}"
        );
        assert!(found[1].contains("\"/nullable\"") && !found[1].contains("did you mean"), "{found:?}");
        let found = without_effect(&json!({"items": [{}, {"self": 1}], "format": "color"}));
        assert!(found[0].contains("/items/1/self") && found[1].contains("color"), "{found:?}");
    }

    #[test]
    fn notes_values_and_places_of_definitions_are_not_named() {
        for schema in [
            json!({"title": "t", "x-order": 1, "example": 2, "type": "string", "format": "date"}),
            json!({"components": {"schemas": {"n": {"type": "null"}}}, "$ref": "#/components/schemas/n"}),
            json!({"enum": [{"self": 1}], "const": {"self": 1}, "default": {"self": 1}, "properties": {"self": {}}}),
        ] {
            assert_eq!(without_effect(&schema), Vec::<String>::new());
        }
        let found = without_effect(&json!({"components": {"n": {"self": 1}}, "$ref": "#/components/n"}));
        assert!(found.len() == 1 && found[0].contains("/components/n/self"), "{found:?}");
    }

    #[test]
    fn a_few_of_many_are_named_and_shortly() {
        let many: Map<String, Value> = (0..5000).map(|i| (format!("word{i}\n{}", "x".repeat(300)), true.into())).collect();
        let found = without_effect(&many.into());
        assert_eq!(found.len(), MOST_NAMED + 1);
        assert!(found.iter().all(|words| words.len() < 300 && !words.contains('\n')), "{found:?}");
    }
}
