//! One match at a place. Backtracking, with what failed remembered by instruction and place (Davis et al., "Using
//! selective memoization to defeat regular expression denial of service", 2021), so that nothing is tried twice; steps,
//! stack and memory are counted all the same.

use std::collections::VecDeque;

use super::chars::CharSet;
use super::program::{Instruction, Program};
use super::syntax::Place;
use crate::error::{Error, Result};

const MAX_FRAMES: usize = 1 << 19;
const PLACES_A_CHUNK: usize = 64; // a piece is mostly a word
const MAX_MEMO_BYTES: usize = 32 << 20;

/// What is left of the steps that a text may take.
pub struct Budget {
    pub steps: u64,
}

enum Frame {
    Other {
        at: usize,
        place: usize,
    },
    /// Everything from there was tried.
    Failed {
        memo: usize,
        place: usize,
    },
    /// Shorter runs remain: ends from `low` up to below `end`. `high`: of the longest.
    Run {
        at: usize,
        low: usize,
        end: usize,
        high: usize,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Fails,
    /// Of a look-around, where that it matches is all that matters.
    Matches,
}

/// What is known of instructions at places, from the place where the search stands.
#[derive(Default)]
struct Memory {
    chunks: VecDeque<Option<Box<[u64]>>>,
    first_chunk: usize,
    n_memos: usize,
    n_bytes: usize,
}

impl Memory {
    fn begin(&mut self, n_memos: usize) {
        self.chunks.clear();
        (self.first_chunk, self.n_memos, self.n_bytes) = (0, n_memos, 0);
    }

    fn forget_before(&mut self, place: usize) {
        while self.first_chunk < place / PLACES_A_CHUNK {
            if self.chunks.pop_front().flatten().is_some() {
                self.n_bytes -= self.chunk_bytes();
            }
            self.first_chunk += 1;
        }
    }

    fn chunk_bytes(&self) -> usize {
        (self.n_memos * PLACES_A_CHUNK).div_ceil(32) * 8
    }

    fn get(&self, memo: usize, place: usize) -> Known {
        let Some(chunk) = (place / PLACES_A_CHUNK).checked_sub(self.first_chunk) else { return Known::Nothing };
        let Some(Some(bits)) = self.chunks.get(chunk) else { return Known::Nothing };
        let at = (place % PLACES_A_CHUNK) * self.n_memos + memo;
        match bits[at / 32] >> (at % 32 * 2) & 3 {
            0 => Known::Nothing,
            1 => Known::Fails,
            _ => Known::Matches,
        }
    }

    fn set(&mut self, memo: usize, place: usize, known: Known) -> Result<()> {
        let Some(chunk) = (place / PLACES_A_CHUNK).checked_sub(self.first_chunk) else { return Ok(()) };
        while self.chunks.len() <= chunk {
            self.chunks.push_back(None);
        }
        if self.chunks[chunk].is_none() {
            self.n_bytes += self.chunk_bytes();
            if self.n_bytes > MAX_MEMO_BYTES {
                return Err(Error::limit("the text takes more memory than the expressions that cut it into words may use"));
            }
            self.chunks[chunk] = Some(vec![0; self.chunk_bytes() / 8].into_boxed_slice());
        }
        if let Some(bits) = &mut self.chunks[chunk] {
            let at = (place % PLACES_A_CHUNK) * self.n_memos + memo;
            bits[at / 32] |= if known == Known::Fails { 1 } else { 2 } << (at % 32 * 2);
        }
        Ok(())
    }
}

/// Used again and again; belongs to one thread.
#[derive(Default)]
pub struct Matcher {
    frames: Vec<Frame>,
    memory: Memory,
}

/// A program over one piece of a text.
pub struct Search<'a> {
    pub program: &'a Program,
    pub words: &'a CharSet,
    pub text: &'a [u32],
    pub matcher: &'a mut Matcher,
    pub budget: &'a mut Budget,
}

impl Search<'_> {
    pub fn begin(&mut self) {
        self.matcher.memory.begin(self.program.n_memos);
    }

    /// The leftmost match that begins at `from` or later: its two ends.
    pub fn find(&mut self, from: usize) -> Result<Option<(usize, usize)>> {
        for start in from..=self.text.len() {
            self.matcher.memory.forget_before(start);
            if let Some(end) = self.run(0, start, false)? {
                return Ok(Some((start, end)));
            }
        }
        Ok(None)
    }

    fn step(&mut self) -> Result<()> {
        self.budget.steps = self.budget.steps.checked_sub(1).ok_or_else(|| {
            Error::limit("the text takes more work than the expressions that cut it into words may use; break long runs of one kind of character")
        })?;
        Ok(())
    }

    fn push(&mut self, frame: Frame) -> Result<()> {
        if self.matcher.frames.len() >= MAX_FRAMES {
            return Err(Error::limit("the text takes more memory than the expressions that cut it into words may use"));
        }
        self.matcher.frames.push(frame);
        Ok(())
    }

    /// From an instruction at a place to the end of its program: where the match ends.
    fn run(&mut self, mut at: usize, mut place: usize, only_whether: bool) -> Result<Option<usize>> {
        let base = self.matcher.frames.len();
        loop {
            self.step()?;
            let next = match &self.program.instructions[at] {
                Instruction::Done => {
                    self.unwind(base, only_whether)?;
                    return Ok(Some(place));
                }
                Instruction::Either { first, second, memo } => self.split(*first, *second, *memo, place)?,
                Instruction::Run { set, memo } => self.take_run(at, *set, *memo, place)?,
                _ => self.simple(at, place)?,
            };
            let (next_at, next_place, is_match) = match next {
                Next::Go(next_at, next_place) => (next_at, next_place, false),
                Next::Matches => (at, place, true),
                Next::Fails => match self.back_up(base)? {
                    Some((next_at, next_place)) => (next_at, next_place, false),
                    None => return Ok(None),
                },
            };
            if is_match && only_whether {
                self.unwind(base, true)?;
                return Ok(Some(place));
            }
            (at, place) = (next_at, next_place);
        }
    }

    fn split(&mut self, first: usize, second: usize, memo: usize, place: usize) -> Result<Next> {
        match self.matcher.memory.get(memo, place) {
            Known::Fails => return Ok(Next::Fails),
            Known::Matches => return Ok(Next::Matches),
            Known::Nothing => {}
        }
        self.push(Frame::Failed { memo, place })?;
        self.push(Frame::Other { at: second, place })?;
        Ok(Next::Go(first, place))
    }

    fn simple(&mut self, at: usize, place: usize) -> Result<Next> {
        let program = self.program;
        let go_if = |holds, place| if holds { Next::Go(at + 1, place) } else { Next::Fails };
        Ok(match &program.instructions[at] {
            Instruction::Set(set) => go_if(self.text.get(place).is_some_and(|&c| program.sets[*set].has(c)), place + 1),
            Instruction::At(here) => go_if(self.holds(*here, place), place),
            Instruction::RunOnly { set } => Next::Go(at + 1, self.run_end(*set, None, place)?),
            Instruction::Jump(to) => Next::Go(*to, place),
            Instruction::Look { next, back, negative } => {
                let start = place.checked_sub(back.unwrap_or(0));
                let found = match start {
                    Some(start) => self.run(at + 1, start, true)?.is_some(),
                    None => false,
                };
                if found != *negative {
                    Next::Go(*next, place)
                } else {
                    Next::Fails
                }
            }
            Instruction::Atomic { next } => match self.run(at + 1, place, false)? {
                Some(end) => Next::Go(*next, end),
                None => Next::Fails,
            },
            _ => return Err(Error::internal("an instruction out of place")),
        })
    }

    /// Ends where the set does, or where the same run was seen to fail.
    fn run_end(&mut self, set: usize, memo: Option<usize>, place: usize) -> Result<usize> {
        let mut end = place;
        while self.text.get(end).is_some_and(|&c| self.program.sets[set].has(c)) {
            end += 1;
            self.step()?;
            if memo.is_some_and(|memo| self.matcher.memory.get(memo, end) == Known::Fails) {
                break;
            }
        }
        Ok(end)
    }

    fn take_run(&mut self, at: usize, set: usize, memo: usize, place: usize) -> Result<Next> {
        if self.matcher.memory.get(memo, place) == Known::Fails {
            return Ok(Next::Fails);
        }
        let end = self.run_end(set, Some(memo), place)?;
        let is_seen = end > place && self.matcher.memory.get(memo, end) == Known::Fails;
        if is_seen {
            // From there on nothing matches: only shorter runs are left.
            self.push(Frame::Run { at, low: place, end, high: end })?;
            return Ok(Next::Fails);
        }
        self.push(Frame::Run { at, low: place, end, high: end + 1 })?;
        Ok(Next::Go(at + 1, end))
    }

    /// The way that was left open last.
    fn back_up(&mut self, base: usize) -> Result<Option<(usize, usize)>> {
        while self.matcher.frames.len() > base {
            self.step()?;
            match self.matcher.frames.last_mut() {
                Some(Frame::Run { at, low, end, .. }) if *end > *low => {
                    *end -= 1;
                    return Ok(Some((*at + 1, *end)));
                }
                _ => {}
            }
            match self.matcher.frames.pop() {
                Some(Frame::Other { at, place }) => return Ok(Some((at, place))),
                Some(Frame::Failed { memo, place }) => self.matcher.memory.set(memo, place, Known::Fails)?,
                Some(Frame::Run { at, low, high, .. }) => self.note_run(at, low, high)?,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn note_run(&mut self, at: usize, low: usize, high: usize) -> Result<()> {
        let Instruction::Run { memo, .. } = self.program.instructions[at] else { return Ok(()) };
        for place in low..high {
            self.step()?;
            self.matcher.memory.set(memo, place, Known::Fails)?;
        }
        Ok(())
    }

    /// The program matched: what is left open is dropped. What led there matches again from there.
    fn unwind(&mut self, base: usize, only_whether: bool) -> Result<()> {
        if only_whether {
            for i in base..self.matcher.frames.len() {
                let Frame::Failed { memo, place } = self.matcher.frames[i] else { continue };
                self.step()?;
                self.matcher.memory.set(memo, place, Known::Matches)?;
            }
        }
        self.matcher.frames.truncate(base);
        Ok(())
    }

    fn holds(&self, here: Place, place: usize) -> bool {
        let n = self.text.len();
        let is_line_end = |at: usize| self.text.get(at) == Some(&('\n' as u32));
        let is_word = |at: Option<usize>| at.and_then(|at| self.text.get(at)).is_some_and(|&c| self.words.has(c));
        match here {
            Place::TextStart => place == 0,
            Place::TextEnd => place == n,
            Place::LastLineEnd => place == n || (place + 1 == n && is_line_end(place)),
            Place::LineStart => place == 0 || (is_line_end(place - 1) && place < n),
            Place::LineEnd => place == n || is_line_end(place),
            Place::WordEdge => is_word(place.checked_sub(1)) != is_word(Some(place)),
            Place::NoWordEdge => is_word(place.checked_sub(1)) == is_word(Some(place)),
        }
    }
}

enum Next {
    Go(usize, usize),
    Fails,
    /// Known to, in a look-around.
    Matches,
}
