//! A tree as instructions. Each look-around and each atomic group is a program of its own inside, which ends with `Done`.

use super::chars::{negated, CharSet};
use super::syntax::{Node, Place};
use crate::error::{Error, Result};

const MAX_INSTRUCTIONS: usize = 4000;

#[derive(Debug)]
pub enum Instruction {
    Set(usize),
    At(Place),
    /// Tries `first`, then `second`. `memo`: its place in what is remembered of a position.
    Either {
        first: usize,
        second: usize,
        memo: usize,
    },
    /// As many of the set as there are, then fewer.
    Run {
        set: usize,
        memo: usize,
    },
    /// As many as there are, and never fewer.
    RunOnly {
        set: usize,
    },
    Jump(usize),
    /// Runs its body, which follows; goes on at `next` if it matches (or does not). `back`: characters before here.
    Look {
        next: usize,
        back: Option<usize>,
        negative: bool,
    },
    Atomic {
        next: usize,
    },
    Done,
}

#[derive(Debug, Default)]
pub struct Program {
    pub instructions: Vec<Instruction>,
    pub sets: Vec<CharSet>,
    pub n_memos: usize,
}

impl Program {
    pub fn of(node: &Node) -> Result<Program> {
        let mut program = Program::default();
        program.add(node)?;
        program.push(Instruction::Done)?;
        Ok(program)
    }

    fn push(&mut self, instruction: Instruction) -> Result<usize> {
        if self.instructions.len() >= MAX_INSTRUCTIONS {
            return Err(Error::limit(format!("an expression of more than {MAX_INSTRUCTIONS} steps")));
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    fn here(&self) -> usize {
        self.instructions.len()
    }

    fn memo(&mut self) -> usize {
        self.n_memos += 1;
        self.n_memos - 1
    }

    fn set(&mut self, class: &regex_syntax::hir::ClassUnicode) -> usize {
        let set = CharSet::of(class);
        if let Some(known) = self.sets.iter().position(|s| *s == set) {
            return known;
        }
        self.sets.push(set);
        self.sets.len() - 1
    }

    fn either(&mut self) -> Result<usize> {
        let memo = self.memo();
        self.push(Instruction::Either { first: 0, second: 0, memo })
    }

    fn direct(&mut self, at: usize, to_first: usize, to_second: usize) {
        if let Instruction::Either { first, second, .. } = &mut self.instructions[at] {
            *first = to_first;
            *second = to_second;
        }
    }

    fn add(&mut self, node: &Node) -> Result<()> {
        match node {
            Node::Empty => Ok(()),
            Node::Set(class) => {
                let set = self.set(class);
                self.push(Instruction::Set(set)).map(|_| ())
            }
            Node::At(place) => self.push(Instruction::At(*place)).map(|_| ()),
            Node::Chain(list) => list.iter().try_for_each(|part| self.add(part)),
            Node::Either(list) => self.add_alternatives(list),
            Node::Repeat { body, min, max, lazy } => self.add_repeat(body, *min, *max, *lazy),
            Node::Atomic(body) => self.add_atomic(body),
            Node::Look { body, ahead, negative } => self.add_look(body, *ahead, *negative),
        }
    }

    fn add_alternatives(&mut self, list: &[Node]) -> Result<()> {
        let mut jumps = Vec::new();
        for (i, part) in list.iter().enumerate() {
            let is_last = i + 1 == list.len();
            let either = if is_last { None } else { Some(self.either()?) };
            let first = self.here();
            self.add(part)?;
            if let Some(either) = either {
                jumps.push(self.push(Instruction::Jump(0))?);
                let second = self.here();
                self.direct(either, first, second);
            }
        }
        let end = self.here();
        for jump in jumps {
            self.instructions[jump] = Instruction::Jump(end);
        }
        Ok(())
    }

    fn add_repeat(&mut self, body: &Node, min: u32, max: Option<u32>, lazy: bool) -> Result<()> {
        for _ in 0..min {
            self.add(body)?;
        }
        let Some(max) = max else { return self.add_loop(body, lazy) };
        let mut ways_out = Vec::new();
        for _ in min..max {
            let either = self.either()?;
            let inside = self.here();
            self.add(body)?;
            ways_out.push((either, inside));
        }
        let end = self.here();
        for (either, inside) in ways_out {
            let (first, second) = if lazy { (end, inside) } else { (inside, end) };
            self.direct(either, first, second);
        }
        Ok(())
    }

    fn add_loop(&mut self, body: &Node, lazy: bool) -> Result<()> {
        if let (Node::Set(class), false) = (body, lazy) {
            let (set, memo) = (self.set(class), self.memo());
            return self.push(Instruction::Run { set, memo }).map(|_| ());
        }
        if may_be_empty(body) {
            return Err(Error::unsupported("a repetition without end of what may be empty is not known here"));
        }
        let either = self.either()?;
        let inside = self.here();
        self.add(body)?;
        self.push(Instruction::Jump(either))?;
        let end = self.here();
        let (first, second) = if lazy { (end, inside) } else { (inside, end) };
        self.direct(either, first, second);
        Ok(())
    }

    fn add_atomic(&mut self, body: &Node) -> Result<()> {
        if let Node::Repeat { body: inner, min, max: None, lazy: false } = body {
            if let Node::Set(class) = inner.as_ref() {
                for _ in 0..*min {
                    self.add(inner)?;
                }
                let set = self.set(class);
                return self.push(Instruction::RunOnly { set }).map(|_| ());
            }
        }
        let at = self.push(Instruction::Atomic { next: 0 })?;
        self.add(body)?;
        self.push(Instruction::Done)?;
        self.instructions[at] = Instruction::Atomic { next: self.here() };
        Ok(())
    }

    fn add_look(&mut self, body: &Node, ahead: bool, negative: bool) -> Result<()> {
        let back = if ahead { None } else { Some(length(body)?) };
        let at = self.push(Instruction::Look { next: 0, back, negative })?;
        self.add(body)?;
        self.push(Instruction::Done)?;
        self.instructions[at] = Instruction::Look { next: self.here(), back, negative };
        Ok(())
    }
}

fn may_be_empty(node: &Node) -> bool {
    match node {
        Node::Empty | Node::At(_) | Node::Look { .. } => true,
        Node::Set(_) => false,
        Node::Chain(list) => list.iter().all(may_be_empty),
        Node::Either(list) => list.iter().any(may_be_empty),
        Node::Repeat { body, min, .. } => *min == 0 || may_be_empty(body),
        Node::Atomic(body) => may_be_empty(body),
    }
}

/// Characters of every match of a body that looks back.
fn length(node: &Node) -> Result<usize> {
    let varies = || Error::unsupported("a look back over texts of several lengths is not known here");
    match node {
        Node::Empty | Node::At(_) | Node::Look { .. } => Ok(0),
        Node::Set(_) => Ok(1),
        Node::Chain(list) => list.iter().try_fold(0, |sum, part| Ok(sum + length(part)?)),
        Node::Either(list) => {
            let first = length(&list[0])?;
            for part in list {
                if length(part)? != first {
                    return Err(varies());
                }
            }
            Ok(first)
        }
        Node::Repeat { body, min, max, .. } if Some(*min) == *max => Ok(length(body)? * *min as usize),
        Node::Repeat { .. } => Err(varies()),
        Node::Atomic(body) => length(body),
    }
}

/// What `\b` tells apart.
pub fn word_characters() -> Result<CharSet> {
    let class = super::chars::shorthand('W')?.ok_or_else(|| Error::internal("no table of words"))?;
    Ok(CharSet::of(&negated(class)))
}
