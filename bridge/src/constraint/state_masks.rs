//! Masks, kept by the state of the compiler's lexer. Whether a token may follow depends on that state alone, as long as the
//! token stays within one lexeme; only tokens that go beyond it ask the parser. Both kinds are told apart once for each
//! state, for a constraint and all its forks. Tokens that leave the lexeme from the same state with the same byte fare
//! alike there, so that the parser is asked once for all of them. A new state about which everything holds that was asked
//! for another one has that one's mask: in the middle of a counted repetition, only the first state is walked for.
//!
//! Telling them apart costs as much as walking through the whole vocabulary, which the compiler mostly avoids. So a state's
//! masks are walked for until that has cost as much; then its tokens are sorted. The bits are the same either way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use llguidance::derivre::StateID;
use llguidance::earley::{BiasComputer, ParserRecognizer, SlicedBiasComputer};
use llguidance::toktrie::{Recognizer, SimpleVob, TokTrie};

use crate::constraint::lexer_steps::{Answers, Step, Steps};
use crate::constraint::token_trees::{is_plain_byte, TokenTrees};

/// At 128 000 tokens a mask has 16 KB, and what leaves a string about as much.
const MAX_MASKS: usize = 128;
/// States that one of them is known for.
const MAX_STATES: usize = 1024;
/// A new state is compared with so many of them, those that served last.
const MAX_COMPARED: usize = 8;
/// Of a string there is one state for each length; where there are more, tokens are looked at one by one.
const MAX_STATES_OF_LENGTH: usize = 2;

/// What walks for a state may cost together before its tokens are sorted; about the price of that.
const WALKS_BEFORE_SORTING: Duration = Duration::from_millis(1);
/// So many times as much, spent on states that were seen once, lets the next one be sorted: others may share its mask.
const FIRST_WALKS_BEFORE_SORTING: u32 = 4;

pub struct StateMasks {
    trees: Arc<TokenTrees>,
    /// Walks the vocabulary with the parser.
    plain: Arc<SlicedBiasComputer>,
    known: Mutex<Known>,
    /// Where a lexeme ends tells all; not so in grammars that look behind the end of a lexeme.
    ends_alike: bool,
    walks_before_sorting: Duration,
}

#[derive(Clone, Default)]
struct Known {
    by_state: HashMap<StateID, Arc<StateMask>>,
    /// Each once; the one that served a new state last stands last.
    masks: Vec<Arc<StateMask>>,
    /// What has been spent on walks for states that are not sorted.
    walks: HashMap<StateID, Duration>,
    /// What has been spent on states that were seen for the first time, since one was sorted.
    first_walks: Duration,
}

/// The tokens of one state, or of several.
struct StateMask {
    /// Those that stay within a lexeme and may follow.
    inside: SimpleVob,
    crossings: Vec<Crossing>,
    /// What it follows from; None: from too much.
    answers: Option<Answers>,
}

/// A way out of the lexeme, and where tokens take it.
struct Crossing {
    path: Vec<u8>,
    nodes: Vec<usize>,
}

/// Plain text of fewer bytes than `refused_from` may follow if it has at most `allowed_to`, and must be looked at if it has
/// more.
struct PlainText {
    allowed_to: usize,
    refused_from: usize,
}

impl PlainText {
    fn behind(steps: &mut Steps<'_, '_>, longest: usize) -> PlainText {
        let mut states = vec![0];
        for length in 1..=longest {
            let mut next: Vec<u32> = vec![];
            let (mut is_any_inside, mut is_any_refused) = (false, false);
            for from in &states {
                for byte in (0..=0x7f).filter(|byte| is_plain_byte(*byte)) {
                    match steps.step(*from, byte) {
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
    inside: SimpleVob,
    crossings: Vec<Crossing>,
    /// Crossings by the state and the byte that end a lexeme.
    known: HashMap<(StateID, u8), usize>,
    ends_alike: bool,
}

impl Sorting<'_> {
    fn sort(mut self, recognizer: &mut ParserRecognizer<'_>, state: StateID) -> StateMask {
        let mut steps = Steps::from(recognizer, state);
        let longest = self.trees.longest_plain();
        let text = PlainText::behind(&mut steps, longest);
        self.inside.or(self.trees.plain_up_to(text.allowed_to));
        let is_open = text.allowed_to < longest && text.refused_from > text.allowed_to + 1;
        let first = if is_open { 0 } else { self.trees.n_plain_nodes };
        self.walk(&mut steps, first);
        StateMask { inside: self.inside, crossings: self.crossings, answers: steps.into_answers() }
    }

    /// All tokens from that node on.
    fn walk(&mut self, steps: &mut Steps<'_, '_>, first: usize) {
        let nodes = &self.trees.nodes;
        let mut states = vec![0; self.trees.max_depth + 1];
        let mut bytes = vec![0; self.trees.max_depth];
        let mut at = first;
        while at < nodes.len() {
            let node = &nodes[at];
            let depth = node.depth();
            bytes[depth - 1] = node.byte;
            match steps.step(states[depth - 1], node.byte) {
                Step::Inside(next) => {
                    states[depth] = next;
                    if let Some(token) = node.token() {
                        self.inside.allow_token(token);
                    }
                    at += 1;
                    continue;
                }
                Step::Crosses(end) => self.add_crossing(end, &bytes[..depth], at),
                Step::Refused => {}
            }
            at = node.end();
        }
    }

    fn add_crossing(&mut self, end: StateID, path: &[u8], node: usize) {
        let n_crossings = self.crossings.len();
        let key = path.last().filter(|_| self.ends_alike || !end.has_lowest_match()).map(|byte| (end, *byte));
        let index = key.map_or(n_crossings, |key| *self.known.entry(key).or_insert(n_crossings));
        if index == n_crossings {
            self.crossings.push(Crossing { path: path.to_vec(), nodes: vec![] });
        }
        self.crossings[index].nodes.push(node);
    }
}

impl StateMask {
    fn n_bytes(&self) -> usize {
        let n_nodes: usize = self.crossings.iter().map(|crossing| crossing.nodes.len()).sum();
        self.inside.as_slice().len() * 4 + n_nodes * 8 + self.answers.as_ref().map_or(0, Answers::n_bytes)
    }
}

impl Known {
    fn add(&mut self, state: StateID, mask: &Arc<StateMask>, is_new: bool) {
        if is_new {
            self.first_walks = Duration::ZERO;
        }
        self.masks.retain(|other| !Arc::ptr_eq(other, mask));
        if self.masks.len() < MAX_MASKS {
            self.masks.push(mask.clone());
            if self.by_state.len() < MAX_STATES {
                self.by_state.insert(state, mask.clone());
                self.walks.remove(&state);
            }
        }
    }

    fn add_walk(&mut self, state: StateID, time: Duration) {
        let is_first = !self.walks.contains_key(&state);
        if is_first {
            self.first_walks += time;
        }
        if !is_first || self.walks.len() < MAX_STATES {
            *self.walks.entry(state).or_default() += time;
        }
    }

    fn pays_for_sorting(&self, state: StateID, price: Duration) -> bool {
        let has_paid = self.walks.get(&state).is_some_and(|walks| *walks >= price);
        has_paid || self.first_walks >= price * FIRST_WALKS_BEFORE_SORTING
    }
}

impl StateMasks {
    pub fn new(trees: Arc<TokenTrees>, plain: Arc<SlicedBiasComputer>, ends_alike: bool) -> StateMasks {
        let walks_before_sorting = WALKS_BEFORE_SORTING;
        StateMasks { trees, plain, known: Mutex::default(), ends_alike, walks_before_sorting }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a copy of the lexer: the states that both have mean the same.
    pub fn copy(&self) -> StateMasks {
        StateMasks {
            trees: self.trees.clone(),
            plain: self.plain.clone(),
            known: Mutex::new(self.known().clone()),
            ends_alike: self.ends_alike,
            walks_before_sorting: self.walks_before_sorting,
        }
    }

    pub fn n_bytes(&self) -> usize {
        self.known().masks.iter().map(|mask| mask.n_bytes()).sum()
    }

    /// To be called when a mask ends in an error: one that a limit cut short may be among them.
    pub fn forget(&self) {
        *self.known() = Known::default();
    }

    /// None for a state that does not pay for it yet.
    fn mask_of(&self, recognizer: &mut ParserRecognizer<'_>, state: StateID) -> Option<Arc<StateMask>> {
        let latest: Vec<Arc<StateMask>> = {
            let known = self.known();
            if let Some(mask) = known.by_state.get(&state) {
                return Some(mask.clone());
            }
            if !known.pays_for_sorting(state, self.walks_before_sorting) {
                return None;
            }
            known.masks.iter().rev().take(MAX_COMPARED).cloned().collect()
        };
        let mut holds =
            |mask: &Arc<StateMask>| mask.answers.as_ref().is_some_and(|answers| answers.hold_behind(recognizer, state));
        let shared = latest.into_iter().find(|mask| holds(mask));
        let is_new = shared.is_none();
        let mask = shared.unwrap_or_else(|| Arc::new(self.sort(recognizer, state)));
        self.known().add(state, &mask, is_new);
        Some(mask)
    }

    fn walk(&self, recognizer: &mut ParserRecognizer<'_>, state: StateID) -> SimpleVob {
        let begin = Instant::now();
        let set = self.plain.compute_bias(recognizer, &[]);
        self.known().add_walk(state, begin.elapsed());
        set
    }

    fn sort(&self, recognizer: &mut ParserRecognizer<'_>, state: StateID) -> StateMask {
        let sorting = Sorting {
            trees: &self.trees,
            inside: self.trie().alloc_token_set(),
            crossings: vec![],
            known: HashMap::new(),
            ends_alike: self.ends_alike,
        };
        sorting.sort(recognizer, state)
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
        let Some(mask) = self.mask_of(recognizer, state) else { return self.walk(recognizer, state) };
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
            let n = 2 + random.below(if words.len().is_multiple_of(50) { 30 } else { 6 });
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
            let mut masks = StateMasks::new(trees.clone(), factory.slicer(), ends_alike);
            masks.walks_before_sorting = Duration::ZERO;
            sorted.bias_computer = Arc::new(masks);
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

    #[test]
    fn states_in_the_middle_of_a_repetition_share_a_mask() {
        let env = vocabulary();
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &[]).unwrap();
        factory.quiet();
        let mut masks = StateMasks::new(Arc::new(TokenTrees::of(env.tok_trie())), factory.slicer(), true);
        masks.walks_before_sorting = Duration::ZERO;
        let masks = Arc::new(masks);
        let mut parser = factory.create_parser(TopLevelGrammar::from_regex("(aa|b){300}")).unwrap();
        parser.bias_computer = masks.clone();
        parser.start_without_prompt();
        for _ in 0..299 {
            parser.compute_mask().unwrap();
            parser.consume_token(u32::from(b'b')).unwrap();
        }
        let known = masks.known();
        assert_eq!(known.by_state.len(), 299);
        assert!(known.masks.len() < 40, "{}", known.masks.len());
    }
}
