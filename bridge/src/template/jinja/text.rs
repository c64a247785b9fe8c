//! Strings that know which of their bytes a client wrote, whatever the template does with them. Immutable, cheap to copy.

use std::rc::Rc;

use super::budget::{limit, spend, Charge, Done, MAX_TEXT_BYTES};

const OVERHEAD: usize = 96;
const RANGE_BYTES: usize = 16;

#[derive(Clone)]
pub struct Str(Rc<Inner>);

struct Inner {
    text: String,
    client: Vec<(usize, usize)>, // byte ranges, ascending, apart from each other
    is_safe: bool,               // jinja2's Markup
    _charge: Charge,
}

impl Str {
    /// The template's own words.
    pub fn own(text: &str) -> Done<Str> {
        let mut builder = Builder::default();
        builder.push_own(text)?;
        builder.finish()
    }

    pub fn client(text: &str) -> Done<Str> {
        let mut builder = Builder::default();
        builder.push_as(text, true)?;
        builder.finish()
    }

    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    pub fn is_safe(&self) -> bool {
        self.0.is_safe
    }

    pub fn with_safety(&self, is_safe: bool) -> Done<Str> {
        if is_safe == self.0.is_safe {
            return Ok(self.clone());
        }
        let mut builder = Builder { is_safe, ..Builder::default() };
        builder.push(self)?;
        builder.finish()
    }

    pub fn slice(&self, from: usize, to: usize) -> Done<Str> {
        if from == 0 && to == self.0.text.len() {
            return Ok(self.clone());
        }
        let mut builder = Builder::like(self);
        builder.push_range(self, from, to)?;
        builder.finish()
    }

    /// A part of `as_str()`.
    pub fn part(&self, part: &str) -> Done<Str> {
        let from = part.as_ptr() as usize - self.0.text.as_ptr() as usize;
        self.slice(from, from + part.len())
    }

    /// The stretches of one writer each: (text, is the client's).
    pub fn stretches(&self) -> impl Iterator<Item = (&str, bool)> {
        let (text, client) = (&self.0.text, &self.0.client);
        let mut at = 0;
        let mut next = 0;
        std::iter::from_fn(move || {
            if at == text.len() {
                return None;
            }
            let begin = at;
            let (is_client, end) = match client.get(next) {
                Some(&(from, to)) if from == at => {
                    next += 1;
                    (true, to)
                }
                Some(&(from, _)) => (false, from),
                None => (false, text.len()),
            };
            at = end;
            Some((&text[begin..end], is_client))
        })
    }

    /// Each stretch put through a function.
    pub fn mapped(&self, change: impl Fn(&str) -> String) -> Done<Str> {
        let mut builder = Builder::like(self);
        for (text, is_client) in self.stretches() {
            builder.push_as(&change(text), is_client)?;
        }
        builder.finish()
    }

    /// The text with a mark at the begin and the end of every stretch that a client wrote.
    pub fn marked(&self, mark: Option<char>) -> String {
        let mut out = String::with_capacity(self.0.text.len());
        for (text, is_client) in self.stretches() {
            match mark {
                Some(mark) if is_client => {
                    out.push(mark);
                    out.push_str(text);
                    out.push(mark);
                }
                _ => out.push_str(text),
            }
        }
        out
    }
}

#[derive(Default)]
pub struct Builder {
    text: String,
    client: Vec<(usize, usize)>,
    pub is_safe: bool,
    charge: Charge,
}

impl Builder {
    pub fn like(string: &Str) -> Builder {
        Builder { is_safe: string.0.is_safe, ..Builder::default() }
    }

    fn reserve(&mut self, bytes: usize) -> Done<()> {
        spend(1 + bytes as u64 / 64)?;
        let needed = self.text.len().saturating_add(bytes);
        if needed > MAX_TEXT_BYTES {
            return limit(format!("text in the template is larger than {} MiB", MAX_TEXT_BYTES >> 20));
        }
        let charged = needed + self.client.len() * RANGE_BYTES + OVERHEAD;
        if charged > self.charge.bytes() {
            let bytes = if self.text.is_empty() { charged } else { charged * 2 };
            self.charge.grow_to(bytes)?;
        }
        Ok(())
    }

    pub fn push_as(&mut self, text: &str, is_client: bool) -> Done<()> {
        self.reserve(text.len())?;
        let begin = self.text.len();
        self.text.push_str(text);
        if is_client && !text.is_empty() {
            self.note_client(begin, self.text.len());
        }
        Ok(())
    }

    fn note_client(&mut self, from: usize, to: usize) {
        match self.client.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.client.push((from, to)),
        }
    }

    pub fn push_own(&mut self, text: &str) -> Done<()> {
        self.push_as(text, false)
    }

    pub fn push(&mut self, string: &Str) -> Done<()> {
        self.push_range(string, 0, string.0.text.len())
    }

    pub fn push_range(&mut self, string: &Str, from: usize, to: usize) -> Done<()> {
        self.reserve(to - from)?;
        let begin = self.text.len();
        self.text.push_str(&string.0.text[from..to]);
        let client = &string.0.client;
        let first = client.partition_point(|r| r.1 <= from);
        for &(a, b) in client[first..].iter().take_while(|r| r.0 < to) {
            self.note_client(begin + a.max(from) - from, begin + b.min(to) - from);
        }
        Ok(())
    }

    /// A part of the string's text.
    pub fn push_part(&mut self, string: &Str, part: &str) -> Done<()> {
        let from = part.as_ptr() as usize - string.0.text.as_ptr() as usize;
        self.push_range(string, from, from + part.len())
    }

    /// `n` copies; the room for them is asked for first.
    pub fn repeat(&mut self, string: &Str, n: usize) -> Done<()> {
        let bytes = string.0.text.len().saturating_mul(n);
        if bytes > MAX_TEXT_BYTES {
            return limit(format!("text in the template is larger than {} MiB", MAX_TEXT_BYTES >> 20));
        }
        if string.0.client.is_empty() {
            self.reserve(bytes)?;
            self.text.extend(std::iter::repeat_n(string.as_str(), if bytes == 0 { 0 } else { n }));
            return Ok(());
        }
        (0..n).try_for_each(|_| self.push(string))
    }

    pub fn finish(mut self) -> Done<Str> {
        self.text.shrink_to_fit();
        self.client.shrink_to_fit();
        let bytes = self.text.len() + self.client.len() * RANGE_BYTES + OVERHEAD;
        self.charge.grow_to(bytes)?;
        self.charge.shrink_to(bytes);
        Ok(Str(Rc::new(Inner { text: self.text, client: self.client, is_safe: self.is_safe, _charge: self.charge })))
    }
}
