//! What a constraint is written in.

use crate::error::{Error, Result};

/// Numbers are part of the C interface (`enum candor_grammar_kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    JsonSchema = 0,
    JsonObject = 1,
    Regex = 2,
    Lark = 3,
    Choice = 4,
}

impl Kind {
    pub fn of(number: i32) -> Result<Kind> {
        [Kind::JsonSchema, Kind::JsonObject, Kind::Regex, Kind::Lark, Kind::Choice]
            .into_iter()
            .find(|kind| *kind as i32 == number)
            .ok_or_else(|| Error::internal(format!("grammar kind {number} is not known")))
    }
}
