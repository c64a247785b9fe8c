//! Jinja's tokens, with `trim_blocks` and `lstrip_blocks` on and `keep_trailing_newline` off.

use super::budget::{Done, Fault, Kind};
use super::chars::is_space;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Data(String),
    BlockBegin,
    BlockEnd,
    PrintBegin,
    PrintEnd,
    Name(String),
    Str(String),
    Int(i128),
    Float(f64),
    Operator(&'static str),
    End,
}

const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":",
    "|", ",", ";",
];

pub fn wrong<T>(line: u32, message: impl Into<String>) -> Done<T> {
    Err(Box::new(Fault { kind: Kind::Invalid, line, message: message.into() }))
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    line_starts: bool, // the last thing before `at` ended in a newline
    tokens: Vec<(Token, u32)>,
}

/// `\r\n` and `\r` are newlines; one newline at the end is no part of a template.
fn normalized(source: &str) -> String {
    let mut text = source.replace("\r\n", "\n").replace('\r', "\n");
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

pub fn tokens(source: &str) -> Done<Vec<(Token, u32)>> {
    let source = normalized(source);
    let mut lexer = Lexer { source: &source, at: 0, line: 1, line_starts: true, tokens: Vec::new() };
    while lexer.at < source.len() {
        lexer.next_part()?;
    }
    let line = lexer.line;
    lexer.tokens.push((Token::End, line));
    Ok(lexer.tokens)
}

fn skip_space(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start_matches(is_space).len()
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn advance(&mut self, to: usize) {
        let passed = &self.source[self.at..to];
        self.line += passed.matches('\n').count() as u32;
        if let Some(last) = passed.as_bytes().last() {
            self.line_starts = *last == b'\n';
        }
        self.at = to;
    }

    fn push_data(&mut self, data: &str) {
        if !data.is_empty() {
            self.tokens.push((Token::Data(data.to_string()), self.line));
        }
    }

    /// The text before a tag, whose `{%` is followed by `sign`.
    fn data_before(&self, text: &'a str, sign: Option<u8>, strips_line: bool) -> &'a str {
        if sign == Some(b'-') {
            return text.trim_end_matches(is_space);
        }
        if sign == Some(b'+') || !strips_line {
            return text;
        }
        let line = text.rfind('\n').map_or(0, |at| at + 1);
        let is_blank = !text[line..].is_empty() && text[line..].chars().all(is_space);
        if is_blank && (line > 0 || self.line_starts) {
            &text[..line]
        } else {
            text
        }
    }

    fn sign_at(&self, at: usize) -> Option<u8> {
        self.source.as_bytes().get(at).copied().filter(|b| matches!(b, b'-' | b'+'))
    }

    /// Data up to the next tag, and the tag.
    fn next_part(&mut self) -> Done<()> {
        let rest = self.rest();
        let opening = rest.match_indices('{').find(|(i, _)| matches!(rest.as_bytes().get(i + 1), Some(b'%' | b'#' | b'{')));
        let Some((before, _)) = opening else {
            self.push_data(rest);
            self.advance(self.source.len());
            return Ok(());
        };
        let tag = self.at + before;
        let kind = self.source.as_bytes()[tag + 1];
        let sign = self.sign_at(tag + 2);
        let data = self.data_before(&rest[..before], sign, kind != b'{');
        self.push_data(data);
        let inside = tag + 2 + usize::from(sign.is_some());
        self.advance(inside);
        match kind {
            b'#' => self.comment(),
            b'%' => match self.raw_begin(inside) {
                Some(body) => self.raw(body),
                None => self.tag(Token::BlockBegin),
            },
            _ => self.tag(Token::PrintBegin),
        }
    }

    /// Behind `{%`: behind the `%}` of a `raw` tag.
    fn raw_begin(&self, at: usize) -> Option<usize> {
        let at = skip_space(self.source, at);
        let at = skip_space(self.source, at + self.source[at..].strip_prefix("raw").map(|_| 3)?);
        let rest = &self.source[at..];
        if rest.starts_with("-%}") {
            return Some(skip_space(self.source, at + 3));
        }
        rest.starts_with("%}").then_some(at + 2)
    }

    /// Behind the closing `%}` or `#}` at `at`, with what it strips.
    fn closed(&self, at: usize, end: &str) -> Option<usize> {
        let rest = &self.source[at..];
        if rest.strip_prefix('-').is_some_and(|r| r.starts_with(end)) {
            return Some(skip_space(self.source, at + 3));
        }
        if rest.strip_prefix('+').is_some_and(|r| r.starts_with(end)) {
            return Some(at + 3);
        }
        let after = rest.strip_prefix(end)?;
        Some(at + 2 + usize::from(after.starts_with('\n')))
    }

    fn comment(&mut self) -> Done<()> {
        let Some(end) = self.rest().find("#}").map(|i| self.at + i) else {
            return wrong(self.line, "Missing end of comment tag");
        };
        let signed = end > self.at && matches!(self.source.as_bytes()[end - 1], b'-' | b'+');
        let to = self.closed(end - usize::from(signed), "#}").unwrap_or(end + 2);
        self.advance(to);
        Ok(())
    }

    fn raw(&mut self, body: usize) -> Done<()> {
        self.advance(body);
        let mut from = body;
        while let Some(found) = self.source[from..].find("{%") {
            let tag = from + found;
            from = tag + 2;
            let sign = self.sign_at(from);
            let word = skip_space(self.source, from + usize::from(sign.is_some()));
            if !self.source[word..].starts_with("endraw") {
                continue;
            }
            if let Some(to) = self.closed(skip_space(self.source, word + 6), "%}") {
                let data = self.data_before(&self.source[body..tag], sign, true);
                self.push_data(data);
                self.advance(to);
                return Ok(());
            }
        }
        wrong(self.line, "Missing end of raw directive")
    }

    fn tag(&mut self, begin: Token) -> Done<()> {
        let is_block = begin == Token::BlockBegin;
        self.tokens.push((begin, self.line));
        let mut open: Vec<&str> = Vec::new();
        loop {
            if open.is_empty() {
                if let Some(to) = self.tag_end(is_block) {
                    let end = if is_block { Token::BlockEnd } else { Token::PrintEnd };
                    self.tokens.push((end, self.line));
                    self.advance(to);
                    return Ok(());
                }
            }
            let Some(c) = self.rest().chars().next() else {
                return wrong(self.line, "unexpected end of template inside a tag");
            };
            if is_space(c) {
                self.advance(skip_space(self.source, self.at));
            } else if c.is_ascii_digit() {
                self.number()?;
            } else if c.is_alphanumeric() || c == '_' {
                let length = self.rest().find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest().len());
                self.tokens.push((Token::Name(self.rest()[..length].to_string()), self.line));
                self.advance(self.at + length);
            } else if c == '"' || c == '\'' {
                self.string(c)?;
            } else {
                self.operator(&mut open)?;
            }
        }
    }

    fn tag_end(&self, is_block: bool) -> Option<usize> {
        if is_block {
            return self.closed(self.at, "%}");
        }
        if self.rest().starts_with("-}}") {
            return Some(skip_space(self.source, self.at + 3));
        }
        self.rest().starts_with("}}").then_some(self.at + 2)
    }

    fn operator(&mut self, open: &mut Vec<&'static str>) -> Done<()> {
        let Some(operator) = OPERATORS.iter().find(|o| self.rest().starts_with(**o)) else {
            let c = self.rest().chars().next().unwrap_or(' ');
            return wrong(self.line, format!("unexpected character {c:?}"));
        };
        match *operator {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" if open.pop() != Some(operator) => return wrong(self.line, format!("unexpected '{operator}'")),
            _ => {}
        }
        self.tokens.push((Token::Operator(operator), self.line));
        self.advance(self.at + operator.len());
        Ok(())
    }

    fn string(&mut self, quote: char) -> Done<()> {
        let bytes = self.rest().as_bytes();
        let mut end = 1;
        while end < bytes.len() && bytes[end] != quote as u8 {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            return wrong(self.line, "string without an end");
        }
        let text = unescaped(&self.rest()[1..end], self.line)?;
        self.tokens.push((Token::Str(text), self.line));
        self.advance(self.at + end + 1);
        Ok(())
    }

    fn number(&mut self) -> Done<()> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| {
            let mut at = from;
            while bytes.get(at).is_some_and(u8::is_ascii_digit)
                || at > from && bytes.get(at) == Some(&b'_') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
            {
                at += 1;
            }
            at
        };
        let base = match bytes.get(1).map(u8::to_ascii_lowercase) {
            Some(b'x') => 16,
            Some(b'o') => 8,
            Some(b'b') => 2,
            _ => 10,
        };
        if bytes[0] == b'0' && base != 10 {
            let length = self.rest()[2..].find(|c: char| !(c.is_digit(base) || c == '_')).map_or(bytes.len(), |n| n + 2);
            return match i128::from_str_radix(&self.rest()[2..length].replace('_', ""), base) {
                Ok(value) => self.push_number(Token::Int(value), length),
                Err(_) => wrong(self.line, "number out of range"),
            };
        }
        let whole = digits(0);
        let mut end = whole;
        // A float has digits behind its point; one behind a point itself is an index.
        if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                end = digits(end + 1 + sign);
            }
        }
        let is_index = self.source[..self.at].ends_with('.');
        if end == whole || is_index {
            return match self.rest()[..whole].replace('_', "").parse() {
                Ok(value) => self.push_number(Token::Int(value), whole),
                Err(_) => wrong(self.line, "number out of range"),
            };
        }
        let value = self.rest()[..end].replace('_', "").parse().unwrap_or(f64::INFINITY);
        self.push_number(Token::Float(value), end)
    }

    fn push_number(&mut self, token: Token, length: usize) -> Done<()> {
        self.tokens.push((token, self.line));
        self.advance(self.at + length);
        Ok(())
    }
}

/// CPython's `unicode-escape`; an escape that it does not know stays as it is.
fn unescaped(text: &str, line: u32) -> Done<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(code) = rest.chars().next() else { break };
        rest = &rest[code.len_utf8()..];
        let simple = match code {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '\'' | '"' => code,
            '\n' => continue,
            'x' | 'u' | 'U' => {
                let n = match code {
                    'x' => 2,
                    'u' => 4,
                    _ => 8,
                };
                let digits = rest.get(..n).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                let value = digits.and_then(|d| u32::from_str_radix(d, 16).ok()).and_then(char::from_u32);
                let Some(value) = value else { return wrong(line, format!("truncated \\{code} escape")) };
                rest = &rest[n..];
                value
            }
            '0'..='7' => {
                let more = rest.bytes().take(2).take_while(|b| matches!(b, b'0'..=b'7')).count();
                let digits = format!("{code}{}", &rest[..more]);
                rest = &rest[more..];
                char::from_u32(u32::from_str_radix(&digits, 8).unwrap_or(0)).unwrap_or('\0')
            }
            other => {
                out.push('\\');
                other
            }
        };
        out.push(simple);
    }
    out.push_str(rest);
    Ok(out)
}
