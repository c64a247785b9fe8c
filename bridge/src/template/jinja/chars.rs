//! Characters as CPython's `str` classifies them.

use std::sync::OnceLock;

/// `str.isspace`: Unicode's white space and four control characters.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// What `str.splitlines` takes for an end of line.
pub fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

struct Class(Vec<(char, char)>);

impl Class {
    fn of(pattern: &str) -> Class {
        let parsed = regex_syntax::parse(pattern).ok();
        let ranges = match parsed.as_ref().map(|hir| hir.kind()) {
            Some(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) => {
                class.ranges().iter().map(|r| (r.start(), r.end())).collect()
            }
            _ => Vec::new(),
        };
        Class(ranges)
    }

    fn holds(&self, c: char) -> bool {
        let at = self.0.partition_point(|r| r.1 < c);
        self.0.get(at).is_some_and(|r| r.0 <= c)
    }
}

fn decimals() -> &'static Class {
    static CLASS: OnceLock<Class> = OnceLock::new();
    CLASS.get_or_init(|| Class::of(r"\p{Nd}"))
}

fn letters() -> &'static Class {
    static CLASS: OnceLock<Class> = OnceLock::new();
    CLASS.get_or_init(|| Class::of(r"\p{L}"))
}

pub fn is_decimal(c: char) -> bool {
    c.is_ascii_digit() || !c.is_ascii() && decimals().holds(c)
}

/// Decimals, and digits such as superscripts.
pub fn is_digit(c: char) -> bool {
    const MORE: [(u32, u32); 20] = [
        (0xb2, 0xb3),
        (0xb9, 0xb9),
        (0x1369, 0x1371),
        (0x19da, 0x19da),
        (0x2070, 0x2070),
        (0x2074, 0x2079),
        (0x2080, 0x2089),
        (0x2460, 0x2468),
        (0x2474, 0x247c),
        (0x2488, 0x2490),
        (0x24ea, 0x24ea),
        (0x24f5, 0x24fd),
        (0x24ff, 0x24ff),
        (0x2776, 0x277e),
        (0x2780, 0x2788),
        (0x278a, 0x2792),
        (0x10a40, 0x10a43),
        (0x10e60, 0x10e68),
        (0x11052, 0x1105a),
        (0x1f100, 0x1f10a),
    ];
    is_decimal(c) || MORE.iter().any(|r| (r.0..=r.1).contains(&(c as u32)))
}

pub fn is_numeric(c: char) -> bool {
    c.is_numeric() || is_digit(c)
}

pub fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || !c.is_ascii() && letters().holds(c)
}

pub fn is_alnum(c: char) -> bool {
    is_letter(c) || is_numeric(c)
}

/// What `re` takes for `\w`.
pub fn is_word(c: char) -> bool {
    c == '_' || is_alnum(c)
}

/// `str.isprintable`; the standard library escapes by the same categories.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    // Behind another character, combining marks are not escaped.
    let text: String = ['a', c].iter().collect();
    text.escape_debug().nth(1) == Some(c)
}

/// `str.title`: a letter behind no letter is upper case.
pub fn titled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_word = false;
    for c in text.chars() {
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        in_word = c.is_lowercase() || c.is_uppercase();
    }
    out
}

pub fn swapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
    }
    out
}
