//! Where the references of a schema lead: `$id`, `$anchor` and `$dynamicAnchor` resolved to JSON pointers from its root, so
//! that it can be written anew without them. Nothing is fetched.

use std::collections::HashMap;

use referencing::{uri, Uri};
use serde_json::Value;

use crate::error::{clip, Error, Result};
use crate::schema::words::{child, parts};

const ROOT: &str = "json-schema:///";

pub struct References {
    /// Pointers of schemas with an `$id`, and of the root, by their URI without a fragment; and the other way round.
    resources: HashMap<String, String>,
    bases: HashMap<String, Uri<String>>,
    /// Pointers by the URI of the resource and the name.
    anchors: HashMap<(String, String), String>,
    n_dynamic: HashMap<String, usize>,
}

/// What a reference leads to.
pub struct Target {
    pub pointer: String,
    /// The name of an anchor; empty where the reference has none.
    name: String,
}

fn bad(at: &str, text: &str, why: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("schema at {at}: {:?}: {why}", clip(text, 200)))
}

fn without_fragment(uri: &str) -> (&str, &str) {
    uri.split_once('#').unwrap_or((uri, ""))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = (*first == b'%').then(|| tail.get(..2)).flatten();
        let digits = hex.and_then(|h| std::str::from_utf8(h).ok()).and_then(|h| u8::from_str_radix(h, 16).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

impl References {
    pub fn of(root: &Value) -> Result<References> {
        let base = uri::from_str(ROOT).map_err(|e| Error::internal(e.to_string()))?;
        let mut all = References {
            resources: HashMap::from([(ROOT.to_string(), String::new())]),
            bases: HashMap::from([(String::new(), base.clone())]),
            anchors: HashMap::new(),
            n_dynamic: HashMap::new(),
        };
        all.index(root, "", &base)?;
        Ok(all)
    }

    fn index(&mut self, schema: &Value, at: &str, base: &Uri<String>) -> Result<()> {
        let Some(map) = schema.as_object() else { return Ok(()) };
        let mut own = base.clone();
        if let Some(id) = map.get("$id").and_then(Value::as_str) {
            let here = child(at, "$id");
            let (address, fragment) = without_fragment(id);
            if !fragment.is_empty() {
                return Err(bad(&here, id, "an $id has no fragment in this draft"));
            }
            own = uri::resolve_against(&base.borrow(), address).map_err(|e| bad(&here, id, e))?;
            if self.resources.insert(own.as_str().to_string(), at.to_string()).is_some() {
                return Err(bad(&here, id, "two schemas have this $id"));
            }
            self.bases.insert(at.to_string(), own.clone());
        }
        for key in ["$anchor", "$dynamicAnchor"] {
            let Some(name) = map.get(key).and_then(Value::as_str) else { continue };
            let known = self.anchors.insert((own.as_str().to_string(), name.to_string()), at.to_string());
            if known.is_some_and(|other| other != at) {
                return Err(bad(&child(at, key), name, "two schemas have this name"));
            }
            if key == "$dynamicAnchor" {
                *self.n_dynamic.entry(name.to_string()).or_default() += 1;
            }
        }
        parts(map, at).into_iter().try_for_each(|(part, at)| self.index(part, &at, &own))
    }

    fn base_of(&self, at: &str) -> Option<&Uri<String>> {
        let mut pointer = at;
        loop {
            if let Some(base) = self.bases.get(pointer) {
                return Some(base);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
    }

    /// `text` is a reference in the schema at the pointer `schema`; messages point to `at`.
    pub fn resolve(&self, text: &str, schema: &str, at: &str) -> Result<Target> {
        let base = self.base_of(schema).ok_or_else(|| bad(at, text, "has no base"))?;
        let full = uri::resolve_against(&base.borrow(), text).map_err(|e| bad(at, text, e))?;
        let (address, fragment) = without_fragment(full.as_str());
        let Some(resource) = self.resources.get(address) else {
            return Err(bad(at, text, "is outside of the schema, and nothing is fetched"));
        };
        let fragment = percent_decoded(fragment).ok_or_else(|| bad(at, text, "is not UTF-8"))?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return Ok(Target { pointer: format!("{resource}{fragment}"), name: String::new() });
        }
        match self.anchors.get(&(address.to_string(), fragment.clone())) {
            Some(pointer) => Ok(Target { pointer: pointer.clone(), name: fragment }),
            None => Err(bad(at, text, "no schema has this anchor")),
        }
    }

    /// Whether a `$dynamicRef` to `target` may lead elsewhere, as the way to it decides.
    pub fn is_dynamic(&self, root: &Value, target: &Target) -> bool {
        let anchor = root.pointer(&target.pointer).and_then(|schema| schema.get("$dynamicAnchor"));
        let is_named = !target.name.is_empty() && anchor.and_then(Value::as_str) == Some(&target.name);
        is_named && self.n_dynamic.get(&target.name).is_some_and(|n| *n > 1)
    }
}
