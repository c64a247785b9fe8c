//! `dict`: in the order of insertion; 1, 1.0 and true are one key.

use std::collections::hash_map::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::rc::Rc;

use super::budget::{spend, Charge, Done};
use super::value::{deeper, Value, ITEM_BYTES};

/// Dicts of this size are searched from the front.
const MAX_UNINDEXED: usize = 8;

pub struct Dict {
    entries: Vec<(Value, Value)>,
    first: HashMap<u64, u32>, // by hash: the entry added last
    before: Vec<u32>,         // by entry: the one with the same hash before it, or u32::MAX
    hashes: RandomState,
    depth: u32,
    charge: Charge,
}

impl Dict {
    pub fn empty() -> Dict {
        Dict {
            entries: Vec::new(),
            first: HashMap::new(),
            before: Vec::new(),
            hashes: RandomState::new(),
            depth: 1,
            charge: Charge::default(),
        }
    }

    pub fn of(pairs: Vec<(Value, Value)>) -> Done<Value> {
        let mut dict = Dict::empty();
        for (key, value) in pairs {
            dict.insert(key, value)?;
        }
        Ok(Value::Dict(Rc::new(dict)))
    }

    pub fn insert(&mut self, key: Value, value: Value) -> Done<()> {
        spend(1)?;
        self.depth = self.depth.max(deeper(key.depth().max(value.depth()))?);
        if let Some(at) = self.find(&key)? {
            self.entries[at].1 = value;
            return Ok(());
        }
        let at = self.entries.len();
        self.charge.grow_to((at + 1) * (2 * ITEM_BYTES + 32))?;
        self.entries.push((key, value));
        if self.entries.len() > MAX_UNINDEXED {
            for i in self.before.len()..self.entries.len() {
                let hash = self.hash_of(&self.entries[i].0)?;
                self.before.push(self.first.insert(hash, i as u32).unwrap_or(u32::MAX));
            }
        }
        Ok(())
    }

    fn hash_of(&self, key: &Value) -> Done<u64> {
        let mut hasher = self.hashes.build_hasher();
        key.hash_into(&mut hasher)?;
        Ok(hasher.finish())
    }

    fn find(&self, key: &Value) -> Done<Option<usize>> {
        if self.entries.len() <= MAX_UNINDEXED {
            key.check_hashable()?;
            for (i, entry) in self.entries.iter().enumerate() {
                if entry.0.equals(key)? {
                    return Ok(Some(i));
                }
            }
            return Ok(None);
        }
        let mut at = self.first.get(&self.hash_of(key)?).copied().unwrap_or(u32::MAX);
        while at != u32::MAX {
            if self.entries[at as usize].0.equals(key)? {
                return Ok(Some(at as usize));
            }
            at = self.before[at as usize];
        }
        Ok(None)
    }

    pub fn get(&self, key: &Value) -> Done<Option<&Value>> {
        Ok(self.find(key)?.map(|at| &self.entries[at].1))
    }

    pub fn get_name(&self, name: &str) -> Option<&Value> {
        let is_it = |key: &Value| matches!(key, Value::Str(s) if s.as_str() == name);
        if self.entries.len() <= MAX_UNINDEXED {
            return self.entries.iter().find(|e| is_it(&e.0)).map(|e| &e.1);
        }
        let mut hasher = self.hashes.build_hasher();
        hash_text(name, &mut hasher);
        let mut at = self.first.get(&hasher.finish()).copied().unwrap_or(u32::MAX);
        while at != u32::MAX && !is_it(&self.entries[at as usize].0) {
            at = self.before[at as usize];
        }
        self.entries.get(at as usize).map(|e| &e.1)
    }

    pub fn depth(&self) -> u32 {
        self.depth
    }

    pub fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }
}

pub fn hash_text(text: &str, hasher: &mut impl Hasher) {
    (1u8, text).hash(hasher);
}

pub fn same_keys(a: &Dict, b: &Dict) -> Done<bool> {
    for (key, _) in &a.entries {
        if b.get(key)?.is_none() {
            return Ok(false);
        }
    }
    Ok(a.entries.len() == b.entries.len())
}

pub fn dicts_equal(a: &Dict, b: &Dict) -> Done<bool> {
    if a.entries.len() != b.entries.len() {
        return Ok(false);
    }
    for (key, value) in &a.entries {
        match b.get(key)? {
            Some(other) if value.equals(other)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}
