//! Masks of a grammar that is one regular expression: what may follow depends on nothing but the state of its automaton,
//! so that the mask of each state is worked out once for a constraint and all its copies.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::derivre::StateID;
use llguidance::earley::{BiasComputer, ParserRecognizer, SlicedBiasComputer};
use llguidance::toktrie::{SimpleVob, TokTrie};

/// At 128 000 tokens a mask has 16 KB.
const MAX_STATES: usize = 256;

pub struct RegexMasks {
    slices: Arc<SlicedBiasComputer>,
    known: Mutex<HashMap<StateID, SimpleVob>>,
}

impl RegexMasks {
    pub fn new(slices: Arc<SlicedBiasComputer>) -> RegexMasks {
        RegexMasks { slices, known: Mutex::new(HashMap::new()) }
    }

    /// To be called when a mask ends in an error: one that a limit cut short may be among them.
    pub fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl BiasComputer for RegexMasks {
    fn compute_bias(&self, recognizer: &mut ParserRecognizer<'_>, start: &[u8]) -> SimpleVob {
        if !start.is_empty() {
            return self.slices.compute_bias(recognizer, start);
        }
        let state = recognizer.lexer_state();
        if let Some(mask) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&state) {
            return mask.clone();
        }
        let mask = self.slices.compute_bias(recognizer, start);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_STATES {
            known.insert(state, mask.clone());
        }
        mask
    }

    fn trie(&self) -> &TokTrie {
        self.slices.trie()
    }
}
