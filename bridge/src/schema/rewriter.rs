//! What writing a schema anew keeps while it walks: how far it may still go, where references lead, and which schemas it has
//! to name. `rewrite` and the files that it uses give this type its verbs.

use serde_json::{json, Value};

use crate::error::{Error, Result};
use crate::schema::references::References;
use crate::schema::words::{child, refused};

/// Schemas visited, those that are written several times counted so.
const MAX_PARTS: usize = 20_000;
const MAX_DEPTH: usize = 128;

pub struct Rewriter<'a> {
    root: &'a Value,
    references: References,
    /// Pointers of what is referred to; the place in it is the name in the result's `$defs`.
    pub(super) targets: Vec<String>,
    n_parts: usize,
    pub(super) depth: usize,
}

impl<'a> Rewriter<'a> {
    pub fn of(root: &'a Value) -> Result<Rewriter<'a>> {
        Ok(Rewriter { root, references: References::of(root)?, targets: Vec::new(), n_parts: 0, depth: 0 })
    }

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

    pub fn target(&self, pointer: &str) -> Result<&'a Value> {
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

    pub fn reference(&mut self, key: &str, text: &Value, schema: &str) -> Result<Value> {
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
}
