//! Checks of a regular expression before the compiler below sees it: syntax, depth, repetition counts. Linear in its length.

use regex_syntax::ast::{self, Ast, Position, RepetitionKind, RepetitionRange, Visitor};

use crate::error::{Error, Result};

pub const MAX_GRAMMAR_DEPTH: usize = 256;
/// Of a repetition: `{n,m}` of a regular expression, `~n..m` of a grammar, `minItems` and `minLength` of a schema.
pub const MAX_REPEAT: u64 = 100_000;

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
pub fn check(pattern: &str, what: &str) -> Result<()> {
    let parsed = ast::parse::ParserBuilder::new().nest_limit(MAX_GRAMMAR_DEPTH as u32).build().parse(pattern);
    let tree = match parsed {
        Ok(tree) => tree,
        Err(e) => {
            let at = e.span().start;
            return Err(match e.kind() {
                ast::ErrorKind::NestLimitExceeded(limit) => Error::too_deep(what, *limit as usize, at.offset),
                kind => position_error(what, &at, &kind.to_string()),
            });
        }
    };
    ast::visit(&tree, Counts { what })
}
