//! Where bytes lead from a state of the compiler's lexer: within the lexeme, out of it, or nowhere. What was asked is kept,
//! so that it can be asked again of another state: where all answers are the same, the two fare alike.

use std::collections::HashMap;

use llguidance::derivre::StateID;
use llguidance::earley::ParserRecognizer;

/// 2 KB each.
const MAX_KNOWN_STATES: usize = 512;
/// 12 bytes each.
const MAX_ANSWERS: usize = 4096;

#[derive(Clone, Copy)]
pub enum Step<State> {
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

struct Answer {
    state: u32,
    byte: u8,
    step: Step<u32>,
}

/// All that was asked behind a state, in order; a state is asked about only after a step has led to it.
pub struct Answers(Vec<Answer>);

impl Answers {
    pub fn n_bytes(&self) -> usize {
        self.0.len() * size_of::<Answer>()
    }

    /// Does all of it hold behind `start` as well? What was learned by asking is then true there, in the same order of
    /// steps, for callers that tell the ends of lexemes apart no further than these.
    pub fn hold_behind(&self, recognizer: &mut ParserRecognizer<'_>, start: StateID) -> bool {
        let mut states = vec![start];
        let mut ends: HashMap<StateID, StateID> = HashMap::new();
        self.0.iter().all(|answer| {
            let found = step(recognizer, states[answer.state as usize], answer.byte);
            match (answer.step, found) {
                (Step::Inside(number), Step::Inside(next)) => {
                    if number as usize == states.len() {
                        states.push(next);
                    }
                    states[number as usize] == next
                }
                (Step::Crosses(end), Step::Crosses(other)) => {
                    end.has_lowest_match() == other.has_lowest_match() && *ends.entry(end).or_insert(other) == other
                }
                (Step::Refused, Step::Refused) => true,
                _ => false,
            }
        })
    }
}

/// Steps behind one state, which is number 0; the others are numbered in the order of their finding.
pub struct Steps<'a, 'b> {
    recognizer: &'a mut ParserRecognizer<'b>,
    states: Vec<StateID>,
    numbers: HashMap<StateID, u32>,
    /// Of the first states.
    known: Vec<[Option<Step<u32>>; 256]>,
    answers: Vec<Answer>,
}

impl<'a, 'b> Steps<'a, 'b> {
    /// REQUIRES: `state` is one that more bytes may follow.
    pub fn from(recognizer: &'a mut ParserRecognizer<'b>, state: StateID) -> Self {
        let numbers = HashMap::from([(state, 0)]);
        Steps { recognizer, states: vec![state], numbers, known: vec![[None; 256]], answers: vec![] }
    }

    #[inline(always)]
    pub fn step(&mut self, state: u32, byte: u8) -> Step<u32> {
        match self.known.get(state as usize).and_then(|steps| steps[byte as usize]) {
            Some(step) => step,
            None => self.find(state, byte),
        }
    }

    #[inline(never)]
    fn find(&mut self, state: u32, byte: u8) -> Step<u32> {
        let step = match step(self.recognizer, self.states[state as usize], byte) {
            Step::Inside(next) => Step::Inside(self.number(next)),
            Step::Crosses(end) => Step::Crosses(end),
            Step::Refused => Step::Refused,
        };
        if let Some(steps) = self.known.get_mut(state as usize) {
            steps[byte as usize] = Some(step);
        }
        if self.answers.len() <= MAX_ANSWERS {
            self.answers.push(Answer { state, byte, step });
        }
        step
    }

    fn number(&mut self, state: StateID) -> u32 {
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(state).or_insert(next);
        if number == next {
            self.states.push(state);
            if self.known.len() < MAX_KNOWN_STATES {
                self.known.push([None; 256]);
            }
        }
        number
    }

    /// None where there were too many.
    pub fn into_answers(self) -> Option<Answers> {
        (self.answers.len() <= MAX_ANSWERS).then_some(Answers(self.answers))
    }
}
