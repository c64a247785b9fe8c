//! Checks of a Lark grammar before the compiler below sees it: depth, size, repetition counts, and the JSON that it carries.
//! Every function is linear in its input and does not recurse.

use serde_json::Value;

use crate::error::{clip, Error, Result, Status};
use crate::schema;
use crate::schema::pattern::{self, MAX_GRAMMAR_DEPTH, MAX_REPEAT};

/// Rules refer to each other recursively in the compiler below, on a stack of `guard::STACK_BYTES`, and a chain of them
/// takes time quadratic in its length: about 1.5 s at the limit.
pub const MAX_GRAMMAR_LINES: usize = 8000;
/// Intersections of terminals take time exponential in their number.
const MAX_INTERSECTIONS: usize = 8;

/// Schemas that a grammar carries after `%json`, or what looks like them.
pub fn embedded_schemas(source: &str) -> Vec<Value> {
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
            if let Some(pointer) = schema::words::find_guidance(&value) {
                return Err(Error::unsupported(format!("grammar, line {line}: {pointer} is not accepted here")));
            }
            if keyword == "%llguidance" && value.get("allow_invalid_utf8").is_some_and(|v| v != &Value::Bool(false)) {
                return Err(Error::unsupported(format!("grammar, line {line}: allow_invalid_utf8 is not accepted")));
            }
            if keyword == "%json" {
                schema::check::check(&value)
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
    match pattern::check(inner, &format!("grammar, line {line}")) {
        Err(e) if e.status == Status::Limit => Err(e),
        _ => Ok(()),
    }
}

/// Depth, size and repetition counts of a Lark grammar, and its embedded JSON.
pub fn check(source: &str) -> Result<()> {
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
            return Err(Error::too_deep("grammar", MAX_GRAMMAR_DEPTH, at));
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
