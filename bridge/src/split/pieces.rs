//! All matches of each step to pieces, as the `tokenizers` library makes them.

use super::chars::CharSet;
use super::matcher::{Budget, Matcher, Search};
use super::program::{word_characters, Program};
use super::syntax::parse;
use crate::error::{Error, Result};

const MAX_STEPS: usize = 64;
const MAX_BYTES: usize = 16 << 10;

/// What becomes of a match. Numbers are part of the C interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    Isolated = 0,
    Removed = 1,
    MergedWithPrevious = 2,
    MergedWithNext = 3,
    Contiguous = 4,
}

impl Behavior {
    pub fn of(number: i32) -> Result<Behavior> {
        use Behavior::*;
        let all = [Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous];
        let found = all.into_iter().find(|b| *b as i32 == number);
        found.ok_or_else(|| Error::internal(format!("split: no behavior {number}")))
    }
}

/// `invert`: what does not match counts as matching, and the other way round.
pub struct Step<'a> {
    pub expression: &'a str,
    pub behavior: Behavior,
    pub invert: bool,
    /// Of this step and those behind it: characters are the bytes, in GPT-2's alphabet.
    pub over_bytes: bool,
}

struct Compiled {
    program: Program,
    behavior: Behavior,
    invert: bool,
    over_bytes: bool,
}

/// Immutable; any thread.
pub struct Splitter {
    steps: Vec<Compiled>,
    words: CharSet,
}

/// Characters of a text from one to another, and whether they match.
#[derive(Clone, Copy)]
struct Piece {
    begin: usize,
    end: usize,
    matches: bool,
}

impl Splitter {
    pub fn new(steps: &[Step]) -> Result<Splitter> {
        if steps.len() > MAX_STEPS {
            return Err(Error::limit(format!("{} splits one after another, at most {MAX_STEPS}", steps.len())));
        }
        let n_bytes: usize = steps.iter().map(|step| step.expression.len()).sum();
        if n_bytes > MAX_BYTES {
            return Err(Error::limit(format!("expressions of {n_bytes} bytes, all together at most {MAX_BYTES}")));
        }
        let compile = |step: &Step| {
            let program = Program::of(&parse(step.expression)?)?;
            Ok(Compiled { program, behavior: step.behavior, invert: step.invert, over_bytes: step.over_bytes })
        };
        Ok(Splitter { steps: steps.iter().map(compile).collect::<Result<_>>()?, words: word_characters()? })
    }

    /// The words of a text of any bytes, in order: begin and end of each, in bytes. Takes what it costs from `steps`.
    pub fn split(&self, text: &[u8], steps: &mut u64) -> Result<Vec<(usize, usize)>> {
        let (mut characters, mut begins) = decode(text);
        let mut budget = Budget { steps: *steps };
        let mut matcher = Matcher::default();
        let mut pieces = vec![(0, characters.len())];
        let mut is_over_bytes = false;
        for step in &self.steps {
            if step.over_bytes && !is_over_bytes {
                pieces.iter_mut().for_each(|piece| *piece = (begins[piece.0], begins[piece.1]));
                (characters, begins) = alphabet_of(text);
                is_over_bytes = true;
            }
            let mut cut = Vec::new();
            for (begin, end) in pieces {
                let text = &characters[begin..end];
                let mut search =
                    Search { program: &step.program, words: &self.words, text, matcher: &mut matcher, budget: &mut budget };
                let found = matches(&mut search)?;
                cut.extend(apply(step, found).iter().map(|p| (begin + p.begin, begin + p.end)));
            }
            pieces = cut;
        }
        *steps = budget.steps;
        Ok(pieces.iter().filter(|(begin, end)| begin != end).map(|&(begin, end)| (begins[begin], begins[end])).collect())
    }
}

/// Characters and where each begins; a byte that is not UTF-8 is a character of its own.
fn decode(text: &[u8]) -> (Vec<u32>, Vec<usize>) {
    let mut characters = Vec::with_capacity(text.len());
    let mut begins = Vec::with_capacity(text.len() + 1);
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            characters.push(c as u32);
            begins.push(at);
            at += c.len_utf8();
        }
        for _ in chunk.invalid() {
            characters.push(char::REPLACEMENT_CHARACTER as u32);
            begins.push(at);
            at += 1;
        }
    }
    begins.push(at);
    (characters, begins)
}

/// Each byte as the character that ByteLevel writes for it.
fn alphabet_of(text: &[u8]) -> (Vec<u32>, Vec<usize>) {
    let is_own = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut table = [0u32; 256];
    let mut n_others = 0;
    for b in 0..=255u8 {
        table[b as usize] = if is_own(b) { b as u32 } else { 0x100 + n_others };
        n_others += u32::from(!is_own(b));
    }
    (text.iter().map(|&b| table[b as usize]).collect(), (0..=text.len()).collect())
}

fn matches(search: &mut Search) -> Result<Vec<Piece>> {
    let n = search.text.len();
    let mut pieces = Vec::new();
    let (mut from, mut previous, mut last_end) = (0, 0, None);
    search.begin();
    while n > 0 && from <= n {
        let Some((begin, end)) = search.find(from)? else { break };
        if begin == end && last_end == Some(end) {
            from += 1;
            continue;
        }
        (from, last_end) = (end, Some(end));
        if previous != begin {
            pieces.push(Piece { begin: previous, end: begin, matches: false });
        }
        pieces.push(Piece { begin, end, matches: true });
        previous = end;
    }
    if previous != n {
        pieces.push(Piece { begin: previous, end: n, matches: false });
    }
    Ok(pieces)
}

fn apply(step: &Compiled, mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.iter_mut().for_each(|piece| piece.matches ^= step.invert);
    match step.behavior {
        Behavior::Isolated => pieces,
        Behavior::Removed => pieces.into_iter().filter(|piece| !piece.matches).collect(),
        Behavior::Contiguous => merged(pieces.into_iter(), |before, piece| before == piece),
        Behavior::MergedWithPrevious => merged(pieces.into_iter(), |before, piece| piece && !before),
        Behavior::MergedWithNext => {
            let mut list = merged(pieces.into_iter().rev(), |before, piece| piece && !before);
            list.reverse();
            list
        }
    }
}

/// `joins`: of what the one before matched (at first: nothing), and the next.
fn merged(pieces: impl Iterator<Item = Piece>, joins: impl Fn(bool, bool) -> bool) -> Vec<Piece> {
    let mut list: Vec<Piece> = Vec::new();
    let mut before = false;
    for piece in pieces {
        match list.last_mut() {
            Some(last) if joins(before, piece.matches) => {
                (last.begin, last.end) = (last.begin.min(piece.begin), last.end.max(piece.end));
            }
            _ => list.push(piece),
        }
        before = piece.matches;
    }
    list
}
