//! No object of a JSON text names a property twice. The compiler below sees to that for the names that a schema lists, but
//! not for those that it admits without listing them. So the text is followed here: the names of the objects that are
//! open, and tokens that would complete one of them again are taken out of the mask.
//!
//! A name has one spelling: of `\u` escapes, only those that JSON has no shorter form for are allowed in names. So names are
//! compared as they are written, and none that a schema lists can be spelled another way where other names are admitted.

use llguidance::toktrie::{TokEnv, TokTrie, TokenId};

/// The tokens of a vocabulary that may complete a name, by where the text stands.
pub struct NameTokens {
    env: TokEnv,
    /// Inside of text that is no name: only what closes it, opens a name and goes on.
    in_text: Vec<TokenId>,
    outside: Vec<TokenId>,
    /// Inside of a name: those with an escape or a second string; and those that only close it.
    in_name: Vec<TokenId>,
    closing: Vec<TokenId>,
}

impl NameTokens {
    pub fn of(env: TokEnv, n_tokens: usize) -> NameTokens {
        let mut all = NameTokens { env, in_text: vec![], outside: vec![], in_name: vec![], closing: vec![] };
        for token in 0..n_tokens as TokenId {
            let bytes = text_of(all.env.tok_trie(), token);
            let n_quotes = bytes.iter().filter(|b| **b == b'"').count();
            let n_escapes = bytes.iter().filter(|b| **b == b'\\').count();
            if n_quotes >= 2 && n_quotes + n_escapes >= 3 {
                all.in_text.push(token);
            }
            if n_quotes >= 1 && n_quotes + n_escapes >= 2 {
                all.outside.push(token);
            }
            if n_quotes >= 2 || n_escapes >= 1 {
                all.in_name.push(token);
            } else if n_quotes == 1 {
                all.closing.push(token);
            }
        }
        all
    }

    pub fn text(&self, token: TokenId) -> &[u8] {
        text_of(self.env.tok_trie(), token)
    }
}

/// Nothing for a special token.
fn text_of(trie: &TokTrie, token: TokenId) -> &[u8] {
    let bytes = trie.token(token);
    if bytes.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
        &[]
    } else {
        bytes
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Mode {
    #[default]
    Outside,
    Text,
    TextEscape,
    Name,
    NameEscape,
    /// Before the hexadecimal digit of that number; the last knows the one before it.
    Hex(u8),
    LastHex(u8),
}

#[derive(Clone, Copy, Default)]
struct Place {
    mode: Mode,
    /// The next string is a name.
    before_name: bool,
}

/// What a byte of the text does to the brackets and names.
trait Structure {
    fn is_in_object(&self) -> bool;
    fn open(&mut self, is_object: bool);
    fn close(&mut self);
    fn extend_name(&mut self, byte: u8);
    /// False if the object has that name.
    fn end_name(&mut self) -> bool;
}

/// False if the text may not go on so. REQUIRES: with what came before, it is the beginning of a JSON text.
fn step(place: &mut Place, byte: u8, structure: &mut impl Structure) -> bool {
    match place.mode {
        Mode::Outside => step_outside(place, byte, structure),
        Mode::Text if byte == b'"' => place.mode = Mode::Outside,
        Mode::Text if byte == b'\\' => place.mode = Mode::TextEscape,
        Mode::Text => {}
        Mode::TextEscape => place.mode = Mode::Text,
        Mode::Name if byte == b'"' => {
            place.mode = Mode::Outside;
            return structure.end_name();
        }
        _ => {
            structure.extend_name(byte);
            return step_name(place, byte);
        }
    }
    true
}

fn step_outside(place: &mut Place, byte: u8, structure: &mut impl Structure) {
    match byte {
        b'{' | b'[' => {
            structure.open(byte == b'{');
            place.before_name = byte == b'{';
        }
        b'}' | b']' => {
            structure.close();
            place.before_name = false;
        }
        b',' => place.before_name = structure.is_in_object(),
        b'"' => {
            place.mode = if place.before_name { Mode::Name } else { Mode::Text };
            place.before_name = false;
        }
        _ => {}
    }
}

fn step_name(place: &mut Place, byte: u8) -> bool {
    let next = match (place.mode, byte) {
        (Mode::Name, b'\\') => Mode::NameEscape,
        (Mode::Name, _) => Mode::Name,
        (Mode::NameEscape, b'u') => Mode::Hex(0),
        (Mode::NameEscape, b'n' | b'r' | b't' | b'b' | b'f' | b'"' | b'\\') => Mode::Name,
        (Mode::Hex(n), b'0') if n < 2 => Mode::Hex(n + 1),
        (Mode::Hex(2), b'0' | b'1') => Mode::LastHex(byte),
        (Mode::LastHex(b'0'), b'0'..=b'7' | b'b' | b'e' | b'f') => Mode::Name,
        (Mode::LastHex(b'1'), b'0'..=b'9' | b'a'..=b'f') => Mode::Name,
        _ => return false,
    };
    place.mode = next;
    true
}

#[derive(Clone, Copy)]
struct Level {
    is_object: bool,
    first_name: usize,
}

/// A text so far.
#[derive(Clone, Default)]
pub struct UniqueNames {
    place: Place,
    levels: Vec<Level>,
    /// Of all open objects, the outer ones first: where each ends in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
    /// The name that is being written.
    name: Vec<u8>,
}

impl UniqueNames {
    fn names(&self, level: Level) -> impl Iterator<Item = &[u8]> {
        let from = move |i: usize| if i == 0 { 0 } else { self.ends[i - 1] };
        (level.first_name..self.ends.len()).map(move |i| &self.bytes[from(i)..self.ends[i]])
    }

    fn has(&self, n_levels: usize, name: &[u8]) -> bool {
        let Some(level) = n_levels.checked_sub(1).map(|i| self.levels[i]) else { return false };
        let end = self.levels.get(n_levels).map_or(self.ends.len(), |above| above.first_name);
        self.names(level).take(end - level.first_name).any(|known| known == name)
    }

    /// REQUIRES: `allows(text)`.
    pub fn advance(&mut self, text: &[u8]) {
        let mut place = self.place;
        for byte in text {
            step(&mut place, *byte, self);
        }
        self.place = place;
    }

    pub fn allows(&self, text: &[u8]) -> bool {
        Trial::new(self).passes(text)
    }

    /// Takes what may not follow out of a mask.
    pub fn restrict(&self, tokens: &NameTokens, words: &mut [u32]) {
        let mut trial = Trial::new(self);
        match self.place.mode {
            Mode::Text | Mode::TextEscape => trial.restrict(tokens, words, &tokens.in_text),
            Mode::Outside => trial.restrict(tokens, words, &tokens.outside),
            Mode::Name => {
                trial.restrict(tokens, words, &tokens.in_name);
                self.forbid_closing(tokens, words);
            }
            Mode::NameEscape | Mode::Hex(_) | Mode::LastHex(_) => {
                let set: Vec<TokenId> = (0..words.len() as TokenId * 32).filter(|t| is_set(words, *t)).collect();
                trial.restrict(tokens, words, &set);
            }
        }
    }

    /// Of the tokens that close the name and open none, those that make it one that the object has.
    fn forbid_closing(&self, tokens: &NameTokens, words: &mut [u32]) {
        let Some(level) = self.levels.last() else { return };
        let ends: Vec<&[u8]> = self.names(*level).filter_map(|known| known.strip_prefix(&self.name[..])).collect();
        if ends.is_empty() {
            return;
        }
        for token in &tokens.closing {
            let closes = |end: &&[u8]| tokens.text(*token).strip_prefix(*end).is_some_and(|rest| rest.first() == Some(&b'"'));
            if is_set(words, *token) && ends.iter().any(closes) {
                clear(words, *token);
            }
        }
    }
}

fn is_set(words: &[u32], token: TokenId) -> bool {
    words[token as usize / 32] >> (token % 32) & 1 == 1
}

fn clear(words: &mut [u32], token: TokenId) {
    words[token as usize / 32] &= !(1 << (token % 32));
}

impl Structure for UniqueNames {
    fn is_in_object(&self) -> bool {
        self.levels.last().is_some_and(|level| level.is_object)
    }

    fn open(&mut self, is_object: bool) {
        self.levels.push(Level { is_object, first_name: self.ends.len() });
    }

    fn close(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        self.ends.truncate(level.first_name);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    fn extend_name(&mut self, byte: u8) {
        self.name.push(byte);
    }

    fn end_name(&mut self) -> bool {
        self.bytes.append(&mut self.name);
        self.ends.push(self.bytes.len());
        true
    }
}

/// A text that goes on from `base`, which stays as it is.
struct Trial<'a> {
    base: &'a UniqueNames,
    /// Levels of the base that are still open, and those opened since.
    n_levels: usize,
    opened: Vec<bool>,
    /// Names since, with the number of levels around them.
    added: Vec<(usize, Vec<u8>)>,
    name: Vec<u8>,
}

impl<'a> Trial<'a> {
    fn new(base: &'a UniqueNames) -> Trial<'a> {
        Trial { base, n_levels: 0, opened: vec![], added: vec![], name: vec![] }
    }

    fn passes(&mut self, text: &[u8]) -> bool {
        self.n_levels = self.base.levels.len();
        self.opened.clear();
        self.added.clear();
        self.name.clone_from(&self.base.name);
        let mut place = self.base.place;
        text.iter().all(|byte| step(&mut place, *byte, self))
    }

    fn restrict(&mut self, tokens: &NameTokens, words: &mut [u32], suspects: &[TokenId]) {
        for token in suspects {
            if is_set(words, *token) && !self.passes(tokens.text(*token)) {
                clear(words, *token);
            }
        }
    }
}

impl Structure for Trial<'_> {
    fn is_in_object(&self) -> bool {
        let below = || self.n_levels.checked_sub(1).is_some_and(|i| self.base.levels[i].is_object);
        self.opened.last().copied().unwrap_or_else(below)
    }

    fn open(&mut self, is_object: bool) {
        self.opened.push(is_object);
    }

    fn close(&mut self) {
        let depth = self.n_levels + self.opened.len();
        self.added.retain(|(level, _)| *level < depth);
        if self.opened.pop().is_none() {
            self.n_levels = self.n_levels.saturating_sub(1);
        }
    }

    fn extend_name(&mut self, byte: u8) {
        self.name.push(byte);
    }

    fn end_name(&mut self) -> bool {
        let depth = self.n_levels + self.opened.len();
        let name = std::mem::take(&mut self.name);
        let is_known = (self.opened.is_empty() && self.base.has(self.n_levels, &name))
            || self.added.iter().any(|(level, known)| *level == depth && *known == name);
        self.added.push((depth, name));
        !is_known
    }
}
