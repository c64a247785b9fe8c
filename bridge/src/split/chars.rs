//! Sets of characters, by Unicode 16, as Oniguruma names them.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use crate::error::{clip, Error, Result};

/// Immutable; looked up in constant time below U+0080, by bisection above.
#[derive(Debug, PartialEq, Eq)]
pub struct CharSet {
    ascii: u128,
    ranges: Vec<(u32, u32)>,
}

impl CharSet {
    pub fn of(class: &ClassUnicode) -> CharSet {
        let ranges: Vec<(u32, u32)> = class.ranges().iter().map(|r| (r.start() as u32, r.end() as u32)).collect();
        let has = |c: u32| ranges.iter().any(|&(from, to)| c >= from && c <= to);
        let ascii = (0..128).filter(|&c| has(c)).fold(0u128, |bits, c| bits | (1 << c));
        CharSet { ascii, ranges }
    }

    pub fn has(&self, c: u32) -> bool {
        if c < 128 {
            return self.ascii >> c & 1 == 1;
        }
        let at = self.ranges.partition_point(|&(_, to)| to < c);
        self.ranges.get(at).is_some_and(|&(from, _)| from <= c)
    }
}

pub fn one(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

pub fn range(from: char, to: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(from, to)])
}

pub fn negated(mut class: ClassUnicode) -> ClassUnicode {
    class.negate();
    class
}

/// With every character that folds to one of it alone.
pub fn folded(mut class: ClassUnicode) -> Result<ClassUnicode> {
    class.try_case_fold_simple().map_err(|_| Error::internal("no tables for case"))?;
    Ok(class)
}

/// A set that the regex crates know by the same words: `\p{...}`, `\s`.
fn known(expression: &str) -> Result<ClassUnicode> {
    let hir = regex_syntax::parse(expression)
        .map_err(|_| Error::unsupported(format!("{} is no set of characters that is known", clip(expression, 60))))?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class),
        _ => Err(Error::unsupported(format!("{} is no set of characters that is known", clip(expression, 60)))),
    }
}

/// `\p{name}`.
pub fn property(name: &str) -> Result<ClassUnicode> {
    let is_plain =
        !name.is_empty() && name.len() <= 60 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_- =.".contains(&b));
    if !is_plain {
        return Err(Error::unsupported(format!("\\p{{{}}} is not known", clip(name, 60))));
    }
    if let Some(posix) = bracket(&name.to_ascii_lowercase())? {
        return Ok(posix);
    }
    known(&format!("\\p{{{name}}}"))
}

/// The names that stand in `[: :]`, and in `\p{ }` too.
pub fn bracket(name: &str) -> Result<Option<ClassUnicode>> {
    let expression = match name {
        "alpha" => r"\p{Alphabetic}",
        "digit" => r"\p{Nd}",
        "alnum" => r"[\p{Alphabetic}\p{Nd}]",
        "upper" => r"\p{Uppercase}",
        "lower" => r"\p{Lowercase}",
        "space" => r"\s",
        "cntrl" => r"\p{Cc}",
        "xdigit" => r"[0-9A-Fa-f]",
        "word" => r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]",
        _ => return Ok(None),
    };
    known(expression).map(Some)
}

/// `\d`, `\s`, `\w`, `\h` and their opposites; nothing for other letters.
pub fn shorthand(letter: char) -> Result<Option<ClassUnicode>> {
    let name = match letter.to_ascii_lowercase() {
        'd' => "digit",
        's' => "space",
        'w' => "word",
        'h' => "xdigit",
        _ => return Ok(None),
    };
    let class = bracket(name)?;
    Ok(if letter.is_ascii_uppercase() { class.map(negated) } else { class })
}
