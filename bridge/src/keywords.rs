//! Which words of a schema are keywords. The standard lets a validator pass over a word that it does not know; here such a
//! word would be a constraint that is dropped, most often a misspelt one, and so it is refused with its place.

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::schema_check::child;

/// Enforced, or judged where they are compiled.
const ASSERTIONS: [&str; 49] = [
    "$anchor",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
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

/// Words that begin with "x-" are notes by custom, and one that holds what a `$ref` names is a place for it.
pub(crate) fn check(map: &Map<String, Value>, pointer: &str, referred: &[&str]) -> Result<()> {
    for word in map.keys() {
        if ASSERTIONS.contains(&word.as_str()) || ANNOTATIONS.contains(&word.as_str()) || word.starts_with("x-") {
            continue;
        }
        let at = child(pointer, word);
        let inside = format!("{at}/");
        let first = referred.partition_point(|target| *target < inside.as_str());
        if referred.get(first).is_some_and(|target| target.starts_with(&inside)) {
            continue;
        }
        let meant = nearest(word).map_or(String::new(), |keyword| format!(" (did you mean {keyword}?)"));
        return Err(Error::unsupported(format!("schema at {at}: this is no known keyword{meant}, and is not ignored")));
    }
    Ok(())
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

    fn refusal(schema: &Value) -> Option<String> {
        check(schema.as_object().unwrap(), "/a", &referred(schema)).err().map(|error| error.message)
    }

    #[test]
    fn misspelt_words_are_refused_with_their_place_and_what_was_meant() {
        let refused = refusal(&json!({"type": "string", "maxlenght": 3})).unwrap();
        assert!(refused.contains("/a/maxlenght") && refused.contains("did you mean maxLength?"), "{refused}");
        let refused = refusal(&json!({"frobnicate": 1})).unwrap();
        assert!(refused.contains("/a/frobnicate") && !refused.contains("did you mean"), "{refused}");
    }

    #[test]
    fn notes_and_places_of_definitions_pass() {
        assert_eq!(refusal(&json!({"title": "t", "x-order": 1, "example": 2, "type": "string"})), None);
        let map = json!({"components": {"schemas": {"n": {"type": "null"}}}, "$ref": "#/a/components/schemas/n"});
        assert_eq!(refusal(&map), None);
    }
}
