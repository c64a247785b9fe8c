//! Masks, kept by the state of the compiler's lexer. Whether a token may follow depends on that state alone, as long as the
//! token stays within one lexeme; only tokens that go beyond it ask the parser. Both kinds are told apart once for each
//! state, for a constraint and all its forks. Tokens that leave the lexeme from the same state with the same byte fare
//! alike there, so that the parser is asked once for all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::derivre::StateID;
use llguidance::earley::{BiasComputer, ParserRecognizer, SlicedBiasComputer};
use llguidance::toktrie::{Recognizer, SimpleVob, TokTrie};

use crate::token_trees::{is_plain_byte, TokenTrees};

/// At 128 000 tokens a mask has 16 KB, and what leaves a string about as much.
const MAX_STATES: usize = 128;
/// Of a string there is one state for each length; where there are more, tokens are looked at one by one.
const MAX_STATES_OF_LENGTH: usize = 2;
/// 4 KB each.
const MAX_KNOWN_STEPS: usize = 512;

pub struct StateMasks {
    trees: Arc<TokenTrees>,
    /// Walks the vocabulary with the parser.
    plain: Arc<SlicedBiasComputer>,
    known: Mutex<HashMap<StateID, Arc<StateMask>>>,
    /// Where a lexeme ends tells all; not so in grammars that look behind the end of a lexeme.
    ends_alike: bool,
}

/// The tokens of one state.
struct StateMask {
    /// Those that stay within a lexeme and may follow.
    inside: SimpleVob,
    crossings: Vec<Crossing>,
}

/// A way out of the lexeme, and where tokens take it.
struct Crossing {
    path: Vec<u8>,
    nodes: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Step<State> {
    Inside(State),
    /// Out of the lexeme with the byte; the state says which lexemes that ends.
    Crosses(StateID),
    Refused,
}

/// REQUIRES: `state` is one that more bytes may follow.
fn step(recognizer: &mut ParserRecognizer<'_>, state: StateID, byte: u8) -> Step<StateID> {
    let lexer = recognizer.lexer_mut();
    let next = lexer.transition_start_state(state, Some(byte), &None);
    if next.is_dead() {
        let is_refused = lexer.advance(state, byte, false, &None).is_error();
        if is_refused {
            Step::Refused
        } else {
            Step::Crosses(state)
        }
    } else if next.has_lowest_match() {
        Step::Crosses(next)
    } else {
        Step::Inside(next)
    }
}

/// The steps of one walk: its states numbered in the order of their finding, and where each byte leads.
struct Steps {
    states: Vec<StateID>,
    numbers: HashMap<StateID, usize>,
    /// Of the first states.
    known: Vec<[Option<Step<usize>>; 256]>,
}

impl Steps {
    fn from(state: StateID) -> Steps {
        Steps { states: vec![state], numbers: HashMap::from([(state, 0)]), known: vec![[None; 256]] }
    }

    #[inline(always)]
    fn step(&mut self, recognizer: &mut ParserRecognizer<'_>, state: usize, byte: u8) -> Step<usize> {
        match self.known.get(state).and_then(|steps| steps[byte as usize]) {
            Some(step) => step,
            None => self.find(recognizer, state, byte),
        }
    }

    #[inline(never)]
    fn find(&mut self, recognizer: &mut ParserRecognizer<'_>, state: usize, byte: u8) -> Step<usize> {
        let found = match step(recognizer, self.states[state], byte) {
            Step::Inside(next) => Step::Inside(self.number(next)),
            Step::Crosses(end) => Step::Crosses(end),
            Step::Refused => Step::Refused,
        };
        if let Some(steps) = self.known.get_mut(state) {
            steps[byte as usize] = Some(found);
        }
        found
    }

    fn number(&mut self, state: StateID) -> usize {
        let next = self.states.len();
        let number = *self.numbers.entry(state).or_insert(next);
        if number == next {
            self.states.push(state);
            if self.known.len() < MAX_KNOWN_STEPS {
                self.known.push([None; 256]);
            }
        }
        number
    }
}

/// Plain text of fewer bytes than `refused_from` may follow if it has at most `allowed_to`, and must be looked at if it has
/// more.
struct PlainText {
    allowed_to: usize,
    refused_from: usize,
}

impl PlainText {
    fn behind(recognizer: &mut ParserRecognizer<'_>, state: StateID, longest: usize) -> PlainText {
        let mut states = vec![state];
        for length in 1..=longest {
            let mut next: Vec<StateID> = vec![];
            let (mut is_any_inside, mut is_any_refused) = (false, false);
            for from in &states {
                for byte in (0..=0x7f).filter(|byte| is_plain_byte(*byte)) {
                    match step(recognizer, *from, byte) {
                        Step::Crosses(_) => return PlainText { allowed_to: length - 1, refused_from: usize::MAX },
                        Step::Refused => is_any_refused = true,
                        Step::Inside(to) => {
                            is_any_inside = true;
                            if !next.contains(&to) {
                                next.push(to);
                            }
                        }
                    }
                    if is_any_inside && is_any_refused {
                        return PlainText { allowed_to: length - 1, refused_from: usize::MAX };
                    }
                }
            }
            if is_any_refused {
                return PlainText { allowed_to: length - 1, refused_from: length };
            }
            if next.len() > MAX_STATES_OF_LENGTH {
                return PlainText { allowed_to: length, refused_from: usize::MAX };
            }
            states = next;
        }
        PlainText { allowed_to: longest, refused_from: usize::MAX }
    }
}

/// A state's mask in the making.
struct Sorting<'a> {
    trees: &'a TokenTrees,
    mask: StateMask,
    /// Crossings by the state and the byte that end a lexeme.
    known: HashMap<(StateID, u8), usize>,
    ends_alike: bool,
}

impl Sorting<'_> {
    fn sort(&mut self, recognizer: &mut ParserRecognizer<'_>, state: StateID) {
        let longest = self.trees.longest_plain();
        let text = PlainText::behind(recognizer, state, longest);
        self.mask.inside.or(self.trees.plain_up_to(text.allowed_to));
        let is_open = text.allowed_to < longest && text.refused_from > text.allowed_to + 1;
        let first = if is_open { 0 } else { self.trees.n_plain_nodes };
        self.walk(recognizer, state, first);
    }

    /// All tokens from that node on.
    fn walk(&mut self, recognizer: &mut ParserRecognizer<'_>, state: StateID, first: usize) {
        let nodes = &self.trees.nodes;
        let mut steps = Steps::from(state);
        let mut states = vec![0];
        let mut bytes: Vec<u8> = vec![];
        let mut at = first;
        while at < nodes.len() {
            let node = &nodes[at];
            states.truncate(node.depth());
            bytes.truncate(node.depth() - 1);
            let before = states[node.depth() - 1];
            bytes.push(node.byte);
            match steps.step(recognizer, before, node.byte) {
                Step::Inside(next) => {
                    states.push(next);
                    if let Some(token) = node.token() {
                        self.mask.inside.allow_token(token);
                    }
                    at += 1;
                    continue;
                }
                Step::Crosses(end) => self.add_crossing(end, &bytes, at),
                Step::Refused => {}
            }
            at = node.end();
        }
    }

    fn add_crossing(&mut self, end: StateID, path: &[u8], node: usize) {
        let n_crossings = self.mask.crossings.len();
        let key = path.last().filter(|_| self.ends_alike || !end.has_lowest_match()).map(|byte| (end, *byte));
        let index = key.map_or(n_crossings, |key| *self.known.entry(key).or_insert(n_crossings));
        if index == n_crossings {
            self.mask.crossings.push(Crossing { path: path.to_vec(), nodes: vec![] });
        }
        self.mask.crossings[index].nodes.push(node);
    }
}

impl StateMasks {
    pub fn new(trees: Arc<TokenTrees>, plain: Arc<SlicedBiasComputer>, ends_alike: bool) -> StateMasks {
        StateMasks { trees, plain, known: Mutex::new(HashMap::new()), ends_alike }
    }

    /// For a copy of the lexer: the states that both have mean the same.
    pub fn copy(&self) -> StateMasks {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        StateMasks {
            trees: self.trees.clone(),
            plain: self.plain.clone(),
            known: Mutex::new(known),
            ends_alike: self.ends_alike,
        }
    }

    pub fn n_bytes(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |mask: &Arc<StateMask>| {
            let n_nodes: usize = mask.crossings.iter().map(|crossing| crossing.nodes.len()).sum();
            mask.inside.as_slice().len() * 4 + n_nodes * 8
        };
        known.values().map(of).sum()
    }

    /// To be called when a mask ends in an error: one that a limit cut short may be among them.
    pub fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn mask_of(&self, recognizer: &mut ParserRecognizer<'_>, state: StateID) -> Arc<StateMask> {
        if let Some(mask) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&state) {
            return mask.clone();
        }
        let empty = StateMask { inside: self.trie().alloc_token_set(), crossings: vec![] };
        let mut sorting = Sorting { trees: &self.trees, mask: empty, known: HashMap::new(), ends_alike: self.ends_alike };
        sorting.sort(recognizer, state);
        let mask = Arc::new(sorting.mask);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_STATES {
            known.insert(state, mask.clone());
        }
        mask
    }

    fn cross(&self, recognizer: &mut ParserRecognizer<'_>, crossing: &Crossing, set: &mut SimpleVob) {
        let n_passed = crossing.path.iter().take_while(|byte| recognizer.try_push_byte(**byte)).count();
        if n_passed == crossing.path.len() {
            crossing.nodes.iter().for_each(|node| self.allow_below(recognizer, *node, set));
        }
        recognizer.pop_bytes(n_passed);
    }

    /// The tokens of a node, whose byte the recognizer has taken, and of its descendants.
    fn allow_below(&self, recognizer: &mut ParserRecognizer<'_>, top: usize, set: &mut SimpleVob) {
        let nodes = &self.trees.nodes;
        let mut allow = |token: Option<u32>| token.into_iter().for_each(|token| set.allow_token(token));
        allow(nodes[top].token());
        let mut n_pushed = 0;
        let mut at = top + 1;
        while at < nodes[top].end() {
            let node = &nodes[at];
            let n_above = node.depth() - 1 - nodes[top].depth();
            recognizer.pop_bytes(n_pushed - n_above);
            n_pushed = n_above;
            if recognizer.try_push_byte(node.byte) {
                n_pushed += 1;
                allow(node.token());
                at += 1;
            } else {
                at = node.end();
            }
        }
        recognizer.pop_bytes(n_pushed);
    }
}

impl BiasComputer for StateMasks {
    fn compute_bias(&self, recognizer: &mut ParserRecognizer<'_>, start: &[u8]) -> SimpleVob {
        let state = recognizer.lexer_state();
        if !start.is_empty() || state.is_dead() || state.has_lowest_match() {
            return self.plain.compute_bias(recognizer, start);
        }
        let mask = self.mask_of(recognizer, state);
        let mut set = mask.inside.clone();
        recognizer.trie_started("crossings");
        mask.crossings.iter().for_each(|crossing| self.cross(recognizer, crossing, &mut set));
        recognizer.trie_finished();
        set
    }

    fn trie(&self) -> &TokTrie {
        self.plain.trie()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use llguidance::api::TopLevelGrammar;
    use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo};
    use llguidance::ParserFactory;

    const N_TOKENS: u32 = 6000;

    /// Numbers of no pattern (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            ((z ^ (z >> 27)) as usize) % n
        }
    }

    fn vocabulary() -> TokEnv {
        let mut random = Random(3);
        let letters: Vec<char> = "aabcdeefgnotru lsi  019-.,:\"\"\\{}[]é日\n".chars().collect();
        let mut words: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        words.push(b"\xff<end>".to_vec());
        while words.len() < N_TOKENS as usize {
            let n = 2 + random.below(if words.len() % 50 == 0 { 30 } else { 6 });
            words.push((0..n).map(|_| letters[random.below(letters.len())]).collect::<String>().into_bytes());
        }
        let info = TokRxInfo::new(N_TOKENS, 256);
        Arc::new(ApproximateTokEnv::new(TokTrie::from(&info, &words).with_eos_tokens(&[256])))
    }

    /// With whether their lexemes end alike.
    fn grammars() -> Vec<(TopLevelGrammar, bool)> {
        let schema = |text: &str| (TopLevelGrammar::from_json_schema(serde_json::from_str(text).unwrap()), true);
        let regex = |text: &str| (TopLevelGrammar::from_regex(text), true);
        let lark = |text: &str| (TopLevelGrammar::from_lark(text.to_string()), false);
        vec![
            schema(r#"{"type": "object"}"#),
            schema(r#"{"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 9}, "maxItems": 4}"#),
            schema(r#"{"properties": {"an": {"type": "number"}, "ot": {"enum": ["red", "é", null, 1]}, "a": {"type": "string", "pattern": "^[a-e]+@.{2,4}$"}}, "required": ["a"], "additionalProperties": {"type": "integer", "minimum": -7, "maximum": 190}}"#),
            schema(r#"{"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "maxLength": 5}, {"const": {"a": [1]}}]}"#),
            regex("([a-e]+ ){1,9}[0-9]{2}"),
            regex("(a|日本|\"é)*\n?"),
            lark("start: item (\",\" item)*\nitem: /[a-e]+/ | NUMBER \"-\"* | \"ab\" | \"(\" start \")\"\nNUMBER: /[0-9]+(\\.[0-9]+)?/\n%ignore / +/"),
            lark("start: word \"end\" tail\nword[lazy]: /[a-z ]*:/\ntail[suffix=\",\"]: /[a-e0-9]*/"),
        ]
    }

    /// Tokens chosen at random, a long or a crossing one rather than a byte.
    fn choose(mask: &SimpleVob, trie: &TokTrie, random: &mut Random) -> u32 {
        let all = mask.to_list();
        let tries: Vec<u32> = (0..3).map(|_| all[random.below(all.len())]).collect();
        *tries.iter().max_by_key(|token| trie.token_len(**token)).unwrap()
    }

    #[test]
    fn masks_are_those_of_a_walk_through_the_vocabulary_with_the_parser() {
        let env = vocabulary();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &[]).unwrap();
        factory.quiet();
        let trees = Arc::new(TokenTrees::of(env.tok_trie()));
        let mut n_masks = 0;
        for (grammar, ends_alike) in grammars() {
            let walked = factory.create_parser(grammar.clone()).unwrap();
            let mut sorted = factory.create_parser(grammar.clone()).unwrap();
            sorted.bias_computer = Arc::new(StateMasks::new(trees.clone(), factory.slicer(), ends_alike));
            for seed in 0..12 {
                let mut random = Random(seed);
                let (mut walked, mut sorted) = (walked.clone(), sorted.clone());
                walked.start_without_prompt();
                sorted.start_without_prompt();
                for _ in 0..60 {
                    let Ok(expected) = walked.compute_mask() else { break };
                    let found = sorted.compute_mask().unwrap();
                    let differ: Vec<u32> = (0..N_TOKENS).filter(|t| found.is_allowed(*t) != expected.is_allowed(*t)).collect();
                    let texts: Vec<String> = differ.iter().map(|t| env.tok_trie().token_dbg(*t)).collect();
                    assert!(
                        texts.is_empty(),
                        "{texts:?} behind {:?} in {grammar:?}",
                        String::from_utf8_lossy(walked.final_bytes())
                    );
                    n_masks += 1;
                    let token = choose(&expected, env.tok_trie(), &mut random);
                    walked.consume_token(token).unwrap();
                    sorted.consume_token(token).unwrap();
                    if walked.check_stop().unwrap() {
                        break;
                    }
                }
            }
        }
        assert!(n_masks > 1000, "{n_masks}");
    }
}
