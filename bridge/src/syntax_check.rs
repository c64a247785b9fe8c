//! Checks of a client's regular expression, grammar or JSON text before the compiler below sees it: depth, counts, and
//! what the compiler would silently accept. Every function is linear in its input and does not recurse.

use regex_syntax::ast::{self, Ast, Position, RepetitionKind, RepetitionRange, Visitor};
use serde_json::Value;

use crate::error::{clip, Error, Result, Status};

pub const MAX_SCHEMA_DEPTH: usize = 64;
pub const MAX_GRAMMAR_DEPTH: usize = 256;
/// Of a repetition: `{n,m}` of a regular expression, `~n..m` of a grammar, `minItems` and `minLength` of a schema.
pub const MAX_REPEAT: u64 = 100_000;
/// Rules refer to each other recursively in the compiler below, on a stack of `guard::STACK_BYTES`, and a chain of them
/// takes time quadratic in its length: about 1.5 s at the limit.
pub const MAX_GRAMMAR_LINES: usize = 8000;
/// Intersections of terminals take time exponential in their number.
const MAX_INTERSECTIONS: usize = 8;

fn too_deep(what: &str, limit: usize, at: usize) -> Error {
    Error::limit(format!("{what} is nested deeper than {limit} (at byte {at})"))
}

/// Depth of JSON text, by its brackets outside of strings. Whether it is JSON at all is the parser's matter.
pub fn json_depth(text: &str, limit: usize, what: &str) -> Result<()> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, b) in text.bytes().enumerate() {
        if in_string {
            in_string = escaped || b != b'"';
            escaped = !escaped && b == b'\\';
            continue;
        }
        match b {
            b'"' => in_string = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > limit {
            return Err(too_deep(what, limit, at));
        }
    }
    Ok(())
}

struct Counts<'a> {
    what: &'a str,
}

fn position_error(what: &str, at: &Position, message: &str) -> Error {
    Error::invalid(format!("{what}, character {}: {message}", at.column.max(1)))
}

impl Visitor for Counts<'_> {
    type Output = ();
    type Err = Error;

    fn finish(self) -> std::result::Result<(), Self::Err> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> std::result::Result<(), Self::Err> {
        let Ast::Repetition(repetition) = ast else { return Ok(()) };
        let start = &repetition.op.span.start;
        // The compiler below takes these for what no reader means: `a**` is an error everywhere else.
        if matches!(*repetition.ast, Ast::Repetition(_) | Ast::Assertion(_) | Ast::Empty(_) | Ast::Flags(_)) {
            return Err(position_error(self.what, start, "nothing to repeat here"));
        }
        let RepetitionKind::Range(range) = &repetition.op.kind else { return Ok(()) };
        let (RepetitionRange::Exactly(count) | RepetitionRange::AtLeast(count) | RepetitionRange::Bounded(_, count)) = range;
        if u64::from(*count) > MAX_REPEAT {
            let message = format!("repetition {count} is above the limit of {MAX_REPEAT}");
            return Err(Error::limit(position_error(self.what, start, &message).message));
        }
        Ok(())
    }
}

/// Syntax, depth and repetition counts; an error names the character.
pub fn regex(pattern: &str, what: &str) -> Result<()> {
    let parsed = ast::parse::ParserBuilder::new().nest_limit(MAX_GRAMMAR_DEPTH as u32).build().parse(pattern);
    let tree = match parsed {
        Ok(tree) => tree,
        Err(e) => {
            let at = e.span().start;
            return Err(match e.kind() {
                ast::ErrorKind::NestLimitExceeded(limit) => too_deep(what, *limit as usize, at.offset),
                kind => position_error(what, &at, &kind.to_string()),
            });
        }
    };
    ast::visit(&tree, Counts { what })
}

/// The pointer of a key `x-guidance` (options of the compiler below, not the client's to set), if there is one.
pub fn find_guidance(root: &Value) -> Option<String> {
    let mut todo = vec![(root, String::new())];
    while let Some((value, pointer)) = todo.pop() {
        match value {
            Value::Object(map) => {
                for (key, child) in map {
                    let at = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                    if key == "x-guidance" {
                        return Some(at);
                    }
                    todo.push((child, at));
                }
            }
            Value::Array(items) => {
                todo.extend(items.iter().enumerate().map(|(i, child)| (child, format!("{pointer}/{i}"))));
            }
            _ => {}
        }
    }
    None
}

/// Schemas that a grammar carries after `%json`, or what looks like them.
pub(crate) fn embedded_schemas(source: &str) -> Vec<Value> {
    let values = source.split("%json").skip(1);
    values.filter_map(|rest| serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()).collect()
}

/// JSON values that a grammar carries after `%json` and `%llguidance`. A keyword inside a comment or a string is examined
/// too: that can only refuse more.
fn embedded_json(source: &str) -> Result<()> {
    for keyword in ["%json", "%llguidance"] {
        for (at, _) in source.match_indices(keyword) {
            let rest = &source[at + keyword.len()..];
            let Some(Ok(value)) = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next() else { continue };
            let line = source[..at].matches('\n').count() + 1;
            if let Some(pointer) = find_guidance(&value) {
                return Err(Error::unsupported(format!("grammar, line {line}: {pointer} is not accepted here")));
            }
            if keyword == "%llguidance" && value.get("allow_invalid_utf8").is_some_and(|v| v != &Value::Bool(false)) {
                return Err(Error::unsupported(format!("grammar, line {line}: allow_invalid_utf8 is not accepted")));
            }
            if keyword == "%json" {
                crate::schema_check::check(&value)
                    .map_err(|e| Error { message: format!("grammar, line {line}: {}", e.message), ..e })?;
            }
        }
    }
    Ok(())
}

/// What stands at `at` outside of brackets: the length of a string, regular expression or comment that begins there.
fn lark_literal(bytes: &[u8], at: usize) -> usize {
    let until = |end: u8, line_end: bool| {
        let mut i = at + 1;
        while i < bytes.len() && bytes[i] != end && !(line_end && bytes[i] == b'\n') {
            i += if bytes[i] == b'\\' && end != b'\n' { 2 } else { 1 };
        }
        (i + 1).min(bytes.len()) - at
    };
    match (bytes[at], bytes.get(at + 1)) {
        (b'"', _) => until(b'"', true),
        (b'#', _) | (b'/', Some(b'/')) => until(b'\n', true),
        (b'/', _) => until(b'/', true),
        _ => 0,
    }
}

/// Limits only: what is wrong with a regular expression, the compiler says in the grammar's own lines.
fn check_lark_regex(source: &str, at: usize, length: usize) -> Result<()> {
    let literal = source.get(at..at + length).unwrap_or_default();
    let Some(inner) = literal.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) else { return Ok(()) };
    let line = source[..at].matches('\n').count() + 1;
    match regex(inner, &format!("grammar, line {line}")) {
        Err(e) if e.status == Status::Limit => Err(e),
        _ => Ok(()),
    }
}

/// Depth, size and repetition counts of a Lark grammar, and its embedded JSON.
pub fn lark(source: &str) -> Result<()> {
    let n_lines = source.matches('\n').count() + 1;
    if n_lines > MAX_GRAMMAR_LINES {
        return Err(Error::limit(format!("grammar has {n_lines} lines, more than {MAX_GRAMMAR_LINES}")));
    }
    let bytes = source.as_bytes();
    let (mut depth, mut n_intersections, mut at) = (0usize, 0usize, 0usize);
    while at < bytes.len() {
        let literal = lark_literal(bytes, at);
        if literal > 0 {
            check_lark_regex(source, at, literal)?;
            at += literal;
            continue;
        }
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'&' => n_intersections += 1,
            b'0'..=b'9' => at += check_count(source, at)? - 1,
            _ => {}
        }
        if n_intersections > MAX_INTERSECTIONS {
            return Err(Error::limit(format!("grammar has more than {MAX_INTERSECTIONS} intersections (`&`)")));
        }
        if depth > MAX_GRAMMAR_DEPTH {
            return Err(too_deep("grammar", MAX_GRAMMAR_DEPTH, at));
        }
        at += 1;
    }
    embedded_json(source)
}

/// A number after `~`, `..`, `{` or `,` is a repetition count. Returns its length.
fn check_count(source: &str, at: usize) -> Result<usize> {
    let bytes = source.as_bytes();
    let length = bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    let before = source[..at].trim_end_matches([' ', '\t', '+']).as_bytes().last();
    let is_count = matches!(before, Some(b'~' | b'.' | b'{' | b','));
    let digits = &source[at..at + length];
    if is_count && digits.parse::<u64>().map_or(true, |n| n > MAX_REPEAT) {
        let line = source[..at].matches('\n').count() + 1;
        let digits = clip(digits, 40);
        return Err(Error::limit(format!("grammar, line {line}: repetition {digits} is above the limit of {MAX_REPEAT}")));
    }
    Ok(length)
}
