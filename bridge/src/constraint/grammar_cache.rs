//! The grammars that were compiled last, so that a thousand requests with one schema pay for it once. What is kept is never
//! used itself: every request gets a copy of all that compiling left behind, and no request can tell whether others came
//! before it.

use std::sync::{Arc, Mutex, PoisonError};

use llguidance::TokenParser;

use crate::constraint::kind::Kind;
use crate::constraint::state_masks::StateMasks;

const MAX_GRAMMARS: usize = 64;
const MAX_BYTES: usize = 64 << 20;

/// A grammar at its start, with its first mask.
pub struct Compiled {
    pub parser: TokenParser,
    /// Those of `parser`.
    pub masks: Arc<StateMasks>,
}

impl Compiled {
    pub fn new(mut parser: TokenParser, masks: Arc<StateMasks>) -> Compiled {
        parser.bias_computer = masks.clone();
        Compiled { parser, masks }
    }

    /// That shares nothing which changes.
    fn copy(&self) -> Compiled {
        Compiled::new(self.parser.deep_clone(), Arc::new(self.masks.copy()))
    }

    fn n_bytes(&self) -> usize {
        self.parser.parser.lexer_stats().num_bytes + self.masks.n_bytes()
    }
}

struct Entry {
    kind: Kind,
    source: String,
    /// Of what is kept here.
    n_bytes: usize,
    /// Of each copy.
    n_copy_bytes: usize,
    compiled: Compiled,
}

/// Several threads may use it at once.
#[derive(Default)]
pub struct GrammarCache {
    /// The one that was asked for last stands last.
    entries: Mutex<Vec<Entry>>,
}

impl GrammarCache {
    /// With what the copy takes.
    pub fn get(&self, kind: Kind, source: &str) -> Option<(Compiled, usize)> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let at = entries.iter().position(|entry| entry.kind == kind && entry.source == source)?;
        entries[at..].rotate_left(1);
        entries.last().map(|entry| (entry.compiled.copy(), entry.n_copy_bytes))
    }

    /// `n_copy_bytes`: what a copy takes.
    pub fn put(&self, kind: Kind, source: &str, compiled: &Compiled, n_copy_bytes: usize) {
        let n_bytes = compiled.n_bytes() + source.len();
        if n_bytes > MAX_BYTES / 4 {
            return;
        }
        let entry = Entry { kind, source: source.to_string(), n_bytes, n_copy_bytes, compiled: compiled.copy() };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|other| other.kind != kind || other.source != source);
        entries.push(entry);
        while entries.len() > MAX_GRAMMARS || entries.iter().map(|entry| entry.n_bytes).sum::<usize>() > MAX_BYTES {
            entries.remove(0);
        }
    }
}
