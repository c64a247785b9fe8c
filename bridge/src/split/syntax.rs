//! An expression as a tree. What is not known is refused by name, with its place.

use regex_syntax::hir::ClassUnicode;

use super::chars;
use crate::error::{Error, Result};

const MAX_DEPTH: usize = 50;
const MAX_BYTES: usize = 8 << 10;
const MAX_COUNT: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    TextStart,
    TextEnd,
    LastLineEnd,
    LineStart,
    LineEnd,
    WordEdge,
    NoWordEdge,
}

#[derive(Clone, Debug)]
pub enum Node {
    Empty,
    Set(ClassUnicode),
    At(Place),
    Chain(Vec<Node>),
    Either(Vec<Node>),
    /// `max` of `None`: without end.
    Repeat {
        body: Box<Node>,
        min: u32,
        max: Option<u32>,
        lazy: bool,
    },
    Atomic(Box<Node>),
    Look {
        body: Box<Node>,
        ahead: bool,
        negative: bool,
    },
}

pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    any_case: bool,
}

pub fn parse(text: &str) -> Result<Node> {
    if text.len() > MAX_BYTES {
        return Err(Error::limit(format!("an expression of {} bytes, at most {MAX_BYTES}", text.len())));
    }
    let mut parser = Parser { text, at: 0, depth: 0, any_case: false };
    let node = parser.alternatives()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.invalid("a ) without a (")),
    }
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    fn next(&mut self) -> Result<char> {
        let c = self.peek().ok_or_else(|| self.invalid("it ends in the middle"))?;
        self.at += c.len_utf8();
        Ok(c)
    }
    fn take(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }
    fn invalid(&self, what: &str) -> Error {
        Error::invalid(format!("the expression is damaged at byte {}: {what}", self.at))
    }
    fn unsupported(&self, what: &str) -> Error {
        Error::unsupported(format!("{what} (at byte {} of the expression) is not known here", self.at))
    }
    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::too_deep("the expression", MAX_DEPTH, self.at));
        }
        Ok(())
    }

    fn alternatives(&mut self) -> Result<Node> {
        self.enter()?;
        let outer_case = self.any_case;
        let mut list = vec![self.chain()?];
        while self.take("|") {
            list.push(self.chain()?);
        }
        self.any_case = outer_case;
        self.depth -= 1;
        Ok(if list.len() == 1 { list.swap_remove(0) } else { Node::Either(list) })
    }

    fn chain(&mut self) -> Result<Node> {
        let mut list = Vec::new();
        let mut letters = String::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            let begin = self.at;
            if self.is_case_switch() {
                // (?i) holds up to the end of its group, alternatives behind it included.
                self.at += if self.rest().starts_with("(?i)") { 4 } else { 5 };
                self.any_case = self.text[begin..].starts_with("(?i)");
                list.push(self.alternatives()?);
                continue;
            }
            let atom = self.atom()?;
            let is_letter = self.any_case && matches!(&self.text[begin..self.at], s if s.chars().count() == 1);
            letters = if is_letter { letters + &self.text[begin..self.at].to_lowercase() } else { String::new() };
            self.check_folds(&letters)?;
            list.push(self.repeated(atom)?);
        }
        Ok(match list.len() {
            0 => Node::Empty,
            1 => list.swap_remove(0),
            _ => Node::Chain(list),
        })
    }

    fn is_case_switch(&self) -> bool {
        self.rest().starts_with("(?i)") || self.rest().starts_with("(?-i)")
    }

    /// Oniguruma finds one character for some pairs of letters, whatever their case.
    fn check_folds(&self, letters: &str) -> Result<()> {
        const PAIRS: [&str; 6] = ["ss", "ff", "fi", "fl", "st", "i\u{307}"];
        let is_other = letters.chars().count() > 1 && !letters.is_ascii();
        if is_other || PAIRS.iter().any(|pair| letters.ends_with(pair)) {
            return Err(self.unsupported("letters that one character may stand for, in (?i:)"));
        }
        Ok(())
    }

    fn atom(&mut self) -> Result<Node> {
        let c = self.next()?;
        match c {
            '(' => self.group(),
            '[' => Ok(Node::Set(self.set()?)),
            '.' => Ok(Node::Set(chars::negated(chars::one('\n')))),
            '^' => Ok(Node::At(Place::LineStart)),
            '$' => Ok(Node::At(Place::LineEnd)),
            '*' | '+' | '?' => Err(self.invalid("nothing stands before a repetition")),
            '\\' => self.escape(),
            _ => self.letter(c),
        }
    }

    fn letter(&self, c: char) -> Result<Node> {
        let set = chars::one(c);
        Ok(Node::Set(if self.any_case { chars::folded(set)? } else { set }))
    }

    fn group(&mut self) -> Result<Node> {
        let look = |ahead, negative| move |body| Node::Look { body: Box::new(body), ahead, negative };
        if !self.take("?") {
            return self.body(|node| node);
        }
        for (word, ahead, negative) in [("=", true, false), ("!", true, true), ("<=", false, false), ("<!", false, true)] {
            if self.take(word) {
                return self.body(look(ahead, negative));
            }
        }
        if self.take(">") {
            return self.body(|node| Node::Atomic(Box::new(node)));
        }
        if self.take(":") {
            return self.body(|node| node);
        }
        if self.take("i:") || self.take("-i:") {
            let outer = std::mem::replace(&mut self.any_case, self.text[..self.at].ends_with("?i:"));
            let node = self.body(|node| node);
            self.any_case = outer;
            return node;
        }
        if self.take("<") || self.take("P<") {
            while self.next()? != '>' {}
            return self.body(|node| node);
        }
        Err(self.unsupported("a group of this kind"))
    }

    fn body(&mut self, make: impl FnOnce(Node) -> Node) -> Result<Node> {
        let node = self.alternatives()?;
        if !self.take(")") {
            return Err(self.invalid("a ( without a )"));
        }
        Ok(make(node))
    }

    fn escape(&mut self) -> Result<Node> {
        let c = self.next()?;
        let place = match c {
            'A' => Some(Place::TextStart),
            'z' => Some(Place::TextEnd),
            'Z' => Some(Place::LastLineEnd),
            'b' => Some(Place::WordEdge),
            'B' => Some(Place::NoWordEdge),
            _ => None,
        };
        if let Some(place) = place {
            return Ok(Node::At(place));
        }
        let class = self.escaped_set(c)?;
        match class {
            Some(class) => Ok(Node::Set(if self.any_case { chars::folded(class)? } else { class })),
            None => {
                let c = self.escaped_char(c)?;
                self.letter(c)
            }
        }
    }

    /// `\p{L}`, `\P{L}`, `\p{^L}`, `\s` and the like, of which `c` is read already.
    fn escaped_set(&mut self, c: char) -> Result<Option<ClassUnicode>> {
        if c != 'p' && c != 'P' {
            return chars::shorthand(c);
        }
        let mut is_negative = c == 'P';
        let name = if self.take("{") {
            is_negative ^= self.take("^");
            let end = self.rest().find('}').ok_or_else(|| self.invalid("a \\p{ without a }"))?;
            let name = self.rest()[..end].to_string();
            self.at += end + 1;
            name
        } else {
            return Err(self.unsupported("\\p without braces"));
        };
        let class = chars::property(&name)?;
        Ok(Some(if is_negative { chars::negated(class) } else { class }))
    }

    fn escaped_char(&mut self, c: char) -> Result<char> {
        let simple = match c {
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'f' => Some('\u{c}'),
            'v' => Some('\u{b}'),
            'a' => Some('\u{7}'),
            'e' => Some('\u{1b}'),
            _ => None,
        };
        if let Some(simple) = simple {
            return Ok(simple);
        }
        let digits = match c {
            'x' if self.take("{") => {
                let end = self.rest().find('}').filter(|&end| end <= 8);
                let end = end.ok_or_else(|| self.invalid("a \\x{ without a }"))?;
                let digits = self.rest()[..end].to_string();
                self.at += end + 1;
                digits
            }
            'x' => self.hex_digits(2)?,
            'u' => self.hex_digits(4)?,
            _ if c.is_ascii_alphanumeric() => return Err(self.unsupported(&format!("\\{c}"))),
            _ => return Ok(c),
        };
        let is_bad_byte = c == 'x' && digits.len() == 2 && digits.as_bytes()[0] >= b'8';
        let value = u32::from_str_radix(&digits, 16).ok().filter(|_| !is_bad_byte).and_then(char::from_u32);
        value.ok_or_else(|| self.invalid("a number of no character"))
    }

    fn hex_digits(&mut self, n: usize) -> Result<String> {
        let digits = self.rest().get(..n).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())).map(str::to_string);
        self.at += if digits.is_some() { n } else { 0 };
        digits.ok_or_else(|| self.invalid("hexadecimal digits are missing"))
    }

    /// Of `[...]`, the bracket being read.
    fn set(&mut self) -> Result<ClassUnicode> {
        self.enter()?;
        let is_negative = self.take("^");
        let mut all: Option<ClassUnicode> = None;
        let mut part = ClassUnicode::empty();
        let mut is_first = true;
        loop {
            if self.take("&&") {
                all = Some(both(all, std::mem::replace(&mut part, ClassUnicode::empty())));
                continue;
            }
            if !is_first && self.take("]") {
                break;
            }
            is_first = false;
            let item = self.set_item()?;
            part.union(&item);
        }
        self.depth -= 1;
        let class = both(all, part);
        let class = if self.any_case { chars::folded(class)? } else { class };
        Ok(if is_negative { chars::negated(class) } else { class })
    }

    fn set_item(&mut self) -> Result<ClassUnicode> {
        if self.rest().starts_with("[:") {
            return self.named_set();
        }
        let c = self.next()?;
        if c == '[' {
            return self.set();
        }
        let mut from = c;
        if c == '\\' {
            let escaped = self.next()?;
            if let Some(class) = self.escaped_set(escaped)? {
                return Ok(class);
            }
            from = if escaped == 'b' { '\u{8}' } else { self.escaped_char(escaped)? };
        }
        let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
        if !is_range {
            return Ok(chars::one(from));
        }
        let minus = self.at;
        self.at += 1;
        if self.rest().starts_with('[') || self.rest().starts_with("&&") {
            self.at = minus;
            return Ok(chars::one(from));
        }
        let mut to = self.next()?;
        if to == '\\' {
            let escaped = self.next()?;
            if self.escaped_set(escaped)?.is_some() {
                self.at = minus; // [a-\s]: the three of them
                return Ok(chars::one(from));
            }
            to = self.escaped_char(escaped)?;
        }
        if to < from {
            return Err(self.invalid("a range of characters that falls"));
        }
        Ok(chars::range(from, to))
    }

    fn named_set(&mut self) -> Result<ClassUnicode> {
        self.at += 2;
        let is_negative = self.take("^");
        let end = self.rest().find(":]").ok_or_else(|| self.invalid("a [: without a :]"))?;
        let class = chars::bracket(&self.rest()[..end])?;
        let class = class.ok_or_else(|| self.unsupported("a [: :] of this name"))?;
        self.at += end + 2;
        Ok(if is_negative { chars::negated(class) } else { class })
    }

    fn repeated(&mut self, mut node: Node) -> Result<Node> {
        let mut n_signs = 0;
        while let Some((min, max, is_count)) = self.repetition()? {
            n_signs += 1;
            if n_signs > 4 {
                return Err(self.unsupported("repetitions of repetitions"));
            }
            if matches!(node, Node::At(_) | Node::Look { .. }) {
                return Err(self.unsupported("a repetition of a place"));
            }
            let lazy = self.take("?");
            if lazy && is_count && Some(min) == max {
                return Err(self.unsupported("a ? behind a count"));
            }
            // Of Ruby's syntax: a{2}+ is (a{2})+.
            let is_atomic = !lazy && !is_count && self.take("+");
            node = Node::Repeat { body: Box::new(node), min, max, lazy };
            if is_atomic {
                node = Node::Atomic(Box::new(node));
            }
        }
        Ok(node)
    }

    fn repetition(&mut self) -> Result<Option<(u32, Option<u32>, bool)>> {
        for (sign, min, max) in [("*", 0, None), ("+", 1, None), ("?", 0, Some(1))] {
            if self.take(sign) {
                return Ok(Some((min, max, false)));
            }
        }
        if !self.rest().starts_with('{') {
            return Ok(None);
        }
        let end = self.rest().find('}').unwrap_or(0);
        let inner = self.rest().get(1..end.max(1)).unwrap_or("").to_string();
        let (low, high) = inner.split_once(',').map_or((inner.as_str(), None), |(low, high)| (low, Some(high)));
        let number = |digits: &str| digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
        let min = if low.is_empty() && high.is_some_and(|h| !h.is_empty()) { Some(0) } else { number(low) };
        let max = match high {
            None => min,
            Some("") => None,
            Some(high) => number(high),
        };
        let is_count = min.is_some() && (max.is_some() || high == Some(""));
        if !is_count {
            return Err(self.unsupported("a { that is no count"));
        }
        let min = min.unwrap_or(0);
        if min.max(max.unwrap_or(0)) > MAX_COUNT || max.is_some_and(|max| max < min) {
            return Err(self.unsupported("a count beyond 1000, or one that falls"));
        }
        self.at += end + 1;
        Ok(Some((min, max, true)))
    }
}

fn both(all: Option<ClassUnicode>, part: ClassUnicode) -> ClassUnicode {
    match all {
        None => part,
        Some(mut all) => {
            all.intersect(&part);
            all
        }
    }
}
